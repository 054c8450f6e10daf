import type { ProtectionEvent } from '../../policy/events.ts'
import type { DeviceType, ItemStatus } from '../../policy/vocabulary.ts'
import { raiseForEvent } from '../assistance/raise-for-event.ts'
import { present } from '../operations/fields.ts'
import type { AgentRow } from '../persistence/tables/agents.ts'
import { findAuthorization, unitsOfAuthorization } from '../protection/authorizations.ts'
import type { EvidenceScope } from '../protection/evidence-scope.ts'
import { noteReported } from '../protection/exceptions.ts'
import { readItem } from '../protection/item-queries.ts'

/** An agent's event with what only the cloud knows of it: the purchase, the line, the device's place, when it was taken in. To be kept by `storeEvents`. */
export async function takeAgentEvent(
  scope: EvidenceScope,
  agent: AgentRow,
  event: ProtectionEvent,
  processedAt: string,
): Promise<ProtectionEvent> {
  const device = event.deviceId === undefined ? undefined : await scope.facts.device(event.deviceId)
  const place = device && {
    deviceType: device.device_type as DeviceType,
    zoneId: device.zone_id,
    laneId: device.lane_id,
    gateId: device.gate_id,
    firmwareVersion: device.firmware_version,
  }
  const about =
    event.replayProtectedNonce === undefined ? undefined : await subjectOf(scope, event.replayProtectedNonce)
  // Not as a literal of three spreads, which costs up to forty times as much on Node 20.
  const whole: ProtectionEvent = Object.assign(present(Object.assign({}, place, about)), event, {
    storeId: agent.store_id,
    processedAt,
  })
  await noteReported(scope, whole, agent.agent_id)
  await raiseForEvent(scope, whole, Date.parse(whole.occurredAt))
  return whole
}

async function subjectOf({ db, tenant, facts }: EvidenceScope, nonce: string) {
  if (!(await facts.isAuthorization(nonce))) {
    const purchase = await facts.purchaseOfReceipt(nonce)
    return purchase?.tenant === tenant ? { purchaseId: purchase.purchase_id } : undefined
  }
  const row = await findAuthorization(db, nonce)
  // A nonce of another tenant's says nothing here.
  if (row?.tenant !== tenant) return undefined
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
