import { precondition } from '../../foundation/failure.ts'
import type { Call } from '../../operations/operation.ts'
import type { DeviceRow } from '../../persistence/tables/agents.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { findStore, raiseDocumentVersion } from '../../stores/queries.ts'
import { beginHomeMove } from '../receipt-home/home-move.ts'
import { policyOf } from '../store-documents/parsed-policy.ts'
import { storeFormerHome } from '../receipt-home/receipt-homes.ts'

/** A device belongs to the first agent of its store that reports it (contracts §2); moving it is an operation of its own. */
export async function adoptDevice(call: Call, device: DeviceRow, store: StoreRow, agentId: string): Promise<void> {
  // One that is on its way here comes by itself.
  if (device.agent_id === agentId || device.moving_to === agentId) return
  if (device.agent_id !== null) {
    throw precondition(
      'device_of_another_agent',
      `device ${device.device_id} belongs to another agent of this store: give it to this one with updateDevice`,
    )
  }
  await setDeviceAgent(call, device, store, agentId)
}

/** Writes where a device is from now on. */
export async function setDeviceAgent(call: Call, device: DeviceRow, store: StoreRow, agentId: string): Promise<void> {
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

/** Receipts of the store are redeemed at the agent that owns its exit gates, or at the cloud. */
async function makeHome({ db }: Call, store: StoreRow, agentId: string): Promise<void> {
  const policy = policyOf(store)
  await storeFormerHome(db, store)
  const moved = JSON.stringify({ ...policy, home: agentId, homeEpoch: policy.homeEpoch + 1 })
  await db.updateTable('store').set({ policy: moved }).where('store_id', '=', store.store_id).execute()
}

/** The home of before is gone, and this agent goes on with its ledger. */
export async function inheritHome(call: Call, storeId: string, agentId: string): Promise<void> {
  const store = await findStore(call.db, storeId)
  if (!store) return
  await beginHomeMove(call, store, agentId)
  await makeHome(call, store, agentId)
  await raiseDocumentVersion(call.db, storeId)
}

/**
 * Its ledger may have forgotten what it used, and to whom it gave rights: where it is the home, it honours receipts from before when
 * all others have told what they used. Answers whether it is the home.
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
 * An agent is gone: where it was the home, the next that owns an exit gate is, else the cloud until one reports such a gate. It waits for
 * what others have used with rights that the former gave them. `goesOn`: its ledger does, in which all of them stand; the cloud is home
 * until the one who has that takes it.
 */
export async function reassignHome(call: Call, store: StoreRow, agentId: string, goesOn: boolean): Promise<void> {
  if (policyOf(store).home !== agentId) return
  const home = goesOn ? 'cloud' : ((await ownerOfGates(call, store.store_id)) ?? 'cloud')
  if (!goesOn) await beginHomeMove(call, store, home)
  await makeHome(call, store, home)
}

/** The agent of the store's first exit gate in service that has one. */
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
