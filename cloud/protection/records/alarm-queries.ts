import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { closeRequestForAlarm, openRequestForAlarm, present } from '../../shop/assistance/requests.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { GATE_ALARMS, ALARM_DISPOSITIONS, type AlarmDisposition } from '../../../policy/vocabulary.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { sql, type SelectQueryBuilder } from 'kysely'
import { assert } from '../../../policy/assert.ts'
import { inScope, inScopes, TOTAL_LIMIT, ownStoreOf, type StoreScope } from '../../platform/stores/own-store.ts'
import { z } from 'zod'
import { AssistanceRequest } from '../../shop/assistance/queries.ts'
import { actorOf, knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import { Id, Success, Timestamp, eurosOf, iso } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { HELP_AT_ALARM, notifyStaff } from '../../shop/push/staff-notices.ts'

/** States of an alarm, in the order in which staff work on it. */
export const ALARM_STATES = ['open', 'acknowledged', 'disposed'] as const
type AlarmState = (typeof ALARM_STATES)[number]

const LATEST = Number.MAX_SAFE_INTEGER

/** Fields of requests that choose alarms by the time at which the gate alarmed. */
export const RAISED_FIELDS = {
  raisedFrom: Timestamp.optional().describe('Only alarms of this time or later, in each state.'),
  raisedUntil: Timestamp.optional().describe('Only alarms of this time or earlier, in each state.'),
}

/** A time span, both ends inclusive, ms. */
interface AlarmTimes {
  readonly fromMs: number
  readonly untilMs: number
}

/** Reads `RAISED_FIELDS`; undefined if a request has none of them. */
export function raisedBetween(from: string | undefined, until: string | undefined): AlarmTimes | undefined {
  if (from === undefined && until === undefined) return undefined
  return {
    fromMs: from === undefined ? 0 : Date.parse(from),
    untilMs: until === undefined ? LATEST : Date.parse(until),
  }
}

/** Which alarms a listing contains. */
interface AlarmFilter {
  /** Stores of the alarms. */
  readonly scopes: readonly StoreScope[]
  readonly state: AlarmState
  readonly disposition: string | undefined
  /** Only alarms of this gate. */
  readonly deviceId?: string | undefined
  /** When the gate alarmed; undefined: at any time. */
  readonly raised?: AlarmTimes | undefined
  /** Earliest time in the state, ms. */
  readonly sinceMs: number
  /** Latest time in the state, ms. */
  readonly untilMs?: number | undefined
  /** Last alarm of the previous page. */
  readonly after: AlarmPosition | undefined
  readonly limit: number
}

/** Place of an alarm in a listing. */
export interface AlarmPosition {
  /** When the alarm came into its state, ms. */
  readonly atMs: number
  readonly id: string
}

/** An alarm of a listing. */
interface ListedAlarm extends AlarmPosition {
  readonly eventId: string
}

/** Literals, because SQLite would not use the partial indexes with parameters. */
const IS_ALARM = sql<boolean>`kind IN ('gate_alarm', 'gate_bulk_alarm')`

/** Alarms that one page looks at, and as many its `total`: some filters have no index. */
const LOOKED_AT = 10_000

/**
 * Alarms in one state, the latest first: one page, the place after which the next one begins, and the number of all. Each
 * statement reads each scope by an index with this order: a user may have a hundred stores.
 */
export async function listAlarms(
  db: Db,
  filter: AlarmFilter,
): Promise<{ rows: ListedAlarm[]; next: AlarmPosition | undefined; total: number }> {
  const { scopes, after, limit } = filter
  const end = await endOf(db, filter, after)
  const found = await latest(
    db,
    scopes.map((scope) => between(matching(db, scope, filter), after, end)),
    limit + 1,
  ).execute()
  const rows = found.slice(0, limit).map(({ at_ms, id, event_id }) => ({ atMs: Number(at_ms), id, eventId: event_id }))
  const newest = after === undefined ? end : await endOf(db, filter, undefined)
  const matches = scopes.map((scope) =>
    between(matching(db, scope, filter), undefined, newest)
      .select('id')
      .limit(TOTAL_LIMIT),
  )
  const { count } = await db
    .selectFrom(db.selectFrom(together(db, matches).as('found')).select('id').limit(TOTAL_LIMIT).as('counted'))
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return { rows, next: found.length > limit ? rows.at(-1) : end, total: Number(count) }
}

/** True if the index of a scope has each alarm that the filter matches, and no other. */
function isByIndexAlone({ scopes, state, disposition, deviceId, raised }: AlarmFilter): boolean {
  const isOfAll = scopes.every((scope) => 'storeId' in scope || !scope.packages)
  return isOfAll && state !== 'acknowledged' && [disposition, deviceId, raised].every((field) => field === undefined)
}

/** Last alarm that a page after `after` looks at, in equal shares of the scopes; undefined if it looks at all. */
async function endOf(
  db: Db,
  filter: AlarmFilter,
  after: AlarmPosition | undefined,
): Promise<AlarmPosition | undefined> {
  if (isByIndexAlone(filter)) return undefined
  const { scopes, limit } = filter
  const share = Math.max(limit + 1, Math.floor(LOOKED_AT / scopes.length))
  const ends = scopes.map((scope) =>
    between(inState(db, scope, filter), after, undefined)
      .select(['at_ms', 'id', 'event_id'])
      .orderBy('at_ms', 'desc')
      .orderBy('id', 'desc')
      .offset(share - 1)
      .limit(1),
  )
  const end = await inOrder(db, ends, 1).executeTakeFirst()
  return end && { atMs: Number(end.at_ms), id: end.id }
}

type Alarms = ReturnType<typeof inState>
type Listed = SelectQueryBuilder<object, never, Pick<AlarmInState, 'at_ms' | 'id' | 'event_id'>>

/** The latest of these alarms, at most `limit`. */
function latest(db: Db, parts: readonly Alarms[], limit: number): Listed {
  const sorted = parts.map((alarms) =>
    alarms.select(['at_ms', 'id', 'event_id']).orderBy('at_ms', 'desc').orderBy('id', 'desc').limit(limit),
  )
  return inOrder(db, sorted, limit)
}

/** The latest rows of lists that are sorted. */
function inOrder(db: Db, sorted: readonly Listed[], limit: number): Listed {
  const [only] = sorted
  if (only && sorted.length === 1) return only
  return db
    .selectFrom(together(db, sorted).as('found'))
    .select(['at_ms', 'id', 'event_id'])
    .orderBy('at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
}

/** All rows of these queries. Each is a query of its own, because SQLite limits only those. */
function together<O>(db: Db, parts: readonly SelectQueryBuilder<object, never, O>[]) {
  const [first, ...others] = parts.map((part) => db.selectFrom(part.as('part')).selectAll())
  assert(first !== undefined, 'there is no query')
  return others.reduce((all, part) => all.unionAll(part), first)
}

/** The alarms after `after`, up to `end`. */
function between(alarms: Alarms, after: AlarmPosition | undefined, end: AlarmPosition | undefined): Alarms {
  let rows = alarms
  if (after)
    rows = rows.where(({ eb, refTuple, tuple }) => eb(refTuple('at_ms', 'id'), '<', tuple(after.atMs, after.id)))
  if (end) rows = rows.where(({ eb, refTuple, tuple }) => eb(refTuple('at_ms', 'id'), '>=', tuple(end.atMs, end.id)))
  return rows
}

/** An alarm in one of its states. */
interface AlarmInState {
  at_ms: number
  id: string
  event_id: string
  tenant: string
  store_id: string
  /** Gate; null for disposed alarms, whose event names it. */
  device_id: string | null
  disposition: string | null
}

/** Alarms that came into the state of the filter at its times. An index has their order. */
function inState(db: Db, scope: StoreScope, { state, sinceMs, untilMs = LATEST }: AlarmFilter) {
  const whole = 'storeId' in scope ? scope : { ...scope, packages: undefined }
  if (state === 'disposed')
    return db.selectFrom(
      db
        .selectFrom('alarm_disposition')
        .select(['disposed_ms as at_ms', 'event_id as id', 'event_id', 'tenant', 'store_id', 'disposition'])
        .where(inScope('alarm_disposition', whole))
        .where('disposed_ms', '>=', sinceMs)
        .where('disposed_ms', '<=', untilMs)
        .$castTo<AlarmInState>()
        .as('alarm'),
    )
  const atMs = state === 'open' ? 'last_ms' : 'acknowledged_ms'
  return db.selectFrom(
    db
      .selectFrom('protection_exception')
      .select([`${atMs} as at_ms`, 'exception_id as id', 'event_id', 'tenant', 'store_id', 'device_id'])
      .where(inScope('protection_exception', whole))
      .where(IS_ALARM)
      .where('event_id', 'is not', null)
      .where('acknowledged_ms', state === 'open' ? 'is' : 'is not', null)
      .where(atMs, '>=', sinceMs)
      .where(atMs, '<=', untilMs)
      .$castTo<AlarmInState>()
      .as('alarm'),
  )
}

function matching(db: Db, scope: StoreScope, filter: AlarmFilter): Alarms {
  const { state, disposition, deviceId, raised } = filter
  let alarms = inState(db, scope, filter)
  if ('packages' in scope && scope.packages) alarms = alarms.where(inScope('alarm', scope))
  if (state === 'disposed' && disposition !== undefined) alarms = alarms.where('disposition', '=', disposition)
  if (state !== 'disposed' && deviceId !== undefined) alarms = alarms.where('device_id', '=', deviceId)
  const gateOfEvent = state === 'disposed' ? deviceId : undefined
  if (raised !== undefined || gateOfEvent !== undefined)
    alarms = alarms.where(({ exists, selectFrom }) => {
      const event = selectFrom('protection_event as e')
        .select('e.event_id')
        .whereRef('e.event_id', '=', 'alarm.event_id')
        .whereRef('e.tenant', '=', 'alarm.tenant')
        .where('e.occurred_ms', '>=', raised?.fromMs ?? 0)
        .where('e.occurred_ms', '<=', raised?.untilMs ?? LATEST)
      return exists(gateOfEvent === undefined ? event : event.where('e.device_id', '=', gateOfEvent))
    })
  if (state !== 'acknowledged') return alarms
  return alarms.where(({ not, exists, selectFrom }) =>
    not(
      exists(
        selectFrom('alarm_disposition as d')
          .select('d.event_id')
          .whereRef('d.event_id', '=', 'alarm.event_id')
          .whereRef('d.tenant', '=', 'alarm.tenant'),
      ),
    ),
  )
}

/** The tenant's gate alarm with this event id, if any. `scopes`: only in these stores. */
export async function findAlarm(
  db: Db,
  tenant: string,
  eventId: string,
  scopes?: readonly StoreScope[],
): Promise<Row<'protection_event'> | undefined> {
  let query = db
    .selectFrom('protection_event')
    .selectAll()
    .where('event_id', '=', eventId)
    .where('tenant', '=', tenant)
    .where('type', '=', 'protection.exception.raised')
  if (scopes) query = query.where(inScopes('protection_event', scopes))
  const row = await query.executeTakeFirst()
  const { reason } = row ? (JSON.parse(row.body) as ProtectionEvent) : {}
  return reason !== undefined && GATE_ALARMS.has(reason) ? row : undefined
}

/** Maximum tags of a purchase whose alarms are found, and maximum agents of its store. */
const TAGS_LIMIT = 200
const AGENTS_LIMIT = 20
/** Maximum alarms of a purchase. */
const ALARMS_OF_PURCHASE_LIMIT = 50

/** Events of the latest alarm of each tag of a purchase, the latest first. */
export async function alarmsOfPurchase(db: Db, storeId: string, purchaseId: string): Promise<string[]> {
  const items = await db
    .selectFrom('purchase_line as l')
    .innerJoin('purchase_unit as u', 'u.line_id', 'l.line_id')
    .innerJoin('protected_item as i', 'i.item_id', 'u.item_id')
    .select(['i.epc', 'i.tag_uid', 'i.tag_id_folded'])
    .where('l.purchase_id', '=', purchaseId)
    .limit(TAGS_LIMIT)
    .execute()
  if (items.length === 0) return []
  const agents = await db
    .selectFrom('agent')
    .select('agent_id')
    .where('store_id', '=', storeId)
    .orderBy('agent_id', 'desc')
    .limit(AGENTS_LIMIT)
    .execute()
  const reporters = [storeId, ...agents.map(({ agent_id }) => agent_id)]
  const tags = items.flatMap(({ epc, tag_uid, tag_id_folded }) => [epc, tag_uid, tag_id_folded].filter((tag) => tag))
  const subjects = reporters.flatMap((reporter) => tags.map((tag) => `${reporter}/${tag}`))
  const rows = await db
    .selectFrom('protection_exception')
    .select('event_id')
    .where('store_id', '=', storeId)
    .where('kind', 'in', [...GATE_ALARMS])
    .where('subject', 'in', subjects)
    .where('event_id', 'is not', null)
    .orderBy('last_ms', 'desc')
    .limit(ALARMS_OF_PURCHASE_LIMIT)
    .execute()
  return rows.flatMap(({ event_id }) => event_id ?? [])
}

/** Dispositions of alarms by event id. */
export async function dispositionsOf(
  db: Db,
  tenant: string,
  eventIds: readonly string[],
): Promise<Map<string, Row<'alarm_disposition'>>> {
  if (eventIds.length === 0) return new Map()
  const rows = await db
    .selectFrom('alarm_disposition')
    .selectAll()
    .where('event_id', 'in', [...eventIds])
    .where('tenant', '=', tenant)
    .execute()
  return new Map(rows.map((row) => [row.event_id, row]))
}

/**
 * Stores the disposition of an alarm, acknowledges its exception, and closes the call for help. The disposition with
 * the latest time counts. A row that an offline agent sends late joins the earlier ones.
 */
export async function writeDisposition(db: Db, row: Row<'alarm_disposition'>): Promise<void> {
  const { disposition, operator_id, recovered_cent, disposed_ms } = row
  const before = (await dispositionsOf(db, row.tenant, [row.event_id])).get(row.event_id)
  const isLate = before !== undefined && before.disposed_ms > disposed_ms
  const others = [...(before ? [toDisposition(isLate ? row : before)] : []), ...earlierOf(before)]
    .toSorted((a, b) => Date.parse(b.disposedAt) - Date.parse(a.disposedAt))
    .slice(0, EARLIER_LIMIT)
  const earlier = others.length === 0 ? null : JSON.stringify(others)
  await db
    .insertInto('alarm_disposition')
    .values({ ...row, earlier })
    .onConflict((c) =>
      c
        .columns(['event_id', 'tenant'])
        .doUpdateSet(isLate ? { earlier } : { disposition, operator_id, recovered_cent, disposed_ms, earlier })
        .where('alarm_disposition.disposed_ms', isLate ? '>' : '<=', disposed_ms),
    )
    .execute()
  const about = { storeId: row.store_id, eventId: row.event_id, atMs: disposed_ms }
  await acknowledgeAlarm(db, { ...about, by: operator_id })
  await closeRequestForAlarm(db, about)
}

/** Acknowledges the open exception of an alarm. Does nothing if the same tag has caused a newer alarm. */
export async function acknowledgeAlarm(
  db: Db,
  { storeId, eventId, by, atMs }: { storeId: string; eventId: string; by: string; atMs: number },
): Promise<void> {
  await db
    .updateTable('protection_exception')
    .set({ acknowledged_ms: atMs, acknowledged_by: by })
    .where('store_id', '=', storeId)
    .where('kind', 'in', [...GATE_ALARMS])
    .where('event_id', '=', eventId)
    .where('acknowledged_ms', 'is', null)
    .execute()
}

export const callHelpToAlarm = operation({
  name: 'callHelpToAlarm',
  area: 'assistance',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Calls colleagues to a gate that alarmed.',
  description:
    'The call appears among the requests for help of the store (`fetchAssistanceRequests`, reason `alarm`), and rings the browsers that get notices about alarms. Each alarm has at most one call that is not closed; a second call returns the first.',
  refusals: ['too_many_requests_open'],
  changes: true,
  request: z.strictObject({ eventId: Id }),
  response: AssistanceRequest.extend(Success),
  example: { eventId: 'evt_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { eventId }) {
    const { tenant } = knownCaller(call.caller)
    const requestedBy = actorOf(call.caller)
    const { db, nowMs } = call
    const alarm = await findAlarm(db, tenant, eventId)
    if (!alarm) throw notFound('alarm')
    const { store_id: storeId } = await ownStoreOf(call, alarm.store_id, 'alarm')
    const { deviceId = null } = JSON.parse(alarm.body) as ProtectionEvent
    const { row, isNew } = await openRequestForAlarm(
      { db, nowMs, platform: call.services.platform },
      { tenant, storeId, deviceId, eventId, requestedBy },
    )
    if (isNew) {
      const about = { id: row.request_id, reason: HELP_AT_ALARM, storeId, except: requestedBy }
      await notifyStaff({ db, tenant, nowMs }, [{ ...about, page: 'help', lowest: 'associate' }])
      call.afterCommit(call.services.push.wake)
    }
    call.changed(row.request_id)
    const [shown] = await present(db, [row])
    return { success: true as const, ...(shown as AssistanceRequest) }
  },
})

/** Maximum number of earlier dispositions that an alarm keeps. */
export const EARLIER_LIMIT = 10

/** Disposition of an alarm, with operator and time. */
export const Disposition = z.strictObject({
  disposition: z.enum(ALARM_DISPOSITIONS),
  operatorId: z.string(),
  recoveredValue: z.number().optional(),
  disposedAt: z.string(),
})
export type Disposition = z.infer<typeof Disposition>

/** A stored disposition in API form. */
export function toDisposition(row: Row<'alarm_disposition'>): Disposition {
  return {
    disposition: row.disposition as AlarmDisposition,
    operatorId: row.operator_id,
    ...(row.recovered_cent !== null && { recoveredValue: eurosOf(row.recovered_cent) }),
    disposedAt: iso(row.disposed_ms),
  }
}

/** Dispositions before the present one, the latest first. */
export function earlierOf(row: Row<'alarm_disposition'> | undefined): readonly Disposition[] {
  return row?.earlier ? (JSON.parse(row.earlier) as Disposition[]) : []
}
