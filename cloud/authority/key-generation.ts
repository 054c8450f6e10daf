import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'

/**
 * Two numbers of the whole installation. The generation says that signing keys have changed: every process looks at it before each
 * request, so that none goes on with a key that another has revoked. The document epoch is above every version that was signed
 * with a stolen key.
 */
export interface KeyMarks {
  generation: number
  documentEpoch: number
}

const GENERATION = 'key_generation'
const DOCUMENT_EPOCH = 'document_epoch'

const marks = prepared((db) => db.selectFrom('installation').select(['name', 'value']).where('name', 'in', [GENERATION, DOCUMENT_EPOCH]))

/** Both numbers; 0 until they are raised. */
export async function readKeyMarks(db: Db): Promise<KeyMarks> {
  const rows = await marks(db, {})
  const value = (name: string) => Number(rows.find((row) => row.name === name)?.value ?? 0)
  return { generation: value(GENERATION), documentEpoch: value(DOCUMENT_EPOCH) }
}

/** Says to every process that keys have changed. */
export function raiseKeyGeneration(db: Db): Promise<void> {
  return raise(db, GENERATION)
}

/** Begins a new epoch of versions. */
export function raiseDocumentEpoch(db: Db): Promise<void> {
  return raise(db, DOCUMENT_EPOCH)
}

async function raise(db: Db, name: string): Promise<void> {
  const kept = await db.selectFrom('installation').select('value').where('name', '=', name).executeTakeFirst()
  const value = String(Number(kept?.value ?? 0) + 1)
  await db
    .insertInto('installation')
    .values({ name, value })
    .onConflict((c) => c.column('name').doUpdateSet({ value }))
    .execute()
}
