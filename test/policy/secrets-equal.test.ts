import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { secretsEqual } from '../../policy/secrets-equal.ts'

it('secretsEqual is true only for equal secrets of any length', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (one, other) => {
      expect(secretsEqual(one, other)).toBe(Buffer.from(one).equals(Buffer.from(other)))
      expect(secretsEqual(one, Buffer.from(one))).toBe(true)
      expect(secretsEqual(`${one}x`, one)).toBe(false)
    }),
  )
  expect(secretsEqual('', undefined)).toBe(false)
})

it('secretsEqual compares digests with timingSafeEqual, so that the time reveals nothing', () => {
  const digest = (text: string) => crypto.createHash('sha256').update(text).digest()
  const compare = vi.spyOn(crypto, 'timingSafeEqual')
  syncBuiltinESMExports()
  try {
    secretsEqual('the known secret', 't')
    secretsEqual('the known secret', 'the known secres')
    expect(compare.mock.calls).toEqual([
      [digest('the known secret'), digest('t')],
      [digest('the known secret'), digest('the known secres')],
    ])
  } finally {
    compare.mockRestore()
    syncBuiltinESMExports()
  }
})
