import { assert } from '../../policy/assert.ts'
import { newId } from '../../policy/ids.ts'
import { Failure, invalid } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'
import type { ProductRow, StoreRow } from '../persistence/tables/stores.ts'
import { changedRow, newProductRow, priceColumns, sharedColumns } from './product-row.ts'
import { findSharedProduct, listListings } from './queries.ts'
import { pricedAt, toProduct } from './render.ts'
import { PRODUCT_FIELDS, type Product, type ProductChanges, type ProductInput } from './schema.ts'
import { addNewProduct, writeProducts, type PriceInStore } from './write-products.ts'

/** Result of `insertIntoStore`. */
export interface InsertedProduct {
  product: Product
  /** Fields of the request that were ignored, because other stores already sell the product with different values. */
  ignored: string[]
}

/**
 * Adds a product to a store. Throws 409 if the store already sells the product. If other stores sell the product, only
 * the price of the input is used.
 */
export async function insertIntoStore(
  call: Call,
  store: StoreRow,
  input: ProductInput & { ean: string },
): Promise<InsertedProduct> {
  const { price_cent = 0, old_price_cent = null } = priceColumns(input)
  const listing = { store_id: store.store_id, price_cent, old_price_cent, updated_ms: call.nowMs }
  const made = { tenant: store.tenant, ean: input.ean, nowMs: call.nowMs }
  const added = newProductRow(input, { ...made, productId: newId('prd', call.services.platform) })
  const isNew = await addNewProduct(call.db, added, listing)
  const after = isNew ? added : await listSharedProduct(call, added, listing)
  const product = toProduct(pricedAt(after, { ...listing, product_id: after.product_id }))
  return { product, ignored: Object.keys(input).filter((name) => differs(input, product, name)) }
}

/**
 * Adds a product of the account to a store. `stated`: the row to write if the product is no longer sold in any store.
 */
async function listSharedProduct(call: Call, stated: ProductRow, listing: PriceInStore): Promise<ProductRow> {
  call.requireAlone()
  const { tenant, ean } = stated
  const before = await findSharedProduct(call.db, tenant, { ean })
  assert(before !== undefined, `product ${ean} is neither there nor new`)
  const { product_id, created_ms } = before
  const known = (await listListings(call.db, [product_id])).get(product_id) ?? []
  if (known.some(({ store_id }) => store_id === listing.store_id))
    throw new Failure('already-exists', `the store already sells a product with the ean ${ean}: use updateProduct`, {
      reason: 'product_exists',
    })
  const after = known.length > 0 ? before : { ...stated, product_id, created_ms }
  await writeProducts(call.db, [{ before, after, known, listing }])
  return after
}

function differs(input: object, product: Product, name: string): boolean {
  const stated = (input as Record<string, unknown>)[name]
  return (
    stated !== undefined &&
    name in PRODUCT_FIELDS &&
    JSON.stringify(stated) !== JSON.stringify((product as Record<string, unknown>)[name])
  )
}

/** Throws 400 if the old price is below the price. */
export function assertOldPrice(priceCent: number, oldPriceCent: number | null): void {
  if (oldPriceCent !== null && oldPriceCent < priceCent) throw invalid('oldPrice', 'must not be below price')
}

/** Prices that a change states. A price at or above the stored old price removes the old price. */
function newPrices(stated: Partial<ProductChanges>, here: PriceInStore | undefined) {
  const prices = priceColumns(stated)
  if (!here) return prices
  const { price_cent = here.price_cent, old_price_cent } = prices
  if (old_price_cent !== undefined) assertOldPrice(price_cent, old_price_cent)
  const isOver = old_price_cent === undefined && here.old_price_cent !== null && here.old_price_cent <= price_cent
  return isOver && prices.price_cent !== undefined ? { ...prices, old_price_cent: null } : prices
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
  const prices = newPrices(stated, here)
  const isAlone = known.length === 1 && here !== undefined
  const after = changedRow(before, { ...sharedColumns(stated), ...(isAlone && prices) }, call.nowMs)
  const isNewPrice =
    here !== undefined && Object.entries(prices).some(([name, value]) => here[name as keyof typeof prices] !== value)
  const listing = here && (isNewPrice ? { ...here, ...prices, updated_ms: call.nowMs } : here)
  if (after === before && !isNewPrice) return
  await writeProducts(call.db, [{ before, after, known, listing }])
}
