import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import type { Page } from '../operations/paging.ts'
import type { PricedProduct } from './schema.ts'

/** Products of a store with the store's own prices. */
function storeProducts(db: Db) {
  return db
    .selectFrom('store_product')
    .innerJoin('product', 'product.product_id', 'store_product.product_id')
    .selectAll('product')
    .select(['store_product.store_id as store_id', 'store_product.price_cent as price_cent', 'store_product.old_price_cent as old_price_cent'])
}

/** A page of the store's products at its prices, ordered by product id. */
export function listProducts(db: Db, storeId: string, page: Page, category?: string): Promise<PricedProduct[]> {
  let query = storeProducts(db).where('store_product.store_id', '=', storeId)
  if (category !== undefined) query = query.where('product.category', '=', category)
  if (page.after !== undefined) query = query.where('store_product.product_id', '>', page.after)
  return query.orderBy('store_product.product_id').limit(page.limit).offset(page.offset).execute()
}

/** How many products the store sells. */
export async function countProducts(db: Db, storeId: string, category?: string): Promise<number> {
  let query = db.selectFrom('store_product').where('store_product.store_id', '=', storeId)
  if (category !== undefined) {
    query = query.innerJoin('product', 'product.product_id', 'store_product.product_id').where('product.category', '=', category)
  }
  const row = await query.select((eb) => eb.fn.countAll().as('count')).executeTakeFirstOrThrow()
  return Number(row.count)
}

const inStoreById = prepared((db, p: { storeId: string; productId: string }) =>
  storeProducts(db).where('store_product.store_id', '=', p.storeId).where('store_product.product_id', '=', p.productId),
)
const inStoreByEan = prepared((db, p: { storeId: string; tenant: string; ean: string }) =>
  storeProducts(db).where('store_product.store_id', '=', p.storeId).where('product.tenant', '=', p.tenant).where('product.ean', '=', p.ean),
)
const globalById = prepared((db, p: { tenant: string; productId: string }) =>
  db.selectFrom('product').selectAll().where('tenant', '=', p.tenant).where('product_id', '=', p.productId),
)
const globalByEan = prepared((db, p: { tenant: string; ean: string }) =>
  db.selectFrom('product').selectAll().where('tenant', '=', p.tenant).where('ean', '=', p.ean),
)

/** A product by its id or its EAN; with a store the product as that store sells it. */
export async function findProduct(
  db: Db,
  tenant: string,
  by: { productId: string } | { ean: string },
  storeId?: string,
): Promise<PricedProduct | undefined> {
  if (storeId !== undefined) {
    const [row] = 'productId' in by ? await inStoreById(db, { storeId, productId: by.productId }) : await inStoreByEan(db, { storeId, tenant, ean: by.ean })
    return row?.tenant === tenant ? row : undefined
  }
  const [row] = 'productId' in by ? await globalById(db, { tenant, productId: by.productId }) : await globalByEan(db, { tenant, ean: by.ean })
  return row && { ...row, store_id: null }
}
