import { sql, type SqlBool } from 'kysely'
import { z } from 'zod'
import type { DecisionFacts } from '../../../policy/decide.ts'
import { ITEM_STATUSES } from '../../../policy/vocabulary.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import { ProtectionEvent, PROTECTION_EVENT_TYPES } from '../../../policy/protection-events.ts'
import { definedFields, eurosOf, Id, Limit, Success, Timestamp } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { invalidCursor } from '../../platform/operations/paging.ts'
import { positionSince, waitForFinalPosition } from '../../platform/persistence/positions.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { dispositionsOf, Disposition, toDisposition } from './alarm-queries.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/** Filter of a listing of events. */
export interface EventFilter {
  storeId: string
  eventId?: string | undefined
  type?: string | undefined
  deviceId?: string | undefined
  purchaseId?: string | undefined
}

/** The page starts after this event. Events are ordered by position, then by id. */
export interface EventPosition {
  position: number
  id: string
}

/** Range of events that a listing may return. */
export interface EventRange {
  /** First position at which running transactions may still add events (`finalBelow`). */
  below: number
  /** The listing omits events that the cloud received before this time, ms. */
  sinceMs: number
}

/** Protection events of a store in the order of their positions. */
export function eventsAfter(
  db: Db,
  filter: EventFilter,
  { below, sinceMs }: EventRange,
  { position, id }: EventPosition,
  limit: number,
): Promise<Row<'protection_event'>[]> {
  return (
    matching(db, filter, sinceMs)
      .where(({ eb, refTuple, tuple }) => eb(refTuple('position', 'event_id'), '>', tuple(position, id)))
      // The plus keeps SQLite from preferring the index of positions to those of the filters, because of two bounds.
      .where(sql<SqlBool>`+position < ${below}`)
      .orderBy('position')
      .orderBy('event_id')
      .limit(limit)
      .execute()
  )
}

/** The events of a store that the cloud received last, the latest first. */
export async function newestEvents(
  db: Db,
  filter: EventFilter,
  sinceMs: number,
  limit: number,
): Promise<Row<'protection_event'>[]> {
  const position = await positionSince(db, 'protection', filter.storeId, sinceMs)
  return matching(db, filter, sinceMs)
    .where('position', '>=', position)
    .orderBy('position', 'desc')
    .orderBy('event_id', 'desc')
    .limit(limit)
    .execute()
}

const DEFAULT_PAGE = 100

/** An event in API form. */
const ListedEvent = ProtectionEvent.extend({
  eventId: z.string(),
  alarm: Disposition.optional(),
  facts: z
    .array(
      z.strictObject({
        itemStatus: z.enum(ITEM_STATUSES).optional().describe('Absent: unknown.'),
        category: z.string().optional(),
        brand: z.string().optional(),
        price: z.number().optional().describe('EUR'),
        recalled: z.boolean(),
        right: z.enum(['free', 'used', 'leased_elsewhere', 'none']),
        hasOperator: z.boolean().describe('True if a signed-in operator approved the request.'),
        policyStage: z.enum(['fresh', 'stale', 'expired']),
      }),
    )
    .optional()
    .describe('With `eventId`: the facts of a decision of the cloud, one entry per unit. They are stored for 30 days.'),
})
type Facts = z.infer<typeof ListedEvent>['facts']

const decisionById = prepared((db, p: { eventId: string; storeId: string }) =>
  db
    .selectFrom('protection_decision')
    .select('facts')
    .where('event_id', '=', p.eventId)
    .where('store_id', '=', p.storeId),
)

/** The facts of a decision; undefined if the event is none of the cloud, or is older than they are stored. */
async function factsOf(db: Db, storeId: string, eventId: string): Promise<Facts> {
  const [row] = await decisionById(db, { eventId, storeId })
  if (!row) return undefined
  return (JSON.parse(row.facts) as DecisionFacts[]).map(({ item, right, hasOperator, stage }) => ({
    recalled: item?.recalled === true,
    right,
    hasOperator,
    policyStage: stage,
    ...definedFields({
      itemStatus: item?.status ?? null,
      category: item?.category ?? null,
      brand: item?.brand ?? null,
      price: item?.priceCent === undefined ? null : eurosOf(item.priceCent),
    }),
  }))
}

