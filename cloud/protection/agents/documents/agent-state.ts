import { AgentState, type ReportedDevice } from '../../../../policy/documents/agent-messages.ts'
import type { AgentAddress } from '../../../../policy/mqtt-topics.ts'
import {
  healthOf,
  parsedState,
  stateColumns,
  stateOf,
  type StoredAgentState,
} from '../../agent-identity/agent-queries.ts'
import { iso, definedFields } from '../../../platform/operations/fields.ts'
import type { Db } from '../../../platform/persistence/database.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { acknowledgeOpenException, WITHDRAWN } from '../../records/exceptions.ts'

/** Minimum time between writes of a changed state, ms: a busy agent requests documents twice a second. */
const CHANGED_MS = 10_000
/**
 * Minimum time between writes of an unchanged state, ms. The time of the last write shows whether the agent is alive.
 */
const SAME_MS = 60_000

/**
 * Stores a state that an agent of this store sent over the broker. Invalid payloads are ignored. Returns the agent if
 * open pages must show the change.
 */
export async function storeState(
  db: Db,
  { storeId, agentId }: AgentAddress,
  payload: string,
  nowMs: number,
): Promise<Row<'agent'> | undefined> {
  const reported = parsedState(AgentState, payload)
  if (!reported) return undefined
  const row = await db
    .selectFrom('agent')
    .selectAll()
    .where('agent_id', '=', agentId)
    .where('store_id', '=', storeId)
    .executeTakeFirst()
  if (!row) return undefined
  const stored = stateOf(row)
  // A broker may repeat old messages, such as the last will of an earlier connection.
  const isLater = !stored || Date.parse(reported.observedAt) >= Date.parse(stored.observedAt)
  const { online, devices, ...state } = reported
  const merged = isLater ? { ...stored, ...state } : { ...state, ...stored }
  const isLatest = !stored?.devicesAt || Date.parse(reported.observedAt) >= Date.parse(stored.devicesAt)
  const report =
    devices && isLatest ? { observedAt: reported.observedAt, states: await ownStates(db, agentId, devices) } : undefined
  const next = withDevices(merged, report)
  await write(db, agentId, online ? { ...next, closedAt: undefined } : { ...next, closedAt: iso(nowMs) }, {
    online: online ? 1 : 0,
  })
  const hasNewDevices = isChanged(stored, next)
  if (hasNewDevices) await withdrawRepaired(db, row, stored, { next, nowMs })
  const isNew = hasNewDevices || stored?.policyVersion !== next.policyVersion || row.online !== (online ? 1 : 0)
  return isNew ? row : undefined
}

/** Stores that the connection of an agent has ended. Returns the agent if open pages must show the change. */
export async function storeEnd(
  db: Db,
  { storeId, agentId }: AgentAddress,
  nowMs: number,
): Promise<Row<'agent'> | undefined> {
  const row = await db
    .selectFrom('agent')
    .selectAll()
    .where('agent_id', '=', agentId)
    .where('store_id', '=', storeId)
    .where('online', '=', 1)
    .executeTakeFirst()
  if (!row) return undefined
  const stored = stateOf(row)
  if (stored) await write(db, agentId, { ...stored, closedAt: iso(nowMs) }, { online: 0 })
  else await db.updateTable('agent').set({ online: 0 }).where('agent_id', '=', agentId).execute()
  return row
}

/** No agent is connected before the embedded broker opens. A killed broker could not store that. */
export async function markAllOffline(db: Db): Promise<void> {
  await db.updateTable('agent').set({ online: 0 }).where('online', '=', 1).execute()
}

/** Health of devices as an agent sends it. `observedAt` is a time of the agent's clock. */
interface DeviceReport {
  readonly observedAt: string
  readonly states: ReportedDevice[]
}

export interface FetchReport {
  policyVersion: number | undefined
  /** Last row of the agent's ledger. */
  ledgerSeq: number | undefined
  /** Release that the agent runs. */
  release: string | undefined
  devices?: DeviceReport | undefined
}

