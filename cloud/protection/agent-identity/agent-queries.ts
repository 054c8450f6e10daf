import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { endLogins } from './sessions.ts'
import type { LastSeen } from '../../platform/foundation/ports.ts'
import { z } from 'zod'
import { AgentState, DEVICE_HEALTH, type ReportedDevice } from '../../../policy/documents/agent-messages.ts'
import { VersionNumber } from '../../../policy/version.ts'
import { definedFields } from '../../platform/operations/fields.ts'

/**
 * State that an agent reports, for display only. The broker delivers the state when the agent connects and
 * disconnects, and when the health of a device changes. The agent also sends the state over HTTP with each document
 * request, at least every 15 s.
 *
 * `closedAt`: time at which its connection to the broker ended; absent while it is connected.
 */
const StoredState = AgentState.omit({ online: true, devices: true })
  .extend({ release: VersionNumber.optional(), closedAt: z.iso.datetime().optional() })
  .strip()
/** The devices of its own that it reports: up to 80 kB, so lists of agents do not read them. `devicesAt`: time of the agent's clock. */
const StoredDevices = AgentState.pick({ devices: true }).required().extend({ devicesAt: z.iso.datetime() }).strip()
export type StoredAgentState = z.infer<typeof StoredState> & Partial<z.infer<typeof StoredDevices>>

/** Maximum length of a reported state, characters. */
const STATE_LIMIT = 120_000
/**
 * Time after which a report no longer counts, ms: several polls of the agent, and the write of the last contact by
 * another process (`LAST_SEEN_FLUSH_MS`).
 */
export const KNOWN_MS = 90_000
/** An agent that closes its connection sends its last packets within this time, ms. */
const CLOSING_MS = 2_000

/** Parses a stored state, with the devices if they were read. Returns undefined if the text is missing or invalid. */
export function stateOf(agent: { state: string | null; device_states?: string | null }): StoredAgentState | undefined {
  const state = parsedState(StoredState, agent.state)
  return state && { ...state, ...parsedState(StoredDevices, agent.device_states ?? null) }
}

/** The columns that hold a state. */
export function stateColumns({ devices, devicesAt, ...state }: StoredAgentState) {
  const faults = (devices ?? []).flatMap((device) => {
    const fault = healthOf(device)
    return fault === 'ready' ? [] : [{ deviceId: device.deviceId, fault }]
  })
  return {
    state: JSON.stringify(state),
    device_states: devices && devicesAt ? JSON.stringify({ devices, devicesAt }) : null,
    policy_version: state.policyVersion ?? null,
    faults:
      faults.length === 0 ? null : JSON.stringify({ total: faults.length, devices: faults.slice(0, FAULTS_LIMIT) }),
  }
}

/** Faulty devices of an agent that lists name. */
const FAULTS_LIMIT = 10

/** The devices of an agent that do not work, as lists of agents show them: some of them, and their number. */
const StoredFaults = z.object({
  total: z.int(),
  devices: z.array(z.object({ deviceId: z.string(), fault: z.enum(['degraded', 'absent']) })),
})

/** Parses the faults of an agent. */
export function faultsOf({ faults }: { faults: string | null }): z.infer<typeof StoredFaults> {
  return parsedState(StoredFaults, faults) ?? { total: 0, devices: [] }
}

