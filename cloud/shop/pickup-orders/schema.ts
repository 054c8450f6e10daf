import { z } from 'zod'
import {
  Id,
  Timestamp,
  lines,
  text,
  ProductCodeText,
  eurosOf,
  iso,
  definedFields,
} from '../../platform/operations/fields.ts'
import { ORDER_STATUSES, type OrderStatus, itemsOf, linesOf, type ReservedItem } from './queries.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'

const LINES_LIMIT = 100
const QUANTITY_LIMIT = 1_000
export const UNITS_LIMIT = 2_000

/** One line of an order request. */
const OrderLineInput = z.strictObject({
  productId: Id.optional(),
  ean: ProductCodeText.optional().describe('Instead of `productId`.'),
  quantity: z.int().min(1).max(QUANTITY_LIMIT),
})

export const OrderRequest = z.strictObject({
  storeId: Id,
  userId: text(128),
  items: z.array(OrderLineInput).min(1).max(LINES_LIMIT),
  pickupTime: Timestamp.optional().describe('When the customer wants to pick up the order; at most a year ahead.'),
  note: lines(250, 0).optional(),
  paid: z.boolean().optional().describe('True if the customer has paid, for example in a web shop.'),
})

/** An order as the API returns it, without the pick-up code. */
export const Order = z.strictObject({
  orderId: z.string(),
  storeId: z.string(),
  userId: z.string(),
  status: z.enum(ORDER_STATUSES),
  items: z.array(
    z.strictObject({
      productId: z.string(),
      ean: z.string(),
      name: z.string(),
      price: z.number().describe('EUR for one piece.'),
      quantity: z.int(),
      reservedTags: z
        .array(
          z.strictObject({ epc: z.string().optional(), tagUid: z.string().optional(), tagId: z.string().optional() }),
        )
        .describe('Tagged items that are reserved for the order.'),
    }),
  ),
  total: z.number(),
  currency: z.string(),
  note: z.string().optional(),
  pickupTime: z.string().optional(),
  estimatedPickupAt: z.string(),
  reason: z.string().optional().describe('Why it was cancelled; `expired` if it was not picked up in time.'),
  createdAt: z.string(),
  updatedAt: z.string(),
  pickedUpAt: z.string().optional(),
  paid: z.boolean(),
  lockerDeviceId: z.string().optional().describe('Locker in which the goods wait or waited.'),
})
export type Order = z.infer<typeof Order>

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
