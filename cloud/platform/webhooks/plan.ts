import { sql } from 'kysely'
import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import { accountOf, isAtLeast, type Package } from '../foundation/caller.ts'
import { changedRows, type Database, type Db } from '../persistence/database.ts'
import { insertChunks, prepared, preparedInsert } from '../persistence/prepared.ts'
import type { Row } from '../persistence/schema.ts'
import { EVENT_TYPES } from './event-types.ts'
import { EVERY_EVENT } from './queries.ts'

/** Maximum number of events planned in one transaction. */
const BATCH = 100
/** Maximum number of batches before the planned deliveries are sent. */
const BATCHES = 10
/** Maximum number of deliveries of one account that wait. One batch may exceed it. */
export const WAITING_LIMIT = 50_000
/** Maximum number of rows in one insert: SQLite accepts 32,766 parameters. */
const ROWS_AT_ONCE = 500

interface Target {
  webhook_id: string
  tenant: string
  store_id: string | null
  event: string
}

/**
 * Creates the deliveries of new events to subscribed webhooks and numbers the events. Only one process plans at a time.
 * Resolves to true if there may be more events.
 */
export async function planDeliveries(database: Database, platform: Platform): Promise<boolean> {
  for (let i = 0; i < BATCHES; i++) {
    if (!(await hasUnplanned(database.reads))) return false
    await database.writeAlone('planDeliveries', (db) => planBatch(db, platform))
  }
  return true
}

/** The query is prepared, because it runs every second. */
const oneUnplanned = prepared((db) =>
  db.selectFrom('outbox_event').select('event_id').where('seq', 'is', null).limit(1),
)

async function hasUnplanned(db: Db): Promise<boolean> {
  return (await oneUnplanned(db, {})).length > 0
}

const nextTenant = prepared((db, p: { after: string }) =>
  db
    .selectFrom('outbox_event')
    .select('tenant')
    .where('seq', 'is', null)
    .where('tenant', '>', p.after)
    .orderBy('tenant')
    .limit(1),
)
const lastNumber = prepared((db) =>
  db.selectFrom('outbox_event').select(['seq', 'tenant']).where('seq', 'is not', null).orderBy('seq', 'desc').limit(1),
)

/** Accounts with new events, at most `BATCH`, from the one after `last` on. */
async function tenantsAfter(db: Db, last: string): Promise<string[]> {
  const found: string[] = []
  for (const [from, to] of [
    [last, undefined],
    ['', last],
  ] as const) {
    let after = from
    while (found.length < BATCH) {
      const [row] = await nextTenant(db, { after })
      if (!row || (to !== undefined && row.tenant > to)) break
      found.push(row.tenant)
      after = row.tenant
    }
  }
  return found
}

/** New events, the oldest of each account first. Accounts take turns, so that many events of one delay no other. */
async function nextEvents(db: Db, last: string): Promise<Row<'outbox_event'>[]> {
  const tenants = await tenantsAfter(db, last)
  const share = Math.max(1, Math.floor(BATCH / Math.max(1, tenants.length)))
  const events: Row<'outbox_event'>[] = []
  for (const tenant of tenants)
    events.push(
      ...(await db
        .selectFrom('outbox_event')
        .selectAll()
        .where('seq', 'is', null)
        .where('tenant', '=', tenant)
        .orderBy('event_id')
        .limit(share)
        .execute()),
    )
  return events
}

async function planBatch(db: Db, platform: Platform): Promise<void> {
  const [numbered] = await lastNumber(db, {})
  const events = await nextEvents(db, numbered?.tenant ?? '')
  if (events.length === 0) return
  const targets = await readTargets(db, events)
  const packages = targets.length > 0 ? await readPackages(db, events) : () => 'DISCOVER' as const
  const nowMs = platform.clock.wall()
  const wanted = events.flatMap((event) =>
    receiversOf(event, targets, packages(event)).map((webhookId) => deliveryOf(event, webhookId, nowMs, platform)),
  )
  const deliveries = await withinLimit(db, wanted, nowMs)
  for (let i = 0; i < deliveries.length; i += ROWS_AT_ONCE) {
    await db
      .insertInto('webhook_delivery')
      .values(deliveries.slice(i, i + ROWS_AT_ONCE))
      .execute()
  }
  const last = Number(numbered?.seq ?? 0)
  const numbers = events.map(({ event_id, tenant }, i) => ({ event_id, tenant, seq: last + i + 1 }))
  for (const chunk of insertChunks(numbers)) await writeNumbers(db, chunk)
}

/**
 * Leaves out the deliveries of accounts of which too many wait, and notes at their webhooks that they missed an event:
 * `fetchWebhookEvents` still has it.
 */
async function withinLimit(
  db: Db,
  wanted: readonly Row<'webhook_delivery'>[],
  nowMs: number,
): Promise<readonly Row<'webhook_delivery'>[]> {
  const full = new Set<string>()
  for (const tenant of new Set(wanted.map((delivery) => delivery.tenant)))
    if (await isQueueFull(db, tenant)) full.add(tenant)
  if (full.size === 0) return wanted
  const missed = [...new Set(wanted.flatMap(({ tenant, webhook_id: id }) => (full.has(tenant) ? [id] : [])))]
  for (let i = 0; i < missed.length; i += ROWS_AT_ONCE)
    await db
      .updateTable('webhook')
      .set({ missed_ms: nowMs })
      .where('webhook_id', 'in', missed.slice(i, i + ROWS_AT_ONCE))
      .execute()
  return wanted.filter(({ tenant }) => !full.has(tenant))
}

