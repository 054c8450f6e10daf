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
  /** Erases some rows after position `after`. */
  erase(call: Pick<Call, 'db' | 'nowMs' | 'services'>, who: Customer, after: string): Promise<Erased>
}

/** Number of erased rows; `next` is set if there may be more. */
interface Erased {
  readonly count: number
  readonly next: string | undefined
}

/** Result of an erasure that finds only rows that are left. */
export function erased(count: number): Erased {
  return { count, next: count === 0 ? undefined : '' }
}

/** Erases a table in short steps, and yields the number of rows of each. */
export async function* eraseTable(
  { erase }: PersonalTable,
  who: Customer,
  step: (work: (call: Pick<Call, 'db' | 'nowMs' | 'services'>) => Promise<Erased>) => Promise<Erased>,
): AsyncGenerator<number> {
  for (let after: string | undefined = ''; after !== undefined;) {
    const from: string = after
    const { count, next } = await step((call) => erase(call, who, from))
    yield count
    after = next
  }
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
