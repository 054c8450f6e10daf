import type { Call } from '../operations/operation.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import { readItem, updateItem } from '../protection/items/item-queries.ts'
import { notifyGates } from '../protection/items/item-sequence.ts'
import { isItemOf, returnUnits } from '../protection/leases/return-units.ts'
import { readUnits } from '../purchases/queries.ts'

/** Marks the items of these lines as `returned` and ends their release rights (ADR 0008). */
export async function returnItems(
  call: Call,
  purchase: PurchaseRow,
  lineIds: ReadonlySet<string>,
  refundId: string,
): Promise<void> {
  const { db, nowMs } = call
  const units = (await readUnits(db, purchase.purchase_id)).filter((unit) => lineIds.has(unit.line_id))
  await returnUnits(call, purchase, units, refundId)
  for (const unit of units) {
    if (unit.bound === 0 || unit.item_id === null) continue
    const item = await readItem(db, unit.item_id)
    const isHere = item.item_status === 'paid' || item.item_status === 'picked_up'
    if (isHere && isItemOf(item, unit)) await updateItem(db, item, { item_status: 'returned' }, nowMs)
  }
  notifyGates(call, purchase.store_id)
}
