import { z } from 'zod'
import { hasValidCheckDigit } from '../../policy/gs1/gtin.ts'

/** Whether it is an EAN as the catalogue takes it: 8 or 13 digits, no leading zero. The check digit is not enforced (decisions §5). */
export function isEan(text: string): boolean {
  return /^[1-9](?:\d{7}|\d{12})$/.test(text)
}

/** An EAN in a request. */
export const Ean = z
  .string()
  .refine(isEan, 'must be 8 or 13 digits without a leading zero')
  .meta({ pattern: '^[1-9](\\d{7}|\\d{12})$', description: 'EAN-8 or EAN-13, without a leading zero.' })

/** What should be said about an EAN that is taken all the same. */
export function eanWarning(ean: string): string | undefined {
  return hasValidCheckDigit(ean) ? undefined : `ean ${ean}: the last digit is not its check digit`
}
