import { precondition, type ErrorDetail } from '../../platform/foundation/failure.ts'
import type { Db, Database } from '../../platform/persistence/database.ts'
import { DELETED_AT_ONCE } from '../../platform/persistence/delete-some.ts'
import {
  deleteReservations,
  endReservation,
  findStock,
  insertReservations,
  markLapsed,
  reservationsThatGiveWay,
  stockedProducts,
  removeUnreserved,
  tryReserve,
  type Amount,
  deleteLapsed,
  accountsWithOverdue,
  overdueReservations,
} from './queries.ts'
import { processDue } from '../../platform/operations/job-steps.ts'
import type { Services } from '../../platform/operations/operation.ts'

/** Time for which a lapsed reservation stays stored, ms, because its checkout may still be paid. */
const LAPSED_RETENTION_MS = 7 * 86_400_000

/**
 * Releases reservations that have expired, each in its own transaction. Several processes may run this at the same
 * time, because each row lapses only once.
 */
export async function lapseReservations(database: Database, services: Services): Promise<boolean> {
  const nowMs = services.platform.clock.wall()
  const isMore = await processDue(database, services, {
    job: 'stock reservations',
    accounts: (db) => accountsWithOverdue(db, nowMs),
    read: (db, account, page) => overdueReservations(db, account, nowMs, page),
    process: (row) =>
      database.write(
        async (db) => {
          if (await markLapsed(db, row))
            await endReservation(
              db,
              { storeId: row.store_id, productId: row.product_id, quantity: row.quantity },
              false,
            )
        },
        { holder: row.tenant },
      ),
  })
  const deleted = await database.write((db) => deleteLapsed(db, nowMs - LAPSED_RETENTION_MS))
  return isMore || deleted === DELETED_AT_ONCE
}

/**
 *   reserve ─▶ held ─▶ consume (goods left)
 *               ├────▶ release (cancelled)
 *               └────▶ lapsed (timed out, or gave way) ─▶ consume, and report if the goods were reserved for others meanwhile
 *
 * Stock is optional: products without a stock level are ignored.
 */
interface StockLine {
  productId: string | null
  name: string
  quantity: number
  /** Path of the line in the request. */
  path: string
}

interface StockRequest {
  /** Id of the order or purchase. */
  ownerId: string
  tenant: string
  storeId: string
  lines: readonly StockLine[]
  expiresMs: number
  /** True for an unpaid basket of a shopper's app: it gives way to staff and to servers of the merchant. */
  givesWay: boolean
}

/**
 * Reserves all lines or none. If pieces lack, ends the reservations that give way, the oldest first. Throws 409
 * `out_of_stock` with a detail for each line that still lacks pieces.
 */
export async function reserveStock(
  db: Db,
  { ownerId, tenant, storeId, lines, expiresMs, givesWay }: StockRequest,
): Promise<void> {
  const wanted = new Map<string, number>()
  for (const { productId, quantity } of lines)
    if (productId !== null) wanted.set(productId, (wanted.get(productId) ?? 0) + quantity)
  const stocked = await stockedProducts(db, storeId, [...wanted.keys()])
  if (stocked.size === 0) return
  const missing = new Map<string, number>()
  const held = []
  // Reserves products always in the same order, which avoids deadlocks between two baskets.
  for (const productId of [...stocked].sort()) {
    const quantity = wanted.get(productId) ?? 0
    const amount = { storeId, productId, quantity }
    if ((await tryReserve(db, amount)) || (!givesWay && (await reserveFromBaskets(db, amount)))) {
      held.push({
        owner_id: ownerId,
        tenant,
        product_id: productId,
        store_id: storeId,
        quantity,
        state: 'held',
        gives_way: givesWay ? 1 : 0,
        expires_ms: expiresMs,
      })
    } else missing.set(productId, await available(db, storeId, productId))
  }
  if (missing.size > 0)
    throw precondition('out_of_stock', 'some lines exceed the available stock', { details: shortages(lines, missing) })
  await insertReservations(db, held)
}

/** Ends reservations that give way until the pieces are available. Ends none if they do not suffice. */
async function reserveFromBaskets(db: Db, amount: Amount): Promise<boolean> {
  const baskets = await reservationsThatGiveWay(db, amount)
  let lacking = amount.quantity - (await available(db, amount.storeId, amount.productId))
  if (baskets.reduce((sum, row) => sum + row.quantity, 0) < lacking) return false
  for (const row of baskets) {
    if (lacking <= 0) break
    if (!(await markLapsed(db, row))) continue
    await endReservation(db, amountOf(row), false)
    lacking -= row.quantity
  }
  return tryReserve(db, amount)
}

async function available(db: Db, storeId: string, productId: string): Promise<number> {
  const level = await findStock(db, storeId, productId)
  return Math.max(0, (level?.on_hand ?? 0) - (level?.reserved ?? 0))
}

function shortages(lines: readonly StockLine[], missing: ReadonlyMap<string, number>): ErrorDetail[] {
  return lines.flatMap(({ productId, name, path, quantity }) => {
    const left = productId === null ? undefined : missing.get(productId)
    if (left === undefined) return []
    return [
      {
        path: `${path}.quantity`,
        code: 'out_of_stock',
        message: `${path}: ${left} of "${name}" available, ${quantity} requested`,
      },
    ]
  })
}

/** Releases the reservations of an order or purchase that ended without a sale. */
export async function releaseStock(db: Db, ownerId: string): Promise<void> {
  for (const row of await deleteReservations(db, ownerId)) {
    if (row.state === 'held') await endReservation(db, amountOf(row), false)
  }
}

/**
 * Subtracts the reserved pieces. Returns the ids of products whose reservation had lapsed and whose pieces other orders
 * or purchases had reserved.
 */
export async function consumeStock(db: Db, ownerId: string): Promise<string[]> {
  const oversold: string[] = []
  for (const row of await deleteReservations(db, ownerId)) {
    if (row.state === 'held') await endReservation(db, amountOf(row), true)
    else if (!(await removeUnreserved(db, amountOf(row)))) oversold.push(row.product_id)
  }
  return oversold
}

function amountOf(row: { store_id: string; product_id: string; quantity: number }) {
  return { storeId: row.store_id, productId: row.product_id, quantity: row.quantity }
}
