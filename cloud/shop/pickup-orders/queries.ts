import type { Page } from '../../platform/operations/paging.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { preparedForMany } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { hash } from 'node:crypto'
import { crockford } from '../../../policy/base32.ts'
import type { Randomness } from '../../../policy/platform.ts'
import { secretsEqual } from '../../../policy/secrets-equal.ts'

/** 40 random bits: 8 characters in Crockford's Base32, short enough to read aloud. */
const BYTES = 5

/** Creates a pick-up code. Only its hash is stored. */
export function newPickupCode(random: Randomness): string {
  return crockford.encode(random.bytes(BYTES))
}

/** Stored hash of a code. The hash includes the order id, so that equal codes have different hashes. */
export function pickupCodeHash(orderId: string, code: string): string {
  return hash('sha256', `pickup\0${orderId}\0${normalised(code)}`, 'base64url')
}

/** True if the code belongs to the order. Ignores case, spaces and hyphens; reads O as 0, I and L as 1. */
export function isPickupCode(order: { order_id: string; code_hash: string }, code: string): boolean {
  return secretsEqual(order.code_hash, pickupCodeHash(order.order_id, code))
}

function normalised(code: string): string {
  return code.toUpperCase().replaceAll(/[\s-]/g, '').replaceAll('O', '0').replaceAll(/[IL]/g, '1')
}

/** Statuses of an order and their moves (ADR sales). `picked_up` and `cancelled` are final. */
export const ORDER_STATUSES = ['pending', 'confirmed', 'preparing', 'ready', 'picked_up', 'cancelled'] as const
export type OrderStatus = (typeof ORDER_STATUSES)[number]

const MOVES: Record<OrderStatus, readonly OrderStatus[]> = {
  pending: ['confirmed', 'cancelled'],
  confirmed: ['preparing', 'ready', 'cancelled'],
  preparing: ['ready', 'cancelled'],
  ready: ['picked_up', 'cancelled'],
  picked_up: [],
  cancelled: [],
}

/** Statuses in which the order can still be picked up. */
const OPEN_STATUSES: readonly OrderStatus[] = ORDER_STATUSES.filter((status) => MOVES[status].length > 0)

/** Statuses that `updateClickCollectStatus` accepts. The specification has two names for `confirmed`. */
export const STATUS_NAMES = ['accepted', 'confirmed', 'preparing', 'ready', 'picked_up', 'cancelled'] as const
type StatusName = (typeof STATUS_NAMES)[number]

/** Maps `accepted` to `confirmed`. */
export function statusOf(name: StatusName | 'pending'): OrderStatus {
  return name === 'accepted' ? 'confirmed' : name
}

/** Valid next statuses. */
export function nextOrderStatuses(from: OrderStatus): readonly OrderStatus[] {
  return MOVES[from]
}

/** True if the order cannot move any more. */
export function isFinal(status: OrderStatus): boolean {
  return MOVES[status].length === 0
}

/** Finds an order of the tenant. */
export function findOrder(db: Db, tenant: string, orderId: string): Promise<Row<'pickup_order'> | undefined> {
  return db
    .selectFrom('pickup_order')
    .selectAll()
    .where('order_id', '=', orderId)
    .where('tenant', '=', tenant)
    .executeTakeFirst()
}

/** Inserts an order with its lines. */
export async function insertOrder(
  db: Db,
  order: Row<'pickup_order'>,
  lines: readonly Row<'pickup_order_line'>[],
): Promise<void> {
  await db.insertInto('pickup_order').values(order).execute()
  await db
    .insertInto('pickup_order_line')
    .values([...lines])
    .execute()
}

