import { sql } from 'kysely'
import { expect } from 'vitest'
import type { Database, Db } from '../../cloud/persistence/database.ts'
import { DEPOSITS_AND_MOVES } from '../../cloud/persistence/migrations/0016-deposits-and-moves.ts'

/** What is kept by month is what the ledger and the members come to: as the migration counts them. */
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
  const kept = await read(database.reads)
  let counted: unknown
  const recount = database.write(async (db) => {
    await db.deleteFrom('loyalty_month').execute()
    for (const statement of DEPOSITS_AND_MOVES.statements.filter((text) =>
      text.startsWith('INSERT INTO loyalty_month'),
    ))
      await sql.raw(statement).execute(db)
    counted = await read(db)
    throw undo
  })
  await expect(recount).rejects.toBe(undo)
  expect(kept.length).toBeGreaterThan(0)
  expect(kept).toEqual(counted)
}
