import { z } from 'zod'
import { Id, Timestamp, lines, text, ProductCodeText } from '../../platform/operations/fields.ts'
import { ORDER_STATUSES } from './queries.ts'

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
