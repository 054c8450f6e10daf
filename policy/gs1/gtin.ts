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

/**
 * GS1 check digit (0–9) of `digits`, which do not include the check digit (GS1 General Specifications §7.9). Throws if
 * `digits` contains anything but digits.
 */
export function checkDigit(digits: string): number {
  let sum = 0
  let weight = 3
  for (let i = digits.length - 1; i >= 0; i--) {
    const digit = digits.charCodeAt(i) - 48
    assert(digit >= 0 && digit <= 9, 'a check digit is made of digits')
    sum += digit * weight
    weight = 4 - weight
  }
  return (10 - (sum % 10)) % 10
}

/** True for a GTIN-8, -12, -13 or -14 with a valid check digit. */
export function hasValidCheckDigit(gtin: string): boolean {
  return isGtinShaped(gtin) && checkDigit(gtin.slice(0, -1)) === gtin.charCodeAt(gtin.length - 1) - 48
}

/**
 * Pads an EAN-8, UPC-A, EAN-13 or GTIN-14 to 14 digits, the key of a product. Undefined for other lengths or
 * characters. Accepts a wrong check digit, because the catalogue only warns (ADR catalogue).
 */
export function toGtin14(gtin: string): string | undefined {
  return isGtinShaped(gtin) ? gtin.padStart(14, '0') : undefined
}

/**
 * EAN of a unit, as untag stores it: 8 digits for a padded EAN-8, else 13. A UPC-A and an EAN-8 with a leading zero keep
 * 13 digits, because 8 digits with a leading zero are a UPC-E. Undefined for a case of goods (indicator digit not 0),
 * and for anything but 14 digits.
 */
export function eanOfGtin14(gtin14: string): string | undefined {
  if (gtin14.length !== 14 || !isGtinShaped(gtin14) || !gtin14.startsWith('0')) return undefined
  return /^0{6}[1-9]/.test(gtin14) ? gtin14.slice(6) : gtin14.slice(1)
}

function isGtinShaped(text: string): boolean {
  return /^(?:\d{8}|\d{12,14})$/.test(text)
}

/**
 * The UPC-A of a UPC-E with 8 digits, as most scanners send it (GS1 General Specifications, 5.2.2.4). Undefined if the
 * number system is not 0 or 1, or if the check digit does not fit the UPC-A.
 */
export function expandUpcE(text: string): string | undefined {
  const [, system = '', digits = '', check = ''] = /^([01])(\d{6})(\d)$/.exec(text) ?? []
  if (digits === '') return undefined
  const last = Number(digits[5])
  const kept = last <= 2 ? 2 : last <= 4 ? last : 5
  const maker = digits.slice(0, kept) + (last <= 2 ? String(last) : '')
  const item = last <= 4 ? digits.slice(kept, 5) : String(last)
  const upcA = system + maker + item.padStart(10 - maker.length, '0') + check
  return hasValidCheckDigit(upcA) ? upcA : undefined
}
