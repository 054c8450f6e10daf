import { z } from 'zod'
import { eurosOf, definedFields } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { OfferProduct } from './offer-products.ts'
import { readLists, readPricedBranches } from './queries.ts'
import { ListedOffer } from './schema.ts'

const PRICES = {
  originalPrice: z.number().optional().describe('EUR before the offer. Absent if the offer does not state it.'),
  discountPrice: z.number().describe('EUR while the offer is active.'),
}

/** One product of an offer, with its price in each branch. */
export const OfferedProduct = z.strictObject({
  ean: z.string().optional().describe('Absent if the offer has no EAN for this product.'),
  name: z.string(),
  category: z.string().optional(),
  manufacturer: z.string().optional(),
  unit: z.string().optional(),
  description: z.string().optional(),
  ...PRICES,
  prices: z.array(z.strictObject({ storeId: z.string(), ...PRICES })).describe('One entry for each store.'),
})

/** An offer with its products. `prices` follow the order of `storeIds`. */
export const OfferDetail = ListedOffer.extend({ products: z.array(OfferedProduct) })
export type OfferDetail = z.infer<typeof OfferDetail>

/** Products of an offer in one store, at the store's prices. */
export interface StoreProducts {
  storeId: string
  products: readonly OfferProduct[]
}

/**
 * Adds products to listed offers.
 *
 * @param storeId Reads only the prices of this store. If absent, reads the prices of all stores of the offer.
 */
export async function withProducts(
  db: Db,
  offers: readonly { listed: ListedOffer; groupId: string }[],
  storeId?: string,
): Promise<OfferDetail[]> {
  const branches = await readPricedBranches(
    db,
    offers.map(({ groupId }) => groupId),
    storeId,
  )
  const lists = await readLists(
    db,
    branches.map((row) => row.list_id),
  )
  const productsOf = new Map([...lists].map(([id, json]) => [id, JSON.parse(json) as OfferProduct[]]))
  return offers.map(({ listed, groupId }) => {
    const visible = new Set(listed.storeIds)
    const stores = branches
      .filter((row) => row.group_id === groupId && visible.has(row.store_id))
      .map((row) => ({ storeId: row.store_id, products: productsOf.get(row.list_id) ?? [] }))
    return toDetail(listed, stores)
  })
}

/** Combines an offer and its products. All stores of an offer list the same products in the same order. */
export function toDetail(listed: ListedOffer, stores: readonly StoreProducts[]): OfferDetail {
  const products = (stores[0]?.products ?? []).map((product, i) => ({
    ...definedFields({ ean: product.ean ?? null }),
    name: product.name,
    ...definedFields({
      category: product.category ?? null,
      manufacturer: product.manufacturer ?? null,
      unit: product.unit ?? null,
      description: product.description ?? null,
    }),
    ...pricesOf(product),
    prices: stores.flatMap(({ storeId, products: own }) => {
      const sameProduct = own[i]
      return sameProduct === undefined ? [] : [{ storeId, ...pricesOf(sameProduct) }]
    }),
  }))
  return { ...listed, products }
}

function pricesOf({ priceCent, oldPriceCent }: OfferProduct) {
  return {
    ...definedFields({ originalPrice: oldPriceCent === undefined ? null : eurosOf(oldPriceCent) }),
    discountPrice: eurosOf(priceCent),
  }
}
