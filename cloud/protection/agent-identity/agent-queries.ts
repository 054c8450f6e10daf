import type { Db } from '../../platform/persistence/database.ts'
import { endLogins } from './sessions.ts'

/** Returns the ids in `agentIds` that belong to revoked agents. */
export async function revokedAmong(db: Db, agentIds: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('agent')
    .select('agent_id')
    .where('agent_id', 'in', [...agentIds])
    .where('revoked_ms', 'is not', null)
    .execute()
  return rows.map((row) => row.agent_id)
}

/** Marks the ledger as forked. Returns the time at which the cloud first detected the fork, ms. */
export async function markForked(db: Db, agentId: string, nowMs: number): Promise<number> {
  await db
    .updateTable('agent')
    .set({ fork_ms: nowMs })
    .where('agent_id', '=', agentId)
    .where('fork_ms', 'is', null)
    .execute()
  const { fork_ms } = await db
    .selectFrom('agent')
    .select('fork_ms')
    .where('agent_id', '=', agentId)
    .executeTakeFirstOrThrow()
  return fork_ms ?? nowMs
}

/** Exception key of `agent_fork`. Each fork that staff must resolve has its own key. */
export function forkKey(agentId: string, forkMs: number): string {
  return `${agentId}/${forkMs}`
}

/** Marks an agent revoked, ends its logins and frees its devices. */
export async function writeRevoked(db: Db, agentId: string, nowMs: number): Promise<void> {
  await db.updateTable('agent').set({ revoked_ms: nowMs }).where('agent_id', '=', agentId).execute()
  await endLogins(db, agentId)
  await db.deleteFrom('agent_challenge').where('agent_id', '=', agentId).execute()
  await db.updateTable('device').set({ agent_id: null }).where('agent_id', '=', agentId).execute()
}

/** All agents with their stores, also revoked agents, in a fixed order. */
export async function listBrokerAgents(db: Db): Promise<{ agentId: string; storeId: string; isRevoked: boolean }[]> {
  const rows = await db.selectFrom('agent').select(['agent_id', 'store_id', 'revoked_ms']).orderBy('agent_id').execute()
  return rows.map((row) => ({ agentId: row.agent_id, storeId: row.store_id, isRevoked: row.revoked_ms !== null }))
}

/** Maximum number of agents that `agentsSeenSince` returns. */
const SEEN_LIMIT = 50_000

/** Agents from which the cloud heard since this time, except revoked agents. */
export async function agentsSeenSince(db: Db, sinceMs: number): Promise<{ agentId: string; storeId: string }[]> {
  const rows = await db
    .selectFrom('agent')
    .select(['agent_id', 'store_id'])
    .where('last_seen_ms', '>=', sinceMs)
    .where('revoked_ms', 'is', null)
    .limit(SEEN_LIMIT)
    .execute()
  return rows.map((row) => ({ agentId: row.agent_id, storeId: row.store_id }))
}
