import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'

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
  const storeIds = [...new Set(started.map((row) => row.store_id))]
  const ended = await db
    .selectFrom('protection_exception')
    .selectAll()
    .where('store_id', 'in', storeIds)
    .where('kind', '=', ENDED)
    .execute()
  // The exception has the time at which the cloud stored a report; its event, the time at the agent.
  const occurred = await occurredAt(db, [...started, ...ended])
  const endOf = new Map<string, number>()
  for (const row of ended) {
    const reporter = reporterOf(row.subject)
    endOf.set(reporter, Math.max(endOf.get(reporter) ?? 0, occurred(row)))
  }
  return new Map(
    started.map((row) => {
      const startedMs = occurred(row)
      const endedMs = endOf.get(reporterOf(row.subject))
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
