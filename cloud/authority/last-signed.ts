import type { Db } from '../persistence/database.ts'

/** The latest time that is known to have been signed: a start with a clock behind it must show. */

const NAME = 'last_signed_ms'

/** Remembers that this time (ms) was signed. */
export async function storeLastSigned(db: Db, ms: number): Promise<void> {
  const value = String(ms)
  await db
    .insertInto('installation')
    .values({ name: NAME, value })
    .onConflict((c) => c.column('name').doUpdateSet({ value }))
    .execute()
}

/** The last one, ms. */
export async function readLastSigned(db: Db): Promise<number | undefined> {
  const row = await db.selectFrom('installation').select('value').where('name', '=', NAME).executeTakeFirst()
  return row && Number(row.value)
}
