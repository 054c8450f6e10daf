import type { Call } from '../../platform/operations/operation.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { makeOffer, type PricedBranches } from './make-offer.ts'
import { adjusted, assertSold, type OfferProduct } from './offer-products.ts'
import type { OfferOfCaller } from './offer-of-caller.ts'
import { readList } from './queries.ts'
import type { CloneOffer } from './schema.ts'

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
