import { sql } from 'kysely'
import type { Db } from '../persistence/database.ts'
import { fieldsOf, prepared } from '../persistence/prepared.ts'
import type { Row } from '../persistence/schema.ts'

/** Subscription to all events. */
export const EVERY_EVENT = '*'

/** Finds a webhook of any tenant. */
export function findWebhook(db: Db, webhookId: string): Promise<Row<'webhook'> | undefined> {
  return db.selectFrom('webhook').selectAll().where('webhook_id', '=', webhookId).executeTakeFirst()
}

/** Finds the webhook that is registered for this target. */
export function findByTarget(
  db: Db,
  tenant: string,
  storeId: string | null,
  urlKey: string,
): Promise<Row<'webhook'> | undefined> {
  return db
    .selectFrom('webhook')
    .selectAll()
    .where('tenant', '=', tenant)
    .where(sql`coalesce(store_id, '*')`, '=', storeId ?? '*')
    .where('url_key', '=', urlKey)
    .executeTakeFirst()
}

/** Webhooks of a tenant, oldest first. */
export function listWebhooks(db: Db, tenant: string, limit: number): Promise<Row<'webhook'>[]> {
  return db.selectFrom('webhook').selectAll().where('tenant', '=', tenant).orderBy('webhook_id').limit(limit).execute()
}

/** Subscribed events of these webhooks, sorted. */
export async function readEvents(db: Db, webhookIds: readonly string[]): Promise<Map<string, string[]>> {
  const events = new Map<string, string[]>(webhookIds.map((id) => [id, []]))
  if (webhookIds.length === 0) return events
  const rows = await db
    .selectFrom('webhook_subscription')
    .select(['webhook_id', 'event'])
    .where('webhook_id', 'in', webhookIds)
    .orderBy('event')
    .execute()
  for (const row of rows) events.get(row.webhook_id)?.push(row.event)
  return events
}

/** Replaces the subscriptions of a webhook. */
export async function writeEvents(
  db: Db,
  webhook: Pick<Row<'webhook'>, 'tenant' | 'webhook_id'>,
  events: readonly string[],
): Promise<void> {
  const { tenant, webhook_id } = webhook
  await db.deleteFrom('webhook_subscription').where('webhook_id', '=', webhook_id).execute()
  await db
    .insertInto('webhook_subscription')
    .values([...new Set(events)].map((event) => ({ tenant, event, webhook_id })))
    .execute()
}

