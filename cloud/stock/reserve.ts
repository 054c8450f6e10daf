import { precondition, type ErrorDetail } from '../foundation/failure.ts'
import type { Db } from '../persistence/database.ts'
import {
  deleteReservations,
  endReservation,
  findStock,
  insertReservations,
  stockedProducts,
  removeUnreserved,
  tryReserve,
} from './queries.ts'

/**
 *   reserve ─▶ held ─▶ consume (goods left)
 *               ├────▶ release (cancelled)
 *               └────▶ lapsed (timed out) ─▶ consume, and report if the goods were reserved for others meanwhile
 *
 * Stock is optional: products without a stock level are ignored.
 */
export interface StockLine {
  productId: string | null
  name: string
  quantity: number
  /** Path of the line in the request. */
  path: string
}

export interface StockRequest {
  /** Id of the order or purchase. */
  ownerId: string
  storeId: string
  lines: readonly StockLine[]
  expiresMs: number
}

/** Reserves all lines or none. Throws 409 `out_of_stock` with a detail for each line that lacks pieces. */
export async function reserveStock(db: Db, { ownerId, storeId, lines, expiresMs }: StockRequest): Promise<void> {
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
    if (await tryReserve(db, { storeId, productId, quantity })) {
      held.push({
        owner_id: ownerId,
        product_id: productId,
        store_id: storeId,
        quantity,
        state: 'held',
        expires_ms: expiresMs,
      })
    } else missing.set(productId, await available(db, storeId, productId))
  }
  if (missing.size > 0)
    throw precondition('out_of_stock', 'some lines exceed the available stock', { details: shortages(lines, missing) })
  await insertReservations(db, held)
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
