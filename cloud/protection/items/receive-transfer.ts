import { mayItemMove, nextItemStatuses } from '../../../policy/item-status.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import { precondition } from '../../foundation/failure.ts'
import type { Call } from '../../operations/operation.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'
import { storeMoves } from './item-moves.ts'
import { nextItemSeq, notifyGates, removeItemNames } from './item-sequence.ts'
import { clearPurchaseLinks } from './move-by-staff.ts'

/** Moves an item in transit to this store. Gates of the previous store delete the identifiers of the item. */
export async function receiveTransfer(
  call: Call,
  item: ProtectedItemRow,
  storeId: string,
  itemStatus: ItemStatus,
  stated: Partial<ProtectedItemRow>,
): Promise<void> {
  const { db, nowMs } = call
  const from = item.item_status as ItemStatus
  if (!mayItemMove(from, itemStatus))
    throw precondition('illegal_move', `an item that is ${from} cannot become ${itemStatus}`, {
      allowedNext: nextItemStatuses(from),
    })
  const noPurchase = await clearPurchaseLinks(call, item)
  await removeItemNames(db, item, nowMs)
  const change = {
    ...stated,
    ...noPurchase,
    store_id: storeId,
    item_status: itemStatus,
    item_seq: await nextItemSeq(db, storeId),
    updated_ms: nowMs,
  }
  const arrived = await db
    .updateTable('protected_item')
    .set((eb) => ({ ...change, rev: eb('rev', '+', 1) }))
    .where('item_id', '=', item.item_id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await storeMoves(db, [arrived], from, nowMs)
  notifyGates(call, item.store_id)
}
