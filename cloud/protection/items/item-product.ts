import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'

/** Category, brand and price of an item's product, in the item's store. */

const productById = prepared((db, p: { productId: string; storeId: string }) =>
  db
    .selectFrom('product as p')
    .leftJoin('store_product as s', (join) =>
      join.onRef('s.product_id', '=', 'p.product_id').on('s.store_id', '=', p.storeId),
    )
    .select(['p.category', 'p.brand', (eb) => eb.fn.coalesce('s.price_cent', 'p.price_cent').as('price_cent')])
    .where('p.product_id', '=', p.productId),
)

/** True if the item needs no data of its product. `priceCent`: paid price, else the item's own price. */
export function isComplete(item: ProtectedItemRow, priceCent: number | null): boolean {
  return item.category !== null && item.brand !== null && priceCent !== null
}

/** Category, brand and price of the item's product, if any. */
export async function productOf(db: Db, { product_id: productId, store_id: storeId }: ProtectedItemRow) {
  if (productId === null) return undefined
  const [product] = await productById(db, { productId, storeId })
  return product
}
