import fc from 'fast-check'
import { expect, it } from 'vitest'
import { priceCheckDigit } from '../../../policy/gs1/gtin.ts'

// The worked examples of the GS1 General Specifications, §7.9.2–7.9.4.
it.each([
  ['2875', 9],
  ['14685', 6],
])('is that of the standard’s example %s', (digits, check) => {
  expect(priceCheckDigit(digits)).toBe(check)
})

// Labels of German scales from the tests of snabble's public SDKs. Form: 2d IIII V PPPPP C, where V is the price check
// digit.
it.each(['2810275005024', '2746724008288', '2850090007827', '2957776004085', '2957822002843'])(
  'matches the label %s',
  (code) => {
    expect(priceCheckDigit(code.slice(7, 12))).toBe(Number(code[6]))
  },
)

const value = fc.integer({ min: 4, max: 5 }).chain((length) => fc.stringMatching(new RegExp(`^\\d{${length}}$`)))

it('detects every single misread digit', () => {
  fc.assert(
    fc.property(value, fc.nat(4), fc.integer({ min: 1, max: 9 }), (digits, at, by) => {
      const i = at % digits.length
      const misread = digits.slice(0, i) + ((Number(digits[i]) + by) % 10) + digits.slice(i + 1)
      expect(priceCheckDigit(misread)).not.toBe(priceCheckDigit(digits))
    }),
  )
})
