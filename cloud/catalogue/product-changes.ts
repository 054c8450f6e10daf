import type { Db } from '../persistence/database.ts'

/** A product in a store. */
export interface ProductInStore {
  storeId: string
  productId: string
}

/** Products per statement. */
const AT_ONCE = 200

/**
 * Notes that agents must receive the items of these products again, because name, brand, category, price or picture
 * changed. A job publishes the items (protection/items/refresh-items.ts), because a product may have many. Products
 * without items are skipped.
 */
export async function noteProductChanges(db: Db, products: readonly ProductInStore[]): Promise<void> {
  // Rows are always written in the same order, which avoids deadlocks between two transactions.
  for (const storeId of [...new Set(products.map((each) => each.storeId))].sort()) {
    const ofStore = products.filter((each) => each.storeId === storeId)
    const ids = [...new Set(ofStore.map(({ productId }) => productId))].sort()
    for (let i = 0; i < ids.length; i += AT_ONCE) await noteOfStore(db, storeId, ids.slice(i, i + AT_ONCE))
  }
}

async function noteOfStore(db: Db, storeId: string, productIds: readonly string[]): Promise<void> {
  const tagged = await db
    .selectFrom('protected_item')
    .select('product_id')
    .distinct()
    .where('store_id', '=', storeId)
    .where('product_id', 'in', productIds)
    .orderBy('product_id')
    .execute()
  if (tagged.length === 0) return
  await db
    .insertInto('item_refresh')
    .values(tagged.map(({ product_id }) => ({ store_id: storeId, product_id: product_id ?? '', after_item: '' })))
    // A job that is under way begins again.
    .onConflict((c) => c.columns(['store_id', 'product_id']).doUpdateSet({ after_item: '' }))
    .execute()
}
