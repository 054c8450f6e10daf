import type { Db } from '../persistence/database.ts'
import type { PickupOrderRow } from '../persistence/tables/click-and-collect.ts'
import { OPEN_STATUSES, type OrderStatus } from '../pickup-orders/order-state.ts'
import { isPickupCode } from '../pickup-orders/pickup-code.ts'
import { findOrder, orderCodes } from '../pickup-orders/queries.ts'

/** What a customer may show: open orders, and those fetched a while ago, so that a second fetching is told as that. */
const SEARCHED_STATUSES: readonly { statuses: readonly OrderStatus[]; limit: number }[] = [
  { statuses: OPEN_STATUSES, limit: 5_000 },
  { statuses: ['picked_up'], limit: 1_000 },
]

/**
 * The order of a store that this code belongs to. Only hashes that hold the order's id are kept, so each is tried:
 * a few milliseconds for the limits above.
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
