import { newId } from '../../../policy/ids.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import type { Platform } from '../../../policy/platform.ts'
import { iso, definedFields } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { fieldsOf, prepared, insertChunks, preparedInsert } from '../../platform/persistence/prepared.ts'
import { commitPosition } from '../../platform/persistence/positions.ts'
import { enqueueAlarmNotices } from '../../shop/push/alarm-notices.ts'
import { enqueueSubscribedEvents } from '../../platform/webhooks/queries.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/**
 * Stores events for `fetchProtectionEvents` and enqueues them for webhooks, once per `eventId`. All events of a
 * transaction get the same position, which follows from the id of the transaction (ADR requests).
 */

/** Scope of an event: transaction, tenant and time. */
export interface EventScope {
  db: Db
  tenant: string
  platform: Platform
  nowMs: number
}

/** A row without its position, which the insert computes from the id of the transaction. */
type NewEventRow = Omit<Row<'protection_event'>, 'position'>

const insertEvent = prepared((db, p: NewEventRow) =>
  db
    .insertInto('protection_event')
    .values({
      ...fieldsOf(p, [
        'event_id',
        'tenant',
        'store_id',
        'type',
        'device_id',
        'purchase_id',
        'occurred_ms',
        'processed_ms',
        'body',
      ]),
      position: commitPosition(db),
    })
    .onConflict((c) => c.columns(['event_id', 'tenant']).doNothing()),
)

type NamedFields = Omit<ProtectionEvent, 'eventId' | 'occurredAt' | 'processedAt'>
/** An event of the cloud. Null fields are left out. */
type CloudEvent = { [K in keyof NamedFields]: ProtectionEvent[K] | null } & {
  eventId?: string
  occurredMs?: number
}

/** Records an event of the cloud. Returns its id. */
export async function recordEvent(scope: EventScope, event: CloudEvent): Promise<string> {
  const completed = completedEvent(scope, event)
  await storeEvent(scope, completed)
  return completed.eventId
}

/** Records several events of the cloud together. */
export async function recordEvents(scope: EventScope, events: readonly CloudEvent[]): Promise<void> {
  await storeEvents(
    scope,
    events.map((event) => completedEvent(scope, event)),
  )
}

function completedEvent({ platform, nowMs }: EventScope, event: CloudEvent): ProtectionEvent {
  const { eventId = newId('evt', platform), occurredMs = nowMs, ...fields } = event
  // Starts with named fields: on Node 20, a literal that starts with a spread takes up to forty times as long.
  return {
    eventId,
    occurredAt: iso(occurredMs),
    processedAt: iso(nowMs),
    ...definedFields(fields),
  } as ProtectionEvent
}

/** Stores an event. If the account already has an event with this id, keeps that event. */
export async function storeEvent(scope: Omit<EventScope, 'platform'>, event: ProtectionEvent): Promise<void> {
  const row = rowOf(scope, event)
  await insertEvent(scope.db, row)
  await enqueueSubscribedEvents(scope.db, scope.tenant, [offerOf(row)])
  await enqueueAlarmNotices(scope, [event])
}

const insertEvents = preparedInsert((db, rows: readonly NewEventRow[]) =>
  db
    .insertInto('protection_event')
    .values(rows.map((row) => ({ ...row, position: commitPosition(db) })))
    .onConflict((c) => c.columns(['event_id', 'tenant']).doNothing()),
)

/** Stores several events like `storeEvent`. */
export async function storeEvents(
  scope: Omit<EventScope, 'platform'>,
  events: readonly ProtectionEvent[],
): Promise<void> {
  const rows = events.map((event) => rowOf(scope, event))
  for (const chunk of insertChunks(rows)) await insertEvents(scope.db, chunk)
  await enqueueSubscribedEvents(scope.db, scope.tenant, rows.map(offerOf))
  await enqueueAlarmNotices(scope, events)
}

function rowOf({ tenant, nowMs }: Omit<EventScope, 'platform'>, event: ProtectionEvent): NewEventRow {
  return {
    event_id: event.eventId,
    tenant,
    store_id: event.storeId,
    type: event.type,
    device_id: event.deviceId ?? null,
    purchase_id: event.purchaseId ?? null,
    occurred_ms: Date.parse(event.occurredAt),
    processed_ms: nowMs,
    body: JSON.stringify(event),
  }
}

function offerOf(row: NewEventRow) {
  return {
    eventId: row.event_id,
    storeId: row.store_id,
    type: row.type,
    atMs: row.processed_ms,
    data: row.body,
  }
}
