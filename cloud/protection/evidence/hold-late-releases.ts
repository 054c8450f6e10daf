import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { findPurchase, findUnit, readLines, recordCancelledUnit, readUnits } from '../../shop/purchases/queries.ts'
import { STOPPED_STATUSES } from './evidence-facts.ts'
import type { EvidenceScope } from './evidence-scope.ts'
import { raiseException } from '../records/exceptions.ts'
import { readItem, updateItem } from '../items/item-queries.ts'
import { notifyGates } from '../items/item-sequence.ts'
import { isRecalled } from '../items/recalls.ts'
import { isItemOf } from '../leases/return-units.ts'
import type { UnitKey } from '../rights/rights.ts'
import { itemAsOf } from '../rights/past-state.ts'

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
  const isReleased = new Set(released.map(({ lineId, unitNo }) => `${lineId}/${unitNo}`))
  for (const unit of await readUnits(db, purchase.purchase_id)) {
    if (unit.bound === 0 || unit.item_id === null || unit.taken_back !== 'cancelled') continue
    if (!isReleased.has(`${unit.line_id}/${unit.unit_no}`)) continue
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
 * True if the goods of this unit had to stay at that time, although nothing was returned: their item had such a status,
 * or they were recalled. An agent that was offline may not have known it.
 */
export async function wasStopped(scope: EvidenceScope, key: UnitKey, atMs: number): Promise<boolean> {
  return (await hadStoppedStatus(scope, key, atMs)) || (await wasRecalled(scope, key, atMs))
}

async function wasRecalled({ db, facts, tenant }: EvidenceScope, key: UnitKey, atMs: number): Promise<boolean> {
  const recalls = await facts.recallsAt(atMs)
  if (recalls.length === 0) return false
  const { lineId, unitNo, purchaseId } = key
  const isStandalone = purchaseId === ''
  const itemId = isStandalone ? lineId : (await facts.unitOf(purchaseId, { lineId, unitNo }))?.item_id
  const item = itemId === undefined || itemId === null ? undefined : await readItem(db, itemId)
  const line = isStandalone ? undefined : (await readLines(db, purchaseId)).find((each) => each.line_id === lineId)
  const storeId = item?.store_id ?? (await findPurchase(db, tenant, purchaseId))?.store_id
  return storeId !== undefined && isRecalled(recalls, { storeId, item, line })
}

async function hadStoppedStatus({ db, facts }: EvidenceScope, key: UnitKey, atMs: number): Promise<boolean> {
  const { lineId, unitNo, purchaseId, rightClass } = key
  const isStandalone = purchaseId === ''
  const itemId = isStandalone ? lineId : (await facts.unitOf(purchaseId, { lineId, unitNo }))?.item_id
  if (itemId === undefined || itemId === null || !(await facts.wasEverStopped(itemId))) return false
  const then = await itemAsOf(db, await readItem(db, itemId), atMs)
  const isSame = isStandalone ? then.line_id === null : then.line_id === lineId && then.unit_no === unitNo
  const isTransfer = then.item_status === 'transfer_in_transit' && rightClass === 'exit'
  return isSame && !isTransfer && (STOPPED_STATUSES as readonly string[]).includes(then.item_status)
}

/**
 * If a unit was released after its return, puts its item on hold. Changes the item only if its status is `returned`.
 */
export async function holdReturnedItem(
  scope: EvidenceScope,
  storeId: string,
  { lineId, unitNo }: UnitKey,
): Promise<void> {
  const { db, nowMs } = scope
  const unit = await findUnit(db, lineId, unitNo)
  if (!unit || unit.bound === 0 || unit.item_id === null) return
  const item = await readItem(db, unit.item_id)
  // Keeps a status that staff have set since.
  if (item.item_status !== 'returned' || !isItemOf(item, unit)) return
  await updateItem(db, item, { item_status: 'exception_hold' }, nowMs)
  notifyGates(scope, storeId)
}
