import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { foldText } from '../../../policy/fold-text.ts'
import { newId } from '../../../policy/ids.ts'
import { EXCEPTION_KINDS, type ExceptionKind } from '../../../policy/vocabulary.ts'
import { changedRows, groupBy, type Db } from '../../platform/persistence/database.ts'
import { insertChunks, prepared, preparedInsert } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { recordEvent, recordEvents, type EventScope } from './record-event.ts'

/**
 * Contradictions that staff must look at, one row per store, kind and subject. The cloud raises an exception for
 * contradictory evidence. Agents and devices report further exceptions in events (`recordReportedException`).
 */

/**
 * `acknowledged_by` of an exception that later evidence resolved. If new evidence brings the contradiction back, the
 * cloud raises the exception again.
 */
export const WITHDRAWN = 'later evidence'

interface NewException {
  storeId: string
  /** Kind from docs/reference/errors.md, such as `double_redeem`. */
  kind: ExceptionKind
  /** Exception key: one exception per store, kind and subject. */
  subject: string
  detail: string
  deviceId?: string | undefined
  purchaseId?: string | undefined
  nonce?: string | undefined
}

/** Open exceptions of one kind in a store. One exception counts further ones. */
const OPEN_OF_KIND = 1_000
/** Open exceptions of a store, above which agents and programs raise none of kinds that are not in the vocabulary. */
const OPEN_IN_STORE = 10_000
/** Subject of the exception that counts further ones. */
const FURTHER = 'further'
/** Kinds of exceptions that the cloud raises about agents, devices, keys and its own disk, and withdraws. */
export const WATCHED_KINDS = [
  'agent_silent',
  'device_not_ready',
  'policy_not_arrived',
  'disk_low',
  'key_set_not_renewed',
  'api_key_ending',
] as const satisfies readonly ExceptionKind[]
/**
 * Kinds of which each one is an exception of its own: the cloud looks for their subject later, to decide about evidence
 * or to withdraw them. There are no more than agents, devices, keys and conflicting sales.
 */
const NEVER_COUNTED: ReadonlySet<string> = new Set<ExceptionKind>([
  'sale_conflict',
  'ledger_rollback',
  ...WATCHED_KINDS,
])
const KNOWN_KINDS: ReadonlySet<string> = new Set(EXCEPTION_KINDS)

const nthOpenOfKind = prepared((db, p: { storeId: string; kind: string }) =>
  db
    .selectFrom('protection_exception')
    .select('exception_id')
    .where('store_id', '=', p.storeId)
    .where('kind', '=', p.kind)
    .where('acknowledged_ms', 'is', null)
    .limit(1)
    .offset(OPEN_OF_KIND - 1),
)

const nthOpenInStore = prepared((db, p: { storeId: string }) =>
  db
    .selectFrom('protection_exception')
    .select('exception_id')
    .where('store_id', '=', p.storeId)
    .where('acknowledged_ms', 'is', null)
    .limit(1)
    .offset(OPEN_IN_STORE - 1),
)

const bySubject = prepared((db, p: { storeId: string; kind: string; subject: string }) =>
  db
    .selectFrom('protection_exception')
    .select('exception_id')
    .where('store_id', '=', p.storeId)
    .where('kind', '=', p.kind)
    .where('subject', '=', p.subject),
)

interface ExceptionKey {
  readonly storeId: string
  readonly kind: string
  readonly subject: string
}

/** Returns whether an exception is one too many, so that `furtherOf` counts it. Reads each kind once. */
function limiter(db: Db): (key: ExceptionKey) => Promise<boolean> {
  const full = new Map<string, boolean>()
  return async (key) => {
    const { storeId, kind } = key
    const name = `${storeId} ${kind}`
    let isFull = full.get(name)
    if (isFull === undefined) {
      const rows = [
        ...(await nthOpenOfKind(db, { storeId, kind })),
        ...(KNOWN_KINDS.has(kind) ? [] : await nthOpenInStore(db, { storeId })),
      ]
      isFull = rows.length > 0
      full.set(name, isFull)
    }
    return isFull && (await bySubject(db, key)).length === 0
  }
}

const lastOfMany = (detail: string) => `${detail} (the last of many)`.trim()

/** The exception that counts this one with others. */
function furtherOf({ storeId, kind, detail }: NewException): NewException {
  return { storeId, kind, subject: FURTHER, detail: lastOfMany(detail) }
}

/**
 * Raises an exception, with a row and an event. Raises an existing exception again only if later evidence had
 * resolved it.
 */
export async function raiseException(scope: EventScope, exception: NewException): Promise<void> {
  if (!NEVER_COUNTED.has(exception.kind) && (await limiter(scope.db)(exception))) {
    const further = rowOf(scope, furtherOf(exception))
    await upsertCounted(scope.db, [further])
    return recordRaised(scope, exception, further.event_id)
  }
  const row = rowOf(scope, exception)
  const insert = scope.db
    .insertInto('protection_exception')
    .values(row)
    .onConflict((c) =>
      c
        .columns(['store_id', 'kind', 'subject'])
        .doUpdateSet({ acknowledged_ms: null, acknowledged_by: null, event_id: row.event_id, last_ms: scope.nowMs })
        .where('protection_exception.acknowledged_by', '=', WITHDRAWN),
    )
  if ((await changedRows(scope.db, insert)) === 0) return
  await recordRaised(scope, exception, row.event_id)
}

