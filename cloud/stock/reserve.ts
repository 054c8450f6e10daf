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
 *               └────▶ lapsed (time over) ─▶ consume all the same, and say so when others were promised the goods
 *
 * Stock is optional: where nobody ever set it, nothing of this happens.
 */
export interface StockLine {
  productId: string | null
  name: string
  quantity: number
  /** Where the line stands in the request. */
  path: string
}

export interface StockRequest {
  /** The order or purchase. */
  ownerId: string
  storeId: string
  lines: readonly StockLine[]
  expiresMs: number
}

/** Reserves all lines or none: 409 `out_of_stock` with a row per line that there is not enough for. */
export async function reserveStock(db: Db, { ownerId, storeId, lines, expiresMs }: StockRequest): Promise<void> {
  const wanted = new Map<string, number>()
  for (const { productId, quantity } of lines)
    if (productId !== null) wanted.set(productId, (wanted.get(productId) ?? 0) + quantity)
  const stocked = await stockedProducts(db, storeId, [...wanted.keys()])
  if (stocked.size === 0) return
  const missing = new Map<string, number>()
  const held = []
  // Always in the same order, so that two baskets never wait for each other.
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
    throw precondition('out_of_stock', 'there is not enough of some lines', { details: shortages(lines, missing) })
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
        message: `${path}: ${left} of "${name}" left, ${quantity} wanted`,
      },
    ]
  })
}

/** The order or purchase takes no goods after all. */
export async function releaseStock(db: Db, ownerId: string): Promise<void> {
  for (const row of await deleteReservations(db, ownerId)) {
    if (row.state === 'held') await endReservation(db, amountOf(row), false)
  }
}

/** The goods have left. Answers the products that were promised to others by then, because the reservation had lapsed. */
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
