import type { ProtectionEvent } from '../../policy/events.ts'
import type { DeviceType, ItemStatus } from '../../policy/vocabulary.ts'
import { raiseForDenial } from '../assistance/raise-for-denial.ts'
import { iso, present } from '../operations/fields.ts'
import type { AgentRow } from '../persistence/tables/agents.ts'
import { findAuthorization, unitsOfAuthorization } from '../protection/authorizations.ts'
import { storeEvent, type EventScope } from '../protection/events.ts'
import { noteReported } from '../protection/exceptions.ts'
import { findDevice } from '../protection/device-queries.ts'
import { readItem } from '../protection/item-queries.ts'
import { findPurchaseOfReceipt } from '../scan-and-go/queries.ts'

/** Keeps an agent's event, with what only the cloud knows of it: the purchase, the line, the device's place. */
export async function storeAgentEvent(scope: EventScope, agent: AgentRow, event: ProtectionEvent): Promise<void> {
  const device = event.deviceId === undefined ? undefined : await findDevice(scope.db, scope.tenant, event.deviceId)
  const place = device && {
    deviceType: device.device_type as DeviceType,
    zoneId: device.zone_id,
    laneId: device.lane_id,
    gateId: device.gate_id,
    firmwareVersion: device.firmware_version,
  }
  const about = event.replayProtectedNonce === undefined ? {} : await subjectOf(scope, event.replayProtectedNonce)
  const whole = { ...present({ ...place, ...about }), ...event, storeId: agent.store_id, processedAt: iso(scope.nowMs) } as ProtectionEvent
  await storeEvent(scope, whole)
  await noteReported(scope, whole, agent.agent_id)
  await raiseForDenial(scope, whole, Date.parse(whole.occurredAt))
}

async function subjectOf({ db, tenant }: EventScope, nonce: string) {
  const row = await findAuthorization(db, nonce)
  if (row?.tenant === tenant) {
    const units = await unitsOfAuthorization(db, nonce)
    const item = row.item_id === null ? undefined : await readItem(db, row.item_id)
    const isOne = row.count === 1 && row.purchase_id !== null
    return {
      purchaseId: row.purchase_id,
      itemLineId: isOne ? (units[0]?.line_id ?? null) : null,
      itemStatus: (item?.item_status as ItemStatus | undefined) ?? null,
      epc: item?.epc ?? null,
      tagUid: item?.tag_uid ?? null,
      tagId: item?.tag_id ?? null,
    }
  }
  const purchase = await findPurchaseOfReceipt(db, nonce)
  return purchase?.tenant === tenant ? { purchaseId: purchase.purchase_id } : {}
}
