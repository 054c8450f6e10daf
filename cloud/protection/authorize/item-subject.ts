import type { Call } from '../../operations/operation.ts'
import { restOnProduct } from '../items/item-product.ts'
import { itemHead } from '../items/item-sequence.ts'
import { viewLease, type LeaseView } from '../leases/leases.ts'
import { findUnit, type FoundUnit } from './find-unit.ts'
import { withOverride } from './override-lease.ts'
import { factsOfQuestion, type Question } from './question.ts'
import type { Subject } from './subject.ts'

/** Loads what a question about one item needs: the item or the unit of a purchase, its right, and who holds that. */
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
    revised: await restOnFound(call, question, found),
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

/** Names the rows that the answer rests on, and gives the one whose revision rises with a lease that is taken. */
async function restOnFound(call: Call, { asked: { store, device } }: Question, found: FoundUnit | undefined) {
  if (store) call.restsOn({ kind: 'store', id: store.store_id, rev: store.document_version })
  // What is not known here may be registered at any moment.
  if (device && !found)
    call.restsOn({ kind: 'items', id: device.row.store_id, rev: (await itemHead(call.db, device.row.store_id)).seq })
  const { item, purchase, named } = found ?? {}
  const itemRow = item && ({ kind: 'item', id: item.item_id, rev: item.rev } as const)
  const purchaseRow = purchase && ({ kind: 'purchase', id: purchase.purchase_id, rev: purchase.rev } as const)
  if (named) call.restsOn({ kind: 'purchase', id: named.purchase_id, rev: named.rev })
  if (itemRow) call.restsOn(itemRow)
  if (item) await restOnProduct(call, item)
  if (purchaseRow) call.restsOn(purchaseRow)
  return found?.unit?.key.purchaseId === '' ? itemRow : purchaseRow
}
