import { sql } from 'kysely'
import type { Platform } from '../../policy/platform.ts'
import { assertOwnKeys } from '../platform/authority/authority.ts'
import { readLastSigned, readKeyCounters, writeKeyCounter } from '../platform/authority/key-counters.ts'
import type { KeyFiles } from '../platform/authority/key-files.ts'
import { changedRows, type Db } from '../platform/persistence/database.ts'
import { policyOf } from '../platform/stores/parsed-policy.ts'
import { storeFormerHome } from '../protection/receipt-home/home-move.ts'
import { skipLostPositions } from '../platform/persistence/positions.ts'

/**
 * A restored cloud lacks changes that agents already know. If the counters continued from the backup, the cloud would
 * assign numbers twice. Agents would then treat its documents as old and skip its denials. So every counter continues
 * above all numbers that the lost cloud may have assigned. The time of the restore in ms is above all these numbers,
 * even if a backup is restored twice (ADR restored-cloud). After the restore, agents report again.
 */
export interface RestoreSummary {
  /** New generation of the cloud. */
  generation: number
  /** Number of agents that must report again. */
  agents: number
  /** Number of revoked authorizations. */
  revoked: number
  /** Latest time that the lost cloud is known to have signed, ms; undefined if that cloud never signed. */
  lastSignedMs: number | undefined
}

/**
 * The cloud waits only for agents seen within this time before the backup, ms. Agents that were not seen for longer
 * have deleted the rows from their ledgers.
 */
const SEEN_WITHIN_MS = 14 * 86_400_000
const GUARD_MS = 60_000
/**
 * Added to the document version of each store. Between a backup and its restore, settings change fewer times than this.
 */
const VERSIONS_SKIPPED = 10_000

/**
 * Marks a database as restored. No cloud may use the database meanwhile. Throws if the keys do not belong to the
 * database. A restore signs nothing, so the last signed time still shows the age of the backup, even after an
 * interrupted restore.
 */
export async function markRestored(
  db: Db,
  files: KeyFiles,
  { clock, random }: Pick<Platform, 'clock' | 'random'>,
): Promise<RestoreSummary> {
  await assertOwnKeys(db, files, random)
  const nowMs = clock.wall()
  const counters = await readKeyCounters(db)
  const generation = Math.max(counters.cloudGeneration + 1, Math.floor(nowMs))
  const above = (number: number) => Math.max(number + 1, generation)
  await skipLostPositions(db, nowMs)
  await writeKeyCounter(db, 'cloudGeneration', generation)
  await writeKeyCounter(db, 'restoredMs', nowMs)
  await writeKeyCounter(db, 'documentEpoch', above(counters.documentEpoch))
  await writeKeyCounter(db, 'keySetEpoch', above(counters.keySetEpoch))
  await writeKeyCounter(db, 'generation', above(counters.generation))

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
 * Raises the home epochs, because receipt homes may have moved since the backup and no epoch may occur twice. Outcome
 * reports of lost epochs have no effect.
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

/** Revokes live authorizations. Agents discard the tokens. The cloud still records uses that agents report. */
async function revokeLive(db: Db, nowMs: number): Promise<number> {
  const update = db
    .updateTable('protection_authorization')
    .set({ revoked_ms: nowMs })
    .where('revoked_ms', 'is', null)
    .where('exp', '>', Math.floor((nowMs - GUARD_MS) / 1_000))
  return changedRows(db, update)
}

/** Marks unfinished refunds as uncertain, because the lost cloud may have sent them since the backup. */
async function markRefundsUncertain(db: Db): Promise<void> {
  await db.updateTable('refund').set({ in_doubt: 1 }).where('state', 'in', ['held', 'due']).execute()
}

/**
 * Ends sessions, and deletes invitations, challenges and codes, also recovery codes: they may have been ended or used
 * since the backup. A user without an invitation gets a new link.
 */
async function discardLogins(db: Db): Promise<void> {
  await db.deleteFrom('user_session').execute()
  const unused = { invitation_hash: null, invitation_expires_ms: null, recovery_codes: '[]' }
  await db.updateTable('console_user').set(unused).execute()
  await db.deleteFrom('agent_session').execute()
  await db.deleteFrom('agent_challenge').execute()
  await db.deleteFrom('enrolment_code').where('agent_id', 'is', null).execute()
  await db.deleteFrom('setup_code').execute()
}

async function awaitAgents(db: Db, seenSinceMs: number): Promise<number> {
  // Resets the item versions of all agents, because the stored versions belong to the previous sequence.
  const all = await changedRows(db, db.updateTable('agent').set({ item_seq: 0 }).where('revoked_ms', 'is', null))
  await db
    .updateTable('agent')
    .set({ resync: 'awaited' })
    .where('revoked_ms', 'is', null)
    .where('last_seen_ms', '>=', seenSinceMs)
    .execute()
  // Keeps `awaited` of an earlier restore, because those agents have not reported yet.
  await db
    .updateTable('agent')
    .set({ resync: 'due' })
    .where('revoked_ms', 'is', null)
    .where('last_seen_ms', '<', seenSinceMs)
    .where((eb) => eb.or([eb('resync', 'is', null), eb('resync', '!=', 'awaited')]))
    .execute()
  return all
}
