import type { Db } from '../persistence/database.ts'

/**
 * The latest signed time. At its start, the cloud compares this time with the clock, to detect a clock that is behind.
 */

const NAME = 'last_signed_ms'

/** Stores a signed time, ms. */
export async function storeLastSigned(db: Db, ms: number): Promise<void> {
  const value = String(ms)
  await db
    .insertInto('installation')
    .values({ name: NAME, value })
    .onConflict((c) => c.column('name').doUpdateSet({ value }))
    .execute()
}

/** Latest signed time, ms. */
export async function readLastSigned(db: Db): Promise<number | undefined> {
  const row = await db.selectFrom('installation').select('value').where('name', '=', NAME).executeTakeFirst()
  return row && Number(row.value)
}