/** Stores the state that a document request reports. Returns true if open pages must show the change. */
export async function storeFetchReport(
  db: Db,
  agent: Row<'agent'>,
  report: FetchReport,
  nowMs: number,
): Promise<boolean> {
  const stored = stateOf(agent)
  const policyVersion = report.policyVersion ?? stored?.policyVersion
  const queueDepth =
    report.ledgerSeq === undefined ? stored?.queueDepth : Math.max(0, report.ledgerSeq - agent.last_seq)
  const release = report.release ?? stored?.release
  const isSame =
    stored?.policyVersion === policyVersion && stored?.queueDepth === queueDepth && stored?.release === release
  const ageMs = stored ? nowMs - Date.parse(stored.observedAt) : Infinity
  const { devices } = report
  const next = withDevices(
    { ...stored, observedAt: iso(nowMs), ...definedFields({ policyVersion, queueDepth, release }) },
    devices && { ...devices, states: await ownStates(db, agent.agent_id, devices.states) },
  )
  const hasNewDevices = isChanged(stored, next)
  const hasNewPolicy = stored?.policyVersion !== policyVersion
  // A person who upgrades an agent, publishes a policy, or repairs a device, looks at the result at once.
  const isUrgent = hasNewPolicy || stored?.release !== release || report.devices !== undefined
  // If the agent's clock is fast, the stored time may be in the future. A stored time in the future must not delay the
  // write.
  if (!isUrgent && ageMs >= 0 && ageMs < (isSame ? SAME_MS : CHANGED_MS)) return false
  await write(db, agent.agent_id, next)
  if (hasNewDevices) await withdrawRepaired(db, agent, stored, { next, nowMs })
  return hasNewDevices || hasNewPolicy
}

/** Characters of what an agent says about a device that the cloud keeps. */
const DETAIL_LIMIT = 200

/**
 * The states of the agent's devices that are in service, and of devices that are being moved to it. What it says about others is not kept:
 * the stored states of all agents together grow with the number of registered devices.
 */
async function ownStates(db: Db, agentId: string, states: readonly ReportedDevice[]): Promise<ReportedDevice[]> {
  if (states.length === 0) return []
  const reported = new Map(states.map((each) => [each.deviceId, each]))
  const own = await db
    .selectFrom('device')
    .select('device_id')
    .where('device_id', 'in', [...reported.keys()])
    .where('revoked_ms', 'is', null)
    .where(({ or, eb }) => or([eb('agent_id', '=', agentId), eb('moving_to', '=', agentId)]))
    .execute()
  const ids = new Set(own.map((row) => row.device_id))
  return [...reported.values()]
    .filter(({ deviceId }) => ids.has(deviceId))
    .map((each) => ({ ...each, ...(each.detail !== undefined && { detail: each.detail.slice(0, DETAIL_LIMIT) }) }))
}

function withDevices(state: StoredAgentState, report: DeviceReport | undefined): StoredAgentState {
  if (!report) return state
  return { ...state, devices: report.states, devicesAt: report.observedAt }
}

function isChanged(before: StoredAgentState | undefined, after: StoredAgentState): boolean {
  return JSON.stringify(before?.devices) !== JSON.stringify(after.devices)
}

/** Withdraws the exceptions of the agent's devices that work again. The regular check would do it a minute later. */
async function withdrawRepaired(
  db: Db,
  { store_id: storeId, agent_id: agentId }: Row<'agent'>,
  before: StoredAgentState | undefined,
  { next, nowMs }: { next: StoredAgentState; nowMs: number },
): Promise<void> {
  const broken = new Set(before?.devices?.filter((device) => healthOf(device) !== 'ready').map((d) => d.deviceId))
  const repaired = (next.devices ?? []).filter((each) => healthOf(each) === 'ready' && broken.has(each.deviceId))
  if (repaired.length === 0) return
  // An agent tells about devices of its own only.
  const own = await db
    .selectFrom('device')
    .select('device_id')
    .where('agent_id', '=', agentId)
    .where(
      'device_id',
      'in',
      repaired.map((each) => each.deviceId),
    )
    .execute()
  for (const { device_id: subject } of own)
    await acknowledgeOpenException(db, { storeId, kind: 'device_not_ready', subject, by: WITHDRAWN, atMs: nowMs })
}

async function write(db: Db, agentId: string, state: StoredAgentState, more: { online?: number } = {}): Promise<void> {
  await db
    .updateTable('agent')
    .set({ ...stateColumns(state), ...more })
    .where('agent_id', '=', agentId)
    .execute()
}
