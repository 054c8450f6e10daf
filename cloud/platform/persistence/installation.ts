import type { Db } from './database.ts'
import { preparedRow } from './prepared.ts'

/** Named values of the whole installation, such as the root key and the time of the last backup. */

const valueNamed = preparedRow((db, name: string) =>
  db.selectFrom('installation').select('value').where('name', '=', name),
)

/** Value of this name; undefined if none is stored. */
export async function readValue(db: Db, name: string): Promise<string | undefined> {
  return (await valueNamed(db, name))?.value
}

/** Stores the value of this name. */
export async function writeValue(db: Db, name: string, value: string): Promise<void> {
  await db
    .insertInto('installation')
    .values({ name, value })
    .onConflict((c) => c.column('name').doUpdateSet({ value }))
    .execute()
}
