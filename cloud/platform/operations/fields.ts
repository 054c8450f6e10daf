import { z } from 'zod'
import { hasDecimals } from '../../../policy/decimals.ts'
import { isIdShaped } from '../../../policy/ids.ts'
import { hasTooManyMarks, MARKS_LIMIT, normalForm, isPrintable } from '../../../policy/printable.ts'
import { isDeepStrictEqual } from 'node:util'
import { invalid } from '../foundation/failure.ts'

/** Groups of operations in the description of the API. */
const AREAS = [
  'accounts',
  'users',
  'stores',
  'catalogue',
  'offers',
  'click and collect',
  'loyalty',
  'scan and go',
  'receipts',
  'protection',
  'agents',
  'webhooks',
  'payments',
  'integrations',
  'analytics',
  'assistance',
  'customers',
] as const
export type Area = (typeof AREAS)[number]

/**
 * Throws 400 if the caller changed a field that only the system sets (ADR requests). `current` is the object as the API
 * returns it. An update accepts these fields, so that clients can read an object, change one field and send it back.
 */
export function assertUnchanged(sent: Readonly<Record<string, unknown>>, current: object): void {
  const known = new Map(Object.entries(current))
  for (const [name, value] of Object.entries(sent))
    if (value !== undefined && !isDeepStrictEqual(value ?? null, known.get(name) ?? null))
      throw invalid(name, 'is set by the system and cannot be changed', 'system_field')
}

/** Fields and conversions that many operations share. */

/** An id that no row has. It replaces malformed ids, so that requests with them get 404 and not 400 (ADR requests). */
const IMPOSSIBLE_ID = '-'

/** An id in a request. */
export const Id = z
  .string()
  .transform((text) => (isIdShaped(text) ? text : IMPOSSIBLE_ID))
  .describe('An opaque id, 1–128 printable characters.')

/** A time with offset, in ISO 8601. */
export const Timestamp = z.iso
  .datetime({ offset: true })
  .describe('ISO 8601 with offset, such as 2026-11-20T09:00:00Z.')

export const Limit = z.int().min(1).max(500)
export const Offset = z.int().min(0).max(1_000_000)

/** A whole number in a query string. */
export const QueryNumber = z
  .string()
  .regex(/^\d{1,9}$/, 'must be a whole number')
  .transform(Number)

export const Success = { success: z.literal(true) }

/** VAT rates of Germany, percent. */
export const VatRate = z.literal([7, 19], { error: 'must be 7 or 19' }).describe('7 (reduced) or 19 (standard).')

const MARKS_RULE = `must have at most ${MARKS_LIMIT} marks on a letter`

/** A text in NFC. The length of a text is checked after this, so this must be fast for any length. */
function normalText(max: number, min: number) {
  return z
    .string()
    .overwrite((s) => normalForm(s))
    .min(min)
    .max(max)
    .refine((s) => !hasTooManyMarks(s), MARKS_RULE)
}

const hasControls = (s: string) => /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/.test(s)

/** A name or another text for people, in one line and in NFC: it may be shown in a row of a list. */
export function text(max: number, min = 1) {
  return normalText(max, min).refine(isPrintable, 'must be one line without control or format characters')
}

/** A text for people that may have several lines, such as a note. */
export function lines(max: number, min = 1) {
  return normalText(max, min).refine(
    (s) => isPrintable(s.replaceAll(/[\t\n\r]/g, '')),
    'must not contain control or format characters',
  )
}

/** Text of a tag, label or QR code, as a reader sends it: perhaps with line ends or tabs. */
export function scanned(max: number, min = 1) {
  return z
    .string()
    .min(min)
    .max(max)
    .refine((s) => !hasControls(s), 'must not contain control characters')
}

/** A text that names a product by its EAN; unreadable texts find no product. */
export const ProductCodeText = z
  .string()
  .describe('The EAN in any form that scanners send and people write, such as a GS1 element string or Digital Link.')

/** Amount in EUR: at most two decimals, 0 … 1,000,000. */
export const Euros = z
  .number()
  .min(0)
  .max(1_000_000)
  .refine((euros) => hasDecimals(euros, 2), 'must have at most 2 decimals')

/** Whole cents of an amount in euros. */
export function centsOf(euros: number): number {
  return Math.round(euros * 100)
}

/** Euros of an amount in cents. */
export function eurosOf(cents: number): number {
  return cents / 100
}

/** Removes fields that are null or undefined: the API omits optional fields. */
export function definedFields<T extends object>(fields: T): { [K in keyof T]: Exclude<T[K], null> } {
  const defined: Partial<T> = {}
  for (const name in fields) if (fields[name] !== null && fields[name] !== undefined) defined[name] = fields[name]
  return defined as { [K in keyof T]: Exclude<T[K], null> }
}

/** RFC 3339 in UTC with ms. */
export function iso(ms: number): string {
  return new Date(ms).toISOString()
}
