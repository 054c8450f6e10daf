import type { Db } from '../../../platform/persistence/database.ts'
import { prepared } from '../../../platform/persistence/prepared.ts'
import { stateOf } from '../../agent-identity/reported-state.ts'

/** Kinds of exceptions that the cloud raises about agents, devices, keys and its own disk. */
export const WATCHED_KINDS = [
  'agent_silent',
  'device_not_ready',
  'policy_not_arrived',
  'disk_low',
  'key_set_not_renewed',
  'api_key_ending',
] as const
export type WatchedKind = (typeof WATCHED_KINDS)[number]

/** An agent as the cloud knows it. Times in ms since 1970. */
export interface WatchedAgent {
  readonly agent_id: string
  readonly tenant: string
  readonly store_id: string
  readonly last_seen_ms: number
  /** JSON of the last state that the agent reported. */
  readonly state: string | null
  /** Policy version of the store. */
  readonly policy_version: number
}

/** Something that does not work. If the incident lasts, the cloud raises an exception. */
export interface Incident {
  readonly tenant: string
  readonly storeId: string
  readonly kind: WatchedKind
  /** Key of the exception: the id of the agent, device or API key, or `cloud`. */
  readonly subject: string
  readonly deviceId?: string
  readonly detail: string
  /**
   * Start of the incident, ms since 1970. Undefined if unknown: `AgentWatch` then uses the time at which it first saw
   * the incident.
   */
  readonly sinceMs: number | undefined
}

const agentsAfter = prepared((db, p: { agentId: string; limit: number }) =>
  db
    .selectFrom('agent')
    .innerJoin('store', 'store.store_id', 'agent.store_id')
    .select([
      'agent.agent_id',
      'agent.tenant',
      'agent.store_id',
      'agent.last_seen_ms',
      'agent.state',
      'store.policy_version',
    ])
    .where('agent.agent_id', '>', p.agentId)
    .where('agent.revoked_ms', 'is', null)
    .where('agent.last_seen_ms', '>', 0)
    .orderBy('agent.agent_id')
    .limit(p.limit),
)

/** The next agents in the order of their ids. Agents that never logged in, or were revoked, are left out. */
export function readAgentsAfter(db: Db, agentId: string, limit: number): Promise<WatchedAgent[]> {
  return agentsAfter(db, { agentId, limit })
}

/**
 * Everything about this agent that does not work now. The state of a silent agent is unknown, so its devices and its
 * policy cause no incident of their own.
 */
export function incidentsOf(agent: WatchedAgent, silentAfterMs: number, nowMs: number): Incident[] {
  const about = { tenant: agent.tenant, storeId: agent.store_id }
  const silentMs = nowMs - agent.last_seen_ms
  if (silentMs > silentAfterMs)
    return [
      {
        ...about,
        kind: 'agent_silent',
        subject: agent.agent_id,
        detail: `the agent has not contacted the cloud since ${new Date(agent.last_seen_ms).toISOString()}`,
        sinceMs: agent.last_seen_ms,
      },
    ]
  const state = stateOf(agent.state)
  const incidents: Incident[] = (state?.devices ?? [])
    .filter((device) => device.state !== 'ready')
    .map((device) => ({
      ...about,
      kind: 'device_not_ready',
      subject: device.deviceId,
      deviceId: device.deviceId,
      detail: `the device is ${device.state}${device.detail === undefined ? '' : `: ${device.detail}`}`,
      sinceMs: undefined,
    }))
  const version = state?.policyVersion
  if (version !== undefined && version < agent.policy_version)
    incidents.push({
      ...about,
      kind: 'policy_not_arrived',
      subject: agent.agent_id,
      detail: `the agent uses policy ${version}, and the store has policy ${agent.policy_version}`,
      sinceMs: undefined,
    })
  return incidents
}
