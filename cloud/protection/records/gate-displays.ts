import type { Call } from '../../platform/operations/operation.ts'

/** Maximum agents of a store that poll at once. Others poll within 15 s. */
const AGENTS_LIMIT = 20

/**
 * Has the connected agents of the store poll after the commit. So the displays at its gates show at once what people in
 * the console did about an alarm, and not up to 15 s later.
 */
export async function refreshGateDisplays(
  { db, services, afterCommit }: Pick<Call, 'db' | 'services' | 'afterCommit'>,
  storeId: string,
): Promise<void> {
  const agents = await db
    .selectFrom('agent')
    .select('agent_id')
    .where('store_id', '=', storeId)
    .where('revoked_ms', 'is', null)
    .orderBy('agent_id', 'desc')
    .limit(AGENTS_LIMIT)
    .execute()
  afterCommit(() => {
    for (const { agent_id: agentId } of agents)
      if (services.agents.isConnected(agentId)) services.agents.sendCommand({ storeId, agentId }, { command: 'sync' })
  })
}
