import type { Db } from '../../persistence/database.ts'
import type { AgentRow } from '../../persistence/tables/agents.ts'
import { inScope, TOTAL_LIMIT, type ScopePage, type StoreScope } from '../../stores/store-scope.ts'

export const AGENT_STATES = ['active', 'forked', 'revoked'] as const
export type AgentListState = (typeof AGENT_STATES)[number]

export interface AgentFilter {
  state?: AgentListState | undefined
  online?: boolean | undefined
  /** Id of the last agent of the previous page. */
  after?: string | undefined
  limit: number
}

/** State of an agent in `fetchAgents`. */
export function listStateOf(row: Pick<AgentRow, 'revoked_ms' | 'fork_ms'>): AgentListState {
  if (row.revoked_ms !== null) return 'revoked'
  return row.fork_ms === null ? 'active' : 'forked'
}

/** Agents of a scope in the order of their enrolment. */
export async function listAgents(db: Db, scope: StoreScope, filter: AgentFilter): Promise<ScopePage<AgentRow>> {
  let page = matching(db, scope, filter).selectAll()
  if (filter.after !== undefined) page = page.where('agent_id', '>', filter.after)
  const rows = await page
    .orderBy('agent_id')
    .limit(filter.limit + 1)
    .execute()
  const counted = matching(db, scope, filter).select('agent_id').limit(TOTAL_LIMIT).as('counted')
  const { count } = await db
    .selectFrom(counted)
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return { rows, total: Number(count) }
}

function matching(db: Db, scope: StoreScope, { state, online }: AgentFilter) {
  let query = db.selectFrom('agent').where(inScope('agent', scope))
  if (state === 'revoked') query = query.where('revoked_ms', 'is not', null)
  else if (state !== undefined)
    query = query.where('revoked_ms', 'is', null).where('fork_ms', state === 'forked' ? 'is not' : 'is', null)
  // A revoked agent is offline, whatever it reported last.
  if (online === true) query = query.where('online', '=', 1).where('revoked_ms', 'is', null)
  else if (online === false)
    query = query
      .where('online', 'is not', null)
      .where((eb) => eb.or([eb('online', '=', 0), eb('revoked_ms', 'is not', null)]))
  return query
}
