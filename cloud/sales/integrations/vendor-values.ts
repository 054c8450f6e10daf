import { z } from 'zod'
import { VendorFault } from './vendor-fault.ts'

/** Helpers for values in vendors' responses. */

/** Validates a response. Throws a `VendorFault` if the response is invalid. */
export function readAnswer<S extends z.ZodType>(schema: S, json: unknown, what: string): z.output<S> {
  const read = schema.safeParse(json)
  if (read.success) return read.data
  const at = read.error.issues[0]?.path.join('.') ?? ''
  throw new VendorFault(
    'answer_not_understood',
    `the response to ${what} does not match the API description${at === '' ? '' : ` (${at.slice(0, 80)})`}`,
  )
}

/** Validates and converts one record; null if it is invalid, so that only this record is rejected. */
export function readRecord<S extends z.ZodType>(
  schema: S,
  record: unknown,
  make: (read: z.output<S>) => Record<string, unknown>,
): Record<string, unknown> | null {
  const read = schema.safeParse(record)
  return read.success ? make(read.data) : null
}

/** Trims a text and cuts it to `max` characters. */
export function fit(text: string | null | undefined, max: number): string | undefined {
  const trimmed = text?.trim()
  return trimmed === undefined || trimmed === '' ? undefined : trimmed.slice(0, max).trimEnd()
}

/** Converts a net price to a gross price in EUR, rounded half up to a cent. */
export function grossOf(net: number, vat: number): number {
  return Math.round(net * 100 * (1 + vat / 100) + 1e-6) / 100
}

/**
 * Converts a number or a text with a decimal point to EUR. Returns other values unchanged, so that validation reports
 * them.
 */
export function amountOf(value: unknown): unknown {
  return typeof value === 'string' && /^-?\d+(?:\.\d+)?$/.test(value.trim())
    ? Math.round(Number(value) * 100) / 100
    : value
}

/** Joins base address, path and query. */
export function urlOf(base: string, path: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const url = new URL(`${base.replace(/\/+$/, '')}/${path.replace(/^\/+/, '')}`)
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}

/** VAT rate of articles whose system has no VAT rate. Default: the standard rate. */
export const VatSetting = z.enum(['7', '19'])
/** Address of a simulator that replaces the vendor's address. */
export const BaseUrlSetting = z.string().min(1).max(2_048).optional()
export const Secret = z.string().min(1).max(8_192)
