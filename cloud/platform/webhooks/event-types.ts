import { z } from 'zod'
import { assert } from '../../../policy/assert.ts'
import { PROTECTION_EVENT_TYPES, ProtectionEvent, type ProtectionEventType } from '../../../policy/protection-events.ts'
import type { Package } from '../foundation/caller.ts'

/** One type of webhook event. */
interface EventType {
  readonly name: string
  /** Minimum package of the event's store, or of the account if the event has no store. */
  readonly minimumPackage: Package
  /** True if test accounts receive the event with any package (ADR accounts). */
  readonly freeInSandbox: boolean
  /** Description of when the event is sent. */
  readonly when: string
  /** Schema of `data`. The only data about a customer is `userId`. */
  readonly data: z.ZodType
  /** Data of a test event. */
  readonly example: Readonly<Record<string, unknown>>
}

/** Declares an event. */
function eventType<D extends z.ZodType>(
  name: string,
  declared: {
    minimumPackage: Package
    freeInSandbox?: boolean
    when: string
    data: D
    example: z.input<D> & Record<string, unknown>
  },
): EventType {
  return { name, freeInSandbox: false, ...declared }
}

/** Id in an event. */
const EventId = z.string().min(1).max(128)
const EventText = z.string().max(300)
const Count = z.int().min(0)
/** Amount in EUR, with cents. */
const EventEuros = z.number().min(0).max(1_000_000)
const STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B'

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
const RETAIL_EVENTS: readonly EventType[] = [
  eventType('checkout.completed', {
    minimumPackage: 'GROW',
    freeInSandbox: true,
    when: 'A purchase is paid.',
    data: z.strictObject({
      transactionId: EventId,
      storeId: EventId,
      sessionId: EventId.optional(),
      userId: EventId.optional(),
      /** Negative if a till sold less than it took back. */
      totalCent: z.int(),
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
        .array(z.strictObject({ itemLineId: EventId, quantity: Count, part: z.number().optional() }))
        .max(1_000)
        .optional(),
    }),
    example: { transactionId: PURCHASE, storeId: STORE, amountCent: 8_990, currency: 'EUR', provider: 'custom' },
  }),
]

const Member = { userId: EventId, programId: EventId, storeId: EventId }
const Points = {
  ...Member,
  amount: z.number(),
  newBalance: z.number(),
  transactionId: EventId.optional(),
  source: z.string().max(40).optional(),
}
const example = { userId: 'user-1', programId: 'lp_01KANX75G7R9T1W3Y5A7C9E1G3', storeId: STORE }
const pointsExample = { ...example, amount: 12, newBalance: 112 }

/** Events of loyalty programs. */
const LOYALTY_EVENTS: readonly EventType[] = [
  eventType('loyalty.points_earned', {
    minimumPackage: 'GO',
    when: 'Points, stamps or cashback were credited.',
    data: z.strictObject(Points),
    example: { ...pointsExample, source: 'scan_and_go', transactionId: 'pur_01KANX70B2K4N6P8R0S2T4V6X8' },
  }),
  eventType('loyalty.points_redeemed', {
    minimumPackage: 'GO',
    when: 'redeemLoyaltyPoints has deducted points.',
    data: z.strictObject({ ...Points, rewardId: EventId.optional() }),
    example: { ...pointsExample, rewardId: 'rew_1' },
  }),
  eventType('loyalty.enrollment', {
    minimumPackage: 'GO',
    when: 'A user joins a program.',
    data: z.strictObject({ ...Member, source: z.string().max(40).optional() }),
    example,
  }),
  eventType('loyalty.reward_unlocked', {
    minimumPackage: 'GO',
    when: 'The balance of a user has reached the cost of a reward. Sent again each time this happens.',
    data: z.strictObject({
      ...Member,
      rewardId: EventId,
      rewardName: EventText.optional(),
      cost: z.number().optional(),
      newBalance: z.number().optional(),
    }),
    example: { ...example, rewardId: 'rew_1', cost: 100, newBalance: 112 },
  }),
  eventType('loyalty.tier_changed', {
    minimumPackage: 'PRIME',
    when: 'A user has moved to a higher or lower tier.',
    data: z.strictObject({
      ...Member,
      newTier: EventText.nullable(),
      previousTier: EventText.nullable(),
      direction: z.enum(['up', 'down']).optional(),
      newBalance: z.number().optional(),
    }),
    example: { ...example, newTier: 'Gold', previousTier: 'Silber', direction: 'up' },
  }),
  eventType('loyalty.qr_earned', {
    minimumPackage: 'GO',
    when: 'A user has earned points with a QR code at the counter. Sent in addition to `loyalty.points_earned`.',
    data: z.strictObject(Points),
    example: { ...pointsExample, source: 'qr_checkin' },
  }),
  eventType('loyalty.checkin_earned', {
    minimumPackage: 'GO',
    when: 'A user has earned points with a check-in at the store. Sent in addition to `loyalty.points_earned`.',
    data: z.strictObject(Points),
    example: { ...pointsExample, source: 'store_checkin' },
  }),
]

const System = { storeId: EventId, system: z.string().max(40) }
const Pushed = z.strictObject({ ...System, dataType: z.string().max(60), pushed: Count, failed: Count.optional() })
const pushedExample = { storeId: STORE, system: 'generic', dataType: 'transactions', pushed: 42 }

