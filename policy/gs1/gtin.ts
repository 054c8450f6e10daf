import { assert } from '../assert.ts'

/**
 * The GS1 check digit (0–9) that belongs behind `digits`: weights 3, 1, 3 … from the right, summed and
 * filled up to ten (GS1 General Specifications §7.9). `digits` is without the check digit and holds
 * nothing but digits, of which the caller has made sure; asserts otherwise.
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

/** Whether `gtin` is a GTIN-8, -12, -13 or -14 whose last digit is its check digit. */
export function hasValidCheckDigit(gtin: string): boolean {
  return isGtinShaped(gtin) && checkDigit(gtin.slice(0, -1)) === gtin.charCodeAt(gtin.length - 1) - 48
}

/**
 * The 14-digit key under which one product is found whatever its barcode: EAN-8, UPC-A, EAN-13 or
 * GTIN-14 padded with zeros. Undefined for any other length or character. A wrong check digit is kept,
 * because the catalogue only warns of it (ADR 0005).
 */
export function toGtin14(gtin: string): string | undefined {
  return isGtinShaped(gtin) ? gtin.padStart(14, '0') : undefined
}

/**
 * The EAN as a scanner reads it off the unit: 8 digits when the GTIN-14 is a padded EAN-8 (six zeros),
 * else 13, where a UPC-A keeps its leading zero. Undefined when the indicator digit is not zero (a
 * case of goods has no EAN of its own) and when `gtin14` is not 14 digits.
 */
export function eanOfGtin14(gtin14: string): string | undefined {
  if (gtin14.length !== 14 || !isGtinShaped(gtin14) || !gtin14.startsWith('0')) return undefined
  return gtin14.startsWith('000000') ? gtin14.slice(6) : gtin14.slice(1)
}

function isGtinShaped(text: string): boolean {
  return /^(?:\d{8}|\d{12,14})$/.test(text)
}