/** Updates an order and increments its revision. */
export function updateOrder(
  db: Db,
  order: Row<'pickup_order'>,
  change: Partial<Row<'pickup_order'>>,
): Promise<Row<'pickup_order'>> {
  return db
    .updateTable('pickup_order')
    .set((eb) => ({ ...change, rev: eb('rev', '+', 1) }))
    .where('order_id', '=', order.order_id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

function ordersOf(db: Db, storeId: string, status: OrderStatus | undefined) {
  const query = db.selectFrom('pickup_order').where('store_id', '=', storeId)
  return status === undefined ? query : query.where('status', '=', status)
}

/** A page of a store's orders, the newest first. */
export function listOrders(
  db: Db,
  storeId: string,
  status: OrderStatus | undefined,
  { after, limit, offset }: Page,
): Promise<Row<'pickup_order'>[]> {
  const query = ordersOf(db, storeId, status)
  const rest = after === undefined ? query : query.where('order_id', '<', after)
  return rest.selectAll().orderBy('order_id', 'desc').limit(limit).offset(offset).execute()
}

/** Number of orders of a store. */
export async function countOrders(db: Db, storeId: string, status: OrderStatus | undefined): Promise<number> {
  const { count } = await ordersOf(db, storeId, status)
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Ids and code hashes of a store's orders in these statuses, the newest first. */
function orderCodes(
  db: Db,
  storeId: string,
  statuses: readonly OrderStatus[],
  limit: number,
): Promise<Pick<Row<'pickup_order'>, 'order_id' | 'code_hash'>[]> {
  return db
    .selectFrom('pickup_order')
    .select(['order_id', 'code_hash'])
    .where('store_id', '=', storeId)
    .where('status', 'in', statuses)
    .orderBy('order_id', 'desc')
    .limit(limit)
    .execute()
}

/** True if an order waits in this locker. */
export async function orderInLocker(db: Db, deviceId: string): Promise<boolean> {
  const order = await db
    .selectFrom('pickup_order')
    .select('order_id')
    .where('locker_device_id', '=', deviceId)
    .where('status', '=', 'ready')
    .limit(1)
    .executeTakeFirst()
  return order !== undefined
}

/** Orders whose pick-up time has passed, the oldest first. */
export function overdueOrders(
  db: Db,
  tenant: string,
  nowMs: number,
  { limit, offset }: { limit: number; offset: number },
): Promise<Pick<Row<'pickup_order'>, 'order_id' | 'tenant'>[]> {
  return db
    .selectFrom('pickup_order')
    .select(['order_id', 'tenant'])
    .where('tenant', '=', tenant)
    .where('expires_ms', '<=', nowMs)
    .orderBy('expires_ms')
    .orderBy('order_id')
    .limit(limit)
    .offset(offset)
    .execute()
}

/** Lines of these orders. */
export function linesOf(db: Db, orderIds: readonly string[]): Promise<Row<'pickup_order_line'>[]> {
  return db
    .selectFrom('pickup_order_line')
    .selectAll()
    .where('order_id', 'in', orderIds)
    .orderBy('order_id')
    .orderBy('line_no')
    .execute()
}

export type ReservedItem = Row<'pickup_order_item'> &
  Pick<
    Row<'protected_item'>,
    'epc' | 'tag_uid' | 'tag_id' | 'item_status' | 'product_id' | 'ean' | 'lot' | 'expiry' | 'serial'
  >

/** Tagged items that are or were reserved for these orders. */
export function itemsOf(db: Db, orderIds: readonly string[]): Promise<ReservedItem[]> {
  return db
    .selectFrom('pickup_order_item')
    .innerJoin('protected_item', 'protected_item.item_id', 'pickup_order_item.item_id')
    .selectAll('pickup_order_item')
    .select(['epc', 'tag_uid', 'tag_id', 'item_status', 'product_id', 'ean', 'lot', 'expiry', 'serial'])
    .where('order_id', 'in', orderIds)
    .orderBy('pickup_order_item.item_id')
    .execute()
}

/** Reserves items for an order. */
export async function insertReservedItems(db: Db, rows: readonly Row<'pickup_order_item'>[]): Promise<void> {
  if (rows.length > 0)
    await db
      .insertInto('pickup_order_item')
      .values([...rows])
      .execute()
}

/** Deletes reservations of these items. */
export async function deleteReservedItems(db: Db, orderId: string, itemIds: readonly string[]): Promise<void> {
  if (itemIds.length > 0)
    await db.deleteFrom('pickup_order_item').where('order_id', '=', orderId).where('item_id', 'in', itemIds).execute()
}

const deleteOpen = preparedForMany((db, itemIds) =>
  db
    .deleteFrom('pickup_order_item')
    .where('item_id', 'in', itemIds)
    // With a list of all open orders, SQLite would read those of all accounts.
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('pickup_order')
          .select('pickup_order.order_id')
          .whereRef('pickup_order.order_id', '=', 'pickup_order_item.order_id')
          .where('status', 'in', OPEN_STATUSES),
      ),
    ),
)

/** Deletes the reservations of items for open orders. Completed orders keep theirs. */
export async function deleteOpenReservations(db: Db, itemIds: readonly string[]): Promise<void> {
  await deleteOpen(db, itemIds)
}

/** A lot, expiry and serial that may not be sold; null matches every value. */
type Stopped = Pick<Row<'protected_item'>, 'lot' | 'expiry' | 'serial'>

/** Items that one query reads, and all of them: if recalls stop so many older ones, the others are not found. */
const ITEMS_PAGE = 500
const ITEMS_LIMIT = 10_000

/** Sellable items of a product in a store that have not expired and are not `stopped`, the oldest first. */
export async function sellableItems(
  db: Db,
  storeId: string,
  productId: string,
  { today, stopped, limit }: { today: string; stopped: readonly Stopped[]; limit: number },
): Promise<string[]> {
  const isStopped = stoppedBy(stopped)
  const found: string[] = []
  let after = ''
  for (let read = 0; read < ITEMS_LIMIT && found.length < limit; read += ITEMS_PAGE) {
    const rows = await db
      .selectFrom('protected_item')
      .select(['item_id', 'lot', 'expiry', 'serial'])
      .where('store_id', '=', storeId)
      .where('product_id', '=', productId)
      .where('item_status', '=', 'sellable')
      .where('item_id', '>', after)
      .orderBy('item_id')
      .limit(ITEMS_PAGE)
      .execute()
    const fresh = rows.filter((row) => (row.expiry === null || row.expiry >= today) && !isStopped(row))
    found.push(...fresh.map((row) => row.item_id).slice(0, limit - found.length))
    after = rows.at(-1)?.item_id ?? ''
    if (rows.length < ITEMS_PAGE) break
  }
  return found
}

/** Tells whether a unit has the lot, expiry and serial of one of these; null in one of these fits any unit. */
function stoppedBy(stopped: readonly Stopped[]): (unit: Stopped) => boolean {
  const keyOf = ({ lot, expiry, serial }: Stopped) => JSON.stringify([lot, expiry, serial])
  const known = new Set(stopped.map(keyOf))
  return ({ lot, expiry, serial }) =>
    [lot, null].some((l) =>
      [expiry, null].some((e) => [serial, null].some((s) => known.has(keyOf({ lot: l, expiry: e, serial: s })))),
    )
}

/**
 * Statuses of orders that a code may belong to: open orders, and recent orders that were picked up. With recent orders
 * the operation recognises a second pick-up.
 */
const SEARCHED_STATUSES: readonly { statuses: readonly OrderStatus[]; limit: number }[] = [
  { statuses: OPEN_STATUSES, limit: 5_000 },
  { statuses: ['picked_up'], limit: 1_000 },
]

/**
 * Finds the order of a pick-up code. Stored hashes include the order id, so the code is hashed once for each candidate.
 * The search takes a few ms, because the limits above bound the number of candidates.
 */
export async function orderOfCode(
  db: Db,
  tenant: string,
  storeId: string,
  code: string,
): Promise<Row<'pickup_order'> | undefined> {
  for (const { statuses, limit } of SEARCHED_STATUSES) {
    const match = (await orderCodes(db, storeId, statuses, limit)).find((order) => isPickupCode(order, code))
    if (match) return findOrder(db, tenant, match.order_id)
  }
  return undefined
}
