import { dayOf } from '../../shop/analytics/store-days.ts'
import { invalid, precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findItem, ITEM_UNKNOWN, tagsIn, type TagLists } from '../../protection/items/item-queries.ts'
import { storeMoves } from '../../protection/items/item-moves.ts'
import { recallsIn } from '../../protection/items/recalls.ts'
import { renumberItems, notifyGates } from '../../protection/items/item-sequence.ts'
import {
  deleteReservedItems,
  insertReservedItems,
  itemsOf,
  linesOf,
  sellableItems,
} from '../../shop/pickup-orders/queries.ts'

/**
 *  sellable ─ reserveItems ─▶ reserved_bopis ─ handOverItems ─▶ picked_up
 *     ▲                            │
 *     └──────── releaseItems ──────┘
 *
 * Tagged items of an order (ADR sales). The cloud reserves the oldest sellable items that have not expired and are not
 * recalled. If staff pick other items from the shelf, these items replace the reserved items.
 */
export async function reserveItems(
  call: Call,
  order: Row<'pickup_order'>,
  lines: readonly Row<'pickup_order_line'>[],
): Promise<void> {
  const { db, nowMs } = call
  const recalls = await recallsIn(db, order)
  for (const line of lines) {
    const query = { today: dayOf(nowMs), stopped: recalls.ofEan(line.ean), limit: line.quantity }
    const items = await sellableItems(db, order.store_id, line.product_id, query)
    const reserved = await moveItems(db, items, 'sellable', 'reserved_bopis', nowMs)
    await insertReservedItems(
      db,
      reserved.map((item_id) => ({ order_id: order.order_id, item_id, line_no: line.line_no })),
    )
  }
  notifyGates(call, order.store_id)
}

/** Moves the order's reserved items to `picked_up`. Items on hold keep their status. */
export async function handOverItems(call: Call, order: Row<'pickup_order'>): Promise<void> {
  const { db, nowMs } = call
  await moveItems(db, await reservedItemIds(db, order), 'reserved_bopis', 'picked_up', nowMs)
  notifyGates(call, order.store_id)
}

/** Makes the items of a cancelled order sellable again. */
export async function releaseItems(call: Call, order: Row<'pickup_order'>): Promise<void> {
  const { db, nowMs } = call
  await moveItems(db, await reservedItemIds(db, order), 'reserved_bopis', 'sellable', nowMs)
  notifyGates(call, order.store_id)
}

async function reservedItemIds(db: Call['db'], { order_id }: Row<'pickup_order'>): Promise<string[]> {
  return (await itemsOf(db, [order_id])).map((item) => item.item_id)
}

/** Replaces reserved items by the picked items of the same product. */
export async function replaceReservedItems(call: Call, order: Row<'pickup_order'>, picked: TagLists): Promise<void> {
  const { db, nowMs } = call
  const items = await namedItems(call, order, picked)
  if (items.size === 0) return
  const lines = await linesOf(db, [order.order_id])
  const reserved = await itemsOf(db, [order.order_id])
  const products = new Set(lines.map((line) => line.product_id))
  for (const productId of products) {
    // A product has several lines if its units have different prices.
    const own = lines.filter((line) => line.product_id === productId)
    const quantity = own.reduce((sum, line) => sum + line.quantity, 0)
    const named = [...items.values()].filter(({ item }) => item.product_id === productId)
    if (named.length > quantity)
      throw invalid(
        named[quantity]?.path ?? 'epcs',
        `is one item too many: the order contains ${quantity} of this product`,
        'too_many_items',
      )
    const reservedOfProduct = reserved.filter((item) => own.some((line) => line.line_no === item.line_no))
    const others = reservedOfProduct.filter((item) => !items.has(item.item_id))
    const surplus = others.slice(Math.max(0, quantity - named.length)).map((item) => item.item_id)
    const added = named
      .map(({ item }) => item.item_id)
      .filter((id) => !reservedOfProduct.some((item) => item.item_id === id))
    await moveItems(db, surplus, 'reserved_bopis', 'sellable', nowMs)
    await deleteReservedItems(db, order.order_id, surplus)
    await moveItems(db, added, 'sellable', 'reserved_bopis', nowMs)
    await insertReservedItems(
      db,
      added.map((item_id) => ({ order_id: order.order_id, item_id, line_no: own[0]?.line_no ?? 0 })),
    )
  }
  notifyGates(call, order.store_id)
  const stray = [...items.values()].find(({ item }) => item.product_id === null || !products.has(item.product_id))
  if (stray) throw precondition('item_mismatch', `${stray.path}: the order does not contain the product of this item`)
}

async function namedItems({ db, nowMs }: Call, order: Row<'pickup_order'>, picked: TagLists) {
  const mine = new Set(await reservedItemIds(db, order))
  const recalls = await recallsIn(db, order)
  const items = new Map<string, { path: string; item: Row<'protected_item'> }>()
  for (const { path, identifiers } of tagsIn(picked, '')) {
    const item = await findItem(db, order.tenant, identifiers)
    if (item?.store_id !== order.store_id) throw invalid(path, ITEM_UNKNOWN, 'item_unknown')
    const isFree = item.item_status === 'sellable' || (item.item_status === 'reserved_bopis' && mine.has(item.item_id))
    if (!isFree) throw precondition('item_not_sellable', `${path}: the item is ${item.item_status}`)
    // What was reserved in time is handed over.
    if (item.item_status === 'sellable' && item.expiry !== null && item.expiry < dayOf(nowMs))
      throw precondition('expired', `${path}: the item expired on ${item.expiry}: pick another one`)
    if (recalls.stop({ item }))
      throw precondition('recalled', `${path}: the item is recalled: set it aside, and pick another one`)
    items.set(item.item_id, { path, item })
  }
  return items
}

const ROWS_AT_ONCE = 500

/** Moves the items whose status is `from`. Returns their ids. */
async function moveItems(
  db: Call['db'],
  itemIds: readonly string[],
  from: string,
  to: string,
  nowMs: number,
): Promise<string[]> {
  const moved: string[] = []
  for (let i = 0; i < itemIds.length; i += ROWS_AT_ONCE) {
    const rows = await db
      .updateTable('protected_item')
      .set((eb) => ({ item_status: to, updated_ms: nowMs, rev: eb('rev', '+', 1) }))
      .where('item_id', 'in', itemIds.slice(i, i + ROWS_AT_ONCE))
      .where('item_status', '=', from)
      .returningAll()
      .execute()
    const stores = new Set(rows.map((row) => row.store_id))
    for (const storeId of stores)
      await renumberItems(
        db,
        storeId,
        rows.filter((row) => row.store_id === storeId).map((row) => row.item_id),
      )
    await storeMoves(db, rows, from, nowMs)
    moved.push(...rows.map((row) => row.item_id))
  }
  return moved
}
