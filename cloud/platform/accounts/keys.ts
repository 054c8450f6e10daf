import type { Mode } from '../foundation/caller.ts'
import { precondition } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'
import type { Row } from '../persistence/schema.ts'
import type { Platform } from '../../../policy/platform.ts'
import { createApiKey, type KeyKind, type NewKey, KEY_KINDS } from './api-keys.ts'
import { z } from 'zod'
import { iso, definedFields } from '../operations/fields.ts'

/** The key with this id, of any account. */
export function findKey(db: Db, keyId: string): Promise<Row<'api_key'> | undefined> {
  return db.selectFrom('api_key').selectAll().where('key_id', '=', keyId).executeTakeFirst()
}

/** Keys of an account in one mode, or in both modes, oldest first. `addKey` limits their number. */
export function listKeys(db: Db, accountId: string, mode?: Mode): Promise<Row<'api_key'>[]> {
  let query = db.selectFrom('api_key').selectAll().where('account_id', '=', accountId)
  if (mode !== undefined) query = query.where('mode', '=', mode)
  return query.orderBy('key_id').execute()
}

/** Number of keys of an account in one mode. */
export async function countKeys(db: Db, accountId: string, mode: Mode): Promise<number> {
  const { count } = await db
    .selectFrom('api_key')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Deletes expired and revoked keys. The audit log keeps their entries. */
async function deleteEndedKeys(db: Db, accountId: string, mode: Mode, nowMs: number): Promise<void> {
  await db
    .deleteFrom('api_key')
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .where((eb) => eb.or([eb('revoked_ms', 'is not', null), eb('expires_ms', '<=', nowMs)]))
    .execute()
}

/** Sets columns of a key. */
async function updateKey(db: Db, keyId: string, set: Partial<Row<'api_key'>>): Promise<void> {
  await db.updateTable('api_key').set(set).where('key_id', '=', keyId).execute()
}

/** Maximum number of keys that the command line lists. */
const LISTED_LIMIT = 100_000

/** Keys of one account, or of all accounts, with the name of the account. */
export function listKeysOfAll(
  db: Db,
  accountName: string | undefined,
): Promise<(Row<'api_key'> & { account: string })[]> {
  let query = db
    .selectFrom('api_key')
    .innerJoin('account', 'account.account_id', 'api_key.account_id')
    .selectAll('api_key')
    .select('account.name as account')
  if (accountName !== undefined) query = query.where('account.name', '=', accountName)
  return query.orderBy('key_id').limit(LISTED_LIMIT).execute()
}

/** Creation, rolling and revocation of keys, for operations and the command line. */

/**
 * Maximum number of keys of one account and mode. Expired and revoked keys are included until `addKey` deletes them.
 */
export const KEYS_LIMIT = 1_000
const HOUR_MS = 3_600_000
/** Hours for which a rolled key still works. */
export const OVERLAP_HOURS = { default: 24, max: 168 }

type KeyStatus = 'active' | 'expired' | 'revoked'

/**
 * Returns the status of a key at a time. A revocation counts even if its time is after `nowMs`. This happens if another
 * process stored it while this call waited, or if the clock of that process is ahead.
 */
export function statusOfKey(
  { revoked_ms, expires_ms }: Pick<Row<'api_key'>, 'revoked_ms' | 'expires_ms'>,
  nowMs: number,
): KeyStatus {
  if (revoked_ms !== null) return 'revoked'
  return expires_ms !== null && expires_ms <= nowMs ? 'expired' : 'active'
}

/** Creates a key. At the limit, deletes expired and revoked keys first. Throws 409 `too_many_keys`. */
export async function addKey(
  db: Db,
  wanted: NewKey,
  nowMs: number,
  platform: Platform,
): Promise<{ keyId: string; key: string }> {
  const { accountId, mode } = wanted
  if ((await countKeys(db, accountId, mode)) >= KEYS_LIMIT) {
    await deleteEndedKeys(db, accountId, mode, nowMs)
    if ((await countKeys(db, accountId, mode)) >= KEYS_LIMIT)
      throw precondition('too_many_keys', `the account has ${KEYS_LIMIT} ${mode} keys, which is the most: revoke one`)
  }
  return createApiKey(db, wanted, platform)
}

/** Creates the successor of a key. With 0 hours, the old key ends at once. Throws 409 `key_ended`. */
export async function rollKey(
  db: Db,
  row: Row<'api_key'>,
  overlapHours: number,
  nowMs: number,
  platform: Platform,
  notAfterMs: number | null = null,
): Promise<{ keyId: string; key: string }> {
  const status = statusOfKey(row, nowMs)
  if (status !== 'active') throw precondition('key_ended', `the key is ${status}: make a new one`)
  const made = await addKey(
    db,
    {
      accountId: row.account_id,
      kind: row.kind as KeyKind,
      mode: row.mode as Mode,
      name: row.name,
      expiresMs: earlier(row.expires_ms, notAfterMs),
      ...(row.store_ids !== null && { storeIds: JSON.parse(row.store_ids) as string[] }),
    },
    nowMs,
    platform,
  )
  const endMs = nowMs + overlapHours * HOUR_MS
  const ends = overlapHours === 0 ? { revoked_ms: nowMs } : { expires_ms: Math.min(row.expires_ms ?? endMs, endMs) }
  await updateKey(db, row.key_id, { ...ends, replaced_by: made.keyId })
  return made
}

/** The earlier of two times; null means none. */
export function earlier(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.min(a, b)
}

/** Revokes a key now. Has no effect if it is already revoked. Returns the row. */
export async function revokeKey(db: Db, row: Row<'api_key'>, nowMs: number): Promise<Row<'api_key'>> {
  if (row.revoked_ms !== null) return row
  await updateKey(db, row.key_id, { revoked_ms: nowMs })
  return { ...row, revoked_ms: nowMs }
}

/** A key in listings, without the key itself. */
export const KeyRecord = z.strictObject({
  keyId: z.string(),
  kind: z.enum(KEY_KINDS),
  mode: z.enum(['test', 'live']),
  name: z.string(),
  shown: z.string().describe('Start and end of the key, to recognize it.'),
  storeIds: z
    .array(z.string())
    .optional()
    .describe('Stores that the key may access; absent: all of its account and mode.'),
  status: z.enum(['active', 'expired', 'revoked']),
  createdAt: z.string(),
  lastUsedAt: z.string().nullable().describe('To the minute.'),
  expiresAt: z.string().optional(),
  revokedAt: z.string().optional(),
  replacedBy: z.string().optional().describe('keyId of its successor.'),
})

/** Converts a row. `usedMs` is the time of a later use that the database does not contain yet. */
export function toKeyRecord(row: Row<'api_key'>, nowMs: number, usedMs?: number): z.infer<typeof KeyRecord> {
  const isoOr = (ms: number | null) => (ms === null ? null : iso(ms))
  return {
    keyId: row.key_id,
    kind: row.kind as KeyKind,
    mode: row.mode as 'test' | 'live',
    name: row.name,
    shown: row.shown,
    status: statusOfKey(row, nowMs),
    createdAt: iso(row.created_ms),
    lastUsedAt: isoOr(usedMs ?? row.last_used_ms),
    ...definedFields({
      storeIds: row.store_ids === null ? null : (JSON.parse(row.store_ids) as string[]),
      expiresAt: isoOr(row.expires_ms),
      revokedAt: isoOr(row.revoked_ms),
      replacedBy: row.replaced_by,
    }),
  }
}
