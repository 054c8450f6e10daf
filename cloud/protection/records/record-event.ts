import { newId } from '../../../policy/ids.ts'
import type { ProtectionEvent } from '../../../policy/events.ts'
import type { Platform } from '../../../policy/platform.ts'
import { iso, definedFields } from '../../operations/fields.ts'
import type { Db } from '../../persistence/database.ts'
import { fieldsOf, prepared } from '../../persistence/prepared.ts'
import { insertChunks } from '../../persistence/insert-chunks.ts'
import { commitPosition } from '../../persistence/positions.ts'
import { preparedInsert } from '../../persistence/prepared-insert.ts'
import { enqueueSubscribedEvent, enqueueSubscribedEvents } from '../../webhooks/queries.ts'
import type { ProtectionEventRow } from '../../persistence/tables/protection.ts'

/**
 *   authorize, redeem, evidence, agents' journals ─▶ recordEvent ─┬─▶ protection_event ─▶ fetchProtectionEvents
 *                                                                 └─▶ webhooks
 *
 * Everything that happened in a store, once for each eventId, in the order of positions that transactions get when they commit.
 */

/** What an event is about, where it differs from its own fields. */
export interface EventScope {
  db: Db
  tenant: string
  platform: Platform
  nowMs: number
}

/** A row before its transaction has given it a position. */
type NewEventRow = Omit<ProtectionEventRow, 'position'>

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

/** A new event of the cloud's own; answers its id. Empty fields are left out. */
export async function recordEvent(
  { db, tenant, platform, nowMs }: EventScope,
  event: { [K in keyof Omit<ProtectionEvent, 'eventId' | 'occurredAt' | 'processedAt'>]: ProtectionEvent[K] | null } & {
    eventId?: string
    occurredMs?: number
  },
): Promise<string> {
  const { eventId = newId('evt', platform), occurredMs = nowMs, ...fields } = event
  // Named fields first: a literal that begins with a spread and goes on costs up to forty times as much on Node 20.
  const whole = {
    eventId,
    occurredAt: iso(occurredMs),
    processedAt: iso(nowMs),
    ...definedFields(fields),
  } as ProtectionEvent
  await storeEvent({ db, tenant, nowMs }, whole)
  return eventId
}

/** Keeps an event as it is; one whose id the account knows already is the same event again. */
export async function storeEvent(scope: Omit<EventScope, 'platform'>, event: ProtectionEvent): Promise<void> {
  const row = rowOf(scope, event)
  await insertEvent(scope.db, row)
  await enqueueSubscribedEvent(scope.db, offerOf(row))
}

const insertEvents = preparedInsert((db, rows: readonly NewEventRow[]) =>
  db
    .insertInto('protection_event')
    .values(rows.map((row) => ({ ...row, position: commitPosition(db) })))
    .onConflict((c) => c.columns(['event_id', 'tenant']).doNothing()),
)

/** Keeps many, as `storeEvent` keeps each. */
export async function storeEvents(
  scope: Omit<EventScope, 'platform'>,
  events: readonly ProtectionEvent[],
): Promise<void> {
  const rows = events.map((event) => rowOf(scope, event))
  for (const chunk of insertChunks(rows)) await insertEvents(scope.db, chunk)
  await enqueueSubscribedEvents(scope.db, scope.tenant, rows.map(offerOf))
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
    tenant: row.tenant,
    storeId: row.store_id,
    type: row.type,
    atMs: row.processed_ms,
    data: row.body,
  }
}
