import type { Call } from '../../platform/operations/operation.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { soldPieces } from '../../shop/purchases/line-value.ts'
import { addOnHand, removeUnreserved, stockedProducts } from '../../shop/stock/queries.ts'

const stockSources = prepared((db, p: { storeId: string }) =>
  db
    .selectFrom('integration_pull')
    .select('system')
    .where('store_id', '=', p.storeId)
    .where('data_type', '=', 'stock')
    .limit(1),
)

/** Those of these products whose stock is counted here. A system whose stock the store reads knows its own tills. */
async function countedHere({ db }: Call, { store_id: storeId }: Row<'store'>, products: Iterable<string>) {
  const stocked = await stockedProducts(db, storeId, [...products])
  return stocked.size === 0 || (await stockSources(db, { storeId })).length > 0 ? [] : [...stocked].sort()
}

/**
 * Adds goods of a till's sale that may be sold again to the counted stock: `pieces` of its lines that came back. A part
 * of a piece is no piece.
 */
export async function giveStockBack(
  call: Call,
  store: Row<'store'>,
  lines: readonly Row<'purchase_line'>[],
  pieces: readonly { itemLineId: string; quantity: number }[],
): Promise<void> {
  const back = new Map<string, number>()
  for (const { itemLineId, quantity } of pieces) {
    const line = lines.find((each) => each.line_id === itemLineId)
    if (line && line.product_id !== null && line.price_cent >= 0 && line.weight_grams === null)
      back.set(line.product_id, (back.get(line.product_id) ?? 0) + Math.floor(quantity))
  }
  for (const productId of await countedHere(call, store, back.keys()))
    await addOnHand(call.db, { storeId: store.store_id, productId, quantity: back.get(productId) ?? 0 })
}

/** Subtracts the pieces of a till's sale from the counted stock. */
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
  const short: string[] = []
  for (const productId of await countedHere(call, store, sold.keys()))
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
