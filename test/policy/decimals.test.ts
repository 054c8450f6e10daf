import fc from 'fast-check'
import { expect, it } from 'vitest'
import { hasDecimals } from '../../policy/decimals.ts'

it('accepts whole cents, also as the result of a floating-point sum', () => {
  fc.assert(fc.property(fc.integer({ min: -100_000_000, max: 100_000_000 }), (cents) => hasDecimals(cents / 100, 2)))
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 100_000 }), { maxLength: 50 }), (cents) =>
      hasDecimals(
        cents.reduce((sum, each) => sum + each / 100, 0),
        2,
      ),
    ),
  )
})

it('rejects further decimals, however small', () => {
  for (const n of [1.999, 0.001, 1e-9, 5e-324, 999_999.999_9, -0.000_001])
    expect([n, hasDecimals(n, 2)]).toEqual([n, false])
  expect([
    hasDecimals(0, 2),
    hasDecimals(0.1 + 0.2, 2),
    hasDecimals(3, 0),
    hasDecimals(1e-9, 0),
    hasDecimals(0.1234, 4),
  ]).toEqual([true, true, true, false, true])
})
