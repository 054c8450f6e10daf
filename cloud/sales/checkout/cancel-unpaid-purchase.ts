import type { Db } from '../../platform/persistence/database.ts'
import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { renumberItemsOf } from '../../protection/items/item-sequence.ts'
import { releaseStock } from '../../shop/stock/reserve.ts'
import { updatePurchase } from '../../shop/purchases/queries.ts'

/** Cancels an unpaid purchase and releases its stock. */
export async function cancelUnpaidPurchase(
  db: Db,
  purchase: PurchaseRow,
  change: Partial<PurchaseRow>,
): Promise<PurchaseRow> {
  await releaseStock(db, purchase.purchase_id)
  await renumberItemsOf(db, purchase)
  return updatePurchase(db, purchase, { ...change, status: 'CANCELLED' })
}
