import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import { recordCancelledUnit, readUnits } from '../../purchases/queries.ts'
import type { EvidenceScope } from './evidence-scope.ts'
import { raiseException } from '../records/exceptions.ts'
import { readItem, updateItem } from '../items/item-queries.ts'
import { notifyGates } from '../items/item-sequence.ts'
import { isItemOf } from '../leases/return-units.ts'
import type { UnitKey } from '../rights/rights.ts'

type Cancelled = Pick<PurchaseRow, 'purchase_id' | 'store_id' | 'status'>

/**
 * Puts released items of a cancelled purchase on hold, so that staff look at them before they become sellable (ADR
 * 0008).
 */
export async function holdItemsOfCancelled(
  scope: EvidenceScope,
  purchase: Cancelled | undefined,
  released: readonly UnitKey[],
): Promise<void> {
  if (purchase?.status !== 'CANCELLED' || released.length === 0) return
  const { db, nowMs } = scope
  for (const unit of await readUnits(db, purchase.purchase_id)) {
    if (unit.bound === 0 || unit.item_id === null || unit.taken_back !== 'cancelled') continue
    if (!released.some((key) => key.lineId === unit.line_id && key.unitNo === unit.unit_no)) continue
    const item = await readItem(db, unit.item_id)
    // Keeps a status that staff have set since.
    if (item.item_status !== 'cancelled' || !isItemOf(item, unit)) continue
    await updateItem(db, item, { item_status: 'exception_hold' }, nowMs)
    await recordCancelledUnit(db, unit, 'exception_hold')
    notifyGates(scope, purchase.store_id)
  }
}

/** Raises `cancelled_after_release` for a purchase. */
export async function raiseCancelledAfterRelease(
  scope: EvidenceScope,
  purchase: Cancelled,
  deviceId: string,
): Promise<void> {
  await raiseException(scope, {
    storeId: purchase.store_id,
    kind: 'cancelled_after_release',
    subject: purchase.purchase_id,
    detail: 'the purchase was cancelled, but units of it had been released',
    deviceId,
    purchaseId: purchase.purchase_id,
  })
}

/**
 * If a unit was released after its return, puts its item on hold. Changes the item only if its status is `returned`.
 */
export async function holdReturnedItem(
  scope: EvidenceScope,
  storeId: string,
  { purchaseId, lineId, unitNo }: UnitKey,
): Promise<void> {
  const { db, nowMs } = scope
  const units = await readUnits(db, purchaseId)
  const unit = units.find((each) => each.line_id === lineId && each.unit_no === unitNo)
  if (!unit || unit.bound === 0 || unit.item_id === null) return
  const item = await readItem(db, unit.item_id)
  // Keeps a status that staff have set since.
  if (item.item_status !== 'returned' || !isItemOf(item, unit)) return
  await updateItem(db, item, { item_status: 'exception_hold' }, nowMs)
  notifyGates(scope, storeId)
}
