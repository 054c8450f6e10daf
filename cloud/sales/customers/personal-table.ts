import type { Call } from '../../platform/operations/operation.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Schema } from '../../platform/persistence/schema.ts'

/** A customer of an account, in test or live mode. */
export interface Customer {
  tenant: string
  userId: string
}

/** Rows per read or erasure. */
export const ROWS_AT_ONCE = 200

/** A page of a customer's data; `next` is set if there may be more. */
interface PersonalPage {
  records: object[]
  next: string | undefined
}

/** A table with customer ids. `name` is its name in the export; absent if the export contains the data elsewhere. */
export interface PersonalTable {
  readonly table: keyof Schema
  readonly name?: string
  /** Rows after position `after`, sorted by id. */
  page?(db: Db, who: Customer, after: string): Promise<PersonalPage>
  /** Erases some rows. Returns the number of erased rows; 0 if no row is left. */
  erase(call: Pick<Call, 'db' | 'nowMs' | 'services'>, who: Customer): Promise<number>
}

/** Builds a page of rows that were read with limit `ROWS_AT_ONCE`, or of the first of them (`isCut`). */
export function personalPage<T>(
  rows: readonly T[],
  idOf: (row: T) => string,
  show: (row: T) => object,
  isCut = rows.length === ROWS_AT_ONCE,
): PersonalPage {
  const last = rows.at(-1)
  return { records: rows.map(show), next: isCut && last ? idOf(last) : undefined }
}

/** Groups rows by id. */
export function grouped<T>(ids: readonly string[], rows: readonly T[], idOf: (row: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>(ids.map((id) => [id, []]))
  for (const row of rows) groups.get(idOf(row))?.push(row)
  return groups
}
