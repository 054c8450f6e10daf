import { iso, definedFields, eurosOf } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { scopeOf, readBranchesOf, readLists, readPricedBranches } from './queries.ts'
import { statusAt } from './offer-status.ts'
import { ListedOffer } from './schema.ts'
import { z } from 'zod'
import type { OfferProduct } from './offer-products.ts'

const PRICES = {
  originalPrice: z.number().optional().describe('EUR before the offer. Absent if the offer does not state it.'),
  discountPrice: z.number().describe('EUR while the offer is active.'),
}

/** One product of an offer, with its price in each branch. */
const OfferedProduct = z.strictObject({
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
interface StoreProducts {
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

/**
 * Converts offers to their list form, one entry for all branches. `visible`: stores that the caller may see; null for
 * all.
 */
export async function presentOffers(
  db: Db,
  groups: readonly Row<'offer_group'>[],
  visible: readonly string[] | null,
  nowMs: number,
): Promise<ListedOffer[]> {
  const { branches, counts } = await readBranchesOf(
    db,
    groups.map((group) => group.group_id),
    visible,
  )
  const stores = new Map<string, string[]>()
  for (const { group_id: id, store_id: storeId } of branches) {
    const known = stores.get(id)
    if (known) known.push(storeId)
    else stores.set(id, [storeId])
  }
  const countsOf = new Map(counts.map((row) => [row.group_id, row]))
  return groups.map((group) => {
    const sums = countsOf.get(group.group_id)
    return toListed(
      group,
      stores.get(group.group_id) ?? [],
      { clicks: Number(sums?.clicks ?? 0), favorites: Number(sums?.favorites ?? 0) },
      nowMs,
    )
  })
}

/**
 * Converts one offer to its list form. Computes the status from the clock, because the stored status may be outdated.
 */
export function toListed(
  group: Row<'offer_group'>,
  storeIds: string[],
  counts: { clicks: number; favorites: number },
  nowMs: number,
): ListedOffer {
  const status = statusAt({ fromMs: group.valid_from_ms, toMs: group.valid_to_ms }, nowMs)
  return {
    id: group.lead_id,
    groupId: group.store_count > 1 ? group.group_id : null,
    title: group.title,
    description: group.description,
    storeIds,
    validFrom: iso(group.valid_from_ms),
    validTo: iso(group.valid_to_ms),
    merchantColor: group.merchant_color,
    tags: group.tags === null ? [] : (JSON.parse(group.tags) as string[]),
    ...definedFields({ imageUrl: group.image_url, quantity: group.quantity }),
    productCount: group.product_count,
    isActive: status === 'ACTIVE',
    status,
    discountPercent: group.discount_percent,
    scope: scopeOf(group.store_count),
    storeCount: group.store_count,
    clickCount: counts.clicks,
    favoritedCount: counts.favorites,
    createdAt: iso(group.created_ms),
  }
}
