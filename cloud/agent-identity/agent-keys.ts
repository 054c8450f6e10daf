import { keyId, keyRing, type KeyRing, type VerificationKey } from '../../policy/documents/keys.ts'
import type { Db } from '../persistence/database.ts'
import type { AgentRow } from '../persistence/tables/agents.ts'
import { raiseDocumentVersion } from '../stores/queries.ts'
import { endLogins } from './sessions.ts'

/** An agent's keys: the one in use, and while it changes the one that follows. */

/** How long the cloud accepts an outcome report that was signed before a change of key, ms: as long as it keeps delegated rights. */
const FORMER_KEYS_FOR_MS = 91 * 86_400_000
/** Former keys of one agent that count; it changes its key every 30 days. */
const FORMER_KEYS_LIMIT = 10

/** What this agent may sign with. */
export function agentKeys({ agent_id, x, next_x: next }: AgentRow): KeyRing {
  return ringOf(agent_id, [x, ...(next === null ? [] : [next])])
}

/** The agent's keys and those it had before: another agent may forward what it signed with them later. */
export async function currentAndFormerKeys(db: Db, agent: AgentRow, nowMs: number): Promise<KeyRing> {
  const former = await db
    .selectFrom('agent_former_key')
    .select('x')
    .where('agent_id', '=', agent.agent_id)
    .where('retired_ms', '>', nowMs - FORMER_KEYS_FOR_MS)
    .orderBy('retired_ms', 'desc')
    .limit(FORMER_KEYS_LIMIT)
    .execute()
  return new Map([
    ...ringOf(
      agent.agent_id,
      former.map(({ x }) => x),
    ),
    ...agentKeys(agent),
  ])
}

/** Discards former keys that no longer count. */
export async function pruneFormerKeys(db: Db, nowMs: number): Promise<void> {
  await db
    .deleteFrom('agent_former_key')
    .where('retired_ms', '<=', nowMs - FORMER_KEYS_FOR_MS)
    .execute()
}

function ringOf(iss: string, keys: readonly string[]): KeyRing {
  return keyRing(
    keys.map((key) => ({
      kid: keyId(key),
      alg: 'EdDSA' as const,
      x: key,
      use: 'agent' as const,
      iss,
      state: 'active' as const,
    })),
  )
}

/** The new key was used: the former counts no more. */
export async function promoteNextKey(db: Db, agent: AgentRow, key: VerificationKey, nowMs: number): Promise<void> {
  if (key.x !== agent.next_x) return
  await db
    .insertInto('agent_former_key')
    .values({ agent_id: agent.agent_id, x: agent.x, retired_ms: nowMs })
    .onConflict((c) => c.columns(['agent_id', 'x']).doUpdateSet({ retired_ms: nowMs }))
    .execute()
  await db.updateTable('agent').set({ x: key.x, next_x: null }).where('agent_id', '=', agent.agent_id).execute()
  await endLogins(db, agent.agent_id)
  await raiseDocumentVersion(db, agent.store_id)
}

/** Whether another agent has this key, in use or to come. */
export async function isKeyTaken(db: Db, x: string, agentId: string): Promise<boolean> {
  const other = await db
    .selectFrom('agent')
    .select('agent_id')
    .where((eb) => eb.or([eb('x', '=', x), eb('next_x', '=', x)]))
    .where('agent_id', '!=', agentId)
    .executeTakeFirst()
  return other !== undefined
}

/** The key that follows. The other agents of the store are told of it with the policy. */
export async function storeNextKey(db: Db, agentId: string, x: string): Promise<void> {
  const { store_id: storeId } = await db
    .updateTable('agent')
    .set({ next_x: x })
    .where('agent_id', '=', agentId)
    .returning('store_id')
    .executeTakeFirstOrThrow()
  await raiseDocumentVersion(db, storeId)
}
