import { eanToStore } from '../catalogue/queries.ts'
import { knownCaller } from '../../platform/foundation/caller.ts'
import { Failure, type ErrorDetail } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { countSellers, readSellers } from './queries.ts'
import { adjustPrice, discountPercentOf, type PriceAdjustment } from './price-rules.ts'
import { pricesOf, type OfferProductInput } from './schema.ts'
import type { Db } from '../../platform/persistence/database.ts'

/**
 * Returns the lowest offer price (cents) by EAN among the active offers of a store. EANs without an offer are absent.
 */
export async function offerPrices(
  db: Db,
  storeId: string,
  eans: readonly string[],
  nowMs: number,
): Promise<Map<string, number>> {
  if (eans.length === 0) return new Map()
  const rows = await db
    .selectFrom('offer')
    .innerJoin('offer_price', 'offer_price.list_id', 'offer.list_id')
    .select(['offer_price.ean', (eb) => eb.fn.min('offer_price.price_cent').as('price_cent')])
    .where('offer.store_id', '=', storeId)
    .where('offer.is_active', '=', 1)
    .where('offer.valid_to_ms', '>', nowMs)
    .where('offer.valid_from_ms', '<=', nowMs)
    .where('offer_price.ean', 'in', eans)
    .groupBy('offer_price.ean')
    .execute()
  return new Map(rows.map((row) => [row.ean, Number(row.price_cent)]))
}

/** Stored form of an offer's product. */
export interface OfferProduct {
  name: string
  priceCent: number
  oldPriceCent?: number
  ean?: string
  category?: string
  manufacturer?: string
  unit?: string
  description?: string
}

/** Maximum number of EANs in one error. */
const DETAILS_LIMIT = 20
/** Maximum number of stores that an error lists for one EAN. */
const STORES_LISTED = 5

/** Converts the products of a request. Throws 400 with details if a store does not sell a product that has an EAN. */
export async function offerProducts(
  call: Call,
  inputs: readonly OfferProductInput[],
  storeIds: readonly string[],
): Promise<OfferProduct[]> {
  const { tenant } = knownCaller(call.caller)
  const eans: (string | undefined)[] = []
  for (const { ean } of inputs) eans.push(ean && (await eanToStore(call.db, tenant, ean)))
  const names = await assertSold(call, eans, storeIds, (i) => `products[${i}].ean`)
  return inputs.map((input, i) => {
    const { category, manufacturer, unit, description } = input
    const ean = eans[i]
    const { priceCent, oldPriceCent } = pricesOf(input)
    const name = input.name ?? names.get(ean ?? '') ?? ''
    return { name, priceCent, ...defined({ oldPriceCent, ean, category, manufacturer, unit, description }) }
  })
}

function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}

/** Throws 400 if a store does not sell the product of one of these EANs. Returns the product names by EAN. */
export async function assertSold(
  call: Call,
  eans: readonly (string | undefined)[],
  storeIds: readonly string[],
  pathOf: (index: number) => string,
): Promise<Map<string, string>> {
  const wanted = eans.flatMap((ean) => ean ?? [])
  if (wanted.length === 0) return new Map()
  const { tenant } = knownCaller(call.caller)
  const sellers = new Map((await countSellers(call.db, tenant, wanted, storeIds)).map((row) => [row.ean, row]))
  const details: ErrorDetail[] = []
  for (const [i, ean] of eans.entries()) {
    if (ean === undefined || Number(sellers.get(ean)?.stores ?? 0) === storeIds.length) continue
    const having = await readSellers(call.db, tenant, ean, storeIds)
    const lacking = storeIds.filter((id) => !having.has(id))
    const more = lacking.length > STORES_LISTED ? ` and ${lacking.length - STORES_LISTED} more` : ''
    const message = `${pathOf(i)}: ${ean} is not in the catalogue of ${lacking.slice(0, STORES_LISTED).join(', ')}${more}`
    details.push({ path: pathOf(i), code: 'product_unknown', message })
    if (details.length >= DETAILS_LIMIT) break
  }
  if (details.length > 0)
    throw new Failure(
      'invalid-argument',
      details
        .slice(0, 3)
        .map((d) => d.message)
        .join('; '),
      { details },
    )
  return new Map([...sellers.values()].map((row) => [row.ean, row.name]))
}

/** Highest discount among the products, whole percent. */
export function discountOf(products: readonly OfferProduct[]): number {
  return products.reduce((most, product) => Math.max(most, discountPercentOf(product)), 0)
}

/** Applies a price adjustment to the products. Removes old prices that are no longer above the new price. */
export function adjusted(products: readonly OfferProduct[], adjustment: PriceAdjustment): OfferProduct[] {
  return products.map(({ oldPriceCent, ...product }) => {
    const priceCent = adjustPrice(product.priceCent, adjustment)
    return { ...product, priceCent, ...(oldPriceCent !== undefined && oldPriceCent > priceCent && { oldPriceCent }) }
  })
}
