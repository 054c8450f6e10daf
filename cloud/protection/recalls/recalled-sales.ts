import type { Db } from '../../platform/persistence/database.ts'
import type { PickupOrderRow } from '../../platform/persistence/tables/click-and-collect.ts'
import { itemsOf, linesOf } from '../../shop/pickup-orders/queries.ts'
import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { readLines, readUnits } from '../../shop/purchases/queries.ts'
import { readItem } from '../items/item-queries.ts'
import { isRecalled, recallsOf, type Recall } from '../items/recalls.ts'

/**
 * True if a recall stops goods of a pick-up order: an item that is reserved for it, or the product of a line with pieces
 * that have no tag.
 */
export async function hasRecalledGoods(
  db: Db,
  { tenant, store_id: storeId, order_id: orderId }: Pick<PickupOrderRow, 'tenant' | 'store_id' | 'order_id'>,
): Promise<boolean> {
  const items = await itemsOf(db, [orderId])
  for (const line of await linesOf(db, [orderId])) {
    const recalls = await recallsOf(db, tenant, line.product_id)
    const own = items.filter((item) => item.line_no === line.line_no)
    const goods = own.length < line.quantity ? [...own, undefined] : own
    const { product_id } = line
    if (goods.some((item) => isRecalled(recalls, { storeId, item, line: { product_id } }))) return true
  }
  return false
}

/** True if one of these recalls stops an item that the purchase names, or other goods of one of its lines. */
export async function hasRecalledUnit(
  db: Db,
  { store_id: storeId, purchase_id: purchaseId }: Pick<PurchaseRow, 'store_id' | 'purchase_id'>,
  recallsFor: (productId: string | null) => readonly Recall[] | Promise<readonly Recall[]>,
): Promise<boolean> {
  const units = await readUnits(db, purchaseId)
  for (const line of await readLines(db, purchaseId)) {
    const recalls = await recallsFor(line.product_id)
    if (recalls.length === 0) continue
    const itemIds = units.flatMap((unit) => (unit.line_id === line.line_id ? (unit.item_id ?? []) : []))
    if (itemIds.length < line.quantity && isRecalled(recalls, { storeId, line })) return true
    for (const itemId of itemIds)
      if (isRecalled(recalls, { storeId, item: await readItem(db, itemId), line })) return true
  }
  return false
}
