import type { Call } from '../operations/operation.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import { readItems, updateItem } from '../protection/items/item-queries.ts'
import { notifyGates } from '../protection/items/item-sequence.ts'
import { isItemOf, returnUnits } from '../protection/leases/return-units.ts'
import type { Pieces } from '../purchases/pieces.ts'
import { boundItemsOf, readUnits } from '../purchases/queries.ts'

/** Marks the items of these pieces as `returned` and ends their release rights (ADR 0008). */
export async function returnItems(
  call: Call,
  purchase: PurchaseRow,
  pieces: readonly Pieces[],
  refundId: string,
): Promise<void> {
  const { db, nowMs } = call
  const named = new Set(pieces.flatMap(({ itemLineId, unitNos }) => unitNos.map((unitNo) => `${itemLineId}/${unitNo}`)))
  const units = (await readUnits(db, purchase.purchase_id)).filter((unit) =>
    named.has(`${unit.line_id}/${unit.unit_no}`),
  )
  await returnUnits(call, purchase, units, refundId)
  const items = await readItems(db, boundItemsOf(units))
  for (const unit of units) {
    const item = unit.bound === 0 ? undefined : items.get(unit.item_id ?? '')
    const isHere = item?.item_status === 'paid' || item?.item_status === 'picked_up'
    if (item && isHere && isItemOf(item, unit)) await updateItem(db, item, { item_status: 'returned' }, nowMs)
  }
  notifyGates(call, purchase.store_id)
}
