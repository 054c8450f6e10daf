import { eurosOf, iso, definedFields } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { type OrderStatus, itemsOf, linesOf, type ReservedItem } from './queries.ts'
import type { Order } from './schema.ts'

/** Converts orders with their lines and reserved items to the API form. */
export async function toOrders(db: Db, orders: readonly Row<'pickup_order'>[]): Promise<Order[]> {
  if (orders.length === 0) return []
  const ids = orders.map((order) => order.order_id)
  const [lines, items] = [byOrder(await linesOf(db, ids)), byOrder(await itemsOf(db, ids))]
  return orders.map((order) => toOrder(order, lines.get(order.order_id) ?? [], items.get(order.order_id) ?? []))
}

function byOrder<T extends { order_id: string }>(rows: readonly T[]): Map<string, T[]> {
  const found = new Map<string, T[]>()
  for (const row of rows) {
    const list = found.get(row.order_id)
    if (list) list.push(row)
    else found.set(row.order_id, [row])
  }
  return found
}

function toOrder(
  order: Row<'pickup_order'>,
  lines: readonly Row<'pickup_order_line'>[],
  items: readonly ReservedItem[],
): Order {
  const isOver = order.status === 'cancelled'
  return {
    orderId: order.order_id,
    storeId: order.store_id,
    userId: order.user_id,
    status: order.status as OrderStatus,
    items: lines.map((line) => ({
      productId: line.product_id,
      ean: line.ean,
      name: line.name,
      price: eurosOf(line.price_cent),
      quantity: line.quantity,
      reservedTags: items
        .filter((item) => !isOver && item.line_no === line.line_no)
        .map((item) => definedFields({ epc: item.epc, tagUid: item.tag_uid, tagId: item.tag_id })),
    })),
    total: eurosOf(order.total_cent),
    currency: order.currency,
    paid: order.paid === 1,
    ...definedFields({
      note: order.note,
      pickupTime: order.pickup_ms === null ? null : iso(order.pickup_ms),
      reason: order.reason,
      pickedUpAt: order.picked_up_ms === null ? null : iso(order.picked_up_ms),
      lockerDeviceId: order.locker_device_id,
    }),
    estimatedPickupAt: iso(order.estimated_ms),
    createdAt: iso(order.created_ms),
    updatedAt: iso(order.updated_ms),
  }
}
