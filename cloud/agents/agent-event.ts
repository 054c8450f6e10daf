import type { ProtectionEvent } from '../../policy/events.ts'
import type { DeviceType, ItemStatus } from '../../policy/vocabulary.ts'
import { raiseForEvent } from '../assistance/raise-for-event.ts'
import { present } from '../operations/fields.ts'
import type { AgentRow } from '../persistence/tables/agents.ts'
import { findAuthorization, unitsOfAuthorization } from '../protection/authorizations.ts'
import type { EvidenceScope } from '../protection/evidence-scope.ts'
import { noteReported } from '../protection/exceptions.ts'
import { raiseForeign } from '../protection/foreign-evidence.ts'
import { readItem } from '../protection/item-queries.ts'

/** Events that say what happened under a nonce: only the agent that may redeem it reports them. A denial may name what was shown. */
const ABOUT_USE: ReadonlySet<string> = new Set(['protection.action.completed', 'protection.action.failed'])

/** An agent's event with what only the cloud knows of it: the purchase, the line, the device's place, when it was taken in. To be kept by `storeEvents`. Undefined when another agent or store must report it: `foreign_evidence`. */
export async function takeAgentEvent(
  scope: EvidenceScope,
  agent: AgentRow,
  reported: ProtectionEvent,
  processedAt: string,
): Promise<ProtectionEvent | undefined> {
  // Only the cloud knows the purchase.
  const { purchaseId: _, ...event } = reported
  const foreign = await foreignIn(scope, agent, event)
  if (foreign !== undefined) {
    const witness = { agentId: agent.agent_id, storeId: agent.store_id }
    const detail = `an agent reported an event about ${foreign}`
    await raiseForeign(scope, witness, { kind: event.type, about: event.eventId, detail })
    return undefined
  }
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

/** What the event names that is not this agent's to report about. */
async function foreignIn(
  { db, tenant, facts }: EvidenceScope,
  { agent_id: agentId, store_id: storeId }: AgentRow,
  { type, deviceId, replayProtectedNonce: nonce }: ProtectionEvent,
): Promise<string | undefined> {
  const device = deviceId === undefined ? undefined : await facts.device(deviceId)
  if (device && device.store_id !== storeId) return 'a device of another store'
  if (nonce === undefined) return undefined
  if (!(await facts.isAuthorization(nonce))) {
    const purchase = await facts.purchaseOfReceipt(nonce)
    return purchase?.tenant === tenant && purchase.store_id !== storeId ? 'a receipt of another store' : undefined
  }
  if (!ABOUT_USE.has(type)) return undefined
  const row = await findAuthorization(db, nonce)
  const isOwn = row?.tenant === tenant && (await facts.isOwn(row.agent_id, { agentId, storeId }))
  return isOwn ? undefined : 'a token of another agent'
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
