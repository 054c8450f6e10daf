import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import { storeLastSigned } from './last-signed.ts'

/**
 * Numbers of the whole installation that never fall. Every process looks at them before each request, so that none goes on with
 * a key that another has revoked.
 */
export interface KeyCounters {
  /** Says that signing keys have changed. */
  generation: number
  /** Above every version of a policy that was signed with a stolen key, or by a cloud that was lost. */
  documentEpoch: number
  /** The same for key sets; raised too when another root begins to sign them. */
  keySetEpoch: number
  /** How signed times count: begun anew when a key that signs them was revoked; 0: none was. */
  timeEpoch: number
  /** 1, and after a restore from a backup its time. */
  cloudGeneration: number
  /** When that was, ms since 1970; 0: never. */
  restoredMs: number
}

const NAMES = {
  generation: 'key_generation',
  documentEpoch: 'document_epoch',
  keySetEpoch: 'key_set_epoch',
  timeEpoch: 'time_epoch',
  cloudGeneration: 'cloud_generation',
  restoredMs: 'restored_ms',
} as const satisfies Record<keyof KeyCounters, string>

const countersQuery = prepared((db) =>
  db.selectFrom('installation').select(['name', 'value']).where('name', 'in', Object.values(NAMES)),
)

/** All of them as they stand. */
export async function readKeyCounters(db: Db): Promise<KeyCounters> {
  const rows = await countersQuery(db, {})
  const value = (name: keyof KeyCounters, first: number) =>
    Number(rows.find((row) => row.name === NAMES[name])?.value ?? first)
  return {
    generation: value('generation', 0),
    documentEpoch: value('documentEpoch', 0),
    keySetEpoch: value('keySetEpoch', 0),
    timeEpoch: value('timeEpoch', 0),
    cloudGeneration: value('cloudGeneration', 1),
    restoredMs: value('restoredMs', 0),
  }
}

const generationMark = prepared((db) =>
  db.selectFrom('installation').select('value').where('name', '=', NAMES.generation),
)

/** The generation alone: what every request looks at. */
export async function readKeyGeneration(db: Db): Promise<KeyCounters['generation']> {
  const [row] = await generationMark(db, {})
  return Number(row?.value ?? 0)
}

/** Says to every process that keys have changed. */
export function raiseKeyGeneration(db: Db): Promise<void> {
  return raise(db, 'generation')
}

/** Begins a new epoch of versions. */
export function raiseDocumentEpoch(db: Db): Promise<void> {
  return raise(db, 'documentEpoch')
}

/**
 * Times that were signed before count no more. The epoch is the time at which it begins (s), so that a cloud that was put back to a backup
 * and must revoke the same key once more comes above the epoch that it has forgotten.
 */
export async function beginTimeEpoch(db: Db, nowMs: number): Promise<void> {
  const { timeEpoch } = await readKeyCounters(db)
  await writeKeyCounter(db, 'timeEpoch', Math.max(timeEpoch + 1, Math.floor(nowMs / 1_000)))
  await storeLastSigned(db, nowMs)
}

/** Times count in this epoch, which a cloud that was put back has forgotten. Answers whether it had. */
export async function resumeTimeEpoch(db: Db, epoch: number): Promise<boolean> {
  const { timeEpoch } = await readKeyCounters(db)
  if (epoch <= timeEpoch) return false
  await writeKeyCounter(db, 'timeEpoch', epoch)
  await raiseKeyGeneration(db)
  return true
}

/** Key sets are signed anew, above every version before. */
export async function raiseKeySetEpoch(db: Db): Promise<void> {
  await raise(db, 'keySetEpoch')
  await raiseKeyGeneration(db)
}

async function raise(db: Db, name: keyof KeyCounters): Promise<void> {
  await writeKeyCounter(db, name, (await readKeyCounters(db))[name] + 1)
}

/** Sets one of them; it is the caller's part that it does not fall. */
export async function writeKeyCounter(db: Db, name: keyof KeyCounters, number: number): Promise<void> {
  const value = String(number)
  await db
    .insertInto('installation')
    .values({ name: NAMES[name], value })
    .onConflict((c) => c.column('name').doUpdateSet({ value }))
    .execute()
}
