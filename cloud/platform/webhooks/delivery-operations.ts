import { countReceivers } from './plan.ts'
import { z } from 'zod'
import { isIdOf, newId } from '../../../policy/ids.ts'
import { knownCaller, rolesFrom } from '../foundation/caller.ts'
import { Failure, notFound, precondition } from '../foundation/failure.ts'
import { Id, Limit, Success, Timestamp } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import { cursorField, readPageWithinText, pageLimits, invalidCursor } from '../operations/paging.ts'
import { ownStore } from '../stores/own-store.ts'
import type { Row } from '../persistence/schema.ts'
import { EVENT_TYPES, TEST_EVENT } from './event-types.ts'
import {
  endOfDeliveries,
  endOfEvents,
  findDelivery,
  findEvent,
  listDeliveries,
  listEvents,
  readAttempts,
} from './queries.ts'
import { eventNames, ownWebhook, ownWebhooks } from './register.ts'
import { Delivery, DELIVERY_STATUSES, Envelope, Events, toDelivery, toEnvelope } from './schema.ts'

const DEFAULT_PAGE = 50
const EventName = z.enum([...EVENT_TYPES.keys()])

interface TriedDelivery {
  row: Row<'webhook_delivery'>
  attempts: readonly Row<'webhook_attempt'>[]
}

export const fetchWebhookDeliveries = operation({
  name: 'fetchWebhookDeliveries',
  area: 'webhooks',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Lists deliveries of the last 30 days with their attempts, newest first.',
  description: 'Pages may have fewer deliveries than `limit`: continue while there is a `nextCursor`.',
  changes: false,
  request: z.strictObject({
    webhookId: Id.optional(),
    storeId: Id.optional(),
    status: z.enum(DELIVERY_STATUSES).optional(),
    event: EventName.optional(),
    eventId: Id.optional(),
    limit: Limit.optional(),
    cursor: cursorField('whd').optional(),
  }),
  response: z.strictObject({ ...Success, deliveries: z.array(Delivery), nextCursor: z.string().optional() }),
  example: { event: 'checkout.completed', limit: 20 },
  async run(call, { webhookId, storeId, limit, cursor, ...filter }) {
    if (storeId !== undefined) await ownStore(call, storeId)
    const webhooks = webhookId === undefined ? await ownWebhooks(call, storeId) : [await ownWebhook(call, webhookId)]
    const page = pageLimits({ limit, cursor }, DEFAULT_PAGE)
    const webhookIds = webhooks.filter((w) => storeId === undefined || w.store_id === storeId).map((w) => w.webhook_id)
    const { tenant } = knownCaller(call.caller)
    const end = await endOfDeliveries(call.db, tenant, page.after)
    const { items, nextCursor = end } = await readPageWithinText(
      async (atMost, last: TriedDelivery | undefined): Promise<TriedDelivery[]> => {
        const after = last?.row.delivery_id ?? page.after
        const rows = await listDeliveries(call.db, tenant, { webhookIds, ...filter }, { limit: atMost, after, end })
        const attempts = await readAttempts(
          call.db,
          rows.map((row) => row.delivery_id),
        )
        return rows.map((row) => ({ row, attempts: attempts.get(row.delivery_id) ?? [] }))
      },
      ({ row }) => row.delivery_id,
      ({ attempts }) =>
        attempts.reduce((sum, { error, answer }) => sum + (error?.length ?? 0) + (answer?.length ?? 0), 0),
      page,
    )
    const deliveries = items.map(({ row, attempts }) => toDelivery(row, attempts))
    return { success: true as const, deliveries, ...(nextCursor !== undefined && { nextCursor }) }
  },
})

export const redeliverWebhook = operation({
  name: 'redeliverWebhook',
  area: 'webhooks',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Sends an event to its webhook again, with the same id.',
  refusals: ['webhook_disabled', 'delivery_pending', 'event_gone'],
  changes: true,
  request: z.strictObject({ deliveryId: Id }),
  response: Delivery.extend(Success),
  example: { deliveryId: 'whd_01KANX79M1W3Y5A7C9E1G3J5M7' },
  async run(call, { deliveryId }) {
    const { db, nowMs, services } = call
    const before = await findDelivery(db, deliveryId)
    if (!before || before.tenant !== knownCaller(call.caller).tenant) throw notFound('delivery')
    const webhook = await webhookOfDelivery(call, before.webhook_id)
    assertEnabled(webhook)
    if (before.status === 'pending')
      throw precondition('delivery_pending', 'the delivery is still pending: wait until its attempts have ended')
    if (!(await findEvent(db, before.tenant, before.event_id)))
      throw precondition('event_gone', 'the event is older than 30 days and no longer stored')
    const { tenant, webhook_id, event_id, type, store_id } = before
    const timing = { attempts: 0, first_ms: null, due_ms: nowMs, lease_id: null, created_ms: nowMs, finished_ms: null }
    const row = {
      delivery_id: newId('whd', services.platform),
      tenant,
      webhook_id,
      event_id,
      type,
      store_id,
      status: 'pending',
      ...timing,
    }
    await db.insertInto('webhook_delivery').values(row).execute()
    call.changed(row.delivery_id)
    call.afterCommit(services.webhooks.wake)
    return { success: true as const, ...toDelivery(row, []) }
  },
})