async function isQueueFull(db: Db, tenant: string): Promise<boolean> {
  const last = await db
    .selectFrom('webhook_delivery')
    .select('tenant')
    .where('tenant', '=', tenant)
    .where('status', '=', sql.lit('pending'))
    .offset(WAITING_LIMIT - 1)
    .limit(1)
    .executeTakeFirst()
  return last !== undefined
}

const writeNumbers = preparedInsert((db, numbers: readonly { event_id: string; tenant: string; seq: number }[]) => {
  const rows = numbers.map(({ event_id, tenant, seq }) => sql`(${event_id}, ${tenant}, ${seq})`)
  const update = sql`
    with numbers (event_id, tenant, seq) as (values ${sql.join(rows)})
    update outbox_event set seq = cast(numbers.seq as bigint) from numbers
    where outbox_event.event_id = numbers.event_id and outbox_event.tenant = numbers.tenant`
  return { compile: () => update.compile(db) }
})

/** Reads enabled webhooks that are subscribed to any of these events, and the receivers of test events. */
async function readTargets(db: Db, events: readonly Row<'outbox_event'>[]): Promise<Target[]> {
  const tenants = [...new Set(events.map((event) => event.tenant))]
  const types = [...new Set(events.map((event) => event.type))]
  const registered = await db
    .selectFrom('webhook_subscription as s')
    .innerJoin('webhook as w', 'w.webhook_id', 's.webhook_id')
    .select(['w.webhook_id', 'w.tenant', 'w.store_id', 's.event'])
    .where('s.tenant', 'in', tenants)
    .where('s.event', 'in', [...types, EVERY_EVENT])
    .where('w.enabled', '=', 1)
    .execute()
  const named = events.flatMap((event) =>
    event.webhook_id === null
      ? []
      : [{ webhook_id: event.webhook_id, tenant: event.tenant, store_id: null, event: event.event_id }],
  )
  return [...registered, ...named]
}

/**
 * Reads the package that applies to each event: the package of its store, or of the account if the event has no store.
 */
async function readPackages(
  db: Db,
  events: readonly Row<'outbox_event'>[],
): Promise<(event: Row<'outbox_event'>) => Package> {
  const storeIds = [...new Set(events.flatMap((event) => (event.store_id === null ? [] : [event.store_id])))]
  const accountIds = [...new Set(events.map((event) => accountOf(event.tenant)))]
  const stores =
    storeIds.length === 0
      ? []
      : await db.selectFrom('store').select(['store_id', 'package']).where('store_id', 'in', storeIds).execute()
  const accounts = await db
    .selectFrom('account')
    .select(['account_id', 'package'])
    .where('account_id', 'in', accountIds)
    .execute()
  const byId = new Map([
    ...stores.map((s) => [s.store_id, s.package] as const),
    ...accounts.map((a) => [a.account_id, a.package] as const),
  ])
  return (event) => (byId.get(event.store_id ?? accountOf(event.tenant)) ?? 'DISCOVER') as Package
}

/** Number of webhooks that receive this new event. */
export async function countReceivers(db: Db, event: Row<'outbox_event'>): Promise<number> {
  const [targets, packages] = [await readTargets(db, [event]), await readPackages(db, [event])]
  return receiversOf(event, targets, packages(event)).length
}

function receiversOf(event: Row<'outbox_event'>, targets: readonly Target[], have: Package): string[] {
  // For a test event, `readTargets` adds a target whose field `event` is the event's id instead of a type.
  if (event.webhook_id !== null)
    return targets.filter((t) => t.event === event.event_id && t.tenant === event.tenant).map((t) => t.webhook_id)
  const type = EVENT_TYPES.get(event.type)
  const isFree = type?.freeInSandbox === true && event.tenant.endsWith('.test')
  if (type && !isFree && !isAtLeast(have, type.minimumPackage)) return []
  const fitting = targets.filter(
    (t) =>
      t.tenant === event.tenant &&
      (t.event === event.type || t.event === EVERY_EVENT) &&
      (t.store_id === null || t.store_id === event.store_id),
  )
  return [...new Set(fitting.map((t) => t.webhook_id))]
}

function deliveryOf(
  event: Row<'outbox_event'>,
  webhookId: string,
  nowMs: number,
  platform: Platform,
): Row<'webhook_delivery'> {
  const { tenant, event_id, type, store_id } = event
  const timing = { attempts: 0, first_ms: null, due_ms: nowMs, lease_id: null, created_ms: nowMs, finished_ms: null }
  return {
    delivery_id: newId('whd', platform),
    tenant,
    webhook_id: webhookId,
    event_id,
    type,
    store_id,
    status: 'pending',
    ...timing,
  }
}

const PRUNE_BATCH = 1_000

/** Deletes events and deliveries from before this time, ms, in batches. */
export async function pruneDeliveries(database: Database, before: number): Promise<void> {
  for (;;) {
    const cleared = await database.write(async (db) => {
      const old = db
        .selectFrom('webhook_delivery')
        .select('delivery_id')
        .where('created_ms', '<', before)
        .limit(PRUNE_BATCH)
      const deliveries = await changedRows(db, db.deleteFrom('webhook_delivery').where('delivery_id', 'in', old))
      const past = db
        .selectFrom('outbox_event')
        .select(['event_id', 'tenant'])
        .where('at_ms', '<', before)
        .where('seq', 'is not', null)
        .limit(PRUNE_BATCH)
      const pastEvents = db
        .deleteFrom('outbox_event')
        .where(({ eb, refTuple }) => eb(refTuple('event_id', 'tenant'), 'in', past.$asTuple('event_id', 'tenant')))
      return deliveries + (await changedRows(db, pastEvents))
    })
    if (cleared === 0) return
  }
}
