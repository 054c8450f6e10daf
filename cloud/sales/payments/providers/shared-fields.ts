import { z } from 'zod'

/** Fields and checks that several providers share. */

/** Address of the provider's test system or of a simulator. */
export const BaseUrl = z
  .string()
  .max(1_000)
  .transform((url) => url.replace(/\/+$/, ''))

/** API key or account name. Visible characters only, because the value is sent in headers. */
export const Credential = z.string().regex(/^[\x21-\x7e]{1,500}$/, 'must be 1 to 500 visible characters')

/** Path segment. */
export const PathName = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,100}$/, 'must be letters, digits, dots, dashes and underscores')

/** Page to which the shopper is redirected. */
export const PageUrl = z
  .string()
  .max(4_000)
  .refine(
    (url) => /^https?:\/\//.test(url) && URL.canParse(url),
    'must be a web address that starts with https:// or http://',
  )

/** Amount in the form `49.90`. */
export const Decimal = z.string().regex(/^\d{1,9}(?:\.\d{1,2})?$/)

/** Formats cents as `49.90`. */
export function decimalOf(cent: number): string {
  return (cent / 100).toFixed(2)
}

/** Converts EUR, as number or text, to whole cents. */
export function centOf(euros: number | string): number {
  return Math.round(Number(euros) * 100)
}

/** HTTP Basic credentials. */
export function basicOf(name: string, secret: string): string {
  return `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}`
}

/** Maximum difference between the time of a signature and now, s. Standard Webhooks and Stripe recommend this value. */
const TOLERANCE_S = 300

/** True if a signature with this time, s since 1970, is recent. */
export function isRecent(seconds: string, nowMs: number): boolean {
  return /^\d{1,12}$/.test(seconds) && Math.abs(nowMs / 1_000 - Number(seconds)) <= TOLERANCE_S
}
