import type { Db } from '../../platform/persistence/database.ts'
import type { PickupOrderRow } from '../../platform/persistence/tables/click-and-collect.ts'
import { OPEN_STATUSES, type OrderStatus } from './order-state.ts'
import { isPickupCode } from './pickup-code.ts'
import { findOrder, orderCodes } from './queries.ts'

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
): Promise<PickupOrderRow | undefined> {
  for (const { statuses, limit } of SEARCHED_STATUSES) {
    const match = (await orderCodes(db, storeId, statuses, limit)).find((order) => isPickupCode(order, code))
    if (match) return findOrder(db, tenant, match.order_id)
  }
  return undefined
}
