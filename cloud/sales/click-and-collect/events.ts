import { z } from 'zod'
import { ORDER_STATUSES } from '../../shop/pickup-orders/queries.ts'

/** `data` of click and collect events (specification, Events). */

const OrderFields = { orderId: z.string(), storeId: z.string(), userId: z.string(), estimatedPickupAt: z.string() }

export const CLICK_AND_COLLECT_EVENTS = {
  'clickcollect.order': z.strictObject({
    ...OrderFields,
    status: z.literal('pending'),
    items: z.array(z.strictObject({ productId: z.string(), quantity: z.int() })),
    total: z.number(),
    currency: z.string(),
  }),
  'clickcollect.status_changed': z.strictObject({
    ...OrderFields,
    previousStatus: z.enum(ORDER_STATUSES),
    status: z.enum(ORDER_STATUSES),
  }),
  'clickcollect.picked_up': z.strictObject({
    ...OrderFields,
    pickedUpAt: z.string(),
    total: z.number(),
    currency: z.string(),
  }),
}
