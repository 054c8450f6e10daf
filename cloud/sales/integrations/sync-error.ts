import { z } from 'zod'

/** Error of one record. */
export const SyncError = z.strictObject({
  dataType: z.string().describe('articles, stock, orders, suppliers, or the pushed data type.'),
  index: z.int().describe('Index in the list of records of its type, from 0.'),
  ean: z.string().nullable(),
  externalId: z.string().nullable().describe('Its id in the external system.'),
  field: z.string(),
  code: z.string(),
  message: z.string(),
})
export type SyncError = z.infer<typeof SyncError>

/** Maximum number of errors in a response; further errors are only counted. */
export const SYNC_ERRORS_LIMIT = 1_000

/** Shortens a value to a text that all databases can store. Clients may show the text. */
export function printable(value: unknown): string | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null
  return String(value)
    .slice(0, 80)
    .toWellFormed()
    .replaceAll(/[\u0000-\u001f\u007f]/g, '\ufffd')
}
