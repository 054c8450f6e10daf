import { sql } from 'kysely'
import type { Platform } from '../../policy/platform.ts'
import { assertOwnKeys } from '../authority/authority.ts'
import { readLastSigned } from '../authority/last-signed.ts'
import type { KeyFiles } from '../authority/key-files.ts'
import { readKeyCounters, writeKeyCounter } from '../authority/key-counters.ts'
import type { Db } from '../persistence/database.ts'
import { policyOf } from '../protection/store-documents/parsed-policy.ts'
import { storeFormerHome } from '../protection/receipt-home/receipt-homes.ts'
import { skipLostPositions } from '../persistence/positions.ts'

/**
 *   backup ─── what happened since ───✗        restored ─▶ generation, epochs and numbers above all that ─▶ agents tell again
 *
 * A restored cloud has forgotten what agents remember. Had it gone on counting from where the backup ended, it would have given
 * numbers a second time: agents would take its documents for old ones, and pass over its denials. So everything that is counted
 * goes on above whatever can have been given; the time of the restore is, also when one backup is restored twice.
 */
export interface RestoreSummary {
  /** The cloud's generation from now on. */
  generation: number
  /** Agents that have to tell again what they know. */
  agents: number
  /** Authorizations that were taken back. */
  revoked: number
  /** The last time that the lost cloud is known to have signed, ms: where the backup ends. Undefined when it never did. */
  lastSignedMs: number | undefined
}

/** An agent that was not heard for so long before the backup is waited for no more: its ledger has forgotten it all. */
const SEEN_WITHIN_MS = 14 * 86_400_000
const GUARD_MS = 60_000
/** Nobody changes a store's settings so often between a backup and its restore. */
const VERSIONS_SKIPPED = 10_000

/**
 * Notes in a database that it was put back to an earlier state; no cloud may run on it meanwhile. Throws when these keys are not its own.
 * A restore signs nothing: the last time that was signed is the end of the backup, also for the restore that follows one that was cut off.
 */
export async function markRestored(
  db: Db,
  files: KeyFiles,
  { clock, random }: Pick<Platform, 'clock' | 'random'>,
): Promise<RestoreSummary> {
  await assertOwnKeys(db, files, random)
  const nowMs = clock.wall()
  const marks = await readKeyCounters(db)
  const generation = Math.max(marks.cloudGeneration + 1, Math.floor(nowMs))
  const above = (number: number) => Math.max(number + 1, generation)
  await skipLostPositions(db, nowMs)
  await writeKeyCounter(db, 'cloudGeneration', generation)
  await writeKeyCounter(db, 'restoredMs', nowMs)
  await writeKeyCounter(db, 'documentEpoch', above(marks.documentEpoch))
  await writeKeyCounter(db, 'keySetEpoch', above(marks.keySetEpoch))
  await writeKeyCounter(db, 'generation', above(marks.generation))

  const isAbove = sql<number>`CASE WHEN deny_seq >= ${sql.lit(generation)} THEN deny_seq + 1 ELSE ${sql.lit(generation)} END`
  await db
    .updateTable('store')
    .set((eb) => ({ deny_seq: isAbove, document_version: eb('document_version', '+', VERSIONS_SKIPPED) }))
    .execute()
  await raiseHomeEpochs(db, above)
  const revoked = await revokeLive(db, nowMs)
  await discardLogins(db)
  await markRefundsUncertain(db)
  const lastSignedMs = await readLastSigned(db)
  const agents = await awaitAgents(db, (lastSignedMs ?? nowMs) - SEEN_WITHIN_MS)
  return { generation, agents, revoked, lastSignedMs }
}

/**
 * A receipt home may have moved since: no epoch is given a second time, so that no agent reports as the home for another. Reports of homes
 * of an epoch that was forgotten have no effect.
 */
async function raiseHomeEpochs(db: Db, above: (number: number) => number): Promise<void> {
  const stores = await db.selectFrom('store').select(['store_id', 'policy']).execute()
  for (const store of stores) {
    const policy = policyOf(store)
    await storeFormerHome(db, store)
    const raised = JSON.stringify({ ...policy, homeEpoch: above(policy.homeEpoch) })
    await db.updateTable('store').set({ policy: raised }).where('store_id', '=', store.store_id).execute()
  }
}

/** Agents drop the tokens of the lost cloud; what they used of them they tell, and that counts as it was. */
async function revokeLive(db: Db, nowMs: number): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('protection_authorization')
    .set({ revoked_ms: nowMs })
    .where('revoked_ms', 'is', null)
    .where('exp', '>', Math.floor((nowMs - GUARD_MS) / 1_000))
    .executeTakeFirst()
  return Number(numUpdatedRows)
}

/** What was still to be sent then may have been sent since. */
async function markRefundsUncertain(db: Db): Promise<void> {
  await db.updateTable('refund').set({ in_doubt: 1 }).where('state', 'in', ['held', 'due']).execute()
}

/** A challenge or a code of then may have been used since: all begin anew. */
async function discardLogins(db: Db): Promise<void> {
  await db.deleteFrom('agent_session').execute()
  await db.deleteFrom('agent_challenge').execute()
  await db.deleteFrom('enrolment_code').where('agent_id', 'is', null).execute()
}

async function awaitAgents(db: Db, heardSinceMs: number): Promise<number> {
  // What they had confirmed of the items belongs to a sequence that is over.
  const all = await db.updateTable('agent').set({ item_seq: 0 }).where('revoked_ms', 'is', null).executeTakeFirst()
  await db
    .updateTable('agent')
    .set({ resync: 'awaited' })
    .where('revoked_ms', 'is', null)
    .where('last_seen_ms', '>=', heardSinceMs)
    .execute()
  // An agent that a restore before this one waits for has not told yet what it knows, however long the cloud has run since.
  await db
    .updateTable('agent')
    .set({ resync: 'due' })
    .where('revoked_ms', 'is', null)
    .where('last_seen_ms', '<', heardSinceMs)
    .where((eb) => eb.or([eb('resync', 'is', null), eb('resync', '!=', 'awaited')]))
    .execute()
  return Number(all.numUpdatedRows)
}