const upsertCounted = preparedInsert((db, rows: readonly ReturnType<typeof rowOf>[]) =>
  db
    .insertInto('protection_exception')
    .values(rows)
    .onConflict((c) =>
      c.columns(['store_id', 'kind', 'subject']).doUpdateSet((eb) => ({
        detail: eb.ref('excluded.detail'),
        last_ms: eb.ref('excluded.raised_ms'),
        times: eb('protection_exception.times', '+', eb.ref('excluded.times')),
        event_id: eb
          .case()
          .when('protection_exception.acknowledged_ms', 'is', null)
          .then(eb.ref('protection_exception.event_id'))
          .else(eb.ref('excluded.event_id'))
          .end(),
        acknowledged_ms: eb.lit(null),
        acknowledged_by: eb.lit(null),
      })),
    )
    .returning('event_id'),
)

/**
 * Raises exceptions and counts repetitions, with few statements. A repetition opens an acknowledged exception again and
 * records an event. While the exception is open, a repetition records no event.
 */
export async function countExceptions(scope: EventScope, reported: readonly NewException[]): Promise<void> {
  const isOver = limiter(scope.db)
  const exceptions: NewException[] = []
  for (const each of reported)
    exceptions.push(!NEVER_COUNTED.has(each.kind) && (await isOver(each)) ? furtherOf(each) : each)
  // A statement may write each row once.
  const groups = [...groupBy(exceptions, ({ storeId, kind, subject }) => `${storeId} ${kind} ${subject}`).values()]
  const counted = groups.flatMap((group) => {
    const last = group.at(-1)
    return last ? [{ exception: last, row: { ...rowOf(scope, last), times: group.length } }] : []
  })
  const raised = new Set<string>()
  for (const chunk of insertChunks(counted))
    for (const { event_id: eventId } of await upsertCounted(
      scope.db,
      chunk.map(({ row }) => row),
    ))
      raised.add(eventId ?? '')
  const events = counted.filter(({ row }) => raised.has(row.event_id))
  await recordEvents(
    scope,
    events.map(({ exception, row }) => eventOf(exception, row.event_id)),
  )
}

/** `countExceptions` for one. */
export async function countException(scope: EventScope, exception: NewException): Promise<void> {
  await countExceptions(scope, [exception])
}

function rowOf({ tenant, platform, nowMs }: EventScope, exception: NewException) {
  return {
    exception_id: newId('exc', platform),
    tenant,
    store_id: exception.storeId,
    kind: exception.kind,
    subject: exception.subject,
    device_id: exception.deviceId ?? null,
    purchase_id: exception.purchaseId ?? null,
    detail: exception.detail,
    raised_ms: nowMs,
    event_id: newId('evt', platform),
    times: 1,
  }
}

async function recordRaised(scope: EventScope, exception: NewException, eventId: string): Promise<void> {
  await recordEvent(scope, eventOf(exception, eventId))
}

function eventOf(exception: NewException, eventId: string) {
  return {
    eventId,
    type: 'protection.exception.raised' as const,
    storeId: exception.storeId,
    deviceId: exception.deviceId ?? null,
    purchaseId: exception.purchaseId ?? null,
    replayProtectedNonce: exception.nonce ?? null,
    reason: exception.kind,
    detail: exception.detail,
  }
}

/**
 * Stores an exception that an agent or device reported. A repetition opens the exception again and increases its
 * count. `reporter`: the agent. The exception key contains the reporter's id, so that the agent's reports stay
 * separate from the cloud's own exceptions.
 */
export async function recordReportedException(
  { db, tenant, platform, nowMs }: EventScope,
  event: ProtectionEvent,
  reporter?: string,
): Promise<void> {
  if (event.type !== 'protection.exception.raised') return
  const about =
    event.replayProtectedNonce ??
    event.epc ??
    event.tagUid ??
    (event.tagId && foldText(event.tagId)) ??
    event.itemLineId ??
    event.deviceId ??
    event.eventId
  const deviceId = event.deviceId ?? null
  const own = {
    storeId: event.storeId,
    kind: event.reason ?? UNNAMED,
    subject: event.reason === ENDED ? endOf(reporter ?? event.storeId) : `${reporter ?? event.storeId}/${about}`,
  }
  const isOver = await limiter(db)(own)
  const reported = {
    event_id: event.eventId,
    last_ms: nowMs,
    detail: isOver ? lastOfMany(event.detail ?? '') : (event.detail ?? ''),
    device_id: deviceId,
  }
  await db
    .insertInto('protection_exception')
    .values({
      exception_id: newId('exc', platform),
      tenant,
      store_id: event.storeId,
      kind: isOver && !KNOWN_KINDS.has(own.kind) ? UNNAMED : own.kind,
      subject: isOver ? FURTHER : own.subject,
      purchase_id: event.purchaseId ?? null,
      raised_ms: nowMs,
      times: 1,
      ...reported,
    })
    .onConflict((c) =>
      c.columns(['store_id', 'kind', 'subject']).doUpdateSet((eb) => ({
        ...reported,
        times: eb('protection_exception.times', '+', 1),
        acknowledged_ms: null,
        acknowledged_by: null,
      })),
    )
    .execute()
}

