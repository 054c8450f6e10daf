import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import { centsOf } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { ProductRow, StoreRow } from '../../platform/persistence/tables/stores.ts'
import {
  changedRow,
  newProductRow,
  originColumns,
  priceColumns,
  sharedColumns,
  type NewProduct,
  type PosOrigin,
} from './product-row.ts'
import { findByEans, listListings } from './queries.ts'
import type { NumberedListing } from './render.ts'
import { writeProducts, type ProductWrite } from './write-products.ts'

/** Products per transaction and per bulk request. */
export const BATCH_LIMIT = 500

export interface Upsert {
  product: NewProduct & { ean: string }
  /** Set if the product comes from a POS sync. */
  pos?: PosOrigin
}

export interface Upserted {
  imported: number
  /** Number of imported products that the store already sold. */
  updated: number
}

interface Context {
  db: Db
  nowMs: number
  services: { platform: Platform }
}

/**
 * Adds products to a store, or changes products that the store already sells. A new price applies to this store. Other
 * fields apply to every store that sells the product. Accepts at most 500 products, each EAN once.
 *
 * Omitted fields keep their values, but an old price that is not above the new price is cleared. Unchanged rows are not
 * written. `repriced` is the number of products whose price in the store changed.
 */
export async function upsertProducts(
  { db, nowMs, services }: Context,
  store: StoreRow,
  upserts: readonly Upsert[],
): Promise<Upserted & { repriced: number }> {
  const known = await findByEans(
    db,
    store.tenant,
    upserts.map(({ product }) => product.ean),
  )
  const listings = await listListings(
    db,
    [...known.values()].map((row) => row.product_id),
  )
  const writes: ProductWrite[] = []
  let [updated, repriced] = [0, 0]
  for (const { product, pos } of upserts) {
    const before = known.get(product.ean)
    if (!before) {
      const productId = newId('prd', services.platform)
      const after = newProductRow(product, { productId, tenant: store.tenant, ean: product.ean, nowMs, pos })
      const { price_cent, old_price_cent } = after
      writes.push({
        before,
        after,
        known: [],
        listing: { store_id: store.store_id, price_cent, old_price_cent, updated_ms: nowMs },
      })
      continue
    }
    const all = listings.get(before.product_id) ?? []
    const here = all.find((listing) => listing.store_id === store.store_id)
    if (here) updated++
    if (here && here.price_cent !== centsOf(product.price)) repriced++
    const write = changeOf(before, all, here, product, pos, store.store_id, nowMs)
    if (write) writes.push(write)
  }
  await writeProducts(db, writes)
  return { imported: upserts.length, updated, repriced }
}

function changeOf(
  before: ProductRow,
  known: readonly NumberedListing[],
  here: NumberedListing | undefined,
  product: NewProduct,
  pos: PosOrigin | undefined,
  store_id: string,
  nowMs: number,
): ProductWrite | undefined {
  const prices = priceColumns(product)
  const isSoldElsewhere = known.some((listing) => listing !== here)
  const { price_cent = 0 } = prices
  const ifStillHigher = (old: number | null) => (old !== null && old > price_cent ? old : null)
  // A till may state an old price that is no longer above the price.
  const stated = prices.old_price_cent === undefined ? undefined : ifStillHigher(prices.old_price_cent)
  const globalPrices = {
    price_cent,
    old_price_cent: stated === undefined ? ifStillHigher(before.old_price_cent) : stated,
  }
  const columns = { ...sharedColumns(product), ...originColumns(pos), ...(!isSoldElsewhere && globalPrices) }
  const after = changedRow(before, columns, nowMs)
  const old_price_cent = stated === undefined ? ifStillHigher(here?.old_price_cent ?? null) : stated
  const isSamePrice = here?.price_cent === price_cent && here.old_price_cent === old_price_cent
  if (after === before && isSamePrice) return undefined
  const updated_ms = isSamePrice && here ? here.updated_ms : nowMs
  return { before, after, known, listing: { store_id, price_cent, old_price_cent, updated_ms } }
}
