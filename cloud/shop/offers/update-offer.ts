import { assert } from '../../../policy/assert.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { assertFewOffers, assertOwnPrices, describeOffer, newBranch, emitPublished, storeList } from './make-offer.ts'
import { assertSold, offerProducts, type OfferProduct } from './offer-products.ts'
import { dueAfter, statusAt, statusFrom, type Validity } from './offer-status.ts'
import {
  type OfferOfCaller,
  deleteBranches,
  dropUnusedLists,
  insertBranches,
  mostDiscount,
  readList,
  updateBranches,
  updateGroup,
  readLists,
} from './queries.ts'
import type { UpdateOffer, UpdatedProduct } from './schema.ts'
import { centsOf } from '../../platform/operations/fields.ts'

/**
 * Stores the new products of an offer for each branch. The price of a product holds in all stores. Only if the product
 * is sent back with its `prices`, and its price is unchanged, each store keeps its own price (`priceAdjustments` of
 * `cloneOffer`). Returns the list of each branch, and a function that stores the list of new branches.
 */
async function storeLists(
  call: Call,
  active: readonly Row<'offer'>[],
  inputs: readonly UpdatedProduct[],
  products: readonly OfferProduct[],
): Promise<{ listOf: Map<string, string>; newList: () => Promise<string> }> {
  const lists = new Map<string, OfferProduct[]>()
  const oldLists = await readLists(
    call.db,
    active.map((row) => row.list_id),
  )
  for (const [listId, json] of oldLists) lists.set(listId, JSON.parse(json) as OfferProduct[])
  const keeps = products.map((product, i) => keepsStorePrices(i, inputs[i], product, active, lists))
  if (keeps.includes(true)) assertOwnPrices('products', lists.size, products.length)
  const stored = new Map<string, string>()
  const store = async (own: readonly OfferProduct[]) => {
    const key = JSON.stringify(own)
    const listId = stored.get(key) ?? (await storeList(call, own))
    stored.set(key, listId)
    return listId
  }
  const listOf = new Map<string, string>()
  for (const [listId, old] of lists) {
    const own = products.map((product, i) => {
      const former = keeps[i] === true ? formerOf(old, product, i) : undefined
      return former ? withPriceOf(product, former) : product
    })
    listOf.set(listId, await store(own))
  }
  return { listOf, newList: () => store(products) }
}

/**
 * True if each store keeps its price of this product. Throws 400 if `prices` were changed: the system sets them (ADR
 * requests).
 */
function keepsStorePrices(
  i: number,
  input: UpdatedProduct | undefined,
  product: OfferProduct,
  active: readonly Row<'offer'>[],
  lists: ReadonlyMap<string, readonly OfferProduct[]>,
): boolean {
  const [first, ...others] = (input?.prices ?? []).map(({ storeId, discountPrice, originalPrice }) => ({
    storeId,
    priceCent: centsOf(discountPrice),
    ...(originalPrice !== undefined && { oldPriceCent: centsOf(originalPrice) }),
  }))
  if (!first) return false
  for (const sent of [first, ...others]) {
    const branch = active.find((row) => row.store_id === sent.storeId)
    const former = formerOf(lists.get(branch?.list_id ?? '') ?? [], product, i)
    if (!former || !hasSamePrice(former, sent))
      throw invalid(
        `products[${i}].prices`,
        'is set by the system: send it back unchanged, or leave it out to set one price for all stores',
        'system_field',
      )
  }
  return hasSamePrice(product, first)
}

type Price = Pick<OfferProduct, 'priceCent' | 'oldPriceCent'>

function hasSamePrice(a: Price, b: Price): boolean {
  return a.priceCent === b.priceCent && a.oldPriceCent === b.oldPriceCent
}

function withPriceOf({ oldPriceCent: _old, ...product }: OfferProduct, { priceCent, oldPriceCent }: Price) {
  return { ...product, priceCent, ...(oldPriceCent !== undefined && { oldPriceCent }) }
}

/** The product before the update: with the same EAN, else with the same name, else at the same place. */
function formerOf(list: readonly OfferProduct[], { ean, name }: OfferProduct, i: number): OfferProduct | undefined {
  return (
    (ean === undefined ? undefined : list.find((former) => former.ean === ean)) ??
    list.find((former) => former.name === name) ??
    list[i]
  )
}

/** Maximum number of inactive documents per offer; older ones are deleted. */
const REMOVED_LIMIT = 1_000

interface OfferUpdated {
  updatedFields: string[]
  /** Number of other documents of the group with the same changes. */
  siblingUpdates: number
  addedStores: string[]
  removedStores: string[]
}

const UPDATABLE = [
  'title',
  'products',
  'storeIds',
  'validFrom',
  'validTo',
  'merchantColor',
  'tags',
  'description',
  'imageUrl',
  'quantity',
] as const

/** Names of the fields that an update sets, as in the specification. */
export function updatedFieldsOf({ validUntil, ...input }: UpdateOffer): string[] {
  const sent: Partial<UpdateOffer> = { ...input, validTo: input.validTo ?? validUntil }
  return UPDATABLE.filter((field) => sent[field] !== undefined)
}

/** Stores that a new list of stores adds to the offer and removes from it. */
export function storeChanges(
  current: readonly string[],
  wanted: readonly string[] | undefined,
): { addedStores: string[]; removedStores: string[] } {
  if (!wanted) return { addedStores: [], removedStores: [] }
  return {
    addedStores: wanted.filter((id) => !current.includes(id)),
    removedStores: current.filter((id) => !wanted.includes(id)),
  }
}

