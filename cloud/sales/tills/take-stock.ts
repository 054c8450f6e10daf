import type { Call } from '../../platform/operations/operation.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { soldPieces } from '../../shop/purchases/line-value.ts'
import { removeUnreserved, stockedProducts } from '../../shop/stock/queries.ts'

const stockSources = prepared((db, p: { storeId: string }) =>
  db
    .selectFrom('integration_pull')
    .select('system')
    .where('store_id', '=', p.storeId)
    .where('data_type', '=', 'stock')
    .limit(1),
)

/**
 * Subtracts the pieces of a till's sale from the counted stock. A store whose stock is read from another system is left
 * out: that system knows the sale from its own tills.
 */
export async function takeStock(
  call: Call,
  store: Row<'store'>,
  purchase: Row<'purchase'>,
  lines: readonly Row<'purchase_line'>[],
): Promise<void> {
  const { db, nowMs, services } = call
  const sold = new Map<string, number>()
  for (const line of lines)
    if (line.product_id !== null && line.price_cent >= 0 && line.weight_grams === null)
      sold.set(line.product_id, (sold.get(line.product_id) ?? 0) + soldPieces(line))
  const stocked = await stockedProducts(db, store.store_id, [...sold.keys()])
  if (stocked.size === 0 || (await stockSources(db, { storeId: store.store_id })).length > 0) return
  const short: string[] = []
  for (const productId of [...stocked].sort())
    if (!(await removeUnreserved(db, { storeId: store.store_id, productId, quantity: sold.get(productId) ?? 0 })))
      short.push(productId)
  if (short.length === 0) return
  await raiseException(
    { db, tenant: store.tenant, platform: services.platform, nowMs },
    {
      storeId: store.store_id,
      kind: 'stock_oversold',
      subject: purchase.purchase_id,
      purchaseId: purchase.purchase_id,
      detail: `a till sold more than was free; orders or baskets now lack pieces of ${short.join(', ')}`,
    },
  )
}
