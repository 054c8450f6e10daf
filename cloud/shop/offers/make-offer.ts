import { newId } from '../../../policy/ids.ts'
import { knownCaller } from '../../platform/foundation/caller.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { discountOf, type OfferProduct, adjusted, assertSold } from './offer-products.ts'
import { dueAfter, statusAt, type Validity } from './offer-status.ts'
import { insertBranches, insertList, readList, storeWithMoreOffers, type OfferOfCaller } from './queries.ts'
import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'
import { invalid, precondition } from '../../platform/foundation/failure.ts'
import type { CloneOffer } from './schema.ts'

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
interface PricedBranches {
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
  await assertFewOffers(call, storeIds, validity)
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

/** Maximum number of product names in a description; further products are only counted. */
const NAMES_LISTED = 2

const DATE = new Intl.DateTimeFormat('de-DE', {
  timeZone: STORE_TIME_ZONE,
  day: '2-digit',
  month: '2-digit',
  year: 'numeric',
})

/** Generates a short German description: products, discount and validity. */
export function describeOffer(products: readonly OfferProduct[], { fromMs, toMs }: Validity): string {
  const names = products.slice(0, NAMES_LISTED).map((product) => product.name)
  const others = products.length - names.length
  const what =
    others > 0
      ? `${names.join(', ')} und ${others} ${others === 1 ? 'weiteres Produkt' : 'weitere Produkte'}`
      : names.join(' und ')
  const percent = discountOf(products)
  const less = percent > 0 ? `, ${products.length > 1 ? 'bis zu ' : ''}${percent} % günstiger` : ' im Angebot'
  // `toMs` is exclusive: an offer that ends at midnight is valid until the end of the day before.
  return `${what}${less}. Gültig vom ${DATE.format(fromMs)} bis ${DATE.format(toMs - 1)}.`
}

/** Highest price that the API accepts, cents. */
const HIGHEST_CENT = 100_000_000

/** Own prices of an offer: its price lists × their products. One transaction reads or writes all of them. */
const OWN_PRICES_LIMIT = 20_000

/** Creates an offer with the content of another offer. Stores with a price adjustment get their own prices. */
export async function cloneOffer(
  call: Call,
  { group, priced }: OfferOfCaller,
  input: CloneOffer,
): Promise<{ group: Row<'offer_group'>; branches: Row<'offer'>[] }> {
  const products = JSON.parse((await readList(call.db, priced.list_id)).products) as OfferProduct[]
  await assertSold(
    call,
    products.map((p) => p.ean),
    input.targetStoreIds,
    () => 'targetStoreIds',
  )
  const validity = { fromMs: group.valid_from_ms, toMs: group.valid_to_ms }
  const content = {
    title: group.title,
    description: group.description_generated === 1 ? '' : group.description,
    merchantColor: group.merchant_color,
    tags: group.tags === null ? [] : (JSON.parse(group.tags) as string[]),
    imageUrl: group.image_url,
    quantity: group.quantity,
    validity,
  }
  return makeOffer(call, content, input.targetStoreIds, pricesByStore(products, input))
}

/** Maximum number of offers of a store that have not ended. A basket compares its products with the prices of all. */
const STORE_OFFERS_LIMIT = 200

/** Throws 409 if one of these stores has too many offers, with a new one that has this validity. */
export async function assertFewOffers(
  { db, nowMs }: Call,
  storeIds: readonly string[],
  validity: Validity,
): Promise<void> {
  if (validity.toMs <= nowMs) return
  const full = await storeWithMoreOffers(db, storeIds, STORE_OFFERS_LIMIT, nowMs)
  if (full !== undefined)
    throw precondition(
      'too_many_offers',
      `store ${full} has ${STORE_OFFERS_LIMIT} offers that have not ended, which is the most: put several products into one offer, or delete one`,
    )
}

/** Throws 400 if an offer with so many price lists of so many products would have too many own prices. */
export function assertOwnPrices(field: string, lists: number, products: number): void {
  if (lists * products > OWN_PRICES_LIMIT)
    throw invalid(
      field,
      `makes ${lists} price lists of ${products} products, and an offer has at most ${OWN_PRICES_LIMIT} own prices: use fewer different prices, fewer products or fewer stores in one offer`,
      'too_many_prices',
    )
}

/** Groups the stores by price adjustment: one price list for each adjustment. */
function pricesByStore(
  products: readonly OfferProduct[],
  { targetStoreIds, priceAdjustments = {} }: CloneOffer,
): PricedBranches[] {
  const byAdjustment = new Map<string, string[]>()
  for (const storeId of targetStoreIds) {
    const adjustment = priceAdjustments[storeId]
    const key = adjustment ? `${adjustment.type} ${adjustment.value}` : ''
    byAdjustment.set(key, [...(byAdjustment.get(key) ?? []), storeId])
  }
  assertOwnPrices('priceAdjustments', byAdjustment.size, products.length)
  return [...byAdjustment.values()].map((storeIds) => {
    const [first = ''] = storeIds
    const adjustment = priceAdjustments[first]
    if (!adjustment) return { storeIds, products }
    const own = adjusted(products, adjustment)
    const tooHigh = own.findIndex((product) => product.priceCent > HIGHEST_CENT)
    if (tooHigh >= 0)
      throw invalid(`priceAdjustments.${first}`, `raises the price of ${own[tooHigh]?.name} above 1,000,000 EUR`)
    return { storeIds, products: own }
  })
}
