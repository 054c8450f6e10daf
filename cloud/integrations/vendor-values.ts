import { z } from 'zod'
import { VendorFault } from './vendor-fault.ts'

/** What connectors do with the values of a vendor's answer. */

/** The answer in the form that its API promises. Throws `VendorFault` for another one. */
export function readAnswer<S extends z.ZodType>(schema: S, json: unknown, what: string): z.output<S> {
  const read = schema.safeParse(json)
  if (read.success) return read.data
  const at = read.error.issues[0]?.path.join('.') ?? ''
  throw new VendorFault(
    'answer_not_understood',
    `the answer to ${what} is not what its API promises${at === '' ? '' : ` (${at.slice(0, 80)})`}`,
  )
}

/** A record of a vendor's under our names; null for one that is not as its API promises, so that only this one is refused. */
export function readRecord<S extends z.ZodType>(
  schema: S,
  record: unknown,
  make: (read: z.output<S>) => Record<string, unknown>,
): Record<string, unknown> | null {
  const read = schema.safeParse(record)
  return read.success ? make(read.data) : null
}

/** A text that other systems allow to be longer than we do, cut to `max` characters. */
export function fit(text: string | null | undefined, max: number): string | undefined {
  const trimmed = text?.trim()
  return trimmed === undefined || trimmed === '' ? undefined : trimmed.slice(0, max).trimEnd()
}

/** The gross price in EUR of a net one, rounded half up to a cent. */
export function grossOf(net: number, vat: number): number {
  return Math.round(net * 100 * (1 + vat / 100) + 1e-6) / 100
}

/** EUR out of a number or a text with a dot; what is no amount stays, so that the one validation names it. */
export function amountOf(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value.trim())
    ? Math.round(Number(value) * 100) / 100
    : value
}

/** One base path and what stands below it. */
export function urlOf(base: string, path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const url = new URL(`${base.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`)
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}

/** VAT of articles whose system does not say: `vat` of the credentials, else the standard rate. */
export const VatSetting = z.enum(['7', '19'])
/** The address of a simulator, in place of the vendor's own. */
export const BaseUrlSetting = z.string().min(1).max(2_048).optional()
export const Secret = z.string().min(1).max(8_192)