/** Parses a state by `schema`. Returns undefined if the text is missing, too long or invalid. */
export function parsedState<T>(schema: z.ZodType<T>, text: string | null): T | undefined {
  if (text === null || text.length > STATE_LIMIT) return undefined
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

const UNKNOWN_HEALTH = ['no_agent', 'agent_offline', 'not_reported'] as const

/** Health of a device, as its agent reported it last. */
export const DeviceHealth = z.strictObject({
  state: z
    .enum([...DEVICE_HEALTH, 'unknown'])
    .describe(
      '`degraded`: it answers, but a person must change something. `absent`: it does not answer its agent. `unknown`: see `unknownBecause`.',
    ),
  unknownBecause: z
    .enum(UNKNOWN_HEALTH)
    .optional()
    .describe(
      'Why the state is unknown. `agent_offline`: the cloud does not hear from the agent. `not_reported`: the agent has no such device.',
    ),
  detail: z.string().optional().describe('What the agent says about it: the fault, or the model of a ready device.'),
  since: z.string().optional().describe('Time since which it is ready, is not ready, or is unknown.'),
  readsTags: z
    .boolean()
    .optional()
    .describe('Of exit gates. False: no device reads tags there, so that the gate opens, and sees no goods.'),
})
export type DeviceHealth = z.infer<typeof DeviceHealth>

/** An agent that was not revoked, as the health of its devices needs it. */
export interface ReportingAgent {
  readonly state: StoredAgentState | undefined
  /** Last contact, ms since 1970. */
  readonly lastSeenMs: number
}

/** Health of the device of this agent; undefined: the device has no agent. */
export function deviceHealth(deviceId: string, agent: ReportingAgent | undefined, nowMs: number): DeviceHealth {
  if (!agent) return { state: 'unknown', unknownBecause: 'no_agent' }
  const { state } = agent
  if (!isHeard(agent.lastSeenMs, state?.closedAt, nowMs))
    return {
      state: 'unknown',
      unknownBecause: 'agent_offline',
      ...(agent.lastSeenMs > 0 && { since: new Date(agent.lastSeenMs).toISOString() }),
    }
  const reported = state?.devices?.find((device) => device.deviceId === deviceId)
  if (!reported) return { state: 'unknown', unknownBecause: 'not_reported' }
  const { detail, since, readsTags } = reported
  return { state: healthOf(reported), ...definedFields({ detail, since, readsTags }) }
}

/** True if the agent contacted the cloud recently, and after the end of its connection to the broker. */
export function isHeard(lastSeenMs: number, closedAt: string | undefined, nowMs: number): boolean {
  if (nowMs - lastSeenMs > KNOWN_MS) return false
  return closedAt === undefined || lastSeenMs > Date.parse(closedAt) + CLOSING_MS
}

/** Older agents report further states, in all of which the device does not work. */
export function healthOf({ state }: Pick<ReportedDevice, 'state'>): (typeof DEVICE_HEALTH)[number] {
  return DEVICE_HEALTH.find((health) => health === state) ?? 'absent'
}

/**
 * Time at which the cloud last received anything from each agent: an HTTP request, a login or an MQTT packet. The times
 * stay in memory, so that requests do not wait for a write. `flush` writes the times every 30 s.
 */

/** Time between two writes, ms. After a crash, at most the times of this period are lost. */
export const LAST_SEEN_FLUSH_MS = 30_000
/** Maximum number of agents in memory. Until the next write, the times of further agents are ignored. */
const NOTED_LIMIT = 50_000
/** Agents per transaction, so that other writes do not wait long. */
const BATCH = 200

/** Creates an empty record of times. */
export function lastSeen(): LastSeen {
  let noted = new Map<string, number>()
  let writing: ReadonlyMap<string, number> = new Map()
  return {
    note(agentId, nowMs) {
      if (noted.size < NOTED_LIMIT || noted.has(agentId)) noted.set(agentId, nowMs)
    },
    lastSeenMs: (agentId) => noted.get(agentId) ?? writing.get(agentId),
    async flush(database) {
      if (noted.size === 0) return
      writing = noted
      noted = new Map()
      const rows = [...writing]
      try {
        for (let i = 0; i < rows.length; i += BATCH)
          await database.write((db) => writeAll(db, rows.slice(i, i + BATCH)))
      } catch (error) {
        // If the write fails, the next flush writes these times, unless newer times have replaced them.
        noted = new Map([...writing, ...noted])
        throw error
      } finally {
        writing = new Map()
      }
    },
  }
}

async function writeAll(db: Db, rows: readonly (readonly [agentId: string, ms: number])[]): Promise<void> {
  for (const [agentId, ms] of rows) await writeLastSeen(db, agentId, ms)
}

/**
 * Stores the time at which the cloud last heard from an agent. A login calls this function at once, because
 * `replacePredecessor` treats an agent without such a time as never logged in.
 */
export async function writeLastSeen(db: Db, agentId: string, ms: number): Promise<void> {
  await db.updateTable('agent').set({ last_seen_ms: ms }).where('agent_id', '=', agentId).execute()
}

/** Returns the ids in `agentIds` that belong to revoked agents. */
export async function revokedAmong(db: Db, agentIds: readonly string[]): Promise<string[]> {
  const rows = await db
    .selectFrom('agent')
    .select('agent_id')
    .where('agent_id', 'in', [...agentIds])
    .where('revoked_ms', 'is not', null)
    .execute()
  return rows.map((row) => row.agent_id)
}

/**
 * Marks the ledger as forked. Returns the time at which the cloud first detected the fork, ms, and whether that is now.
 * Returns undefined if staff have trusted one copy since this agent was read: then the contradiction is an old one.
 */
export async function markForked(
  db: Db,
  { agent_id: agentId, generation }: Pick<Row<'agent'>, 'agent_id' | 'generation'>,
  nowMs: number,
): Promise<{ forkMs: number; isNew: boolean } | undefined> {
  const row = await db
    .selectFrom('agent')
    .select('fork_ms')
    .where('agent_id', '=', agentId)
    .where('generation', '=', generation)
    .executeTakeFirst()
  if (!row) return undefined
  if (row.fork_ms !== null) return { forkMs: row.fork_ms, isNew: false }
  await db.updateTable('agent').set({ fork_ms: nowMs }).where('agent_id', '=', agentId).execute()
  return { forkMs: nowMs, isNew: true }
}

/** Exception key of `agent_fork`. Each fork that staff must resolve has its own key. */
export function forkKey(agentId: string, forkMs: number): string {
  return `${agentId}/${forkMs}`
}

/** Marks an agent revoked, ends its logins and frees its devices. */
export async function writeRevoked(db: Db, agentId: string, nowMs: number): Promise<void> {
  await db.updateTable('agent').set({ revoked_ms: nowMs }).where('agent_id', '=', agentId).execute()
  await endLogins(db, agentId)
  await db.deleteFrom('agent_challenge').where('agent_id', '=', agentId).execute()
  await db.updateTable('device').set({ agent_id: null }).where('agent_id', '=', agentId).execute()
}

/** All agents with their stores, also revoked agents, in a fixed order. */
export async function listBrokerAgents(db: Db): Promise<{ agentId: string; storeId: string; isRevoked: boolean }[]> {
  const rows = await db.selectFrom('agent').select(['agent_id', 'store_id', 'revoked_ms']).orderBy('agent_id').execute()
  return rows.map((row) => ({ agentId: row.agent_id, storeId: row.store_id, isRevoked: row.revoked_ms !== null }))
}

/** Maximum number of agents that `agentsSeenSince` returns. */
const SEEN_LIMIT = 50_000

/** Agents from which the cloud heard since this time, except revoked agents. */
export async function agentsSeenSince(db: Db, sinceMs: number): Promise<{ agentId: string; storeId: string }[]> {
  const rows = await db
    .selectFrom('agent')
    .select(['agent_id', 'store_id'])
    .where('last_seen_ms', '>=', sinceMs)
    .where('revoked_ms', 'is', null)
    .limit(SEEN_LIMIT)
    .execute()
  return rows.map((row) => ({ agentId: row.agent_id, storeId: row.store_id }))
}
