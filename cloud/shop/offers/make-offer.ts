import { newId } from '../../../policy/ids.ts'
import { knownCaller } from '../../platform/foundation/caller.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { describeOffer } from './description.ts'
import { discountOf, type OfferProduct } from './offer-products.ts'
import { dueAfter, statusAt, type Validity } from './offer-status.ts'
import { insertBranches, insertList } from './queries.ts'

/** Content that all branches of a new offer share. */
export interface OfferContent {
  title: string
  /** If empty, the description is generated. */
  description: string
  merchantColor: string
  tags: readonly string[]
  imageUrl: string | null
  quantity: number | null
  validity: Validity
}

/** Branches with the same prices. */
export interface PricedBranches {
  storeIds: readonly string[]
  products: readonly OfferProduct[]
}

/**
 * Creates an offer: one group, one document for each store in the order of `storeIds`, and one product list for each
 * entry of `prices`.
 */
export async function makeOffer(
  call: Call,
  content: OfferContent,
  storeIds: readonly string[],
  prices: readonly PricedBranches[],
): Promise<{ group: Row<'offer_group'>; branches: Row<'offer'>[] }> {
  const { db, nowMs, services } = call
  const { validity } = content
  const group = newGroup(call, content, storeIds, prices)
  await db.insertInto('offer_group').values(group).execute()
  const listOf = new Map<string, string>()
  for (const { storeIds: ids, products } of prices) {
    const listId = await storeList(call, products)
    for (const id of ids) listOf.set(id, listId)
  }
  const branches = storeIds.map((storeId, i) => ({
    ...newBranch(call, group, i, storeId, listOf.get(storeId) ?? ''),
    ...(i === 0 && { offer_id: group.lead_id }),
  }))
  await insertBranches(db, branches)
  if (statusAt(validity, nowMs) === 'ACTIVE') emitPublished(call, branches)
  call.changed(group.lead_id)
  call.afterCommit(services.offersChanged.notify)
  return { group, branches }
}

/** Builds the row of a new offer without storing it. */
export function newGroup(
  call: Call,
  content: OfferContent,
  storeIds: readonly string[],
  prices: readonly PricedBranches[],
): Row<'offer_group'> {
  const { nowMs, services } = call
  const { validity } = content
  const products = prices[0]?.products ?? []
  const status = statusAt(validity, nowMs)
  return {
    group_id: newId('grp', services.platform),
    tenant: knownCaller(call.caller).tenant,
    lead_id: newId('off', services.platform),
    title: content.title,
    description: content.description || describeOffer(products, validity),
    description_generated: content.description ? 0 : 1,
    merchant_color: content.merchantColor,
    tags: content.tags.length > 0 ? JSON.stringify(content.tags) : null,
    image_url: content.imageUrl,
    quantity: content.quantity,
    valid_from_ms: validity.fromMs,
    valid_to_ms: validity.toMs,
    status,
    due_ms: dueAfter(status, validity),
    discount_percent: Math.max(0, ...prices.map((p) => discountOf(p.products))),
    product_count: products.length,
    store_count: storeIds.length,
    created_ms: nowMs,
    updated_ms: nowMs,
    rev: 1,
  }
}

/** Builds the document of one branch. */
export function newBranch(
  call: Call,
  group: Row<'offer_group'>,
  branchNo: number,
  storeId: string,
  listId: string,
): Row<'offer'> {
  return {
    offer_id: newId('off', call.services.platform),
    tenant: group.tenant,
    group_id: group.group_id,
    branch_no: branchNo,
    store_id: storeId,
    list_id: listId,
    is_active: 1,
    valid_from_ms: group.valid_from_ms,
    valid_to_ms: group.valid_to_ms,
    click_count: 0,
    favorited_count: 0,
    created_ms: call.nowMs,
  }
}

/** Stores a product list. Returns its id. */
export async function storeList(call: Call, products: readonly OfferProduct[]): Promise<string> {
  const { tenant } = knownCaller(call.caller)
  const row = {
    list_id: newId('ofl', call.services.platform),
    tenant,
    products: JSON.stringify(products),
    discount_percent: discountOf(products),
  }
  await insertList(
    call.db,
    row,
    products.flatMap(({ ean, priceCent }) => (ean === undefined ? [] : { ean, price_cent: priceCent })),
  )
  return row.list_id
}

/** Emits `offer.published` for these branch documents. */
export function emitPublished(
  call: Pick<Call, 'emit'>,
  branches: readonly Pick<Row<'offer'>, 'offer_id' | 'group_id' | 'store_id'>[],
): void {
  for (const { offer_id: offerId, group_id: groupId, store_id: storeId } of branches) {
    call.emit({ type: 'offer.published', storeId, data: { offerId, groupId, storeId } })
  }
}
