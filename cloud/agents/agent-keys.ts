import { keyId, keyRing, type KeyRing, type VerificationKey } from '../../policy/documents/keys.ts'
import type { Db } from '../persistence/database.ts'
import type { AgentRow } from '../persistence/tables/agents.ts'
import { raiseDocumentVersion } from '../stores/queries.ts'
import { endLogins } from './sessions.ts'

/** An agent's keys: the one in use, and while it changes the one that follows. */

/** What this agent may sign with. */
export function agentKeys({ agent_id: iss, x, next_x: next }: AgentRow): KeyRing {
  return keyRing(
    [x, ...(next === null ? [] : [next])].map((key) => ({
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
export async function noteKeyUse(db: Db, agent: AgentRow, key: VerificationKey): Promise<void> {
  if (key.x !== agent.next_x) return
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
export async function changeToKey(db: Db, agentId: string, x: string): Promise<void> {
  const { store_id: storeId } = await db
    .updateTable('agent')
    .set({ next_x: x })
    .where('agent_id', '=', agentId)
    .returning('store_id')
    .executeTakeFirstOrThrow()
  await raiseDocumentVersion(db, storeId)
}
