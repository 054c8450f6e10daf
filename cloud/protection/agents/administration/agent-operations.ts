import { z } from 'zod'
import { isOlderVersion } from '../../../../policy/version.ts'
import { knownCaller, rolesFrom } from '../../../platform/foundation/caller.ts'
import { notFound, precondition } from '../../../platform/foundation/failure.ts'
import { Id, iso, Limit, definedFields, Success } from '../../../platform/operations/fields.ts'
import { operation, type Call } from '../../../platform/operations/operation.ts'
import { cursorField } from '../../../platform/operations/paging.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
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
} from '../../../platform/stores/own-store.ts'
import { shownNames } from '../../../platform/stores/make-store.ts'
import { Condition, conditionAt, type AgentCondition } from './agent-conditions.ts'
import { faultsOf, isHeard, KNOWN_MS, stateOf } from '../../agent-identity/agent-queries.ts'
import { trustLedger } from '../login/ledger-handshake.ts'
import { acknowledgeFork, endAgent } from '../enrolment/enrolment.ts'
import { findAgent } from '../../agent-identity/sessions.ts'
import type { Db } from '../../../platform/persistence/database.ts'

const AGENT_STATES = ['active', 'forked', 'revoked'] as const
type AgentListState = (typeof AGENT_STATES)[number]

interface AgentFilter {
  nowMs: number
  state?: AgentListState | undefined
  online?: boolean | undefined
  condition?: AgentCondition | undefined
  /** Id of the last agent of the previous page. */
  after?: string | undefined
  limit: number
}

const LISTED = [
  'agent_id',
  'store_id',
  'name',
  'revoked_ms',
  'fork_ms',
  'enrolled_ms',
  'last_seen_ms',
  'deny_seq',
  'item_seq',
  'generation',
  'last_seq',
  'online',
  'state',
  'faults',
] as const
type ListedAgent = Pick<Row<'agent'>, (typeof LISTED)[number]>

/** State of an agent in `fetchAgents`. */
function listStateOf(row: Pick<ListedAgent, 'revoked_ms' | 'fork_ms'>): AgentListState {
  if (row.revoked_ms !== null) return 'revoked'
  return row.fork_ms === null ? 'active' : 'forked'
}

/** Reads the agents of a scope in the order of their enrolment. */
export function agentReader(db: Db, filter: AgentFilter): ScopeReader<ListedAgent> {
  return {
    async ids(scope, limit) {
      let page = matching(db, scope, filter).select('agent_id')
      if (filter.after !== undefined) page = page.where('agent_id', '>', filter.after)
      return (await page.orderBy('agent_id').limit(limit).execute()).map((row) => row.agent_id)
    },
    count: (scope, limit) => countRows(db, matching(db, scope, filter).select('agent_id').limit(limit)),
    rows: (ids) =>
      db
        .selectFrom('agent')
        .select(LISTED)
        .where('agent_id', 'in', ids.length > 0 ? ids : [''])
        .execute(),
    idOf: (row) => row.agent_id,
    newestFirst: false,
    limit: filter.limit,
  }
}

function matching(db: Db, scope: StoreScope, { state, online, condition, nowMs }: AgentFilter) {
  const heardAfterMs = nowMs - KNOWN_MS
  let query = db.selectFrom('agent').where(inScope('agent', scope))
  if (state === 'revoked') query = query.where('revoked_ms', 'is not', null)
  else if (state !== undefined)
    query = query.where('revoked_ms', 'is', null).where('fork_ms', state === 'forked' ? 'is not' : 'is', null)
  if (condition !== undefined) query = query.where('revoked_ms', 'is', null).where(conditionAt(nowMs), '=', condition)
  // A revoked or silent agent is offline, whatever it reported last.
  if (online === true)
    query = query.where('online', '=', 1).where('revoked_ms', 'is', null).where('last_seen_ms', '>=', heardAfterMs)
  else if (online === false)
    query = query
      .where('online', 'is not', null)
      .where((eb) =>
        eb.or([eb('online', '=', 0), eb('revoked_ms', 'is not', null), eb('last_seen_ms', '<', heardAfterMs)]),
      )
  return query
}

/**
 *   active ─ its ledger exists twice (login/ledger-handshake.ts) ─▶ forked ─ resolveAgentFork: trust ──▶ active
 *      │                                                                └──── resolveAgentFork: revoke ─▶ revoked
 *      └─ revokeAgent ─▶ revoked
 *
 * Operations with which merchants list their agents, revoke them and resolve forks.
 */

