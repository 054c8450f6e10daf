import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findStore, raiseDocumentVersion } from '../../platform/stores/queries.ts'
import { outstandingUntil } from '../leases/authorizations.ts'
import { listDevices } from '../store-facts/device-queries.ts'
import { revokeTokens } from '../leases/token-revocations.ts'
import { precondition } from '../../platform/foundation/failure.ts'
import { beginHomeMove, storeFormerHome } from '../receipt-home/home-move.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'

/**
 * Assigns a device to the first agent of its store that reports it. `updateDevice` can later move the device to another
 * agent (ADR agents).
 */
export async function adoptDevice(
  call: Call,
  device: Row<'device'>,
  store: Row<'store'>,
  agentId: string,
): Promise<void> {
  // If the device is moving to this agent, the end of the move assigns the device.
  if (device.agent_id === agentId || device.moving_to === agentId) return
  if (device.agent_id !== null) {
    throw precondition(
      'device_of_another_agent',
      `device ${device.device_id} belongs to another agent of this store: move it with updateDevice`,
    )
  }
  await setDeviceAgent(call, device, store, agentId)
}

/**
 * Stores the agent of a device. If the cloud is the receipt home and the device is an exit gate, this agent becomes the
 * receipt home.
 */
export async function setDeviceAgent(
  call: Call,
  device: Row<'device'>,
  store: Row<'store'>,
  agentId: string,
): Promise<void> {
  await call.db
    .updateTable('device')
    .set({ agent_id: agentId, moving_to: null })
    .where('device_id', '=', device.device_id)
    .execute()
  if (device.device_type === 'exit_gate' && policyOf(store).home === 'cloud') {
    await beginHomeMove(call, store, agentId)
    await makeHome(call, store, agentId)
  }
  await raiseDocumentVersion(call.db, store.store_id)
  call.changed(device.device_id)
  call.afterCommit(() => call.services.agents.storeChanged(store.store_id))
}

/** Makes an agent, or the cloud, the receipt home of the store. */
async function makeHome({ db }: Call, store: Row<'store'>, agentId: string): Promise<void> {
  const policy = policyOf(store)
  await storeFormerHome(db, store)
  const moved = JSON.stringify({ ...policy, home: agentId, homeEpoch: policy.homeEpoch + 1 })
  await db.updateTable('store').set({ policy: moved }).where('store_id', '=', store.store_id).execute()
}

/** Makes the successor of an agent the receipt home. The successor continues the ledger of that agent. */
export async function inheritHome(call: Call, storeId: string, agentId: string): Promise<void> {
  const store = await findStore(call.db, storeId)
  if (!store) return
  await beginHomeMove(call, store, agentId)
  await makeHome(call, store, agentId)
  await raiseDocumentVersion(call.db, storeId)
}

/** Maximum agents that may record sales of tills (`tillSales.agents`). */
const TILL_AGENTS_LIMIT = 100

/** Lets the successor of an agent record sales of tills, if the policy names that agent. */
export async function inheritTills({ db }: Call, storeId: string, former: string, agentId: string): Promise<void> {
  const store = await findStore(db, storeId)
  const policy = store && policyOf(store)
  if (!policy?.tillSales.agents.includes(former)) return
  const { agents: named } = policy.tillSales
  // What the former agent announced counts until the items contain it, if there is room for both.
  const kept = named.length < TILL_AGENTS_LIMIT ? named : named.filter((id) => id !== former)
  const agents = [...kept, agentId]
  const changed = JSON.stringify({ ...policy, tillSales: { ...policy.tillSales, agents } })
  await db.updateTable('store').set({ policy: changed }).where('store_id', '=', storeId).execute()
  await raiseDocumentVersion(db, storeId)
}

/**
 * If this agent is the receipt home, begins a move of the receipt home to the same agent. The agent's ledger may have
 * lost uses and delegations. The agent honours older receipts again after all other agents have reported. Returns
 * whether the agent is the receipt home.
 */
export async function distrustHome(call: Call, storeId: string, agentId: string): Promise<boolean> {
  const store = await findStore(call.db, storeId)
  if (!store || policyOf(store).home !== agentId) return false
  await beginHomeMove(call, store, agentId)
  await raiseDocumentVersion(call.db, storeId)
  call.afterCommit(() => call.services.agents.storeChanged(storeId))
  return true
}

