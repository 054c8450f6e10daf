import { sql, type RawBuilder, type SqlBool } from 'kysely'
import type { Db } from './database.ts'
import type { Schema } from './schema.ts'

/** Maximum number of rows that one call of `deleteSome` deletes: meanwhile all other writers wait. */
export const DELETED_AT_ONCE = 500

/**
 * Deletes at most `DELETED_AT_ONCE` rows that match, and returns their number: with that many, more may be left. `key`:
 * columns of the primary key.
 */
export async function deleteSome<T extends keyof Schema>(
  db: Db,
  table: T,
  key: readonly (keyof Schema[T] & string)[],
  matching: RawBuilder<SqlBool>,
): Promise<number> {
  const columns = sql.join(key.map((column) => sql.ref(column)))
  const { numAffectedRows } = await sql`DELETE FROM ${sql.table(table)} WHERE (${columns}) IN
    (SELECT ${columns} FROM ${sql.table(table)} WHERE ${matching} LIMIT ${sql.lit(DELETED_AT_ONCE)})`.execute(db)
  return Number(numAffectedRows ?? 0)
}
