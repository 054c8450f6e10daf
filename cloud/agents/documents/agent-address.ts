import type { Call } from '../../operations/operation.ts'
import { raiseDocumentVersion } from '../../stores/queries.ts'

/** Stores the agent's address for other agents and publishes it in the signed policy. */
export async function storeAddress(
  { db, services, afterCommit }: Call,
  agentId: string,
  address: string,
): Promise<void> {
  const moved = await db
    .updateTable('agent')
    .set({ home_url: address })
    .where('agent_id', '=', agentId)
    .where((eb) => eb.or([eb('home_url', 'is', null), eb('home_url', '!=', address)]))
    .returning('store_id')
    .executeTakeFirst()
  if (!moved) return
  await raiseDocumentVersion(db, moved.store_id)
  afterCommit(() => services.agents.storeChanged(moved.store_id))
}
