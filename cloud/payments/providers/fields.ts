import { z } from 'zod'

/** What settings, requests and answers of several providers have in common. */

/** Another address than the provider's usual one: for its test system, or a simulator. */
export const BaseUrl = z
  .string()
  .max(1_000)
  .transform((url) => url.replace(/\/+$/, ''))

/** A key, or the name of an account: visible characters only, for it stands in headers. */
export const Credential = z.string().regex(/^[\x21-\x7e]{1,500}$/, 'must be 1 to 500 visible characters')

/** What may stand in a path. */
export const PathName = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,100}$/, 'must be letters, digits, dots, dashes and underscores')

/** A page that a shopper is sent to. */
export const PageUrl = z
  .string()
  .max(4_000)
  .refine((url) => /^https?:\/\//.test(url) && URL.canParse(url), 'must be an address of the web')

/** `49.90`. */
export const Decimal = z.string().regex(/^\d{1,9}(?:\.\d{1,2})?$/)

/** Cents as `49.90`. */
export function decimalOf(cent: number): string {
  return (cent / 100).toFixed(2)
}

/** Euros, as a number or as `49.90`, in whole cents. */
export function centOf(euros: number | string): number {
  return Math.round(Number(euros) * 100)
}

/** What a text is as JSON; undefined when it is none. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** `Basic …` of a name and a secret. */
export function basicOf(name: string, secret: string): string {
  return `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}`
}
