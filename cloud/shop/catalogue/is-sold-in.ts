import type { Db } from '../../platform/persistence/database.ts'

/** True if at least one of these stores sells the product. */
export async function isSoldIn(db: Db, productId: string, storeIds: readonly string[]): Promise<boolean> {
  if (storeIds.length === 0) return false
  const row = await db
    .selectFrom('store_product')
    .select('product_id')
    .where('product_id', '=', productId)
    .where('store_id', 'in', [...storeIds])
    .executeTakeFirst()
  return row !== undefined
}
