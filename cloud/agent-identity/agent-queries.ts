import type { Db } from '../persistence/database.ts'
import { endLogins } from './sessions.ts'

/** Which of these agents were revoked. */
export async function revokedAmong(db: Db, agentIds: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('agent')
    .select('agent_id')
    .where('agent_id', 'in', [...agentIds])
    .where('revoked_ms', 'is not', null)
    .execute()
  return rows.map((row) => row.agent_id)
}

/** The agent's ledger exists twice, since now or since before; answers since when. */
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

/** What the exception `agent_fork` is about: one for each time that somebody must decide. */
export function forkKey(agentId: string, forkMs: number): string {
  return `${agentId}/${forkMs}`
}

/** Ends an agent for good: its logins are over, its devices are free for another. */
export async function writeRevoked(db: Db, agentId: string, nowMs: number): Promise<void> {
  await db.updateTable('agent').set({ revoked_ms: nowMs }).where('agent_id', '=', agentId).execute()
  await endLogins(db, agentId)
  await db.deleteFrom('agent_challenge').where('agent_id', '=', agentId).execute()
  await db.updateTable('device').set({ agent_id: null }).where('agent_id', '=', agentId).execute()
}
