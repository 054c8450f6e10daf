import { invalid } from '../foundation/failure.ts'
import { centsOf } from '../operations/fields.ts'
import type { Call } from '../operations/operation.ts'
import type { OfferRow } from '../persistence/tables/offers.ts'
import { storeList } from './make-offer.ts'
import type { OfferProduct } from './offer-products.ts'
import { readLists } from './queries.ts'
import type { UpdatedProduct } from './schema.ts'

/**
 * Stores the new products of an offer for each branch. The price of a product holds in all stores. Only if the product
 * is sent back with its `prices`, and its price is unchanged, each store keeps its own price (`priceAdjustments` of
 * `cloneOffer`). Returns the list of each branch, and a function that stores the list of new branches.
 */
export async function storeLists(
  call: Call,
  active: readonly OfferRow[],
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
 * 0002).
 */
function keepsStorePrices(
  i: number,
  input: UpdatedProduct | undefined,
  product: OfferProduct,
  active: readonly OfferRow[],
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
