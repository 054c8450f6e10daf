import { sql, type RawBuilder } from 'kysely'
import { z } from 'zod'
import { rolesFrom } from '../../../platform/foundation/caller.ts'
import { Id, Success } from '../../../platform/operations/fields.ts'
import { operation } from '../../../platform/operations/operation.ts'
import type { Db } from '../../../platform/persistence/database.ts'
import { ALL_STORES, inScope, ownScopes, TOTAL_LIMIT, type StoreScope } from '../../../platform/stores/own-store.ts'
import { KNOWN_MS } from '../../agent-identity/agent-queries.ts'

/**
 * What is wrong with an agent, the worst first. An agent has one condition: the first that holds. The state of an
 * agent that the cloud does not hear from is unknown, so its policy and its devices say nothing.
 */
export const AGENT_CONDITIONS = ['forked', 'offline', 'behind', 'fault', 'never', 'ok'] as const
export type AgentCondition = (typeof AGENT_CONDITIONS)[number]

/** Schema of a condition in requests and answers. */
export const Condition = z
  .enum(AGENT_CONDITIONS)
  .describe(
    'The worst that is wrong with an agent that is not revoked. `forked`: its ledger exists twice. `offline`: the cloud does not hear from it. `behind`: it uses an older policy document than the current one of its store. `fault`: one of its devices does not work. `never`: it was enrolled, and has not reported yet.',
  )

/** SQL: the condition of an agent that is not revoked. */
export function conditionAt(nowMs: number): RawBuilder<AgentCondition> {
  const heardAfterMs = nowMs - KNOWN_MS
  return sql<AgentCondition>`CASE
    WHEN agent.fork_ms IS NOT NULL THEN 'forked'
    WHEN agent.online IS NULL AND agent.state IS NULL THEN 'never'
    WHEN agent.online = 0 OR agent.last_seen_ms < ${heardAfterMs} THEN 'offline'
    WHEN agent.policy_version <
      (SELECT document_version FROM store WHERE store.store_id = agent.store_id) THEN 'behind'
    WHEN agent.faults IS NOT NULL THEN 'fault'
    ELSE 'ok' END`
}

/** Scopes of named stores as one condition: a user may have a hundred stores. */
function inScopes(scopes: readonly StoreScope[]) {
  const storeIds = scopes.flatMap((scope) => ('storeId' in scope ? [scope.storeId] : []))
  const [first] = scopes
  if (first && !('storeId' in first)) return inScope('agent', first)
  return sql<boolean>`agent.store_id IN (${sql.join(storeIds.length > 0 ? storeIds : [''])})`
}

/** Number of agents of each condition, with one query. Counts at most `TOTAL_LIMIT` agents. */
export async function countConditions(
  db: Db,
  scopes: readonly StoreScope[],
  nowMs: number,
): Promise<Map<AgentCondition, number>> {
  const listed = db
    .selectFrom('agent')
    .select(conditionAt(nowMs).as('condition'))
    .where(inScopes(scopes))
    .where('revoked_ms', 'is', null)
    .limit(TOTAL_LIMIT)
  const rows = await db
    .selectFrom(listed.as('listed'))
    .select((eb) => ['condition', eb.fn.countAll().as('count')])
    .groupBy('condition')
    .execute()
  return new Map(rows.map(({ condition, count }) => [condition, Number(count)]))
}

export const fetchAgentConditions = operation({
  name: 'fetchAgentConditions',
  area: 'agents',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('viewer'),
  summary: 'Counts the edge agents of a store or of the whole account by what is wrong with them.',
  description: `Revoked agents are not counted. \`fetchAgents\` lists the agents of a condition. ${ALL_STORES}`,
  changes: false,
  request: z.strictObject({ storeId: Id.optional() }),
  response: z.strictObject({
    ...Success,
    total: z.int().describe(`Agents that are not revoked; ${TOTAL_LIMIT} means that many or more.`),
    conditions: z
      .array(z.strictObject({ condition: Condition, agents: z.int() }))
      .describe('Every condition, the worst first.'),
  }),
  example: {},
  async run(call, { storeId }) {
    const counts = await countConditions(call.db, await ownScopes(call, storeId), call.nowMs)
    const conditions = AGENT_CONDITIONS.map((condition) => ({ condition, agents: counts.get(condition) ?? 0 }))
    return { success: true as const, total: conditions.reduce((sum, { agents }) => sum + agents, 0), conditions }
  },
})