const DEFAULT_PAGE = 100

const Agent = z.strictObject({
  agentId: z.string(),
  storeId: z.string(),
  name: z.string(),
  state: z.enum(AGENT_STATES).describe('`forked`: its ledger exists twice; decide with `resolveAgentFork`.'),
  online: z
    .boolean()
    .optional()
    .describe(
      'True while it is connected to the broker and the cloud hears from it; absent if it never was connected.',
    ),
  enrolledAt: z.string(),
  lastSeenAt: z
    .string()
    .describe(
      'Time at which the cloud last received anything from it: a login, an HTTP request or an MQTT packet, pings included. Up to 30 s old.',
    ),
  stateAt: z
    .string()
    .optional()
    .describe(
      'Time of its last report of release, `policyVersion` and `queueDepth`. An online agent reports every 15 s; this time is up to 90 s old.',
    ),
  release: z.string().optional().describe('Release of untag that it runs.'),
  neededRelease: z
    .string()
    .optional()
    .describe(
      '`minAgent` of the store’s policy if its release is older. The agent keeps the previous policy (`policyVersion`) until you upgrade it.',
    ),
  policyVersion: z.int().optional().describe('Version of its policy document.'),
  isPolicyCurrent: z
    .boolean()
    .optional()
    .describe(
      'True if its policy document is the current one of the store, with policy, devices and operators. Absent if it has not reported one.',
    ),
  currentPolicyVersion: z.int().describe('Version of the current policy document of its store.'),
  faults: z
    .strictObject({
      total: z.int(),
      devices: z.array(
        z.strictObject({
          deviceId: z.string(),
          name: z.string().optional().describe('Name of the device, else of its gate.'),
          fault: z.enum(['degraded', 'absent']),
        }),
      ),
    })
    .optional()
    .describe('Its devices that do not work, as it reported them last: their number, and at most ten of them.'),
  queueDepth: z.int().optional().describe('Journal rows that it has not sent yet.'),
  denyVersion: z.int(),
  itemsVersion: z.int(),
  generation: z.int(),
  ledgerSeq: z.int().describe('Last row of its ledger that the cloud stores.'),
  revokedAt: z.string().optional(),
})

function describe(
  { services, nowMs }: Pick<Call, 'services' | 'nowMs'>,
  row: ListedAgent,
  store: Pick<Row<'store'>, 'min_agent' | 'document_version'>,
  deviceNames: ReadonlyMap<string, string> = new Map(),
): z.infer<typeof Agent> {
  const state = stateOf(row)
  const lastSeenMs = services.lastSeen.lastSeenMs(row.agent_id) ?? row.last_seen_ms
  const faults = faultsOf(row)
  const isOnline = row.online === 1 && row.revoked_ms === null && isHeard(lastSeenMs, state?.closedAt, nowMs)
  return {
    agentId: row.agent_id,
    storeId: row.store_id,
    name: row.name,
    state: listStateOf(row),
    enrolledAt: iso(row.enrolled_ms),
    lastSeenAt: iso(lastSeenMs),
    denyVersion: row.deny_seq,
    itemsVersion: row.item_seq,
    generation: row.generation,
    ledgerSeq: row.last_seq,
    currentPolicyVersion: store.document_version,
    ...(row.online !== null && { online: isOnline }),
    ...(state && {
      stateAt: state.observedAt,
      ...definedFields({ release: state.release, policyVersion: state.policyVersion, queueDepth: state.queueDepth }),
      ...(state.policyVersion !== undefined && { isPolicyCurrent: state.policyVersion >= store.document_version }),
    }),
    ...(state?.release !== undefined &&
      store.min_agent !== null &&
      isOlderVersion(state.release, store.min_agent) && { neededRelease: store.min_agent }),
    ...(faults.total > 0 && {
      faults: {
        total: faults.total,
        devices: faults.devices.map((device) => ({
          ...device,
          ...definedFields({ name: deviceNames.get(device.deviceId) ?? null }),
        })),
      },
    }),
    ...(row.revoked_ms !== null && { revokedAt: iso(row.revoked_ms) }),
  }
}

/** What the description of an agent contains of its store, by id. */
async function storesOf(db: Db, storeIds: readonly string[]) {
  if (storeIds.length === 0) return new Map<string, never>()
  const rows = await db
    .selectFrom('store')
    .select(['store_id', 'min_agent', 'document_version'])
    .where('store_id', 'in', storeIds)
    .execute()
  return new Map(rows.map((row) => [row.store_id, row]))
}