/** Dates after an update. Throws 400 if the end is not after the start. */
export function newValidity(
  { fromMs, toMs }: Validity,
  input: Pick<UpdateOffer, 'validFrom' | 'validTo' | 'validUntil'>,
): Validity {
  const to = input.validTo ?? input.validUntil
  const validity = {
    fromMs: input.validFrom === undefined ? fromMs : Date.parse(input.validFrom),
    toMs: to === undefined ? toMs : Date.parse(to),
  }
  if (validity.toMs <= validity.fromMs)
    throw invalid(to === undefined ? 'validFrom' : 'validTo', 'validTo must be after validFrom')
  return validity
}

/**
 * Changes an offer in all its branches. Creates documents for added stores and makes documents of removed stores
 * inactive. The caller must have checked `storeIds` and the remaining stores.
 */
export async function updateOffer(
  call: Call,
  { group, branches, active, named, priced }: OfferOfCaller,
  input: UpdateOffer,
): Promise<OfferUpdated> {
  const { db, nowMs } = call
  const current = active.map((row) => row.store_id)
  const changes = storeChanges(current, input.storeIds)
  const stores = input.storeIds ?? current
  const updatedFields = updatedFieldsOf(input)
  const oldValidity = { fromMs: group.valid_from_ms, toMs: group.valid_to_ms }
  const validity = newValidity(oldValidity, input)
  const oldProducts = JSON.parse((await readList(db, priced.list_id)).products) as OfferProduct[]
  const products = input.products ? await offerProducts(call, input.products, stores) : oldProducts
  if (!input.products && changes.addedStores.length > 0)
    await assertSold(
      call,
      products.map((p) => p.ean),
      changes.addedStores,
      () => 'storeIds',
    )

  const lists = input.products && (await storeLists(call, active, input.products, products))
  const status = statusAt(validity, nowMs)
  const next: Row<'offer_group'> = {
    ...group,
    ...sharedFields(input, group),
    valid_from_ms: validity.fromMs,
    valid_to_ms: validity.toMs,
    status,
    due_ms: dueAfter(status, validity),
    product_count: products.length,
    store_count: stores.length,
    updated_ms: nowMs,
  }
  const describes = ['products', 'validFrom', 'validTo'].some((field) => updatedFields.includes(field))
  if (next.description_generated === 1 && (describes || input.description === ''))
    next.description = describeOffer(products, validity)
  const dates = { valid_from_ms: validity.fromMs, valid_to_ms: validity.toMs }
  for (const listId of new Set(active.map((row) => row.list_id))) {
    await updateBranches(
      db,
      group.group_id,
      { ...dates, ...(lists && { list_id: lists.listOf.get(listId) ?? listId }) },
      active.flatMap((row) => (row.list_id === listId ? row.offer_id : [])),
    )
  }
  const gone = active.filter((row) => changes.removedStores.includes(row.store_id))
  await updateBranches(
    db,
    group.group_id,
    { is_active: 0 },
    gone.map((row) => row.offer_id),
  )
  const firstNo = Math.max(-1, ...branches.map((row) => row.branch_no)) + 1
  const newListId = lists && changes.addedStores.length > 0 ? await lists.newList() : priced.list_id
  const added = changes.addedStores.map((storeId, i) => newBranch(call, next, firstNo + i, storeId, newListId))
  await insertBranches(db, added)
  await assertFewOffers(call, stores, validity)
  await deleteOldestRemoved(call, [...branches.filter((row) => row.is_active === 0), ...gone])
  await dropUnusedLists(
    db,
    branches.map((row) => row.list_id),
  )
  next.discount_percent = await mostDiscount(db, group.group_id)
  assert(await updateGroup(db, group, next), 'an offer changed within the transaction that had read it')

  const stay = active.filter((row) => !gone.includes(row))
  const wasLive = group.status === 'ACTIVE' && statusFrom('ACTIVE', oldValidity, nowMs) === 'ACTIVE'
  if (status === 'ACTIVE') emitPublished(call, wasLive ? added : [...stay, ...added])
  call.changed(group.lead_id)
  call.afterCommit(call.services.offersChanged.notify)
  const siblings = stay.filter((row) => row.offer_id !== named.offer_id)
  return { updatedFields, siblingUpdates: updatedFields.length === 0 ? 0 : siblings.length, ...changes }
}

function sharedFields(input: UpdateOffer, group: Row<'offer_group'>): Partial<Row<'offer_group'>> {
  const { title, merchantColor, tags, imageUrl, quantity } = input
  // A generated description that is sent back unchanged stays generated, so that it follows later changes.
  const description = input.description === group.description ? undefined : input.description
  return {
    title: title ?? group.title,
    merchant_color: merchantColor ?? group.merchant_color,
    tags: tags === undefined ? group.tags : tags.length > 0 ? JSON.stringify(tags) : null,
    image_url: imageUrl === undefined ? group.image_url : imageUrl,
    quantity: quantity === undefined ? group.quantity : quantity,
    description: description || group.description,
    description_generated: description === undefined ? group.description_generated : description === '' ? 1 : 0,
  }
}

/**
 * Deletes the oldest inactive documents. Otherwise each removed and added store would leave one more document.
 */
async function deleteOldestRemoved({ db }: Call, removed: readonly Row<'offer'>[]): Promise<void> {
  const [first] = removed
  if (!first || removed.length <= REMOVED_LIMIT) return
  const oldest = [...removed].sort((a, b) => a.branch_no - b.branch_no).slice(0, removed.length - REMOVED_LIMIT)
  await deleteBranches(
    db,
    first.group_id,
    oldest.map((row) => row.offer_id),
  )
}
