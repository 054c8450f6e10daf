import type { Mode } from '../foundation/caller.ts'
import { precondition } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'
import type { ApiKeyRow } from '../persistence/tables/accounts.ts'
import type { Platform } from '../../../policy/platform.ts'
import { createApiKey, type KeyKind, type NewKey } from './api-keys.ts'
import { countKeys, deleteEndedKeys, updateKey } from './key-queries.ts'

/** Creation, rolling and revocation of keys, for operations and the command line. */

/**
 * Maximum number of keys of one account and mode. Expired and revoked keys are included until `addKey` deletes them.
 */
export const KEYS_LIMIT = 1_000
const HOUR_MS = 3_600_000
/** Hours for which a rolled key still works. */
export const OVERLAP_HOURS = { default: 24, max: 168 }

export type KeyStatus = 'active' | 'expired' | 'revoked'

/**
 * Returns the status of a key at a time. A revocation counts even if its time is after `nowMs`. This happens if another
 * process stored it while this call waited, or if the clock of that process is ahead.
 */
export function statusOfKey(
  { revoked_ms, expires_ms }: Pick<ApiKeyRow, 'revoked_ms' | 'expires_ms'>,
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
  row: ApiKeyRow,
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
export async function revokeKey(db: Db, row: ApiKeyRow, nowMs: number): Promise<ApiKeyRow> {
  if (row.revoked_ms !== null) return row
  await updateKey(db, row.key_id, { revoked_ms: nowMs })
  return { ...row, revoked_ms: nowMs }
}