/** Throws 404 for the delivery if its webhook is deleted or belongs to another account. */
async function webhookOfDelivery(call: Call, webhookId: string): Promise<Row<'webhook'>> {
  try {
    return await ownWebhook(call, webhookId)
  } catch (error) {
    throw error instanceof Failure && error.code === 'not-found' ? notFound('delivery') : error
  }
}

function assertEnabled(webhook: Row<'webhook'>): void {
  if (webhook.enabled === 0)
    throw precondition('webhook_disabled', 'this webhook is disabled: call updateWebhook with enabled: true')
}

export const sendTestWebhook = operation({
  name: 'sendTestWebhook',
  area: 'webhooks',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Sends a test event to one webhook, or to all that are subscribed to it.',
  description: `Sends \`${TEST_EVENT}\`, or the event that \`event\` names. Other events need a test key, because their data is invented.`,
  refusals: ['test_keys_only', 'webhook_disabled'],
  changes: true,
  request: z.strictObject({ webhookId: Id.optional(), event: EventName.optional(), storeId: Id.optional() }),
  response: z.strictObject({
    ...Success,
    eventId: z.string(),
    event: z.string(),
    webhooks: z
      .int()
      .min(0)
      .describe('Number of webhooks that receive it. `fetchWebhookEvents` returns it in any case.'),
  }),
  example: { webhookId: 'whk_01KANX78K0V2X4Z6B8D0F2H4K6' },
  async run(call, { webhookId, event = TEST_EVENT, storeId: named }) {
    const { db, nowMs, services } = call
    const { tenant, mode } = knownCaller(call.caller)
    const type = EVENT_TYPES.get(event)
    if (!type || (mode === 'live' && event !== TEST_EVENT)) {
      throw precondition(
        'test_keys_only',
        `with live keys only ${TEST_EVENT} can be sent, because the data of other test events is invented`,
      )
    }
    const webhook = webhookId === undefined ? undefined : await ownWebhook(call, webhookId)
    if (webhook) assertEnabled(webhook)
    if (named !== undefined) await ownStore(call, named)
    const storeId = named ?? webhook?.store_id ?? null
    const data = {
      ...type.example,
      ...(storeId !== null && 'storeId' in type.example && { storeId }),
      ...(event === TEST_EVENT && webhook && { webhookId: webhook.webhook_id }),
    }
    const eventId = newId('whe', services.platform)
    const row = {
      event_id: eventId,
      tenant,
      store_id: storeId,
      type: event,
      at_ms: nowMs,
      data: JSON.stringify(data),
      webhook_id: webhook?.webhook_id ?? null,
    }
    await db.insertInto('outbox_event').values(row).execute()
    call.changed(eventId)
    call.afterCommit(services.webhooks.wake)
    return { success: true as const, eventId, event, webhooks: await countReceivers(db, { ...row, seq: null }) }
  },
})

/** Prefixes of the ids of events of the cloud and of agents. */
const OUR_IDS = ['whe', 'evt']

export const fetchWebhookEvents = operation({
  name: 'fetchWebhookEvents',
  area: 'webhooks',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Lists the events of the last 30 days in order, even if no webhook was registered.',
  description:
    'Use it to catch up after an outage; `untag listen` uses it, too. `cursor` is the `id` of the last known event. The cloud stores protection events only while a webhook is subscribed to them. Pages may have fewer events than `limit`: continue while there is a `nextCursor`.',
  changes: false,
  request: z.strictObject({
    storeId: Id.optional(),
    events: Events.optional(),
    since: Timestamp.optional(),
    limit: Limit.optional(),
    cursor: z.string().optional().describe('The `nextCursor` of the previous page, or the `id` of an event.'),
  }),
  response: z.strictObject({ ...Success, events: z.array(Envelope), nextCursor: z.string().optional() }),
  example: { since: '2026-11-20T09:00:00Z', limit: 100 },
  async run(call, { storeId, events, since, limit, cursor }) {
    const caller = knownCaller(call.caller)
    if (storeId !== undefined) await ownStore(call, storeId)
    const page = pageLimits({ limit, cursor }, DEFAULT_PAGE)
    const bound = caller.kind === 'agent' ? [caller.storeId] : caller.storeIds
    const found = page.after === undefined ? undefined : await findEvent(call.db, caller.tenant, page.after)
    const last = bound === null || bound.includes(found?.store_id ?? '') ? found : undefined
    // The id of a deleted event is a valid cursor, because that event is older than all stored events. So an unknown id
    // is accepted if it has one of our forms.
    if (page.after !== undefined && !last && !OUR_IDS.some((prefix) => isIdOf(prefix, page.after ?? '')))
      throw invalidCursor()
    const afterSeq = last?.seq ?? 0
    const filter = {
      storeIds: storeId === undefined ? bound : [storeId],
      events: events && eventNames(events),
      sinceMs: since === undefined ? undefined : Date.parse(since),
    }
    const end = await endOfEvents(call.db, caller.tenant, afterSeq)
    const { items, nextCursor = end?.event_id } = await readPageWithinText(
      (atMost, event: Row<'outbox_event'> | undefined) =>
        listEvents(call.db, caller.tenant, filter, {
          limit: atMost,
          afterSeq: event?.seq ?? afterSeq,
          endSeq: end?.seq ?? undefined,
        }),
      (row) => row.event_id,
      (row) => row.data.length,
      page,
    )
    return {
      success: true as const,
      events: items.map(toEnvelope),
      ...(nextCursor !== undefined && { nextCursor }),
    }
  },
})
