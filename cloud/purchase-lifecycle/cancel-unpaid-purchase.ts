import type { Db } from '../persistence/database.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import { renumberItemsOf } from '../protection/items/item-sequence.ts'
import { releaseStock } from '../stock/reserve.ts'
import { updatePurchase } from '../purchases/queries.ts'

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
