import { keyId, keyRing, type KeyRing, type VerificationKey } from '../../../policy/documents/keys.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { AgentRow } from '../../platform/persistence/tables/agents.ts'
import { raiseDocumentVersion } from '../../platform/stores/queries.ts'
import { endLogins } from './sessions.ts'

/** An agent's keys: the current one and, during a rotation, the next one. */

/**
 * How long the cloud accepts outcome reports signed with a former key, ms. The cloud keeps unresolved delegated rights
 * for about the same time.
 */
const FORMER_KEYS_FOR_MS = 91 * 86_400_000
/** Maximum number of former keys per agent. An agent rotates its key every 30 days. */
const FORMER_KEYS_LIMIT = 10

/** Keys with which this agent may sign. */
export function agentKeys({ agent_id, x, next_x: next }: AgentRow): KeyRing {
  return ringOf(agent_id, [x, ...(next === null ? [] : [next])])
}

/**
 * Current and former keys of an agent. The receipt home may forward an outcome report long after the reporting agent
 * signed it.
 */
export async function currentAndFormerKeys(db: Db, agent: AgentRow, nowMs: number): Promise<KeyRing> {
  const formerKeys = await db
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
      formerKeys.map(({ x }) => x),
    ),
    ...agentKeys(agent),
  ])
}

/** Deletes former keys that the cloud no longer accepts. */
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

/** Makes the next key current after its first use. The agent can no longer log in with the former key. */
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

/** True if another agent has this key as its current or next key. */
export async function isKeyTaken(db: Db, x: string, agentId: string): Promise<boolean> {
  const other = await db
    .selectFrom('agent')
    .select('agent_id')
    .where((eb) => eb.or([eb('x', '=', x), eb('next_x', '=', x)]))
    .where('agent_id', '!=', agentId)
    .executeTakeFirst()
  return other !== undefined
}

/** Stores the next key and publishes it in the policy. */
export async function storeNextKey(db: Db, agentId: string, x: string): Promise<void> {
  const { store_id: storeId } = await db
    .updateTable('agent')
    .set({ next_x: x })
    .where('agent_id', '=', agentId)
    .returning('store_id')
    .executeTakeFirstOrThrow()
  await raiseDocumentVersion(db, storeId)
}
