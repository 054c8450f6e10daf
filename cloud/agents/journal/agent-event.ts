import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import type { DeviceType, ItemStatus } from '../../../policy/vocabulary.ts'
import { raiseForEvent } from '../../assistance/raise-for-event.ts'
import { definedFields } from '../../operations/fields.ts'
import type { AgentRow } from '../../persistence/tables/agents.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'
import { findAuthorization, unitsOfAuthorization } from '../../protection/leases/authorizations.ts'
import type { EvidenceScope } from '../../protection/evidence/evidence-scope.ts'
import { deviceWorkflow } from '../../protection/store-documents/device-queries.ts'
import { recordReportedException } from '../../protection/records/exceptions.ts'
import { raiseForeignEvidence } from '../../protection/evidence/foreign-evidence.ts'
import { readItem } from '../../protection/items/item-queries.ts'
import { itemAsOf } from '../../protection/rights/past-state.ts'
import { itemOfEvent, technologiesOf } from '../../protection/items/technologies.ts'

/**
 * Types of events about the use of a token. Only the agent that may redeem the token may report these events. The set
 * contains no denials, because a denial may name any token that was presented.
 */
const ABOUT_USE: ReadonlySet<string> = new Set(['protection.action.completed', 'protection.action.failed'])

/**
 * Adds facts of the cloud to an agent's event: purchase, line, location of the device, processing time. The caller
 * stores the event. Raises `foreign_evidence` and returns undefined if only another agent or store may report the
 * event.
 */
export async function completeAgentEvent(
  scope: EvidenceScope,
  agent: AgentRow,
  reported: ProtectionEvent,
  processedAt: string,
): Promise<ProtectionEvent | undefined> {
  // Discards the agent's purchase id, because only the cloud knows the purchase.
  const { purchaseId: _, ...event } = reported
  const foreign = await foreignIn(scope, agent, event)
  if (foreign !== undefined) {
    const source = { agentId: agent.agent_id, storeId: agent.store_id }
    const detail = `an agent reported an event about ${foreign}`
    await raiseForeignEvidence(scope, source, { kind: event.type, about: event.eventId, detail })
    return undefined
  }
  const device = event.deviceId === undefined ? undefined : await scope.facts.device(event.deviceId)
  const store = await scope.facts.store(agent.store_id)
  const place = device && {
    deviceType: device.device_type as DeviceType,
    workflowType: deviceWorkflow(device, store),
    zoneId: device.zone_id,
    laneId: device.lane_id,
    gateId: device.gate_id,
    firmwareVersion: device.firmware_version,
  }
  const { item: tokenItem, ...about } =
    event.replayProtectedNonce === undefined ? {} : await factsOfNonce(scope, event.replayProtectedNonce)
  const item = tokenItem ?? (await itemOfEvent(scope.db, scope.tenant, event))
  const sale = item && (await saleOf(scope, item, reported))
  const tag = technologiesOf({ ...tagOf(event, item), item, device, store })
  // On Node 20, an object literal with three spreads takes up to forty times as long as `Object.assign`.
  const completed: ProtectionEvent = Object.assign(
    definedFields(Object.assign({}, place, about, sale && withSale(about, sale))),
    tag,
    event,
    { storeId: agent.store_id, processedAt },
  )
  await recordReportedException(scope, completed, agent.agent_id)
  await raiseForEvent(scope, completed, Date.parse(completed.occurredAt))
  return completed
}

type Sale = Pick<NonceFacts, 'purchaseId' | 'itemLineId' | 'itemStatus'>

/** Status, purchase and line of the item when the event occurred. */
async function saleOf({ db }: EvidenceScope, item: ProtectedItemRow, { occurredAt }: ProtectionEvent): Promise<Sale> {
  const atMs = Date.parse(occurredAt)
  const then = item.updated_ms <= atMs ? item : await itemAsOf(db, item, atMs)
  return {
    purchaseId: then.purchase_id,
    itemLineId: then.line_id,
    itemStatus: then.item_status as ItemStatus,
  }
}

/** Adds what the token or receipt of the event does not name. An item of another purchase has another line. */
function withSale(about: NonceFacts, { purchaseId, itemLineId, itemStatus }: Sale): Sale {
  const isSame = (about.purchaseId ?? purchaseId) === purchaseId
  return {
    itemStatus: about.itemStatus ?? itemStatus ?? null,
    purchaseId: about.purchaseId ?? purchaseId ?? null,
    itemLineId: about.itemLineId ?? (isSame ? (itemLineId ?? null) : null),
  }
}

/** If the event names a device, receipt or token of another store or agent, returns a text that describes it. */
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

/** Returns the EPC and UID in the event, or those of its item if the event has neither. */
function tagOf({ epc, tagUid, protectionAction }: ProtectionEvent, item: ProtectedItemRow | undefined) {
  const isNamed = epc !== undefined || tagUid !== undefined
  return {
    epc: epc ?? (isNamed ? undefined : (item?.epc ?? undefined)),
    tagUid: tagUid ?? (isNamed ? undefined : (item?.tag_uid ?? undefined)),
    protectionAction,
  }
}

interface NonceFacts extends Partial<Record<'purchaseId' | 'itemLineId' | 'epc' | 'tagUid' | 'tagId', string | null>> {
  itemStatus?: ItemStatus | null
  item?: ProtectedItemRow | undefined
}

async function factsOfNonce({ db, tenant, facts }: EvidenceScope, nonce: string): Promise<NonceFacts> {
  if (!(await facts.isAuthorization(nonce))) {
    const purchase = await facts.purchaseOfReceipt(nonce)
    return purchase?.tenant === tenant ? { purchaseId: purchase.purchase_id } : {}
  }
  const row = await findAuthorization(db, nonce)
  // A nonce of another tenant adds no facts.
  if (row?.tenant !== tenant) return {}
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
    item,
  }
}
