import type * as Crypto from 'node:crypto'
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { expect, it, vi } from 'vitest'
import { isSameSecret } from '../../policy/same-secret.ts'

const compared = vi.hoisted(() => [] as [Uint8Array, Uint8Array][])
vi.mock('node:crypto', async (load) => {
  const real = await load<typeof Crypto>()
  const timingSafeEqual = (a: Uint8Array, b: Uint8Array) => {
    compared.push([a, b])
    return real.timingSafeEqual(a, b)
  }
  return { ...real, timingSafeEqual }
})

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
  const digest = (text: string) => createHash('sha256').update(text).digest()
  compared.length = 0
  isSameSecret('the known secret', 't')
  isSameSecret('the known secret', 'the known secres')
  expect(compared).toEqual([
    [digest('the known secret'), digest('t')],
    [digest('the known secret'), digest('the known secres')],
  ])
})
