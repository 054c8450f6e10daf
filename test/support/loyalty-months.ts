import { sql } from 'kysely'
import { expect } from 'vitest'
import type { Database, Db } from '../../cloud/platform/persistence/database.ts'

const RECOUNT = [
  `INSERT INTO loyalty_month (program_id, month, kind, amount, entries)
    SELECT program_id, month, kind, SUM(amount), COUNT(*) FROM loyalty_entry GROUP BY program_id, month, kind`,
  `INSERT INTO loyalty_month (program_id, month, kind, amount, entries)
    SELECT program_id, month, 'join', 0, COUNT(*) FROM loyalty_member GROUP BY program_id, month`,
]

/** Asserts that the monthly sums match the ledger and the members. */
export async function assertLoyaltyMonths(database: Database): Promise<void> {
  const read = async (db: Db) => {
    const rows = await db
      .selectFrom('loyalty_month')
      .selectAll()
      .orderBy('program_id')
      .orderBy('month')
      .orderBy('kind')
      .execute()
    return rows.filter((row) => row.entries !== 0 || row.amount !== 0)
  }
  const undo = new Error('nothing of this stays')
  const stored = await read(database.reads)
  let counted: unknown
  const recount = database.write(async (db) => {
    await db.deleteFrom('loyalty_month').execute()
    for (const statement of RECOUNT) await sql.raw(statement).execute(db)
    counted = await read(db)
    throw undo
  })
  await expect(recount).rejects.toBe(undo)
  expect(stored.length).toBeGreaterThan(0)
  expect(stored).toEqual(counted)
}
