import { withinLines } from '../operations/within-lines.ts'
import type { Db } from '../persistence/database.ts'
import type { ItemMoveRow } from '../persistence/tables/protection.ts'
import type { PurchaseLineRow } from '../persistence/tables/purchases.ts'
import type { EventPosition, EventFilter, EventRange } from '../protection/records/event-queries.ts'
import type { Sold } from './events-of.ts'

/** A status change, with the payment time of its purchase. */
export type MoveOfPurchase = ItemMoveRow & { completed_ms: number | null }

/** Separates item id and revision in the id of a status change. */
const DOT = '.'

/** Id of a status change within one position. */
export function moveId({ item_id, rev }: ItemMoveRow): string {
  return `${item_id}${DOT}${rev}`
}

/** True if the text has the form of `moveId`. */
export function isMoveId(id: string): boolean {
  return /.\.\d{1,15}$/.test(id)
}

/** Status changes of a store's items after a position. `id` is the id of a move, or empty. */
export function movesAfter(
  db: Db,
  { storeId, purchaseId }: EventFilter,
  { below, sinceMs }: EventRange,
  { position, id }: EventPosition,
  limit: number,
): Promise<MoveOfPurchase[]> {
  const dot = id.lastIndexOf(DOT)
  const itemId = dot < 0 ? id : id.slice(0, dot)
  const rev = dot < 0 ? 0 : Number(id.slice(dot + 1))
  let query = db
    .selectFrom('item_move')
    .leftJoin('purchase', 'purchase.purchase_id', 'item_move.purchase_id')
    .selectAll('item_move')
    .select('purchase.completed_ms as completed_ms')
    .where('item_move.store_id', '=', storeId)
    .where('at_ms', '>=', sinceMs)
  if (purchaseId !== undefined) query = query.where('item_move.purchase_id', '=', purchaseId)
  return query
    .where(({ eb, refTuple, tuple }) =>
      eb(refTuple('position', 'item_id', 'item_move.rev'), '>', tuple(position, itemId, rev)),
    )
    .where('position', '<', below)
    .orderBy('position')
    .orderBy('item_id')
    .orderBy('item_move.rev')
    .limit(limit)
    .execute()
}

/** A paid purchase with its position. */
export type PositionedSale = Sold & { completed_position: number }

/** Paid purchases of a store after a position, including purchases that were cancelled later. */
export async function salesAfter(
  db: Db,
  { storeId, purchaseId }: EventFilter,
  { below, sinceMs }: EventRange,
  { position, id }: EventPosition,
  limit: number,
): Promise<PositionedSale[]> {
  let query = db
    .selectFrom('purchase')
    .select(['purchase_id', 'completed_ms', 'completed_position'])
    .where('store_id', '=', storeId)
    .where('completed_ms', '>=', sinceMs)
  if (purchaseId !== undefined) query = query.where('purchase_id', '=', purchaseId)
  const found = await query
    .where(({ eb, refTuple, tuple }) => eb(refTuple('completed_position', 'purchase_id'), '>', tuple(position, id)))
    .where('completed_position', '<', below)
    .orderBy('completed_position')
    .orderBy('purchase_id')
    .limit(limit)
    .execute()
  const purchases = await withinLines(db, 'purchase_line', found)
  const ids = purchases.map((purchase) => purchase.purchase_id)
  if (ids.length === 0) return []
  const lines = await db
    .selectFrom('purchase_line')
    .select(['purchase_id', 'line_id', 'ean', 'quantity', 'deposit_of', 'weight_grams', 'lot'])
    .where('purchase_id', 'in', ids)
    .orderBy('line_no')
    .execute()
  const moves = await db
    .selectFrom('item_move')
    .selectAll()
    .where('purchase_id', 'in', ids)
    .where('to_status', '=', 'paid')
    .orderBy('item_id')
    .execute()
  return purchases.map(({ purchase_id, completed_ms, completed_position }) => ({
    purchase_id,
    completed_ms: completed_ms ?? 0,
    completed_position: completed_position ?? 0,
    lines: lines.filter((line) => line.purchase_id === purchase_id),
    moves: moves.filter((move) => move.purchase_id === purchase_id && move.at_ms === completed_ms),
  }))
}

/** EANs by line id. */
export async function eansOfLines(db: Db, lineIds: readonly string[]): Promise<Map<string, PurchaseLineRow['ean']>> {
  if (lineIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('purchase_line')
    .select(['line_id', 'ean'])
    .where('line_id', 'in', [...new Set(lineIds)])
    .execute()
  return new Map(rows.map((row) => [row.line_id, row.ean]))
}
