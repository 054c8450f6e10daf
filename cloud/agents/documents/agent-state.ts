import type { z } from 'zod'
import { AgentState } from '../../../policy/documents/agent-messages.ts'
import type { AgentAddress } from '../../../policy/mqtt-topics.ts'
import { VersionNumber } from '../../../policy/version.ts'
import { iso, definedFields } from '../../operations/fields.ts'
import type { Db } from '../../persistence/database.ts'
import type { AgentRow } from '../../persistence/tables/agents.ts'

/**
 * State that an agent reports, for display only. The broker delivers the state when the agent connects and
 * disconnects. The agent also sends the state over HTTP with each document request, at least every 15 s.
 */
const StoredState = AgentState.omit({ online: true }).extend({ release: VersionNumber.optional() }).strip()
export type StoredAgentState = z.infer<typeof StoredState>

/** Maximum length of a reported state, characters. */
const STATE_LIMIT = 120_000
/** Minimum time between writes of a changed state, ms: a busy agent requests documents twice a second. */
const CHANGED_MS = 10_000
/**
 * Minimum time between writes of an unchanged state, ms. The time of the last write shows whether the agent is alive.
 */
const SAME_MS = 60_000

/** Parses a stored state. Returns undefined if the text is missing or invalid. */
export function stateOf(text: string | null): StoredAgentState | undefined {
  return parsed(StoredState, text)
}

/** Stores a state that an agent of this store sent over the broker. Invalid payloads are ignored. */
export async function storeState(db: Db, { storeId, agentId }: AgentAddress, payload: string): Promise<void> {
  const reported = parsed(AgentState, payload)
  if (!reported) return
  const row = await db
    .selectFrom('agent')
    .select('state')
    .where('agent_id', '=', agentId)
    .where('store_id', '=', storeId)
    .executeTakeFirst()
  if (!row) return
  const stored = stateOf(row.state)
  // A broker may repeat old messages, such as the last will of an earlier connection.
  const isLater = !stored || Date.parse(reported.observedAt) >= Date.parse(stored.observedAt)
  const { online, ...state } = reported
  await write(db, agentId, isLater ? { ...stored, ...state } : { ...state, ...stored }, { online: online ? 1 : 0 })
}

/** No agent is connected before the embedded broker opens. A killed broker could not store that. */
export async function markAllOffline(db: Db): Promise<void> {
  await db.updateTable('agent').set({ online: 0 }).where('online', '=', 1).execute()
}

export interface FetchReport {
  policyVersion: number | undefined
  /** Last row of the agent's ledger. */
  ledgerSeq: number | undefined
  /** Release that the agent runs. */
  release: string | undefined
}

/** Stores the state that a document request reports. */
export async function storeFetchReport(db: Db, agent: AgentRow, report: FetchReport, nowMs: number): Promise<void> {
  const stored = stateOf(agent.state)
  const policyVersion = report.policyVersion ?? stored?.policyVersion
  const queueDepth =
    report.ledgerSeq === undefined ? stored?.queueDepth : Math.max(0, report.ledgerSeq - agent.last_seq)
  const release = report.release ?? stored?.release
  const isSame =
    stored?.policyVersion === policyVersion && stored?.queueDepth === queueDepth && stored?.release === release
  const ageMs = stored ? nowMs - Date.parse(stored.observedAt) : Infinity
  // If the agent's clock is fast, the stored time may be in the future. A stored time in the future must not delay the
  // write.
  // A person who upgrades an agent looks at its release at once.
  const isUpgraded = stored?.release !== release
  if (!isUpgraded && ageMs >= 0 && ageMs < (isSame ? SAME_MS : CHANGED_MS)) return
  await write(db, agent.agent_id, {
    ...stored,
    observedAt: iso(nowMs),
    ...definedFields({ policyVersion, queueDepth, release }),
  })
}

async function write(db: Db, agentId: string, state: StoredAgentState, more: { online?: number } = {}): Promise<void> {
  await db
    .updateTable('agent')
    .set({ state: JSON.stringify(state), ...more })
    .where('agent_id', '=', agentId)
    .execute()
}

function parsed<T>(schema: z.ZodType<T>, text: string | null): T | undefined {
  if (text === null || text.length > STATE_LIMIT) return undefined
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