/** Changes a webhook and returns the new row. */
export function changeWebhook(db: Db, webhookId: string, change: Partial<Row<'webhook'>>): Promise<Row<'webhook'>> {
  return db
    .updateTable('webhook')
    .set(change)
    .where('webhook_id', '=', webhookId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Marks the pending deliveries of a disabled or deleted webhook as failed. */
export async function dropPending(db: Db, webhookId: string, nowMs: number): Promise<void> {
  await db
    .updateTable('webhook_delivery')
    .set({ status: 'failed', due_ms: null, lease_id: null, finished_ms: nowMs })
    .where('webhook_id', '=', webhookId)
    .where('status', '=', sql.lit('pending'))
    .execute()
}

/** Finds a delivery of any tenant. */
export function findDelivery(db: Db, deliveryId: string): Promise<Row<'webhook_delivery'> | undefined> {
  return db.selectFrom('webhook_delivery').selectAll().where('delivery_id', '=', deliveryId).executeTakeFirst()
}

/** Events or deliveries that one page looks at. No index has only those that a filter wants. */
const LOOKED_AT = 10_000

interface DeliveryFilter {
  webhookIds: readonly string[]
  status?: string | undefined
  event?: string | undefined
  eventId?: string | undefined
}

/** Where a page that begins after this delivery stops to look for more; undefined if it may look at all. */
export async function endOfDeliveries(db: Db, tenant: string, after: string | undefined): Promise<string | undefined> {
  let query = db.selectFrom('webhook_delivery').select('delivery_id').where('tenant', '=', tenant)
  if (after !== undefined) query = query.where('delivery_id', '<', after)
  const end = await query
    .orderBy('delivery_id', 'desc')
    .offset(LOOKED_AT - 1)
    .limit(1)
    .executeTakeFirst()
  return end?.delivery_id
}

/** Deliveries to these webhooks after a cursor, newest first, up to the end of the page. */
export function listDeliveries(
  db: Db,
  tenant: string,
  filter: DeliveryFilter,
  page: { limit: number; after: string | undefined; end: string | undefined },
): Promise<Row<'webhook_delivery'>[]> {
  if (filter.webhookIds.length === 0) return Promise.resolve([])
  let query = db
    .selectFrom('webhook_delivery')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('webhook_id', 'in', filter.webhookIds)
  if (filter.status !== undefined) query = query.where('status', '=', filter.status)
  if (filter.event !== undefined) query = query.where('type', '=', filter.event)
  if (filter.eventId !== undefined) query = query.where('event_id', '=', filter.eventId)
  if (page.after !== undefined) query = query.where('delivery_id', '<', page.after)
  if (page.end !== undefined) query = query.where('delivery_id', '>=', page.end)
  return query.orderBy('delivery_id', 'desc').limit(page.limit).execute()
}

/** Attempts of these deliveries, oldest first. */
export async function readAttempts(
  db: Db,
  deliveryIds: readonly string[],
): Promise<Map<string, Row<'webhook_attempt'>[]>> {
  const attempts = new Map<string, Row<'webhook_attempt'>[]>(deliveryIds.map((id) => [id, []]))
  if (deliveryIds.length === 0) return attempts
  const rows = await db
    .selectFrom('webhook_attempt')
    .selectAll()
    .where('delivery_id', 'in', deliveryIds)
    .orderBy('delivery_id')
    .orderBy('attempt')
    .execute()
  for (const row of rows) attempts.get(row.delivery_id)?.push(row)
  return attempts
}

/** Finds an event in the tenant's outbox. */
export function findEvent(db: Db, tenant: string, eventId: string): Promise<Row<'outbox_event'> | undefined> {
  return db
    .selectFrom('outbox_event')
    .selectAll()
    .where('event_id', '=', eventId)
    .where('tenant', '=', tenant)
    .executeTakeFirst()
}

/** Where a page after this event stops to look for more; undefined if it may look at all. */
export function endOfEvents(
  db: Db,
  tenant: string,
  afterSeq: number,
): Promise<Pick<Row<'outbox_event'>, 'seq' | 'event_id'> | undefined> {
  return db
    .selectFrom('outbox_event')
    .select(['seq', 'event_id'])
    .where('tenant', '=', tenant)
    .where('seq', '>', afterSeq)
    .orderBy('seq')
    .offset(LOOKED_AT - 1)
    .limit(1)
    .executeTakeFirst()
}

/** Events whose sequence number is higher than `afterSeq` and at most `endSeq`, in this order. */
export function listEvents(
  db: Db,
  tenant: string,
  filter: { storeIds: readonly string[] | null; events?: readonly string[] | undefined; sinceMs?: number | undefined },
  page: { limit: number; afterSeq: number; endSeq: number | undefined },
): Promise<Row<'outbox_event'>[]> {
  let query = db.selectFrom('outbox_event').selectAll().where('tenant', '=', tenant).where('seq', '>', page.afterSeq)
  if (filter.storeIds !== null)
    query = query.where('store_id', 'in', filter.storeIds.length > 0 ? filter.storeIds : ['-'])
  if (filter.events !== undefined) query = query.where('type', 'in', filter.events)
  if (filter.sinceMs !== undefined) query = query.where('at_ms', '>=', filter.sinceMs)
  if (page.endSeq !== undefined) query = query.where('seq', '<=', page.endSeq)
  return query.orderBy('seq').limit(page.limit).execute()
}

const subscribedTo = prepared((db, p: { tenant: string }) =>
  db.selectFrom('webhook_subscription').select('event').distinct().where('tenant', '=', p.tenant),
)

const insertSubscribed = prepared(
  (db, p: { event_id: string; tenant: string; store_id: string; type: string; at_ms: number; data: string }) =>
    db
      .insertInto('outbox_event')
      .values(fieldsOf(p, ['event_id', 'tenant', 'store_id', 'type', 'at_ms', 'data']))
      .onConflict((c) => c.columns(['event_id', 'tenant']).doNothing()),
)

interface WebhookEvent {
  eventId: string
  storeId: string
  type: string
  atMs: number
  data: string
}

/**
 * Stores in the outbox those events of a tenant to which a webhook is subscribed. Storing all events would cost too
 * much, because protection emits very many events.
 */
export async function enqueueSubscribedEvents(db: Db, tenant: string, events: readonly WebhookEvent[]): Promise<void> {
  if (events.length === 0) return
  const subscribed = new Set((await subscribedTo(db, { tenant })).map(({ event }) => event))
  for (const { eventId: event_id, storeId: store_id, atMs: at_ms, type, data } of events) {
    if (subscribed.has(type) || subscribed.has(EVERY_EVENT))
      await insertSubscribed(db, { event_id, tenant, store_id, type, at_ms, data })
  }
}