/** Events of connections to merchants' systems. */
const INTEGRATION_EVENTS: readonly EventType[] = [
  eventType('integration.pos.synced', {
    minimumPackage: 'GROW',
    when: 'syncPOS has read the till system.',
    data: z.strictObject({
      ...System,
      synced: z.strictObject({ products: Count, categories: Count, priceUpdates: Count }),
      failed: Count.optional(),
    }),
    example: { storeId: STORE, system: 'generic', synced: { products: 120, categories: 8, priceUpdates: 3 } },
  }),
  eventType('integration.pos.pushed', {
    minimumPackage: 'GROW',
    when: 'pushToPOS has written to the till system.',
    data: Pushed,
    example: pushedExample,
  }),
  eventType('integration.erp.synced', {
    minimumPackage: 'GROW',
    when: 'syncERP has read the ERP system.',
    data: z.strictObject({
      ...System,
      synced: z.strictObject({ stock: Count, orders: Count, suppliers: Count }),
      failed: Count.optional(),
    }),
    example: { storeId: STORE, system: 'generic', synced: { stock: 120, orders: 4, suppliers: 2 } },
  }),
  eventType('integration.erp.pushed', {
    minimumPackage: 'GROW',
    when: 'pushToERP has written to the ERP system.',
    data: Pushed,
    example: pushedExample,
  }),
  eventType('integration.psp.configured', {
    minimumPackage: 'GROW',
    when: 'configurePSP has set the payment provider of a store.',
    data: z.strictObject({ storeId: EventId, provider: z.string().max(40) }),
    example: { storeId: STORE, provider: 'custom' },
  }),
]

const PROTECTION_WHEN: Readonly<Record<ProtectionEventType, string>> = {
  'protection.authorization.requested': 'A device requested the release of a tag or the passage of an exit.',
  'protection.authorization.granted': 'The cloud granted a request of a device.',
  'protection.authorization.denied': 'The cloud denied a request of a device; `reason` is the cause.',
  'protection.action.completed': 'A device has confirmed that the tag is off, or the exit was passed.',
  'protection.action.failed': 'The action of a device failed, or its outcome is unknown.',
  'protection.device.offline': 'A token was redeemed with no connection to the cloud.',
  'protection.exception.raised': 'An exception needs the attention of staff.',
}

const PROTECTION_EVENTS = PROTECTION_EVENT_TYPES.map((name) =>
  eventType(name, {
    minimumPackage: 'GROW',
    freeInSandbox: true,
    when: PROTECTION_WHEN[name],
    data: ProtectionEvent,
    example: {
      type: name,
      eventId: 'evt_01KANX76H8S0V2X4Z6B8D0F2H4',
      occurredAt: '2026-11-20T09:00:00.000Z',
      storeId: STORE,
      deviceId: 'dev_1',
      deviceType: 'exit_gate',
    },
  }),
)

/** Default event of `sendTestWebhook`. */
export const TEST_EVENT = 'webhook.test'

const OWN_EVENTS: readonly EventType[] = [
  eventType(TEST_EVENT, {
    minimumPackage: 'DISCOVER',
    when: 'sendTestWebhook was called. A webhook can receive it without a subscription.',
    data: z.strictObject({ webhookId: EventId.optional(), message: z.string().max(300) }),
    example: { message: 'This is a test.' },
  }),
]

/** Every event of the specification and of untag, by name. */
export const EVENT_TYPES: ReadonlyMap<string, EventType> = new Map(
  [...RETAIL_EVENTS, ...LOYALTY_EVENTS, ...INTEGRATION_EVENTS, ...PROTECTION_EVENTS, ...OWN_EVENTS].map((type) => [
    type.name,
    type,
  ]),
)

/** Throws if an event or its data is not declared. For tests, with `checkAnswers`. */
export function assertEvent({ type, data }: { type: string; data: unknown }): void {
  const declared = EVENT_TYPES.get(type)
  assert(declared, `there is no event "${type}": declare it in cloud/platform/webhooks/event-types.ts`)
  declared.data.parse(data)
}

/**
 * Builds the section `x-webhooks` of the API description, in the form of `webhooks` in OpenAPI 3.1. Includes protection
 * events and the events that operations declare in `emits`.
 */
export function describeEvents(operations: Iterable<{ readonly emits: readonly string[] }>): Record<string, unknown> {
  const sent = new Set<string>([
    TEST_EVENT,
    ...PROTECTION_EVENT_TYPES,
    ...[...operations].flatMap((operation) => operation.emits),
  ])
  const listed = [...EVENT_TYPES.values()].filter((type) => sent.has(type.name))
  return Object.fromEntries(
    listed.map(({ name, when, minimumPackage, data, example }) => {
      const properties = {
        id: {
          type: 'string',
          description: 'The same for every attempt and receiver. Ignore ids that you have processed.',
        },
        event: { type: 'string', enum: [name] },
        type: { type: 'string', enum: [name] },
        timestamp: { type: 'string', format: 'date-time' },
        data: dataSchema(data),
      }
      const schema = { type: 'object', required: ['id', 'event', 'type', 'timestamp', 'data'], properties }
      const shown = {
        id: 'whe_01KANX77J9T1W3Y5A7C9E1G3J5',
        event: name,
        type: name,
        timestamp: '2026-11-20T09:00:00.000Z',
        data: example,
      }
      const post = {
        summary: when,
        'x-minimum-package': minimumPackage,
        requestBody: { content: { 'application/json': { schema, example: shown } } },
        responses: { '200': { description: 'Acknowledged. The cloud retries if it gets no 2xx within 10 s.' } },
      }
      return [name, { post }]
    }),
  )
}

function dataSchema(data: z.ZodType): Record<string, unknown> {
  const { $schema: _schema, ...schema } = z.toJSONSchema(data, {
    target: 'openapi-3.0',
    io: 'output',
    unrepresentable: 'any',
  }) as Record<string, unknown>
  // The API may add fields at any time (specification, Versioning).
  delete schema['additionalProperties']
  return schema
}
