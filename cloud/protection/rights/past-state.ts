import { sql } from 'kysely'
import { type Db, groupBy } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { StoredRight } from './delegated-rights.ts'
import { redemptionsOfLines, redemptionsOfUnit } from './redemptions.ts'
import { rightName, UNKNOWN_OUTCOME_REASON, type RightView, type UnitKey } from './rights.ts'

/**
 * State at a past time, by which the cloud decides about past requests (`occurredAt`, ADR releases). Policy and devices are
 * an exception: the cloud uses their current state.
 */

/** The purchase with its status at that time. */
export async function purchaseAsOf(db: Db, purchase: Row<'purchase'>, atMs: number): Promise<Row<'purchase'>> {
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
async function wasCancelled(db: Db, { purchase_id }: Row<'purchase'>, atMs: number): Promise<boolean> {
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

/** When an item moved: what a till reported to an agent moved it at that time, however late the cloud heard of it. */
const MOVED_MS = sql<number>`COALESCE(reported_ms, at_ms)`

/**
 * The item with its status, store and unit at that time. If the time is before the registration, the result has the
 * first status of the item.
 */
export async function itemAsOf(db: Db, item: Row<'protected_item'>, atMs: number): Promise<Row<'protected_item'>> {
  const moves = db.selectFrom('item_move').selectAll().where('item_id', '=', item.item_id)
  const last = await moves.where(MOVED_MS, '<=', atMs).orderBy('rev', 'desc').limit(1).executeTakeFirst()
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

/** True if the item came back to the store after that time. */
export async function hasComeBackSince(db: Db, itemId: string, atMs: number): Promise<boolean> {
  const move = await db
    .selectFrom('item_move')
    .select('rev')
    .where('item_id', '=', itemId)
    .where(MOVED_MS, '>', atMs)
    .where('to_status', 'in', ['returned', 'cancelled', 'sellable'])
    .limit(1)
    .executeTakeFirst()
  return move !== undefined
}

async function unitOf(db: Db, { item_id }: Row<'protected_item'>, { purchase_id, line_id }: Row<'item_move'>) {
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

/** States of the rights at that time. Ignores leases, because the cloud issues no token for a past request. */
export async function rightsAsOf(db: Db, rights: readonly StoredRight[], atMs: number): Promise<RightView[]> {
  const [first, ...others] = rights
  if (!first) return []
  const lineIds = rights.map(({ key }) => key.lineId)
  const all = others.length === 0 ? await redemptionsOfUnit(db, first.key) : await redemptionsOfLines(db, lineIds)
  const uses = groupBy(
    all.filter((use) => use.at_ms <= atMs && use.outcome !== 'failed'),
    ({ line_id, unit_no, right_class }) => `${line_id}/${unit_no}/${right_class}`,
  )
  const views: RightView[] = []
  for (const { key, row } of rights) {
    const own = uses.get(rightName(key)) ?? []
    const by = row?.returned_by ?? null
    const isUsed =
      own.some((use) => use.outcome !== 'unknown') || (by !== null && (await hadComeBack(db, key, by, atMs)))
    const staffReason = own.length > 0 && { staffReason: UNKNOWN_OUTCOME_REASON }
    views.push(isUsed ? { state: 'used' } : { state: 'free', ...staffReason })
  }
  return views
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
