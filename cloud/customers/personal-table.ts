import type { Call } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import type { Schema } from '../persistence/schema.ts'

/** A customer of one account, on one of its sides. */
export interface Customer {
  tenant: string
  userId: string
}

/** Rows that are shown or erased at once. */
export const ROWS_AT_ONCE = 200

/** A page of what is kept of a customer; `next` while there may be more. */
export interface PersonalPage {
  records: object[]
  next: string | undefined
}

/** A table that holds a userId. What a customer may see is exported under `name`; what only repeats it elsewhere has none. */
export interface PersonalTable {
  readonly table: keyof Schema
  readonly name?: string
  /** Rows after the one that `after` names, in the order of their ids. */
  page?(db: Db, who: Customer, after: string): Promise<PersonalPage>
  /** Erases some; answers how many. 0: none is left. */
  erase(call: Pick<Call, 'db' | 'nowMs' | 'services'>, who: Customer): Promise<number>
}

/** A page of rows of which at most `ROWS_AT_ONCE` were read. */
export function personalPage<T>(rows: readonly T[], idOf: (row: T) => string, show: (row: T) => object): PersonalPage {
  const last = rows.at(-1)
  return { records: rows.map(show), next: rows.length === ROWS_AT_ONCE && last ? idOf(last) : undefined }
}

/** Rows by the id of what they belong to. */
export function grouped<T>(ids: readonly string[], rows: readonly T[], idOf: (row: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>(ids.map((id) => [id, []]))
  for (const row of rows) groups.get(idOf(row))?.push(row)
  return groups
}
