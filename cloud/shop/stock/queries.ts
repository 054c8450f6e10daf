import { sql } from 'kysely'
import type { Page } from '../../platform/operations/paging.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared, insertChunks, preparedInsert } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { deleteSome } from '../../platform/persistence/delete-some.ts'

const upsertLevels = preparedInsert((db, rows: readonly Row<'stock_level'>[]) =>
  db
    .insertInto('stock_level')
    .values(rows)
    .onConflict((c) =>
      c
        .columns(['store_id', 'product_id'])
        .doUpdateSet((eb) => ({ on_hand: eb.ref('excluded.on_hand'), updated_ms: eb.ref('excluded.updated_ms') })),
    ),
)

/** Sets the numbers of pieces of many products, by product id. Reserved pieces stay reserved. */
export async function setLevels(
  db: Db,
  storeId: string,
  levels: ReadonlyMap<string, number>,
  updated_ms: number,
): Promise<void> {
  // Writes products always in the same order, which avoids deadlocks between two writers.
  const rows = [...levels]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([product_id, on_hand]) => ({ store_id: storeId, product_id, on_hand, reserved: 0, updated_ms }))
  for (const chunk of insertChunks(rows)) await upsertLevels(db, chunk)
}

/** Maximum number of reservations that one sale ends. */
const GIVING_WAY_LIMIT = 1_000

/** Products for which the store has a stock level. */
export async function stockedProducts(db: Db, storeId: string, productIds: readonly string[]): Promise<Set<string>> {
  if (productIds.length === 0) return new Set()
  const rows = await db
    .selectFrom('stock_level')
    .select('product_id')
    .where('store_id', '=', storeId)
    .where('product_id', 'in', productIds)
    .execute()
  return new Set(rows.map((row) => row.product_id))
}

/** Stock level of a product; undefined if the store never counted the product. */
export function findStock(db: Db, storeId: string, productId: string): Promise<Row<'stock_level'> | undefined> {
  return db
    .selectFrom('stock_level')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('product_id', '=', productId)
    .executeTakeFirst()
}

/** A page of the counted products of a store, sorted by product id. */
export function listStock(db: Db, storeId: string, { after = '', limit, offset }: Page): Promise<Row<'stock_level'>[]> {
  const counted = db
    .selectFrom('stock_level')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('on_hand', 'is not', null)
  return counted.where('product_id', '>', after).orderBy('product_id').limit(limit).offset(offset).execute()
}

/** Number of counted products of a store. */
export async function countStock(db: Db, storeId: string): Promise<number> {
  const counted = db.selectFrom('stock_level').where('store_id', '=', storeId).where('on_hand', 'is not', null)
  const { count } = await counted.select((eb) => eb.fn.countAll().as('count')).executeTakeFirstOrThrow()
  return Number(count)
}

