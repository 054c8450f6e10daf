import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'

/** What an item does not say of itself its product does, at the price of the item's store. */

const productById = prepared((db, p: { productId: string; storeId: string }) =>
  db
    .selectFrom('product as p')
    .leftJoin('store_product as s', (join) =>
      join.onRef('s.product_id', '=', 'p.product_id').on('s.store_id', '=', p.storeId),
    )
    .select(['p.category', 'p.brand', (eb) => eb.fn.coalesce('s.price_cent', 'p.price_cent').as('price_cent')])
    .where('p.product_id', '=', p.productId),
)

/** Whether nothing has to be looked up in the item's product. `priceCent`: what was paid for it, else its own. */
export function isComplete(item: ProtectedItemRow, priceCent: number | null): boolean {
  return item.category !== null && item.brand !== null && priceCent !== null
}

/** Category, brand and price of the item's product, if it has one. */
export async function productOf(db: Db, { product_id: productId, store_id: storeId }: ProtectedItemRow) {
  if (productId === null) return undefined
  const [product] = await productById(db, { productId, storeId })
  return product
}
