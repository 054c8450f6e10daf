import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { isSameSecret } from '../../policy/same-secret.ts'

it('isSameSecret is true for equal secrets alone, whatever their lengths', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (one, other) => {
      expect(isSameSecret(one, other)).toBe(Buffer.from(one).equals(Buffer.from(other)))
      expect(isSameSecret(one, Buffer.from(one))).toBe(true)
      expect(isSameSecret(`${one}x`, one)).toBe(false)
    }),
  )
  expect(isSameSecret('', undefined)).toBe(false)
})

it('isSameSecret compares digests of one length with timingSafeEqual, so that time tells nothing', () => {
  const digest = (text: string) => crypto.createHash('sha256').update(text).digest()
  const compare = vi.spyOn(crypto, 'timingSafeEqual')
  syncBuiltinESMExports()
  try {
    isSameSecret('the known secret', 't')
    isSameSecret('the known secret', 'the known secres')
    expect(compare.mock.calls).toEqual([
      [digest('the known secret'), digest('t')],
      [digest('the known secret'), digest('the known secres')],
    ])
  } finally {
    compare.mockRestore()
    syncBuiltinESMExports()
  }
})