/** Sets the number of pieces. Reserved pieces stay reserved. */
export function writeStock(db: Db, level: Omit<Row<'stock_level'>, 'reserved'>): Promise<Row<'stock_level'>> {
  const { on_hand, updated_ms } = level
  return db
    .insertInto('stock_level')
    .values({ ...level, reserved: 0 })
    .onConflict((c) => c.columns(['store_id', 'product_id']).doUpdateSet({ on_hand, updated_ms }))
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Pieces of a product in a store. */
export interface Amount {
  storeId: string
  productId: string
  quantity: number
}

const addReserved = prepared((db, p: Amount) =>
  db
    .updateTable('stock_level')
    .set((eb) => ({ reserved: eb('reserved', '+', p.quantity) }))
    .where('store_id', '=', p.storeId)
    .where('product_id', '=', p.productId)
    .where((eb) => eb.or([eb('on_hand', 'is', null), eb(eb('on_hand', '-', eb.ref('reserved')), '>=', p.quantity)]))
    .returning('reserved'),
)

/**
 * Reserves pieces if enough are available. One statement checks and reserves, so that two callers cannot reserve the
 * same piece.
 */
export async function tryReserve(db: Db, amount: Amount): Promise<boolean> {
  return (await addReserved(db, amount)).length > 0
}

/** Subtracts sold pieces. The result is at least 0, because the number of pieces may have been wrong. */
function reducedOnHand(quantity: number) {
  return sql<
    number | null
  >`CASE WHEN on_hand IS NULL THEN NULL WHEN on_hand > ${quantity} THEN on_hand - ${quantity} ELSE 0 END`
}

/** Ends a reservation. With `gone`, also subtracts the pieces, because they left the store. */
export async function endReservation(db: Db, { storeId, productId, quantity }: Amount, gone: boolean): Promise<void> {
  await db
    .updateTable('stock_level')
    .set((eb) => ({ reserved: eb('reserved', '-', quantity), ...(gone && { on_hand: reducedOnHand(quantity) }) }))
    .where('store_id', '=', storeId)
    .where('product_id', '=', productId)
    .execute()
}

/**
 * Always subtracts the pieces, also if they are reserved. Returns false if too few unreserved pieces were in stock, so
 * that reservations now lack pieces.
 */
export async function removeUnreserved(db: Db, { storeId, productId, quantity }: Amount): Promise<boolean> {
  const before = await findStock(db, storeId, productId)
  await db
    .updateTable('stock_level')
    .set({ on_hand: reducedOnHand(quantity) })
    .where('store_id', '=', storeId)
    .where('product_id', '=', productId)
    .execute()
  return before === undefined || before.on_hand === null || before.on_hand - before.reserved >= quantity
}

/** Adds pieces that are back on the shelf to the counted stock. */
export async function addOnHand(db: Db, { storeId, productId, quantity }: Amount): Promise<void> {
  await db
    .updateTable('stock_level')
    .set((eb) => ({ on_hand: eb('on_hand', '+', quantity) }))
    .where('store_id', '=', storeId)
    .where('product_id', '=', productId)
    .execute()
}

/** Inserts reservations. */
export async function insertReservations(db: Db, rows: readonly Row<'stock_reservation'>[]): Promise<void> {
  if (rows.length > 0)
    await db
      .insertInto('stock_reservation')
      .values([...rows])
      .execute()
}

const deleteOf = prepared((db, p: { ownerId: string }) =>
  db.deleteFrom('stock_reservation').where('owner_id', '=', p.ownerId).returningAll(),
)

/**
 * Deletes all reservations of an order or purchase. Returns the reservations sorted by product, because stock is always
 * locked in this order.
 */
export async function deleteReservations(db: Db, ownerId: string): Promise<Row<'stock_reservation'>[]> {
  const rows = await deleteOf(db, { ownerId })
  return rows.sort((a, b) => (a.product_id < b.product_id ? -1 : 1))
}

/** Sets a new expiry time for the active reservations of an order or purchase, which give way no longer. */
export async function extendReservations(db: Db, ownerId: string, expires_ms: number): Promise<void> {
  await db
    .updateTable('stock_reservation')
    .set({ expires_ms, gives_way: 0 })
    .where('owner_id', '=', ownerId)
    .where('state', '=', 'held')
    .execute()
}

/** Accounts with reservations that have expired, the longest waiting first. */
export async function accountsWithOverdue(db: Db, nowMs: number): Promise<string[]> {
  const rows = await db
    .selectFrom('stock_reservation')
    .select('tenant')
    .where('state', '=', sql.lit('held'))
    .where('expires_ms', '<=', nowMs)
    .groupBy('tenant')
    .orderBy((eb) => eb.fn.min('expires_ms'))
    .limit(1_000)
    .execute()
  return rows.map(({ tenant }) => tenant)
}

/** Active reservations that have expired, the oldest first. */
export function overdueReservations(
  db: Db,
  tenant: string,
  nowMs: number,
  { limit, offset }: { limit: number; offset: number },
): Promise<Row<'stock_reservation'>[]> {
  const overdue = db
    .selectFrom('stock_reservation')
    .selectAll()
    .where('state', '=', sql.lit('held'))
    .where('tenant', '=', tenant)
    .where('expires_ms', '<=', nowMs)
  return overdue.orderBy('expires_ms').orderBy('owner_id').orderBy('product_id').limit(limit).offset(offset).execute()
}

/** Active reservations of a product that give way, the oldest first. */
export function reservationsThatGiveWay(
  db: Db,
  { storeId, productId }: Pick<Amount, 'storeId' | 'productId'>,
): Promise<Row<'stock_reservation'>[]> {
  return db
    .selectFrom('stock_reservation')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('product_id', '=', productId)
    .where('gives_way', '=', 1)
    .where('state', '=', 'held')
    .orderBy('expires_ms')
    .orderBy('owner_id')
    .limit(GIVING_WAY_LIMIT)
    .execute()
}

/** Marks a reservation as lapsed. Returns false if the reservation is no longer active. */
export async function markLapsed(db: Db, { owner_id, product_id }: Row<'stock_reservation'>): Promise<boolean> {
  const rows = await db
    .updateTable('stock_reservation')
    .set({ state: 'lapsed' })
    .where('owner_id', '=', owner_id)
    .where('product_id', '=', product_id)
    .where('state', '=', 'held')
    .returning('owner_id')
    .execute()
  return rows.length > 0
}

/** Deletes lapsed reservations that expired before this time. */
export function deleteLapsed(db: Db, beforeMs: number): Promise<number> {
  const key = ['owner_id', 'product_id'] as const
  return deleteSome(db, 'stock_reservation', key, sql`state = 'lapsed' AND expires_ms <= ${beforeMs}`)
}
