import { assert } from '../assert.ts'

/*
 * Check digit of a price or measure in an in-store barcode (GS1 General Specifications §7.9.2–7.9.4). Each digit is
 * multiplied by 2, 3 or 5. The tens of the product are added to its units ("5+") or subtracted ("2-", "5-").
 */
const twoMinus = (digit: number) => units(2 * digit - tens(2 * digit))
const three = (digit: number) => units(3 * digit)
const fivePlus = (digit: number) => units(5 * digit + tens(5 * digit))
const fiveMinus = (digit: number) => units(5 * digit - tens(5 * digit))

const FOUR = [twoMinus, twoMinus, three, fiveMinus]
const FIVE = [fivePlus, twoMinus, fiveMinus, fivePlus, twoMinus]

/** Check digit (0–9) of a price or measure of four or five digits; asserts the length. */
export function priceCheckDigit(digits: string): number {
  assert(/^\d{4,5}$/.test(digits), 'a price check digit belongs to four or five digits')
  const weights = digits.length === 4 ? FOUR : FIVE
  const sum = weights.reduce((total, weight, i) => total + weight(digits.charCodeAt(i) - 48), 0)
  if (digits.length === 4) return units(3 * sum)
  const wanted = (10 - units(sum)) % 10
  // `fiveMinus` returns a different number for each digit, so exactly one digit matches.
  return [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].findIndex((digit) => fiveMinus(digit) === wanted)
}

function tens(number: number): number {
  return Math.floor(number / 10)
}

function units(number: number): number {
  return number % 10
}
