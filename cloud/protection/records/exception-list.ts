import { firstIdAt } from '../../../policy/ids.ts'
import { GATE_ALARMS } from '../../../policy/vocabulary.ts'
import type { Db } from '../../persistence/database.ts'
import type { ProtectionExceptionRow } from '../../persistence/tables/protection.ts'
import { inScope, TOTAL_LIMIT, type ScopePage, type StoreScope } from '../../stores/store-scope.ts'

export interface ExceptionFilter {
  state?: 'open' | 'acknowledged' | undefined
  kind?: string | undefined
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

/** Exceptions of a scope, newest first. */
export async function listExceptions(
  db: Db,
  scope: StoreScope,
  filter: ExceptionFilter,
): Promise<ScopePage<ProtectionExceptionRow>> {
  let page = matching(db, scope, filter).selectAll()
  if (filter.after !== undefined) page = page.where('exception_id', '<', filter.after)
  const rows = await page
    .orderBy('exception_id', 'desc')
    .limit(filter.limit + 1)
    .execute()
  const counted = matching(db, scope, filter).select('exception_id').limit(TOTAL_LIMIT).as('counted')
  const { count } = await db
    .selectFrom(counted)
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return { rows, total: Number(count) }
}

/** Exceptions that match the filter. The bounds on ids limit the index scan to the time range. */
function matching(db: Db, scope: StoreScope, { state, kind, withoutAlarms, sinceMs, untilMs }: ExceptionFilter) {
  let query = db.selectFrom('protection_exception').where(inScope('protection_exception', scope))
  if (state !== undefined) query = query.where('acknowledged_ms', state === 'open' ? 'is' : 'is not', null)
  if (kind !== undefined) query = query.where('kind', '=', kind)
  if (withoutAlarms) query = query.where('kind', 'not in', [...GATE_ALARMS])
  if (sinceMs !== undefined)
    query = query.where('raised_ms', '>=', sinceMs).where('exception_id', '>=', firstIdAt('exc', sinceMs - ID_GUARD_MS))
  if (untilMs !== undefined)
    query = query.where('raised_ms', '<', untilMs).where('exception_id', '<', firstIdAt('exc', untilMs + ID_GUARD_MS))
  return query
}
