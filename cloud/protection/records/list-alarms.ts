import { sql } from 'kysely'
import type { Db } from '../../platform/persistence/database.ts'
import { TOTAL_LIMIT } from '../../platform/stores/store-scope.ts'

/** States of an alarm, in the order in which staff work on it. */
export const ALARM_STATES = ['open', 'acknowledged', 'disposed'] as const
export type AlarmState = (typeof ALARM_STATES)[number]

/** Which alarms of a store a listing contains. */
export interface AlarmFilter {
  readonly storeId: string
  readonly state: AlarmState
  readonly disposition: string | undefined
  /** Only alarms of this gate; not for `disposed`. */
  readonly deviceId?: string | undefined
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
export interface ListedAlarm extends AlarmPosition {
  readonly eventId: string
}

const LATEST = Number.MAX_SAFE_INTEGER

/** Literals, because SQLite would not use the partial indexes with parameters. */
const IS_ALARM = sql<boolean>`kind IN ('gate_alarm', 'gate_bulk_alarm')`

/** Alarms of a store in one state, the latest first: at most `limit` + 1 rows, and the number of all. */
export async function listAlarms(db: Db, filter: AlarmFilter): Promise<{ rows: ListedAlarm[]; total: number }> {
  const { after, limit } = filter
  let page = db.selectFrom(matching(db, filter).as('alarm')).selectAll()
  if (after)
    page = page.where((eb) =>
      eb.or([eb('at_ms', '<', after.atMs), eb.and([eb('at_ms', '=', after.atMs), eb('id', '<', after.id)])]),
    )
  const rows = await page
    .orderBy('at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(limit + 1)
    .execute()
  const { count } = await db
    .selectFrom(db.selectFrom(matching(db, filter).as('alarm')).select('id').limit(TOTAL_LIMIT).as('counted'))
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return {
    rows: rows.map(({ at_ms, id, event_id }) => ({ atMs: Number(at_ms), id, eventId: event_id })),
    total: Number(count),
  }
}

function matching(db: Db, { storeId, state, disposition, deviceId, sinceMs, untilMs = LATEST }: AlarmFilter) {
  if (state === 'disposed') {
    const disposed = db
      .selectFrom('alarm_disposition')
      .select(['disposed_ms as at_ms', 'event_id as id', 'event_id'])
      .where('store_id', '=', storeId)
      .where('disposed_ms', '>=', sinceMs)
      .where('disposed_ms', '<=', untilMs)
    return disposition === undefined ? disposed : disposed.where('disposition', '=', disposition)
  }
  const all = db
    .selectFrom('protection_exception')
    .where('protection_exception.store_id', '=', storeId)
    .where(IS_ALARM)
    .where('protection_exception.event_id', 'is not', null)
  const alarms = deviceId === undefined ? all : all.where('protection_exception.device_id', '=', deviceId)
  if (state === 'open')
    return alarms
      .select(['last_ms as at_ms', 'exception_id as id', 'event_id'])
      .where('acknowledged_ms', 'is', null)
      .where('last_ms', '>=', sinceMs)
      .where('last_ms', '<=', untilMs)
      .$narrowType<{ at_ms: number; event_id: string }>()
  return alarms
    .select(['acknowledged_ms as at_ms', 'exception_id as id', 'event_id'])
    .where('acknowledged_ms', 'is not', null)
    .where('acknowledged_ms', '>=', sinceMs)
    .where('acknowledged_ms', '<=', untilMs)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('alarm_disposition')
            .select('alarm_disposition.event_id')
            .whereRef('alarm_disposition.event_id', '=', 'protection_exception.event_id')
            .whereRef('alarm_disposition.tenant', '=', 'protection_exception.tenant'),
        ),
      ),
    )
    .$narrowType<{ at_ms: number; event_id: string }>()
}
