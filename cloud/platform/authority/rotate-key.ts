import { assert } from '../../../policy/assert.ts'
import type { KeyState, KeyUse } from '../../../policy/documents/keys.ts'
import { notFound } from '../foundation/failure.ts'
import { changedRows, type Db } from '../persistence/database.ts'
import { beginTimeEpoch, raiseDocumentEpoch, raiseKeyGeneration } from './key-counters.ts'
import { makeMissingKeys, type KeyMaker } from './signing-keys.ts'

/**
 *   next ──▶ active ──▶ retiring ──▶ retired        any ──▶ revoked
 *
 * States of a signing key. Each use (purpose of a key) always has a next key, which is published long before it signs.
 * Only database rows contain the state, so every process sees a change with its next request (ADR signed-documents).
 */

/** Uses of keys that this file rotates. The root is a file, and agents rotate their own keys. */
export const ROTATED_USES = ['token', 'receipt', 'policy', 'freshness'] as const satisfies readonly KeyUse[]
export type RotatedUse = (typeof ROTATED_USES)[number]

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/**
 * Time from a key's last signature until it retires, ms: the longest life of a document that it signs, and one minute
 * for clock differences.
 */
const RETIRES_AFTER_MS: Record<RotatedUse, number> = {
  token: 10 * MINUTE_MS + MINUTE_MS,
  receipt: 24 * HOUR_MS + MINUTE_MS,
  policy: 80 * HOUR_MS + MINUTE_MS,
  freshness: 80 * HOUR_MS + MINUTE_MS,
}
/** Period in which a key is active before the next key replaces it, ms. */
const ACTIVE_MS = 30 * DAY_MS
/** Minimum time from the publication of a key to its automatic activation, ms: more than the 72 h promised offline. */
const PUBLISHED_BEFORE_MS = 7 * DAY_MS

export interface Rotation {
  /** Issuer of the key: account and mode, or the installation. */
  iss: string
  use: RotatedUse
  /**
   * If true, revokes the active key instead of retiring it. If `all`, revokes each key that signs, has signed or will
   * sign. Otherwise a kid: revokes the key with this kid in any state.
   */
  revoke: boolean | string
}

/** States of the keys whose signatures are trusted, or soon will be. */
const TRUSTED: ReadonlySet<KeyState> = new Set(['active', 'next', 'retiring'])

/**
 * Rotates the signing key, or revokes keys at once. Returns the kid that signs from now on. Throws 404 for a kid of
 * another use.
 */
export async function rotateKey(db: Db, { iss, use, revoke }: Rotation, maker: KeyMaker): Promise<string> {
  await makeMissingKeys(db, iss, [use], maker)
  const keys = await keysOf(db, iss, use)
  const active = keys.find(({ state }) => state === 'active')
  const next = keys.find(({ state }) => state === 'next')
  assert(active && next, `${iss} has no ${use} keys`)
  const named = keys.filter(({ kid, state }) => {
    if (revoke === 'all') return TRUSTED.has(state)
    return kid === (revoke === true ? active.kid : revoke)
  })
  if (revoke !== false && named.length === 0) throw notFound('signing key')
  const revoked = named.filter(({ state }) => state !== 'revoked')
  if (revoke !== false && revoked.length === 0) return active.kid

  for (const { kid } of revoked) await setState(db, kid, 'revoked', maker.nowMs)
  if (revoke === false) await setState(db, active.kid, 'retiring', maker.nowMs)
  const isChanged = revoke === false || revoked.includes(active)
  if (isChanged && !revoked.includes(next)) await setState(db, next.kid, 'active', maker.nowMs)
  await makeMissingKeys(db, iss, [use], maker)
  // With the stolen key, a thief may have signed a time in the future. Agents lower their trusted time only in a new
  // time epoch.
  if (use === 'freshness' && revoked.length > 0) await beginTimeEpoch(db, maker.nowMs)
  if (use === 'policy' || use === 'freshness') await renewDocuments(db, revoked.length > 0)
  await raiseKeyGeneration(db)
  const signing = (await keysOf(db, iss, use)).find(({ state }) => state === 'active')
  assert(signing, `${iss} has no active ${use} key`)
  return signing.kid
}

function keysOf(db: Db, iss: string, use: RotatedUse): Promise<{ kid: string; state: KeyState }[]> {
  return db
    .selectFrom('signing_key')
    .select(['kid', 'state'])
    .where('iss', '=', iss)
    .where('key_use', '=', use)
    .$narrowType<{ state: KeyState }>()
    .execute()
}

/**
 * Makes agents fetch a newly signed policy. A revocation starts a new epoch, which outranks all versions that a thief
 * may have signed.
 */
async function renewDocuments(db: Db, isRevoked: boolean): Promise<void> {
  if (isRevoked) await raiseDocumentEpoch(db)
  await db
    .updateTable('store')
    .set((eb) => ({ document_version: eb('document_version', '+', 1) }))
    .execute()
}

async function setState(db: Db, kid: string, state: KeyState, nowMs: number): Promise<void> {
  await db.updateTable('signing_key').set({ state, changed_ms: nowMs }).where('kid', '=', kid).execute()
}

/** Retires keys that are due, and replaces active keys after 30 days. */
export async function advanceKeys(db: Db, maker: KeyMaker): Promise<void> {
  const { nowMs } = maker
  for (const use of ROTATED_USES) {
    const retirement = db
      .updateTable('signing_key')
      .set({ state: 'retired', changed_ms: nowMs })
      .where('key_use', '=', use)
      .where('state', '=', 'retiring')
      .where('changed_ms', '<=', nowMs - RETIRES_AFTER_MS[use])
    if ((await changedRows(db, retirement)) > 0) await raiseKeyGeneration(db)
    const due = await db
      .selectFrom('signing_key as active')
      .innerJoin('signing_key as following', (join) =>
        join.onRef('following.iss', '=', 'active.iss').onRef('following.key_use', '=', 'active.key_use'),
      )
      .select('active.iss')
      .where('active.key_use', '=', use)
      .where('active.state', '=', 'active')
      .where('following.state', '=', 'next')
      .where('active.changed_ms', '<=', nowMs - ACTIVE_MS)
      .where('following.changed_ms', '<=', nowMs - PUBLISHED_BEFORE_MS)
      .limit(DUE_AT_ONCE)
      .execute()
    for (const { iss } of due) await rotateKey(db, { iss, use, revoke: false }, maker)
  }
}

/** Maximum number of keys that one run rotates per use. The next run rotates the others. */
const DUE_AT_ONCE = 100
