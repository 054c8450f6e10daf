import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import type { Page } from '../operations/paging.ts'
import type { ProductRow, StoreRow } from '../persistence/tables/stores.ts'
import type { NumberedListing } from './render.ts'
import type { PricedProduct } from './schema.ts'

/** Products of a store at the store's prices. */
function storeProducts(db: Db) {
  return db
    .selectFrom('store_product')
    .innerJoin('product', 'product.product_id', 'store_product.product_id')
    .selectAll('product')
    .select([
      'store_product.store_id as store_id',
      'store_product.price_cent as price_cent',
      'store_product.old_price_cent as old_price_cent',
      'store_product.updated_ms as priced_ms',
    ])
}

/** Stored JSON response of a product in a store. */
export interface ProductDocument {
  product_id: string
  doc: string
}

interface PageParameters {
  storeId: string
  after: string
  limit: number
  offset: number
}

function documentPage(db: Db, p: PageParameters) {
  return db
    .selectFrom('store_product')
    .select(['product_id', 'doc'])
    .where('store_id', '=', p.storeId)
    .where('product_id', '>', p.after)
    .orderBy('product_id')
    .limit(p.limit)
    .offset(p.offset)
}
const pageOfAll = prepared((db, p: PageParameters) => documentPage(db, p))
const pageOfCategory = prepared((db, p: PageParameters & { category: string }) =>
  documentPage(db, p).where('category', '=', p.category),
)

/** A page of the store's products, sorted by id, which is the order of creation. */
export function listDocuments(
  db: Db,
  storeId: string,
  { after = '', limit, offset }: Page,
  category?: string,
): Promise<ProductDocument[]> {
  const page = { storeId, after, limit, offset }
  return category === undefined ? pageOfAll(db, page) : pageOfCategory(db, { ...page, category })
}

const oneDocument = prepared((db, p: { storeId: string; productId: string }) =>
  db
    .selectFrom('store_product')
    .select(['product_id', 'doc'])
    .where('store_id', '=', p.storeId)
    .where('product_id', '=', p.productId),
)

/** The stored document of a product; undefined if the store does not sell the product. */
export async function findDocument(db: Db, storeId: string, productId: string): Promise<ProductDocument | undefined> {
  const [row] = await oneDocument(db, { storeId, productId })
  return row
}

const oneDocumentByEan = prepared((db, p: { storeId: string; tenant: string; ean: string }) =>
  db
    .selectFrom('store_product')
    .innerJoin('product', 'product.product_id', 'store_product.product_id')
    .select(['store_product.product_id', 'store_product.doc'])
    .where('store_product.store_id', '=', p.storeId)
    .where('product.tenant', '=', p.tenant)
    .where('product.ean', '=', p.ean),
)

/** Like `findDocument`, by EAN. */
export async function findDocumentByEan(
  db: Db,
  { store_id: storeId, tenant }: Pick<StoreRow, 'store_id' | 'tenant'>,
  ean: string,
): Promise<ProductDocument | undefined> {
  const [row] = await oneDocumentByEan(db, { storeId, tenant, ean })
  return row
}

const countIn = prepared((db, p: { storeId: string; category: string }) =>
  db
    .selectFrom('product_count')
    .select((eb) => eb.fn.sum<number | null>('products').as('products'))
    .where('store_id', '=', p.storeId)
    .where('category', '=', p.category),
)

/** Exact number of products of a store, or of one category. Each write of a product updates this stored number. */
export async function countProducts(db: Db, storeId: string, category = ''): Promise<number> {
  const [row] = await countIn(db, { storeId, category })
  return row?.products ?? 0
}

const inStoreById = prepared((db, p: { storeId: string; productId: string }) =>
  storeProducts(db).where('store_product.store_id', '=', p.storeId).where('store_product.product_id', '=', p.productId),
)
const inStoreByEan = prepared((db, p: { storeId: string; tenant: string; ean: string }) =>
  storeProducts(db)
    .where('store_product.store_id', '=', p.storeId)
    .where('product.tenant', '=', p.tenant)
    .where('product.ean', '=', p.ean),
)
const globalById = prepared((db, p: { tenant: string; productId: string }) =>
  db.selectFrom('product').selectAll().where('tenant', '=', p.tenant).where('product_id', '=', p.productId),
)
const globalByEan = prepared((db, p: { tenant: string; ean: string }) =>
  db.selectFrom('product').selectAll().where('tenant', '=', p.tenant).where('ean', '=', p.ean),
)

/**
 * Finds a product by id or EAN. With `storeId`, finds the product only if this store sells the product, and returns the
 * store's price.
 */
export async function findProduct(
  db: Db,
  tenant: string,
  by: { productId: string } | { ean: string },
  storeId?: string,
): Promise<PricedProduct | undefined> {
  if (storeId !== undefined) {
    const [row] =
      'productId' in by
        ? await inStoreById(db, { storeId, productId: by.productId })
        : await inStoreByEan(db, { storeId, tenant, ean: by.ean })
    return row?.tenant === tenant ? row : undefined
  }
  const row = await findSharedProduct(db, tenant, by)
  return row && { ...row, store_id: null, priced_ms: 0 }
}

/** Finds a product with its global price. */
export async function findSharedProduct(
  db: Db,
  tenant: string,
  by: { productId: string } | { ean: string },
): Promise<ProductRow | undefined> {
  const [row] =
    'productId' in by
      ? await globalById(db, { tenant, productId: by.productId })
      : await globalByEan(db, { tenant, ean: by.ean })
  return row
}

/** Products by EAN; at most 500 EANs. */
export async function findByEans(db: Db, tenant: string, eans: readonly string[]): Promise<Map<string, ProductRow>> {
  if (eans.length === 0) return new Map()
  const rows = await db
    .selectFrom('product')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('ean', 'in', eans)
    .execute()
  return new Map(rows.map((row) => [row.ean, row]))
}

/** Listings of these products (at most 500) in all stores, by product id. */
export async function listListings(db: Db, productIds: readonly string[]): Promise<Map<string, NumberedListing[]>> {
  const found = new Map<string, NumberedListing[]>()
  if (productIds.length === 0) return found
  const rows = await db
    .selectFrom('store_product')
    .select(['store_id', 'product_id', 'price_cent', 'old_price_cent', 'updated_ms', 'listing_no'])
    .where('product_id', 'in', productIds)
    .orderBy('store_id')
    .execute()
  for (const row of rows) {
    const listings = found.get(row.product_id)
    if (listings) listings.push(row)
    else found.set(row.product_id, [row])
  }
  return found
}

/**
 * Stops counting the stock of a product that the store no longer sells. Otherwise the old number would apply again if
 * the store later sells the product again.
 */
export async function endCounting(db: Db, storeId: string, productId: string, updated_ms: number): Promise<void> {
  await db
    .updateTable('stock_level')
    .set({ on_hand: null, updated_ms })
    .where('store_id', '=', storeId)
    .where('product_id', '=', productId)
    .execute()
}