export const fetchAgents = operation({
  name: 'fetchAgents',
  area: 'agents',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('viewer'),
  summary:
    'Lists the edge agents of a store or of the whole account, with connection, document versions and unsent rows.',
  description: ALL_STORES,
  changes: false,
  request: z.strictObject({
    storeId: Id.optional(),
    state: z.enum(AGENT_STATES).optional(),
    online: z
      .boolean()
      .optional()
      .describe('Agents that never had a connection to the broker match neither `true` nor `false`.'),
    condition: Condition.optional(),
    limit: Limit.optional(),
    cursor: cursorField('agt').optional(),
  }),
  response: z.strictObject({ ...Success, agents: z.array(Agent), total: Total, nextCursor: z.string().optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId, limit = DEFAULT_PAGE, cursor, ...filter }) {
    const { items, ...page } = await pageOfScopes(
      await ownScopes(call, storeId),
      agentReader(call.db, { ...filter, nowMs: call.nowMs, after: cursor, limit }),
    )
    const stores = await storesOf(call.db, [...new Set(items.map((row) => row.store_id))])
    const { devices } = await shownNames(call.db, knownCaller(call.caller).tenant, {
      devices: items.flatMap((row) => faultsOf(row).devices.map(({ deviceId }) => deviceId)),
      staff: [],
    })
    const agents = items.flatMap((row) => {
      const store = stores.get(row.store_id)
      return store ? [describe(call, row, store, devices)] : []
    })
    return { success: true as const, agents, ...page }
  },
})

export const revokeAgent = operation({
  name: 'revokeAgent',
  area: 'agents',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Revokes an edge agent for good, for example a stolen or replaced machine.',
  description:
    'The cloud rejects its next call and its broker connection. It also sends the agent a signed command. After this command the agent releases nothing, even offline. ' +
    'An offline agent does not receive the command and continues: remove the machine. ' +
    'The next agent that reports its devices adopts them. Repeating the call changes nothing.',
  changes: true,
  request: z.strictObject({ agentId: Id }),
  response: Agent.extend(Success),
  example: { agentId: 'agt_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { agentId }) {
    const { agent, store } = await ownAgent(call, agentId)
    return {
      success: true as const,
      ...describe(call, agent.revoked_ms === null ? await endAgent(call, agent, store) : agent, store),
    }
  },
})

export const resolveAgentFork = operation({
  name: 'resolveAgentFork',
  area: 'agents',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('admin'),
  summary: 'Resolves a forked agent, whose ledger exists twice: the remaining copy continues, or both are revoked.',
  description:
    'Choose `trust` only after you removed one of the two machines. The remaining machine sends its unsent rows. For 11 more minutes it needs the cloud for each claim. ' +
    'If the removed machine reports again, `agent_fork` is raised again. `revoke` does the same as revokeAgent. ' +
    'Until you decide, the agent releases nothing without the cloud and shows this at the station.',
  refusals: ['no_fork', 'agent_revoked'],
  changes: true,
  request: z.strictObject({ agentId: Id, decision: z.enum(['trust', 'revoke']) }),
  response: Agent.extend(Success),
  example: { agentId: 'agt_01KANX6Y7C3V9Q2M8R5T4W6Z1B', decision: 'trust' },
  async run(call, { agentId, decision }) {
    const { agent, store } = await ownAgent(call, agentId)
    if (agent.revoked_ms !== null) throw precondition('agent_revoked', 'the agent was revoked')
    if (agent.fork_ms === null) throw precondition('no_fork', 'this agent is not forked: there is nothing to resolve')
    if (decision === 'revoke')
      return { success: true as const, ...describe(call, await endAgent(call, agent, store), store) }
    await acknowledgeFork(call, agent)
    const trusted = await trustLedger(call, agent)
    call.changed(agentId)
    call.afterCommit(() => call.services.agents.sendCommand({ storeId: store.store_id, agentId }, { command: 'sync' }))
    return { success: true as const, ...describe(call, trusted, store) }
  },
})

async function ownAgent(call: Call, agentId: string): Promise<{ agent: Row<'agent'>; store: Row<'store'> }> {
  const agent = await findAgent(call.db, agentId)
  if (agent?.tenant !== knownCaller(call.caller).tenant) throw notFound('agent')
  return { agent, store: await ownStoreOf(call, agent.store_id, 'agent') }
}
