import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import { preparedForMany } from '../../platform/persistence/prepared-many.ts'
import { eansOf } from './ean.ts'
import type { Page } from '../../platform/operations/paging.ts'
import type { ProductRow, StoreRow } from '../../platform/persistence/tables/stores.ts'
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

/** A page of the store's products, sorted by id, which is the order of creation. `category`: folded. */
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

/** Like `findDocument`, by the EAN in any form. */
export async function findDocumentByEan(
  db: Db,
  { store_id: storeId, tenant }: Pick<StoreRow, 'store_id' | 'tenant'>,
  code: string,
): Promise<ProductDocument | undefined> {
  const [row] = await firstOf(code, (ean) => oneDocumentByEan(db, { storeId, tenant, ean }))
  return row
}

const countIn = prepared((db, p: { storeId: string; category: string }) =>
  db
    .selectFrom('product_count')
    .select((eb) => eb.fn.sum<number | null>('products').as('products'))
    .where('store_id', '=', p.storeId)
    .where('category', '=', p.category),
)

/** Exact number of products of a store, or of one folded category. Each write of a product updates this stored number. */
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
const inStoreByEans = preparedForMany((db, eans, p: { storeId: string; tenant: string }) =>
  storeProducts(db)
    .where('store_product.store_id', '=', p.storeId)
    .where('product.tenant', '=', p.tenant)
    .where('product.ean', 'in', eans),
)
const globalById = prepared((db, p: { tenant: string; productId: string }) =>
  db.selectFrom('product').selectAll().where('tenant', '=', p.tenant).where('product_id', '=', p.productId),
)
const globalByEan = prepared((db, p: { tenant: string; ean: string }) =>
  db.selectFrom('product').selectAll().where('tenant', '=', p.tenant).where('ean', '=', p.ean),
)

/**
 * Finds a product by id, or by its EAN in any form that `readProductCode` reads. With `storeId`, finds the product only if this store sells the product, and returns the
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
        : await firstOf(by.ean, (ean) => inStoreByEan(db, { storeId, tenant, ean }))
    return row?.tenant === tenant ? row : undefined
  }
  const row = await findSharedProduct(db, tenant, by)
  return row && { ...row, store_id: null, priced_ms: 0 }
}

/** Finds a product that a store sells, by its EAN in any form. */
export type FindByEan = (code: string) => Promise<PricedProduct | undefined>

/** Reads the products that a store sells under these codes with one query. Returns a function that finds them. */
export async function storeProductsWith(
  db: Db,
  { tenant, store_id: storeId }: Pick<StoreRow, 'tenant' | 'store_id'>,
  codes: readonly string[],
): Promise<FindByEan> {
  const rows = await inStoreByEans(db, codes.flatMap(eansOf), { storeId, tenant })
  const byEan = new Map(rows.map((row) => [row.ean, row]))
  return (code) => {
    const ean = eansOf(code).find((each) => byEan.has(each))
    return Promise.resolve(ean === undefined ? undefined : byEan.get(ean))
  }
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
      : await firstOf(by.ean, (ean) => globalByEan(db, { tenant, ean }))
  return row
}

/** Rows of the likeliest EAN of a code that has any. */
async function firstOf<R>(code: string, find: (ean: string) => Promise<R[]>): Promise<R[]> {
  for (const ean of eansOf(code)) {
    const rows = await find(ean)
    if (rows.length > 0) return rows
  }
  return []
}

/**
 * Products by stored EAN; at most 500 EANs. Eight digits that may be a UPC-E find its UPC-A if that is the only product.
 */
export async function findByEans(db: Db, tenant: string, eans: readonly string[]): Promise<Map<string, ProductRow>> {
  if (eans.length === 0) return new Map()
  const readings = eans.map((ean) => [ean, eansOf(ean)] as const)
  const rows = await db
    .selectFrom('product')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('ean', 'in', [...new Set(readings.flatMap(([, forms]) => forms))])
    .execute()
  const byEan = new Map(rows.map((row) => [row.ean, row]))
  return new Map(
    readings.flatMap(([ean, forms]) => {
      const row = forms.map((form) => byEan.get(form)).find((each) => each !== undefined)
      return row ? [[ean, row] as const] : []
    }),
  )
}

/** The EAN under which a request stores a product: another reading if only that is a product, see `findByEans`. */
export async function eanToStore(db: Db, tenant: string, ean: string): Promise<string> {
  if (eansOf(ean).length < 2) return ean
  return (await findSharedProduct(db, tenant, { ean }))?.ean ?? ean
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
