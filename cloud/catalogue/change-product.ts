import { newId } from '../../policy/ids.ts'
import type { Call } from '../operations/operation.ts'
import type { ProductRow, StoreRow } from '../persistence/tables/stores.ts'
import { changedRow, newProductRow, priceColumns, sharedColumns } from './product-row.ts'
import { findSharedProduct, listListings } from './queries.ts'
import { pricedAt, toProduct, type Listing } from './render.ts'
import { PRODUCT_FIELDS, type Product, type ProductChanges, type ProductInput } from './schema.ts'
import { writeProducts } from './write-products.ts'

type Known = ReadonlyMap<string, readonly Listing[]>

/** Result of `insertIntoStore`. */
export interface InsertedProduct {
  product: Product
  /** Fields of the request that were ignored, because other stores already sell the product with different values. */
  ignored: string[]
}

/**
 * Adds a product to a store that does not sell it. If other stores sell the product, only the price of the input is
 * used.
 */
export async function insertIntoStore(
  call: Call,
  store: StoreRow,
  input: ProductInput & { ean: string },
): Promise<InsertedProduct> {
  const before = await findSharedProduct(call.db, store.tenant, { ean: input.ean })
  const known: Known = before ? await listListings(call.db, [before.product_id]) : new Map<string, Listing[]>()
  const others = before ? (known.get(before.product_id) ?? []) : []
  const made = { tenant: store.tenant, ean: input.ean, nowMs: call.nowMs }
  const after =
    before && others.length > 0
      ? before
      : before
        ? { ...newProductRow(input, { ...made, productId: before.product_id }), created_ms: before.created_ms }
        : newProductRow(input, { ...made, productId: newId('prd', call.services.platform) })
  const { price_cent = 0, old_price_cent = null } = priceColumns(input)
  const listing = { store_id: store.store_id, price_cent, old_price_cent, updated_ms: call.nowMs }
  await writeProducts(call.db, [{ before, after, known: others, listing }])
  const product = toProduct(pricedAt(after, { ...listing, product_id: after.product_id }))
  return { product, ignored: Object.keys(input).filter((name) => differs(input, product, name)) }
}

function differs(input: object, product: Product, name: string): boolean {
  const stated = (input as Record<string, unknown>)[name]
  return (
    stated !== undefined &&
    name in PRODUCT_FIELDS &&
    JSON.stringify(stated) !== JSON.stringify((product as Record<string, unknown>)[name])
  )
}

/** Changes a product that the store sells: `price` and `oldPrice` in this store, other fields in all stores. */
export async function changeProduct(
  call: Call,
  store: StoreRow,
  before: ProductRow,
  stated: Partial<ProductChanges>,
): Promise<void> {
  const known = (await listListings(call.db, [before.product_id])).get(before.product_id) ?? []
  const here = known.find((listing) => listing.store_id === store.store_id)
  const prices = priceColumns(stated)
  const isAlone = known.length === 1 && here !== undefined
  const after = changedRow(before, { ...sharedColumns(stated), ...(isAlone && prices) }, call.nowMs)
  const isNewPrice =
    here !== undefined && Object.entries(prices).some(([name, value]) => here[name as keyof typeof prices] !== value)
  const listing = here && (isNewPrice ? { ...here, ...prices, updated_ms: call.nowMs } : here)
  if (after === before && !isNewPrice) return
  await writeProducts(call.db, [{ before, after, known, listing }])
}
