import { sql } from 'kysely'
import type { Db } from '../../platform/persistence/database.ts'
import { commitPosition } from '../../platform/persistence/positions.ts'
import { insertChunks, preparedInsert, preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'

const insertMoves = preparedInsert((db, rows: readonly Omit<Row<'item_move'>, 'position'>[]) =>
  db.insertInto('item_move').values(rows.map((row) => ({ ...row, position: commitPosition(db) }))),
)

/** Who or what changed a status. */
export interface MovedBy {
  /** Of staff. */
  reason?: string | undefined
  operatorId?: string | undefined
  /** When an agent stored the report of a till, ms. */
  reportedMs?: number | undefined
}

/** Stores a status move for each item whose status differs from `from`. `from` is null for new items. */
export async function storeMoves(
  db: Db,
  items: readonly Row<'protected_item'>[],
  from: string | null,
  nowMs: number,
  by: MovedBy = {},
): Promise<void> {
  const moves = items.flatMap((item) => (item.item_status === from ? [] : [moveOf(item, from, nowMs, by)]))
  for (const chunk of insertChunks(moves)) await insertMoves(db, chunk)
}

/** Stores that the tag of a sold item was removed for other goods: a move without a change of the status. */
export async function storeTagRemoval(db: Db, item: Row<'protected_item'>, nowMs: number, by: MovedBy): Promise<void> {
  await insertMoves(db, [moveOf(item, item.item_status, nowMs, by)])
}

function moveOf(
  item: Row<'protected_item'>,
  from: string | null,
  nowMs: number,
  { reason, operatorId, reportedMs }: MovedBy,
): Omit<Row<'item_move'>, 'position'> {
  const { item_id, rev, tenant, store_id, item_status, epc, tag_uid, tag_id, ean, purchase_id, line_id } = item
  return {
    item_id,
    rev,
    tenant,
    store_id,
    from_status: from,
    to_status: item_status,
    epc,
    tag_uid,
    tag_id,
    ean,
    purchase_id,
    line_id,
    at_ms: nowMs,
    reason: reason ?? null,
    operator_id: operatorId ?? null,
    reported_ms: reportedMs ?? null,
  }
}

/** Newest status moves of an item in its store. */
export function newestMoves(
  db: Db,
  { item_id, store_id }: Row<'protected_item'>,
  limit: number,
): Promise<Row<'item_move'>[]> {
  return db
    .selectFrom('item_move')
    .selectAll()
    .where('item_id', '=', item_id)
    .where('store_id', '=', store_id)
    .orderBy('rev', 'desc')
    .limit(limit)
    .execute()
}

/** Makes the query of the newest status move of each of these items in a store. It reads each move of them once. */
const newestOfEach = (onlyByOthers: boolean) =>
  preparedForMany((db, itemIds, p: { storeId: string }) => {
    const newest = db
      .selectFrom('item_move')
      .select(['item_id', (eb) => eb.fn.max('rev').as('rev')])
      .where('item_id', 'in', itemIds)
      .groupBy('item_id')
    // Not a plain column: SQLite would take an index of the store, and read all its moves.
    const ofStore = newest.where(sql<string>`store_id || ''`, '=', p.storeId)
    const byOthers = newest.where('store_id', '=', p.storeId).where('reported_ms', 'is', null)
    return db
      .selectFrom(() => (onlyByOthers ? byOthers : ofStore).as('n'))
      .innerJoin('item_move as m', (join) => join.onRef('m.item_id', '=', 'n.item_id').onRef('m.rev', '=', 'n.rev'))
      .select(['m.item_id', 'm.at_ms', 'm.reported_ms', 'm.to_status', 'm.purchase_id'])
  })

/** Newest status move of each of these items in a store. */
export const newestMoveOfEach = newestOfEach(false)

/** Newest move of each of these items in a store by staff, a purchase in untag or an import: no till reported it. */
export const newestMovesByOthers = newestOfEach(true)
