import type { Db } from '../../persistence/database.ts'
import type { ItemMoveRow, ProtectedItemRow } from '../../persistence/tables/protection.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import { redemptionsOfUnit } from './redemptions.ts'
import { findRight, UNKNOWN_OUTCOME_REASON, type RightView, type UnitKey } from './rights.ts'

/**
 * State at a past time, by which the cloud decides about past requests (`occurredAt`, ADR 0009). Policy and devices are
 * an exception: the cloud uses their current state.
 */

/** The purchase with its status at that time. */
export async function purchaseAsOf(db: Db, purchase: PurchaseRow, atMs: number): Promise<PurchaseRow> {
  if (purchase.completed_ms === null) return purchase
  if (purchase.completed_ms > atMs) return { ...purchase, status: 'PENDING_PAYMENT' }
  return purchase.status === 'CANCELLED' && !(await wasCancelled(db, purchase, atMs))
    ? { ...purchase, status: 'SUCCESS' }
    : purchase
}

/**
 * True if the purchase was cancelled by then. The time of the refund is the time of the cancellation. If there is no
 * refund, the time is unknown, and the result is true.
 */
async function wasCancelled(db: Db, { purchase_id }: PurchaseRow, atMs: number): Promise<boolean> {
  const whole = await db
    .selectFrom('refund')
    .select('created_ms')
    .where('purchase_id', '=', purchase_id)
    .where('kind', '=', 'whole')
    .orderBy('created_ms')
    .limit(1)
    .executeTakeFirst()
  return whole === undefined || whole.created_ms <= atMs
}

/**
 * The item with its status, store and unit at that time. If the time is before the registration, the result has the
 * first status of the item.
 */
export async function itemAsOf(db: Db, item: ProtectedItemRow, atMs: number): Promise<ProtectedItemRow> {
  const moves = db.selectFrom('item_move').selectAll().where('item_id', '=', item.item_id)
  const last = await moves.where('at_ms', '<=', atMs).orderBy('rev', 'desc').limit(1).executeTakeFirst()
  if (last) return { ...item, store_id: last.store_id, item_status: last.to_status, ...(await unitOf(db, item, last)) }
  const first = await moves.orderBy('rev').limit(1).executeTakeFirstOrThrow()
  return {
    ...item,
    store_id: first.store_id,
    item_status: first.from_status ?? first.to_status,
    purchase_id: null,
    line_id: null,
    unit_no: null,
  }
}

async function unitOf(db: Db, { item_id }: ProtectedItemRow, { purchase_id, line_id }: ItemMoveRow) {
  const named =
    line_id === null
      ? undefined
      : await db
          .selectFrom('purchase_unit')
          .select('unit_no')
          .where('line_id', '=', line_id)
          .where('item_id', '=', item_id)
          .executeTakeFirst()
  return named ? { purchase_id, line_id, unit_no: named.unit_no } : { purchase_id: null, line_id: null, unit_no: null }
}

/** State of the right at that time. Ignores leases, because the cloud issues no token for a past request. */
export async function rightAsOf(db: Db, key: UnitKey, atMs: number): Promise<RightView> {
  const redemptions = (await redemptionsOfUnit(db, key)).filter((use) => use.at_ms <= atMs && use.outcome !== 'failed')
  if (redemptions.some((use) => use.outcome !== 'unknown')) return { state: 'used' }
  const by = (await findRight(db, key))?.returned_by ?? null
  if (by !== null && (await hadComeBack(db, key, by, atMs))) return { state: 'used' }
  return { state: 'free', ...(redemptions.length > 0 && { staffReason: UNKNOWN_OUTCOME_REASON }) }
}

/** True if the goods were returned by then: with the refund, or when staff removed the item from the unit. */
async function hadComeBack(db: Db, { lineId, unitNo }: UnitKey, by: string, atMs: number): Promise<boolean> {
  const refund = await db.selectFrom('refund').select('created_ms').where('refund_id', '=', by).executeTakeFirst()
  if (refund) return refund.created_ms <= atMs
  const unit = await db
    .selectFrom('purchase_unit')
    .select('item_id')
    .where('line_id', '=', lineId)
    .where('unit_no', '=', unitNo)
    .executeTakeFirst()
  if (!unit?.item_id) return false
  const moves = db
    .selectFrom('item_move')
    .select(['line_id'])
    .where('item_id', '=', unit.item_id)
    .where('at_ms', '<=', atMs)
    .orderBy('rev', 'desc')
    .limit(1)
  const [last, own] = [await moves.executeTakeFirst(), await moves.where('line_id', '=', lineId).executeTakeFirst()]
  return own !== undefined && last?.line_id !== lineId
}
