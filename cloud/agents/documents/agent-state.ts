import type { z } from 'zod'
import { AgentState } from '../../../policy/documents/agent-messages.ts'
import { Release } from '../../../policy/release.ts'
import { iso, definedFields } from '../../operations/fields.ts'
import type { Db } from '../../persistence/database.ts'
import type { AgentRow } from '../../persistence/tables/agents.ts'

/**
 *   state over the broker ─┐
 *                          ├─▶ what was said last ──▶ fetchAgents
 *   look over HTTP ────────┘
 *
 * What an agent says of itself, for people; nothing rests on it. Over the broker it says so when its line begins and ends,
 * with its looks at the documents every 15 s, broker or not.
 */
const StoredState = AgentState.omit({ online: true }).extend({ release: Release.optional() }).strip()
export type KeptState = z.infer<typeof StoredState>

/** Characters of a state that are looked at. */
const STATE_LIMIT = 120_000
/** What looks say is written down so often at most, ms: a busy agent looks twice a second. */
const CHANGED_MS = 10_000
/** And so often while nothing changes, ms: its age tells whether the agent is there. */
const SAME_MS = 60_000

/** What is kept of an agent's words; undefined when there is nothing. */
export function stateOf(text: string | null): KeptState | undefined {
  return parsed(StoredState, text)
}

/** Keeps what an agent said over the broker. What is not a state is passed over. */
export async function storeState(db: Db, agentId: string, payload: string): Promise<void> {
  const told = parsed(AgentState, payload)
  if (!told) return
  const row = await db.selectFrom('agent').select('state').where('agent_id', '=', agentId).executeTakeFirst()
  const kept = stateOf(row?.state ?? null)
  // A broker says again what it was told long ago, such as the last will of a line.
  const isLater = !kept || Date.parse(told.observedAt) >= Date.parse(kept.observedAt)
  const { online, ...state } = told
  await write(db, agentId, isLater ? { ...kept, ...state } : { ...state, ...kept }, { online: online ? 1 : 0 })
}

export interface FetchReport {
  policyVersion: number | undefined
  /** The end of the agent's ledger. */
  ledgerSeq: number | undefined
  /** What it runs. */
  release: string | undefined
}

/** Keeps what a look at the documents tells. */
export async function storeFetchReport(db: Db, agent: AgentRow, look: FetchReport, nowMs: number): Promise<void> {
  const kept = stateOf(agent.state)
  const policyVersion = look.policyVersion ?? kept?.policyVersion
  const queueDepth = look.ledgerSeq === undefined ? kept?.queueDepth : Math.max(0, look.ledgerSeq - agent.last_seq)
  const release = look.release ?? kept?.release
  const isSame = kept?.policyVersion === policyVersion && kept?.queueDepth === queueDepth && kept?.release === release
  const ageMs = kept ? nowMs - Date.parse(kept.observedAt) : Infinity
  // One that lies ahead is by an agent's clock.
  if (ageMs >= 0 && ageMs < (isSame ? SAME_MS : CHANGED_MS)) return
  await write(db, agent.agent_id, {
    ...kept,
    observedAt: iso(nowMs),
    ...definedFields({ policyVersion, queueDepth, release }),
  })
}

async function write(db: Db, agentId: string, state: KeptState, more: { online?: number } = {}): Promise<void> {
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
