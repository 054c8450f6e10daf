import type { Call, Services } from '../../platform/operations/operation.ts'
import { readItem, updateItem } from '../items/item-queries.ts'
import { notifyGates } from '../items/item-sequence.ts'
import { type EventScope } from '../records/record-event.ts'
import { raiseException } from '../records/exceptions.ts'
import type { UnitKey } from '../rights/rights.ts'

type BindScope = EventScope & { services: Services; afterCommit: Call['afterCommit'] }

/**
 * Binds a sellable item to an unbound unit of its product, at its first release or exit (ADR 0008). `reversal`: the
 * unit was cancelled or returned before the claim arrived. The released item is then unpaid and gets the status
 * `exception_hold`.
 */
export async function bindItem(
  scope: BindScope,
  itemId: string,
  key: UnitKey | undefined,
  reversal?: 'cancelled' | 'returned',
): Promise<void> {
  if (!key || key.purchaseId === '') return
  const { db, nowMs } = scope
  const unit = await db
    .selectFrom('purchase_unit')
    .selectAll()
    .where('line_id', '=', key.lineId)
    .where('unit_no', '=', key.unitNo)
    .executeTakeFirst()
  if (!unit || (unit.bound === 1 && unit.item_id === itemId)) return
  const item = await readItem(db, itemId)
  if (unit.bound === 1 || item.item_status !== 'sellable') {
    await raiseException(scope, {
      storeId: item.store_id,
      kind: 'item_already_paid',
      subject: `${key.purchaseId}/${itemId}`,
      purchaseId: key.purchaseId,
      detail:
        unit.bound === 1
          ? 'an item was released for a unit of this purchase that is bound to another item'
          : `an item was ${item.item_status} when it was released for this purchase`,
    })
    return
  }
  await updateItem(
    db,
    item,
    {
      item_status: reversal ? 'exception_hold' : 'paid',
      purchase_id: key.purchaseId,
      line_id: key.lineId,
      unit_no: key.unitNo,
    },
    nowMs,
  )
  notifyGates(scope, item.store_id)
  await db
    .updateTable('purchase_unit')
    .set({ bound: 1, item_id: itemId, ...(reversal === 'cancelled' && { taken_back: 'exception_hold' }) })
    .where('line_id', '=', key.lineId)
    .where('unit_no', '=', key.unitNo)
    .execute()
}
