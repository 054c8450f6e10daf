import type { Db } from '../../platform/persistence/database.ts'

const NAME = 'last_backup_ms'

/** Stores the time of the last complete backup, ms. `/metrics` shows its age. */
export async function writeLastBackup(db: Db, madeMs: number): Promise<void> {
  const value = String(madeMs)
  await db
    .insertInto('installation')
    .values({ name: NAME, value })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ value }))
    .execute()
}

/** Time of the last complete backup, ms; undefined if `untag backup` never made one. */
export async function readLastBackup(db: Db): Promise<number | undefined> {
  const row = await db.selectFrom('installation').select('value').where('name', '=', NAME).executeTakeFirst()
  return row && Number(row.value)
}
