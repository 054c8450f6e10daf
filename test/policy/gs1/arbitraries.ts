import fc from 'fast-check'
import type { Sgtin, SgtinScheme } from '../../../policy/gs1/sgtin.ts'

/** The 82 characters in the order of the General Specifications, independent of the ranges in the tested code. */
export const SET_82 = '!"%&\'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz'

const digits = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: length, maxLength: length })

const SERIAL: Record<SgtinScheme, fc.Arbitrary<string>> = {
  'sgtin-96': fc.oneof(fc.bigInt(0n, 2n ** 38n - 1n), fc.constantFrom(0n, 1n, 2n ** 38n - 1n)).map(String),
  'sgtin-198': fc.string({ unit: fc.constantFrom(...SET_82), minLength: 1, maxLength: 20 }),
}

export function anySgtin(scheme: SgtinScheme): fc.Arbitrary<Sgtin> {
  return fc.integer({ min: 6, max: 12 }).chain((prefixLength) =>
    fc.record({
      scheme: fc.constant(scheme),
      filter: fc.integer({ min: 0, max: 7 }),
      companyPrefix: digits(prefixLength),
      itemReference: digits(13 - prefixLength),
      serial: SERIAL[scheme],
    }),
  )
}
