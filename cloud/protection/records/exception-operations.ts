import { z } from 'zod'
import { actorOf, knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import { Id, iso, Limit, definedFields, Success, Timestamp, lines, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField } from '../../platform/operations/paging.ts'
import type { Row, Schema } from '../../platform/persistence/schema.ts'
import {
  ownStoreOf,
  ALL_STORES,
  ownScopes,
  pageOfScopes,
  Total,
  inScope,
  countRows,
  type ScopeReader,
  type StoreScope,
} from '../../platform/stores/own-store.ts'
import { shownNames } from '../../platform/stores/make-store.ts'
import { emergencyTimes, findException, writeAcknowledged } from './exceptions.ts'
import { firstIdAt } from '../../../policy/ids.ts'
import { GATE_ALARMS } from '../../../policy/vocabulary.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { sql, type SelectQueryBuilder } from 'kysely'
import { refreshGateDisplays } from './dispose-alarm.ts'

export interface ExceptionFilter {
  state?: 'open' | 'acknowledged' | undefined
  kind?: string | undefined
  /** Only these kinds. */
  kinds?: readonly string[] | undefined
  /** None of these kinds. */
  otherThan?: readonly string[] | undefined
  withoutAlarms?: boolean | undefined
  /** Earliest time, ms. */
  sinceMs?: number | undefined
  /** Latest time, exclusive, ms. */
  untilMs?: number | undefined
  /** Id of the last exception of the previous page. */
  after?: string | undefined
  /** Id of the last exception that the page looks at (`endOfPage`). */
  upTo?: string | undefined
  limit: number
}

/**
 * Maximum difference between the time in an id and `raised_ms`, ms. The two times come from two readings of the clock.
 */
const ID_GUARD_MS = 60_000

/** Exceptions that one page looks at, and as many its `total`. Not every filter has an index with only its rows. */
const LOOKED_AT = 10_000

/** Last exception that a page looks at, in whatever scope; undefined if it looks at all. */
export async function endOfPage(
  db: Db,
  scopes: readonly StoreScope[],
  filter: ExceptionFilter,
): Promise<string | undefined> {
  const share = Math.max(filter.limit + 1, Math.floor(LOOKED_AT / scopes.length))
  const ends: string[] = []
  for (const scope of scopes) {
    const looked = beforeCursor(indexed(db, scope, filter), filter).select('exception_id')
    const end = await looked
      .orderBy('exception_id', 'desc')
      .offset(share - 1)
      .limit(1)
      .executeTakeFirst()
    if (end) ends.push(end.exception_id)
  }
  return ends.length === 0 ? undefined : ends.reduce((a, b) => (a > b ? a : b))
}

/** Reads the exceptions of a scope, newest first. */
export function exceptionReader(db: Db, filter: ExceptionFilter): ScopeReader<Row<'protection_exception'>> {
  /** Exceptions that `total` may still look at. */
  let left = LOOKED_AT
  return {
    async ids(scope, limit) {
      let page = beforeCursor(matching(db, scope, filter), filter).select('exception_id')
      if (filter.upTo !== undefined) page = page.where('exception_id', '>=', filter.upTo)
      return (await page.orderBy('exception_id', 'desc').limit(limit).execute()).map((row) => row.exception_id)
    },
    async count(scope, limit) {
      if (left <= 0) return 0
      const newest = indexed(db, scope, filter).select('exception_id').orderBy('exception_id', 'desc').limit(left)
      const { looked, first } = await db
        .selectFrom(newest.as('newest'))
        .select((eb) => [eb.fn.countAll<number>().as('looked'), eb.fn.min('exception_id').as('first')])
        .executeTakeFirstOrThrow()
      if (first === null) return 0
      left -= Number(looked)
      return countRows(
        db,
        matching(db, scope, filter).where('exception_id', '>=', first).select('exception_id').limit(limit),
      )
    },
    rows: (ids) =>
      db
        .selectFrom('protection_exception')
        .selectAll()
        .where('exception_id', 'in', ids.length > 0 ? ids : [''])
        .execute(),
    idOf: (row) => row.exception_id,
    newestFirst: true,
    limit: filter.limit,
  }
}

type Exceptions = SelectQueryBuilder<Schema, 'protection_exception', object>

function beforeCursor(query: Exceptions, { after }: ExceptionFilter): Exceptions {
  return after === undefined ? query : query.where('exception_id', '<', after)
}

/** The part of the filter that an index has. The bounds on ids limit the index scan to the time range. */
function indexed(db: Db, scope: StoreScope, { state, kind, sinceMs, untilMs }: ExceptionFilter): Exceptions {
  const whole = 'storeId' in scope ? scope : { ...scope, packages: undefined }
  let query = db.selectFrom('protection_exception').where(inScope('protection_exception', whole))
  if (state === 'open') query = query.where('acknowledged_ms', 'is', null)
  if (kind !== undefined) query = query.where('kind', '=', kind)
  if (sinceMs !== undefined) query = query.where('exception_id', '>=', firstIdAt('exc', sinceMs - ID_GUARD_MS))
  if (untilMs !== undefined) query = query.where('exception_id', '<', firstIdAt('exc', untilMs + ID_GUARD_MS))
  return query
}

/** Exceptions that match the filter. */
function matching(db: Db, scope: StoreScope, filter: ExceptionFilter): Exceptions {
  const { state, kinds, otherThan, withoutAlarms, sinceMs, untilMs } = filter
  let query = indexed(db, scope, filter)
  if ('packages' in scope && scope.packages) query = query.where(inScope('protection_exception', scope))
  if (state === 'acknowledged') query = query.where('acknowledged_ms', 'is not', null)
  // Not a plain column: with a list of kinds the planner would leave the order of the index, and sort all rows.
  const unindexed = sql<string>`kind || ''`
  if (kinds !== undefined) query = query.where(unindexed, 'in', kinds)
  if (otherThan !== undefined) query = query.where(unindexed, 'not in', otherThan)
  if (withoutAlarms) query = query.where('kind', 'not in', [...GATE_ALARMS])
  if (sinceMs !== undefined) query = query.where('raised_ms', '>=', sinceMs)
  if (untilMs !== undefined) query = query.where('raised_ms', '<', untilMs)
  return query
}

const DEFAULT_PAGE = 50
const STATES = ['open', 'acknowledged'] as const
const Kinds = z.array(text(60)).min(1).max(100)

const Exception = z.strictObject({
  exceptionId: z.string(),
  storeId: z.string(),
  kind: z.string().describe('Kind from docs/reference/errors.md, “Exceptions”.'),
  subject: z
    .string()
    .describe(
      'Object that the exception is about. There is one exception per kind and subject; `further` stands for many.',
    ),
  state: z.enum(STATES),
  detail: z.string(),
  deviceId: z.string().optional(),
  deviceName: z.string().optional().describe('Name of the device, else of its gate.'),
  agentId: z.string().optional().describe('Agent that the exception is about.'),
  agentName: z.string().optional().describe('Name of the agent that the exception is about.'),
  purchaseId: z.string().optional(),
  eventId: z.string().optional().describe('Last event about the exception.'),
  raisedAt: z.string(),
  lastRaisedAt: z.string(),
  times: z.int().describe('Number of reports.'),
  emergency: z
    .strictObject({ startedAt: z.string(), endedAt: z.string().optional() })
    .optional()
    .describe('Of `emergency_started`: when the last emergency began and ended. Without `endedAt` it is active now.'),
  acknowledgedAt: z.string().optional(),
  acknowledgedBy: z.string().optional().describe('API key or operator that acknowledged the exception.'),
  acknowledgedByName: z.string().optional().describe('Name of the operator or user.'),
  note: z.string().optional(),
})

function describe(row: Row<'protection_exception'>): z.infer<typeof Exception> {
  return {
    exceptionId: row.exception_id,
    storeId: row.store_id,
    kind: row.kind,
    subject: row.subject,
    state: row.acknowledged_ms === null ? 'open' : 'acknowledged',
    detail: row.detail,
    raisedAt: iso(row.raised_ms),
    lastRaisedAt: iso(row.last_ms ?? row.raised_ms),
    times: row.times,
    ...definedFields({
      deviceId: row.device_id,
      agentId: agentOf(row),
      purchaseId: row.purchase_id,
      eventId: row.event_id,
      acknowledgedBy: row.acknowledged_by,
      note: row.note,
    }),
    ...(row.acknowledged_ms !== null && { acknowledgedAt: iso(row.acknowledged_ms) }),
  }
}

/** The agent that an exception is about. Its subject then is, or begins with, the id of the agent. */
function agentOf({ subject }: Row<'protection_exception'>): string | null {
  const [first = ''] = subject.split('/')
  return first.startsWith('agt_') ? first : null
}

function emergencyOf(times: { startedMs: number; endedMs?: number } | undefined) {
  if (!times) return {}
  const { startedMs, endedMs } = times
  return { emergency: { startedAt: iso(startedMs), ...(endedMs !== undefined && { endedAt: iso(endedMs) }) } }
}

/** Exceptions with the names of devices, agents and staff. */
async function describeAll({ db, caller }: Call, rows: readonly Row<'protection_exception'>[]) {
  const { devices, staff, agents } = await shownNames(db, knownCaller(caller).tenant, {
    devices: rows.map((row) => row.device_id),
    staff: rows.map((row) => row.acknowledged_by),
    agents: rows.map(agentOf),
  })
  const emergencies = await emergencyTimes(db, rows)
  return rows.map((row) => ({
    ...describe(row),
    ...emergencyOf(emergencies.get(row.exception_id)),
    ...definedFields({
      deviceName: devices.get(row.device_id ?? '') ?? null,
      agentName: agents.get(agentOf(row) ?? '') ?? null,
      acknowledgedByName: staff.get(row.acknowledged_by ?? '') ?? null,
    }),
  }))
}

function timeOf(timestamp: string | undefined): number | undefined {
  return timestamp === undefined ? undefined : Date.parse(timestamp)
}

export const fetchExceptions = operation({
  name: 'fetchExceptions',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Lists exceptions that staff must look at, of a store or the whole account, newest first.',
  description: `There is one exception per kind and subject. The cloud raises an exception that it finds itself once. It counts repeated reports of a device or agent, and each opens the exception again. ${ALL_STORES} A page looks at some 10,000 exceptions and may have fewer than \`limit\`: continue while there is a \`nextCursor\`. If 1,000 exceptions of one kind are open in a store, one with the subject \`further\` counts the others, with the detail of the last one.`,
  changes: false,
  request: z.strictObject({
    storeId: Id.optional(),
    state: z.enum(STATES).optional(),
    kind: text(60).optional(),
    kinds: Kinds.optional().describe('Only exceptions of these kinds.'),
    otherThan: Kinds.optional().describe('Only exceptions of other kinds.'),
    withoutAlarms: z.boolean().optional().describe('True: leaves out alarms of gates, which `fetchAlarms` lists.'),
    since: Timestamp.optional().describe('First raised at this time or later (`raisedAt`).'),
    until: Timestamp.optional().describe('First raised before this time.'),
    limit: Limit.optional(),
    cursor: cursorField('exc').optional(),
  }),
  response: z.strictObject({
    ...Success,
    exceptions: z.array(Exception),
    total: Total.describe(
      'Matching rows among the newest 10,000 that the caller may see; 10000 means that many or more.',
    ),
    nextCursor: z.string().optional(),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', state: 'open' },
  async run(call, { storeId, since, until, limit = DEFAULT_PAGE, cursor, ...filter }) {
    const scopes = await ownScopes(call, storeId)
    const listed = { ...filter, sinceMs: timeOf(since), untilMs: timeOf(until), after: cursor, limit }
    const upTo = await endOfPage(call.db, scopes, listed)
    const {
      items,
      total,
      nextCursor = upTo,
    } = await pageOfScopes(scopes, exceptionReader(call.db, { ...listed, upTo }))
    return {
      success: true as const,
      exceptions: await describeAll(call, items),
      total,
      ...definedFields({ nextCursor: nextCursor ?? null }),
    }
  },
})

export const acknowledgeException = operation({
  name: 'acknowledgeException',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Acknowledges an exception.',
  description:
    'A later call replaces the note. The call changes nothing else: use `resolveRedemption` for an unknown outcome and `disposeAlarm` for an alarm.',
  changes: true,
  request: z.strictObject({ exceptionId: Id, note: lines(300).optional() }),
  response: Exception.extend(Success),
  example: { exceptionId: 'exc_01KANX6Y7C3V9Q2M8R5T4W6Z1B', note: 'Etikett war schon ab' },
  async run(call, { exceptionId, note }) {
    const row = await findException(call.db, knownCaller(call.caller).tenant, exceptionId)
    if (!row) throw notFound('exception')
    await ownStoreOf(call, row.store_id, 'exception')
    const acknowledged = await writeAcknowledged(call.db, row, {
      by: actorOf(call.caller),
      atMs: call.nowMs,
      note: note ?? row.note,
    })
    if (GATE_ALARMS.has(row.kind)) await refreshGateDisplays(call, row.store_id)
    call.changed(exceptionId)
    return { success: true as const, ...describe(acknowledged) }
  },
})
