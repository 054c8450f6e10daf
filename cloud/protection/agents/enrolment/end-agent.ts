import { actorOf } from '../../../platform/foundation/caller.ts'
import type { Call } from '../../../platform/operations/operation.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { reassignHome, cancelMovesTo } from '../../devices/move-device.ts'
import { storeDocumentChanged } from '../../../platform/stores/parsed-policy.ts'
import { acknowledgeOpenException } from '../../records/exceptions.ts'
import { cancelWaitForAgent } from '../../receipt-home/home-move.ts'
import { replaceStoreKey, storeKeyParts } from '../../operators/store-keys.ts'
import { forkKey, writeRevoked } from '../../agent-identity/agent-queries.ts'

/** Revokes an agent and returns its changed row. `hasSuccessor` is true if a successor continues the agent's ledger. */
export async function endAgent(
  call: Call,
  agent: Row<'agent'>,
  store: Row<'store'>,
  hasSuccessor = false,
): Promise<Row<'agent'>> {
  await writeRevoked(call.db, agent.agent_id, call.nowMs)
  await acknowledgeFork(call, agent)
  await cancelMovesTo(call, agent.agent_id)
  await cancelWaitForAgent(call, agent.agent_id)
  await reassignHome(call, store, agent.agent_id, hasSuccessor)
  // The revoked agent knows the store key, so the verifiers in later policies need a new store key.
  await replaceStoreKey(call.db, store.store_id, storeKeyParts(call.services))
  await storeDocumentChanged(call, store.store_id)
  call.changed(agent.agent_id)
  call.afterCommit(() => call.services.agents.agentRevoked({ storeId: agent.store_id, agentId: agent.agent_id }))
  return { ...agent, revoked_ms: call.nowMs }
}

/** Acknowledges the agent's `agent_fork` exception, if there is one. */
export async function acknowledgeFork(
  call: Call,
  { agent_id, store_id: storeId, fork_ms }: Row<'agent'>,
): Promise<void> {
  if (fork_ms === null) return
  await acknowledgeOpenException(call.db, {
    storeId,
    kind: 'agent_fork',
    subject: forkKey(agent_id, fork_ms),
    by: actorOf(call.caller),
    atMs: call.nowMs,
  })
}
