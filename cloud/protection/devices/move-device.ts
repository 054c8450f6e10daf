import type { Call } from '../../platform/operations/operation.ts'
import type { DeviceRow } from '../../platform/persistence/tables/agents.ts'
import type { StoreRow } from '../../platform/persistence/tables/stores.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { updateAuthorization } from '../leases/authorizations.ts'
import { adoptDevice, setDeviceAgent } from './adopt-device.ts'
import { listDevices } from '../store-documents/device-queries.ts'
import { revokeAuthorization } from '../leases/leases.ts'
import { outstandingOf } from '../leases/outstanding-tokens.ts'

/**
 * Moves a device to another agent. A token belongs to the ledger of the device's agent, and another ledger does not
 * know whether the token was used. So the cloud revokes the device's tokens and issues no more. The move ends when each
 * token is voided, is used up, or has been expired for a minute (ADR 0040).
 */

const GUARD_SECONDS = 60

type Assignment = Pick<DeviceRow, 'agent_id' | 'moving_to'>

/**
 * Starts the move of a device to an agent. The move ends at once if the former agent has no valid token for the device.
 * If `agentId` is the current agent, cancels a running move.
 */
export async function moveToAgent(
  call: Call,
  device: DeviceRow,
  store: StoreRow,
  agentId: string,
): Promise<Assignment> {
  if (device.agent_id === null) {
    await adoptDevice(call, device, store, agentId)
    return { agent_id: agentId, moving_to: null }
  }
  const movingTo = device.agent_id === agentId ? null : agentId
  await call.db.updateTable('device').set({ moving_to: movingTo }).where('device_id', '=', device.device_id).execute()
  if (movingTo === null) return { agent_id: agentId, moving_to: null }
  await revokeTokens(call, device)
  const moving = { ...device, moving_to: movingTo }
  return (await endMove(call, moving, store))
    ? { agent_id: movingTo, moving_to: null }
    : { agent_id: device.agent_id, moving_to: movingTo }
}

async function revokeTokens(call: Call, device: DeviceRow): Promise<void> {
  const rows = await call.db
    .selectFrom('protection_authorization')
    .selectAll()
    .where('device_id', '=', device.device_id)
    .where('agent_id', '=', device.agent_id)
    .where('exp', '>', Math.floor(call.nowMs / 1_000) - GUARD_SECONDS)
    .where('voided_ms', 'is', null)
    .execute()
  for (const row of rows) {
    if (row.revoked_ms === null) await revokeAuthorization(call, row, 'the device goes to another agent')
    else if (row.void_asked_ms === null) await updateAuthorization(call.db, row, { void_asked_ms: call.nowMs })
  }
}

/** Ends the move if all tokens of the device have ended. Returns whether the move ended. */
async function endMove(call: Call, device: DeviceRow, store: StoreRow): Promise<boolean> {
  if (device.moving_to === null || (await outstandingOf(call.db, device, call.nowMs)).length > 0) return false
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