/**
 * Moves the receipt home away from a revoked agent: to the next agent with an exit gate, else to the cloud. If a
 * successor continues the ledger, the cloud is the receipt home until the successor takes over.
 */
export async function reassignHome(
  call: Call,
  store: Row<'store'>,
  agentId: string,
  hasSuccessor: boolean,
): Promise<void> {
  if (policyOf(store).home !== agentId) return
  const home = hasSuccessor ? 'cloud' : ((await ownerOfGates(call, store.store_id)) ?? 'cloud')
  if (!hasSuccessor) await beginHomeMove(call, store, home)
  await makeHome(call, store, home)
}

/** Agent of the store's first exit gate in service, if any. */
async function ownerOfGates({ db }: Call, storeId: string): Promise<string | undefined> {
  const gate = await db
    .selectFrom('device')
    .innerJoin('agent', 'agent.agent_id', 'device.agent_id')
    .select('agent.agent_id')
    .where('device.store_id', '=', storeId)
    .where('device.device_type', '=', 'exit_gate')
    .where('device.revoked_ms', 'is', null)
    .where('agent.revoked_ms', 'is', null)
    .orderBy('device.device_id')
    .executeTakeFirst()
  return gate?.agent_id
}

/**
 * Moves a device to another agent. A token belongs to the ledger of the device's agent, and another ledger does not
 * know whether the token was used. So the cloud revokes the device's tokens and issues no more. The move ends when each
 * token is voided, is used up, or has been expired for a minute (ADR agents).
 */

const GUARD_SECONDS = 60

type Assignment = Pick<Row<'device'>, 'agent_id' | 'moving_to'>

/**
 * Starts the move of a device to an agent. The move ends at once if the former agent has no valid token for the device.
 * If `agentId` is the current agent, cancels a running move.
 */
export async function moveToAgent(
  call: Call,
  device: Row<'device'>,
  store: Row<'store'>,
  agentId: string,
): Promise<Assignment> {
  if (device.agent_id === null) {
    await adoptDevice(call, device, store, agentId)
    return { agent_id: agentId, moving_to: null }
  }
  const movingTo = device.agent_id === agentId ? null : agentId
  await call.db.updateTable('device').set({ moving_to: movingTo }).where('device_id', '=', device.device_id).execute()
  if (movingTo === null) return { agent_id: agentId, moving_to: null }
  await revokeTokensOfFormer(call, device, device.agent_id)
  const moving = { ...device, moving_to: movingTo }
  return (await endMove(call, moving, store))
    ? { agent_id: movingTo, moving_to: null }
    : { agent_id: device.agent_id, moving_to: movingTo }
}

/** Requests the former agent to void all tokens of the device, and revokes them. */
async function revokeTokensOfFormer(call: Call, device: Row<'device'>, agentId: string): Promise<void> {
  await call.db
    .updateTable('protection_authorization')
    .set({ void_asked_ms: call.nowMs })
    .where('device_id', '=', device.device_id)
    .where('agent_id', '=', agentId)
    .where('exp', '>', Math.floor(call.nowMs / 1_000) - GUARD_SECONDS)
    .where('void_asked_ms', 'is', null)
    .where('voided_ms', 'is', null)
    .execute()
  const scope = { kind: 'device', deviceId: device.device_id, agentId } as const
  await revokeTokens(call, scope, 'the device goes to another agent')
}

/** Ends the move if all tokens of the device have ended. Returns whether the move ended. */
async function endMove(call: Call, device: Row<'device'>, store: Row<'store'>): Promise<boolean> {
  if (device.moving_to === null || (await outstandingUntil(call.db, device, call.nowMs)) !== null) return false
  await setDeviceAgent(call, device, store, device.moving_to)
  return true
}

/** Ends the moves of a store's devices whose tokens have ended. Returns the number of ended moves. */
export async function endMoves(call: Call, storeId: string): Promise<number> {
  const moving = (await listDevices(call.db, storeId)).filter((device) => device.moving_to !== null)
  let ended = 0
  for (const device of moving) {
    const store = await findStore(call.db, storeId)
    if (store && (await endMove(call, device, store))) ended++
  }
  return ended
}

/** Cancels the moves to an agent that is being revoked. */
export async function cancelMovesTo({ db }: Pick<Call, 'db'>, agentId: string): Promise<void> {
  await db.updateTable('device').set({ moving_to: null }).where('moving_to', '=', agentId).execute()
}
