import { z } from 'zod'
import { actorOf, knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import { Id, iso, Limit, definedFields, Success, Timestamp, lines, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField } from '../../platform/operations/paging.ts'
import type { Row } from '../../platform/persistence/schema.ts'
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
import { sql } from 'kysely'
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
  limit: number
}

/**
 * Maximum difference between the time in an id and `raised_ms`, ms. The two times come from two readings of the clock.
 */
const ID_GUARD_MS = 60_000

/** Reads the exceptions of a scope, newest first. */
export function exceptionReader(db: Db, filter: ExceptionFilter): ScopeReader<Row<'protection_exception'>> {
  return {
    async ids(scope, limit) {
      let page = matching(db, scope, filter).select('exception_id')
      if (filter.after !== undefined) page = page.where('exception_id', '<', filter.after)
      return (await page.orderBy('exception_id', 'desc').limit(limit).execute()).map((row) => row.exception_id)
    },
    count: (scope, limit) => countRows(db, matching(db, scope, filter).select('exception_id').limit(limit)),
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

/** Exceptions that match the filter. The bounds on ids limit the index scan to the time range. */
function matching(db: Db, scope: StoreScope, filter: ExceptionFilter) {
  const { state, kind, kinds, otherThan, withoutAlarms, sinceMs, untilMs } = filter
  let query = db.selectFrom('protection_exception').where(inScope('protection_exception', scope))
  if (state !== undefined) query = query.where('acknowledged_ms', state === 'open' ? 'is' : 'is not', null)
  if (kind !== undefined) query = query.where('kind', '=', kind)
  // Not a plain column: with a list of kinds the planner would leave the order of the index, and sort all rows.
  const unindexed = sql<string>`kind || ''`
  if (kinds !== undefined) query = query.where(unindexed, 'in', kinds)
  if (otherThan !== undefined) query = query.where(unindexed, 'not in', otherThan)
  if (withoutAlarms) query = query.where('kind', 'not in', [...GATE_ALARMS])
  if (sinceMs !== undefined)
    query = query.where('raised_ms', '>=', sinceMs).where('exception_id', '>=', firstIdAt('exc', sinceMs - ID_GUARD_MS))
  if (untilMs !== undefined)
    query = query.where('raised_ms', '<', untilMs).where('exception_id', '<', firstIdAt('exc', untilMs + ID_GUARD_MS))
  return query
}

const DEFAULT_PAGE = 50
const STATES = ['open', 'acknowledged'] as const
const Kinds = z.array(text(60)).min(1).max(100)

const Exception = z.strictObject({
  exceptionId: z.string(),
  storeId: z.string(),
  kind: z.string().describe('Kind from docs/reference/errors.md, “Exceptions”.'),
  subject: z.string().describe('Object that the exception is about. There is one exception per kind and subject.'),
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
  description: `There is one exception per kind and subject. The cloud raises an exception that it finds itself once. It counts repeated reports of a device or agent, and each opens the exception again. ${ALL_STORES}`,
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
    total: Total,
    nextCursor: z.string().optional(),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', state: 'open' },
  async run(call, { storeId, since, until, limit = DEFAULT_PAGE, cursor, ...filter }) {
    const times = { sinceMs: timeOf(since), untilMs: timeOf(until) }
    const { items, ...page } = await pageOfScopes(
      await ownScopes(call, storeId),
      exceptionReader(call.db, { ...filter, ...times, after: cursor, limit }),
    )
    return { success: true as const, exceptions: await describeAll(call, items), ...page }
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