/** The tenant's exception with this id. */
export function findException(
  db: Db,
  tenant: string,
  exceptionId: string,
): Promise<Row<'protection_exception'> | undefined> {
  return db
    .selectFrom('protection_exception')
    .selectAll()
    .where('exception_id', '=', exceptionId)
    .where('tenant', '=', tenant)
    .executeTakeFirst()
}

/** Marks an exception acknowledged. */
export async function writeAcknowledged(
  db: Db,
  row: Row<'protection_exception'>,
  acknowledgement: { by: string; atMs: number; note: string | null },
): Promise<Row<'protection_exception'>> {
  const change = {
    acknowledged_ms: acknowledgement.atMs,
    acknowledged_by: acknowledgement.by,
    note: acknowledgement.note,
  }
  await db.updateTable('protection_exception').set(change).where('exception_id', '=', row.exception_id).execute()
  return { ...row, ...change }
}

/**
 * Parameters of the query that acknowledges an exception. The exception's key is store, kind and subject. The store
 * is part of the key, because devices choose some subjects.
 */
interface Acknowledgement {
  storeId: string
  kind: string
  subject: string
  by: string
  atMs: number
}

const acknowledge = prepared((db, p: Acknowledgement) =>
  db
    .updateTable('protection_exception')
    .set({ acknowledged_ms: p.atMs, acknowledged_by: p.by })
    .where('store_id', '=', p.storeId)
    .where('kind', '=', p.kind)
    .where('subject', '=', p.subject)
    .where('acknowledged_ms', 'is', null),
)

/** Acknowledges the exception with this key if it is open. */
export async function acknowledgeOpenException(db: Db, acknowledgement: Acknowledgement): Promise<void> {
  await acknowledge(db, acknowledgement)
}

/** Kind of reports without a reason, and of all kinds that are not in the vocabulary above the limit. */
const UNNAMED = 'unnamed'
/** Kinds that agents report when an emergency input becomes active, and when it clears. */
const STARTED = 'emergency_started'
const ENDED = 'emergency_ended'

/** The last emergency of an exception `emergency_started`, ms. `endedMs` is absent while it is active. */
interface EmergencyTimes {
  readonly startedMs: number
  readonly endedMs?: number
}

/** The agent that reported: the subject begins with its id. */
const reporterOf = (subject: string) => subject.split('/')[0] ?? ''
/** Subject of the last end of a reporter. All ends are one exception, so that few are read. */
const endOf = (reporter: string) => `${reporter}/end`

/**
 * Last start and end of the emergencies among these exceptions, by exception. An agent has one emergency at a time. It
 * may end at another input than it began at, so the last end of the agent counts for all of its devices.
 */
export async function emergencyTimes(
  db: Db,
  rows: readonly Row<'protection_exception'>[],
): Promise<Map<string, EmergencyTimes>> {
  const started = rows.filter(({ kind }) => kind === STARTED)
  if (started.length === 0) return new Map()
  const unique = (values: readonly string[]) => [...new Set(values)]
  const ended = await db
    .selectFrom('protection_exception')
    .selectAll()
    .where('store_id', 'in', unique(started.map((row) => row.store_id)))
    .where('kind', '=', ENDED)
    .where('subject', 'in', unique(started.map((row) => endOf(reporterOf(row.subject)))))
    .execute()
  // The exception has the time at which the cloud stored a report; its event, the time at the agent.
  const occurred = await occurredAt(db, [...started, ...ended])
  const endedMsOf = new Map(ended.map((row) => [row.subject, occurred(row)]))
  return new Map(
    started.map((row) => {
      const startedMs = occurred(row)
      const endedMs = endedMsOf.get(endOf(reporterOf(row.subject)))
      return [row.exception_id, { startedMs, ...(endedMs !== undefined && endedMs >= startedMs && { endedMs }) }]
    }),
  )
}

/** Returns the time of the last event of an exception. */
async function occurredAt(db: Db, rows: readonly Row<'protection_exception'>[]) {
  const ids = rows.flatMap(({ event_id }) => event_id ?? [])
  const events =
    ids.length === 0
      ? []
      : await db
          .selectFrom('protection_event')
          .select(['event_id', 'occurred_ms'])
          .where('event_id', 'in', ids)
          .execute()
  const times = new Map(events.map((event) => [event.event_id, event.occurred_ms]))
  return (row: Row<'protection_exception'>) => times.get(row.event_id ?? '') ?? row.last_ms ?? row.raised_ms
}
