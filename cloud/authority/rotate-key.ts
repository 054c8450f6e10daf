import { assert } from '../../policy/assert.ts'
import type { KeyState, KeyUse } from '../../policy/documents/keys.ts'
import { notFound } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'
import { beginTimeEpoch, raiseDocumentEpoch, raiseKeyGeneration } from './key-counters.ts'
import { makeMissingKeys, type KeyMaker } from './signing-keys.ts'

/**
 *   next ──▶ active ──▶ retiring ──▶ retired        any ──▶ revoked
 *
 * There is always a next key, published in the key set long before it signs. Everything here is rows alone: every process of the
 * cloud sees them with its next request.
 */

/** Uses whose keys are changed here; the root is a file, and agents change their own. */
export const ROTATED_USES = ['token', 'receipt', 'policy', 'freshness'] as const satisfies readonly KeyUse[]
export type RotatedUse = (typeof ROTATED_USES)[number]

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS

/** How long after its last signature something signed may still be shown: its longest life, and a minute for clocks. */
const RETIRES_AFTER_MS: Record<RotatedUse, number> = {
  token: 10 * MINUTE_MS + MINUTE_MS,
  receipt: 24 * HOUR_MS + MINUTE_MS,
  policy: 80 * HOUR_MS + MINUTE_MS,
  freshness: 80 * HOUR_MS + MINUTE_MS,
}
/** A key signs for so long before the next one follows by itself. */
const ACTIVE_MS = 30 * DAY_MS
/** By itself only a key begins to sign that was published for longer than any agent is planned to be alone. */
const PUBLISHED_BEFORE_MS = 7 * DAY_MS

export interface Rotation {
  /** An account and mode, or the installation. */
  iss: string
  use: RotatedUse
  /** true: the active key is revoked instead of retiring; a kid: that key, whatever its state. */
  revoke: boolean | string
}

/** Changes the key that signs, or takes one back at once; answers the kid that signs from now on. Throws 404 for a kid that is not of this use. */
export async function rotateKey(db: Db, { iss, use, revoke }: Rotation, maker: KeyMaker): Promise<string> {
  await makeMissingKeys(db, iss, [use], maker)
  const keys = await db
    .selectFrom('signing_key')
    .select(['kid', 'state'])
    .where('iss', '=', iss)
    .where('key_use', '=', use)
    .execute()
  const inState = (state: KeyState) => keys.find((key) => key.state === state)
  const [active, next] = [inState('active'), inState('next')]
  assert(active && next, `${iss} has no ${use} keys`)
  const doomed = typeof revoke === 'string' ? keys.find((key) => key.kid === revoke) : revoke ? active : undefined
  if (typeof revoke === 'string' && !doomed) throw notFound('signing key')
  if (doomed?.state === 'revoked') return active.kid

  const isChanged = !doomed || doomed === active
  if (doomed) await setState(db, doomed.kid, 'revoked', maker.nowMs)
  else await setState(db, active.kid, 'retiring', maker.nowMs)
  if (isChanged) await setState(db, next.kid, 'active', maker.nowMs)
  await makeMissingKeys(db, iss, [use], maker)
  // Whoever had it may have signed any time, and trusted time does not fall by itself.
  if (use === 'freshness' && doomed) await beginTimeEpoch(db, maker.nowMs)
  if (use === 'policy' || use === 'freshness') await renewDocuments(db, doomed !== undefined)
  await raiseKeyGeneration(db)
  return isChanged ? next.kid : active.kid
}

/**
 * Agents fetch a policy that is signed anew. Who stole a key may have signed any version: after a revocation all count from a new
 * epoch, which is above every one of them.
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

/** What time does to keys: the retiring retire, and what has signed for 30 days is followed by the next. */
export async function advanceKeys(db: Db, maker: KeyMaker): Promise<void> {
  const { nowMs } = maker
  for (const use of ROTATED_USES) {
    const retired = await db
      .updateTable('signing_key')
      .set({ state: 'retired', changed_ms: nowMs })
      .where('key_use', '=', use)
      .where('state', '=', 'retiring')
      .where('changed_ms', '<=', nowMs - RETIRES_AFTER_MS[use])
      .executeTakeFirst()
    if (retired.numUpdatedRows > 0n) await raiseKeyGeneration(db)
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

/** Accounts whose keys change in one go; the others follow with the next. */
const DUE_AT_ONCE = 100
