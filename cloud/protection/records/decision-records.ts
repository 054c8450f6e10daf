import { sql } from 'kysely'
import type { DecisionFacts } from '../../../policy/decide.ts'
import { yieldToEventLoop } from '../../platform/operations/job-steps.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { fieldsOf, prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { deleteSome } from '../../platform/persistence/delete-some.ts'

/** Facts of past decisions, for `simulateProtectionPolicy`. */

/** Retention of decisions, ms. */
export const KEEP_DECISIONS_MS = 30 * 86_400_000
/** Maximum number of units stored per decision. */
const UNITS_LIMIT = 50

const insert = prepared((db, p: Row<'protection_decision'>) =>
  db
    .insertInto('protection_decision')
    .values(fieldsOf(p, ['event_id', 'tenant', 'store_id', 'at_ms', 'reason', 'facts']))
    .onConflict((c) => c.column('event_id').doNothing()),
)

/** Stores the facts of a decision under the id of its event. `reason` is null for a grant. */
export async function storeDecision(
  db: Db,
  { tenant, store_id }: Pick<Row<'store'>, 'tenant' | 'store_id'>,
  {
    eventId,
    atMs,
    reason,
    facts,
  }: { eventId: string; atMs: number; reason: string | null; facts: readonly DecisionFacts[] },
): Promise<void> {
  await insert(db, {
    event_id: eventId,
    tenant,
    store_id,
    at_ms: atMs,
    reason,
    facts: JSON.stringify(facts.slice(0, UNITS_LIMIT)),
  })
}

/**
 * Decisions per page. The loop yields to other work after each page, because 20 decisions with 50 units take some
 * milliseconds.
 */
const AT_A_TIME = 20

/** Decisions of a store since `sinceMs`, newest first. */
export async function* readDecisions(
  db: Db,
  storeId: string,
  sinceMs: number,
  limit: number,
): AsyncGenerator<Row<'protection_decision'>> {
  let last: Row<'protection_decision'> | undefined
  for (let left = limit; left > 0;) {
    const rows: Row<'protection_decision'>[] = await pageOfDecisions(
      db,
      storeId,
      sinceMs,
      Math.min(left, AT_A_TIME),
      last,
    )
    yield* rows
    left -= rows.length
    last = rows.at(-1)
    if (rows.length < AT_A_TIME) return
    await yieldToEventLoop()
  }
}

function pageOfDecisions(
  db: Db,
  storeId: string,
  sinceMs: number,
  limit: number,
  after: Row<'protection_decision'> | undefined,
): Promise<Row<'protection_decision'>[]> {
  let query = db
    .selectFrom('protection_decision')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('at_ms', '>=', sinceMs)
  if (after) {
    query = query
      .where('at_ms', '<=', after.at_ms)
      .where((eb) => eb.or([eb('at_ms', '<', after.at_ms), eb('event_id', '<', after.event_id)]))
  }
  return query.orderBy('at_ms', 'desc').orderBy('event_id', 'desc').limit(limit).execute()
}

/** Deletes decisions beyond the retention. */
export function pruneDecisions(db: Db, nowMs: number): Promise<number> {
  return deleteSome(db, 'protection_decision', ['event_id'], sql`at_ms < ${nowMs - KEEP_DECISIONS_MS}`)
}
