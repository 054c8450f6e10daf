import { z } from 'zod'
import { Count, EventEuros, EventId, eventType, STORE, type EventType } from './event-type.ts'

const PURCHASE = 'pur_01KANX70B2K4N6P8R0S2T4V6X8'
const ORDER = 'ord_01KANX71C3M5P7R9T1V3X5Z7B9'
const OFFER = 'off_01KANX72D4N6Q8S0V2X4Z6B8D0'

const TagFields = {
  securityTagMode: z.enum(['manual', 'station', 'rfid']).optional(),
  securityTagStatus: z.enum(['pending', 'deactivated']).optional(),
}

const Status = z.string().max(40)
const When = z.iso.datetime({ offset: true }).optional()
const Order = { orderId: EventId, storeId: EventId, userId: EventId.nullish(), estimatedPickupAt: When }
const Worth = { total: EventEuros.optional(), currency: z.string().length(3).optional() }
const OrderLine = z.strictObject({ productId: EventId.nullish(), quantity: z.number() })

/** Events about payments, products, offers and orders. */
export const RETAIL_EVENTS: readonly EventType[] = [
  eventType('checkout.completed', {
    minimumPackage: 'GROW',
    freeInSandbox: true,
    when: 'A purchase is paid.',
    data: z.strictObject({
      transactionId: EventId,
      storeId: EventId,
      sessionId: EventId.optional(),
      userId: EventId.optional(),
      totalCent: Count,
      currency: z.string().length(3),
      ...TagFields,
    }),
    example: {
      transactionId: PURCHASE,
      storeId: STORE,
      totalCent: 8_990,
      currency: 'EUR',
      securityTagMode: 'rfid',
      securityTagStatus: 'pending',
    },
  }),
  eventType('securityTag.deactivated', {
    minimumPackage: 'GROW',
    freeInSandbox: true,
    when: 'All security tags of a purchase have been deactivated or detached.',
    data: z.strictObject({ transactionId: EventId, storeId: EventId, ...TagFields }),
    example: { transactionId: PURCHASE, storeId: STORE, securityTagMode: 'rfid', securityTagStatus: 'deactivated' },
  }),
  eventType('product.created', {
    minimumPackage: 'DISCOVER',
    when: 'insertProduct has added a product to a store.',
    data: z.strictObject({
      productId: EventId,
      storeId: EventId,
      ean: EventId.optional(),
      name: z.string().max(120).optional(),
      price: EventEuros.optional(),
    }),
    example: {
      productId: 'prd_01KANX73E5P7R9T1W3Y5A7C9E1',
      storeId: STORE,
      ean: '4012345678901',
      name: 'Trenchcoat',
      price: 89.9,
    },
  }),
  eventType('product.bulk_imported', {
    minimumPackage: 'DISCOVER',
    when: 'bulkImportProducts or importProducts has written products.',
    data: z.strictObject({
      storeId: EventId,
      imported: Count,
      updated: Count.optional(),
      errorCount: Count.optional(),
    }),
    example: { storeId: STORE, imported: 120, updated: 3, errorCount: 2 },
  }),
  eventType('offer.published', {
    minimumPackage: 'GO',
    when: 'An offer becomes active: at `validFrom`, or at once if that time has passed.',
    data: z.strictObject({ offerId: EventId, groupId: EventId.optional(), storeId: EventId }),
    example: { offerId: OFFER, groupId: 'grp_01KANX74F6Q8S0V2X4Z6B8D0F2', storeId: STORE },
  }),
  eventType('clickcollect.order', {
    minimumPackage: 'GO',
    when: 'A click and collect order is made.',
    data: z.strictObject({ ...Order, ...Worth, status: Status, items: z.array(OrderLine).max(500).optional() }),
    example: { orderId: ORDER, storeId: STORE, status: 'pending' },
  }),
  eventType('clickcollect.status_changed', {
    minimumPackage: 'GO',
    when: 'A click and collect order moves to another status.',
    data: z.strictObject({ ...Order, status: Status, previousStatus: Status.optional() }),
    example: { orderId: ORDER, storeId: STORE, status: 'ready', previousStatus: 'confirmed' },
  }),
  eventType('clickcollect.picked_up', {
    minimumPackage: 'GO',
    when: 'A click and collect order has been picked up.',
    data: z.strictObject({ ...Order, ...Worth, pickedUpAt: When }),
    example: { orderId: ORDER, storeId: STORE, pickedUpAt: '2026-11-20T09:00:00.000Z' },
  }),
  eventType('payment.created', {
    minimumPackage: 'GROW',
    when: 'processPayment has begun a payment.',
    data: z.strictObject({
      transactionId: EventId,
      storeId: EventId,
      paymentId: EventId.optional(),
      provider: EventId.optional(),
      amountCent: Count,
      currency: z.string().length(3),
    }),
    example: { transactionId: PURCHASE, storeId: STORE, amountCent: 8_990, currency: 'EUR', provider: 'custom' },
  }),
  eventType('payment.refunded', {
    minimumPackage: 'GROW',
    when: 'A payment has been refunded, in whole or in part.',
    data: z.strictObject({
      transactionId: EventId,
      storeId: EventId,
      refundId: EventId.optional(),
      provider: EventId.optional(),
      amountCent: Count,
      currency: z.string().length(3),
      lines: z
        .array(z.strictObject({ itemLineId: EventId, quantity: Count }))
        .max(1_000)
        .optional(),
    }),
    example: { transactionId: PURCHASE, storeId: STORE, amountCent: 8_990, currency: 'EUR', provider: 'custom' },
  }),
]
