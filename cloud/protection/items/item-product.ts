import type { Db } from '../../platform/persistence/database.ts'
import { preparedForMany } from '../../platform/persistence/prepared-many.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'

/** Category, brand and price of an item's product, in the item's store. */

const productsById = preparedForMany((db, productIds, p: { storeId: string }) =>
  db
    .selectFrom('product as p')
    .leftJoin('store_product as s', (join) =>
      join.onRef('s.product_id', '=', 'p.product_id').on('s.store_id', '=', p.storeId),
    )
    .select([
      'p.product_id',
      'p.category',
      'p.brand',
      (eb) => eb.fn.coalesce('s.price_cent', 'p.price_cent').as('price_cent'),
    ])
    .where('p.product_id', 'in', productIds),
)

/** True if the item needs no data of its product. `priceCent`: paid price, else the item's own price. */
export function isComplete(item: ProtectedItemRow, priceCent: number | null): boolean {
  return item.category !== null && item.brand !== null && priceCent !== null
}

export type ProductOfItem = Awaited<ReturnType<typeof productsById>>[number]

/** Category, brand and price of products in a store, by product id. */
export async function productsIn(
  db: Db,
  storeId: string,
  productIds: Iterable<string>,
): Promise<ReadonlyMap<string, ProductOfItem>> {
  return new Map((await productsById(db, productIds, { storeId })).map((product) => [product.product_id, product]))
}
