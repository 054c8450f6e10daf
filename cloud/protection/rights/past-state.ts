import type { Db } from '../../persistence/database.ts'
import type { ItemMoveRow, ProtectedItemRow } from '../../persistence/tables/protection.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import { redemptionsOfUnit } from './redemptions.ts'
import { findRight, type RightView, type UnitKey } from './rights.ts'

/** How things stood at a former moment: a record of something past is judged by that (decisions §9, occurredAt). Policy and devices count as they are. */

/** The purchase as it was then: paid or not, and taken back or not yet. */
export async function purchaseAsOf(db: Db, purchase: PurchaseRow, atMs: number): Promise<PurchaseRow> {
  if (purchase.completed_ms === null) return purchase
  if (purchase.completed_ms > atMs) return { ...purchase, status: 'PENDING_PAYMENT' }
  return purchase.status === 'CANCELLED' && !(await wasCancelled(db, purchase, atMs))
    ? { ...purchase, status: 'SUCCESS' }
    : purchase
}

/** A paid purchase is cancelled with the refund of what is left of it; of one without, nobody knows when. */
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

/** The item with the status, and as a part of the purchase, that it had then; before it was registered, with its first status. */
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

/** The right of a unit then: used by what was redeemed or had come back. What others held is not looked at, for nobody is given anything. */
export async function rightAsOf(db: Db, key: UnitKey, atMs: number): Promise<RightView> {
  const uses = (await redemptionsOfUnit(db, key)).filter((use) => use.at_ms <= atMs && use.outcome !== 'failed')
  if (uses.some((use) => use.outcome !== 'unknown')) return { state: 'used' }
  const by = (await findRight(db, key))?.returned_by ?? null
  if (by !== null && (await hadComeBack(db, key, by, atMs))) return { state: 'used' }
  return { state: 'free', ...(uses.length > 0 && { staffReason: 'nobody knows whether the last try worked' }) }
}

/** Goods of a refund come back with it; those that staff have put on the shelf, when they were no longer the unit's. */
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
