import { z } from 'zod'
import { hasValidCheckDigit } from '../../policy/gs1/gtin.ts'

/**
 * True for 8 or 13 digits without a leading zero. Wrong check digits are allowed and only cause a warning (ADR 0005).
 */
export function isEan(text: string): boolean {
  return /^[1-9](?:\d{7}|\d{12})$/.test(text)
}

export const Ean = z
  .string()
  .refine(isEan, 'must be 8 or 13 digits without a leading zero')
  .meta({ pattern: '^[1-9](\\d{7}|\\d{12})$', description: 'EAN-8 or EAN-13 without a leading zero.' })

/** Warning for an EAN with a wrong check digit; undefined if the check digit is right. */
export function eanWarning(ean: string): string | undefined {
  return hasValidCheckDigit(ean) ? undefined : `ean ${ean}: the last digit is not the correct check digit`
}
