import type { Call } from '../../operations/operation.ts'
import { viewLease, type LeaseView } from '../leases/leases.ts'
import { findUnit, type FoundUnit } from './find-unit.ts'
import { withOverride } from './override-lease.ts'
import { factsOfQuestion, type Question } from './question.ts'
import type { Subject } from './subject.ts'

/** Loads one item, or one unit of a purchase, with its right and the lease of that right. */
export async function itemSubject(call: Call, question: Question): Promise<Subject> {
  const { asked, identifiers } = question
  const found = await findAsked(call, question)
  const lease = withOverride(call, asked, await leaseOf(call, question, found))
  const facts = {
    ...factsOfQuestion(question),
    item: found?.facts ?? null,
    identifiedBy: (['epc', 'tagUid', 'tagId', 'itemLineId'] as const).filter((kind) => identifiers[kind] !== undefined),
    mustBeRead: found?.mustBeRead ?? false,
    right: lease.right,
  }
  return {
    units: [{ facts, lease, right: found?.unit }],
    isKnown: found !== undefined,
    item: found?.item,
    purchase: found?.purchase,
    itemStatus: found?.itemStatus ?? null,
    lineId: found?.unit?.key.purchaseId ? found.unit.key.lineId : null,
  }
}

async function findAsked(call: Call, question: Question): Promise<FoundUnit | undefined> {
  const { asked, action, identifiers, purchase } = question
  const { device, store } = asked
  if (!device || !store) return undefined
  return findUnit({
    db: call.db,
    tenant: asked.caller.tenant,
    storeId: device.row.store_id,
    deviceId: device.row.device_id,
    agentId: device.row.agent_id,
    device: device.facts,
    action,
    identifiers,
    purchase: purchase?.store_id === device.row.store_id ? purchase : undefined,
    nowMs: call.nowMs,
    pastMs: asked.pastMs,
  })
}

async function leaseOf(
  call: Call,
  { asked: { device }, action }: Question,
  found: FoundUnit | undefined,
): Promise<LeaseView> {
  if (!device || !found) return { right: 'free' }
  const itemId = found.item?.item_id ?? null
  return viewLease(
    call,
    found.unit?.right,
    device.row,
    action,
    (row) => row.ith_kind !== null && row.item_id === itemId,
  )
}