function matching(db: Db, { storeId, eventId, type, deviceId, purchaseId }: EventFilter, sinceMs: number) {
  let query = db.selectFrom('protection_event').selectAll().where('store_id', '=', storeId)
  // The plus keeps SQLite from the index of times: it would read all events of the store, and sort them by position.
  if (sinceMs > 0) query = query.where(sql<SqlBool>`+processed_ms >= ${sinceMs}`)
  if (eventId !== undefined) query = query.where('event_id', '=', eventId)
  if (type !== undefined) query = query.where('type', '=', type)
  if (deviceId !== undefined) query = query.where('device_id', '=', deviceId)
  if (purchaseId !== undefined) query = query.where('purchase_id', '=', purchaseId)
  return query
}

export const fetchProtectionEvents = operation({
  name: 'fetchProtectionEvents',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Lists the protection events of a store in the order in which they became durable.',
  description:
    'To follow new events, send the last `nextCursor` again. The cloud adds no event before it. A page without `nextCursor` is the last one and can still grow: send the same request again later, and skip events whose `eventId` you know. `alarm` contains the disposition of an alarm (disposeAlarm).',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    eventId: Id.optional().describe('Only this event, with the facts of its decision.'),
    type: z.enum(PROTECTION_EVENT_TYPES).optional(),
    deviceId: Id.optional(),
    purchaseId: Id.optional(),
    since: Timestamp.optional().describe('Compared with the time at which the cloud received the event.'),
    latest: z
      .literal(true)
      .optional()
      .describe('The events that the cloud received last, the latest first. Without `cursor` and `nextCursor`.'),
    limit: Limit.optional(),
    cursor: z.string().optional().describe('The `nextCursor` of the previous page.'),
  }),
  response: z.strictObject({ ...Success, events: z.array(ListedEvent), nextCursor: z.string().optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', type: 'protection.action.completed' },
  async run(call, { since, cursor, latest, limit = DEFAULT_PAGE, ...filter }) {
    const { db } = call
    const from = cursor === undefined ? START : readCursor(cursor)
    const { tenant } = await ownStore(call, filter.storeId)
    const sinceMs = since === undefined ? 0 : Date.parse(since)
    if (filter.eventId !== undefined) {
      const rows = await matching(db, filter, sinceMs).execute()
      const facts = await factsOf(db, filter.storeId, filter.eventId)
      const events = (await present(db, tenant, rows)).map((event) => ({ ...event, ...(facts && { facts }) }))
      return { success: true as const, events }
    }
    if (latest) {
      return {
        success: true as const,
        events: await present(db, tenant, await newestEvents(db, filter, sinceMs, limit)),
      }
    }
    const range = { below: await waitForFinalPosition(call.db, filter.storeId), sinceMs }
    const position = await positionSince(db, 'protection', filter.storeId, range.sinceMs)
    const after = from.position >= position ? from : { position, id: '' }
    const rows = await eventsAfter(db, filter, range, after, limit + 1)
    const items = rows.slice(0, limit)
    const last = items.at(-1)
    const events = await present(db, tenant, items)
    return { success: true as const, events, ...(rows.length > limit && last && { nextCursor: writeCursor(last) }) }
  },
})

/** Events in API form, with the dispositions of alarms. */
async function present(db: Db, tenant: string, rows: readonly Row<'protection_event'>[]) {
  const eventIds = rows.map(({ event_id }) => event_id)
  const dispositions = await dispositionsOf(db, tenant, eventIds)
  return rows.map((row) => {
    const alarm = dispositions.get(row.event_id)
    return { ...(JSON.parse(row.body) as ProtectionEvent), ...(alarm && { alarm: toDisposition(alarm) }) }
  })
}

/** Position before the first event. */
const START: EventPosition = { position: 0, id: '' }

function writeCursor({ position, event_id }: { position: number; event_id: string }): string {
  return Buffer.from(`${position}/${event_id}`).toString('base64url')
}

/** Reads a cursor of `writeCursor`. An event id may contain every character except NUL. */
function readCursor(cursor: string): EventPosition {
  const match = /^(\d{1,16})\/([^\0]{1,128})$/u.exec(Buffer.from(cursor, 'base64url').toString())
  if (match?.[1] === undefined || match[2] === undefined) throw invalidCursor()
  return { position: Number(match[1]), id: match[2] }
}
