import type { AssertionClaims } from '../../../policy/documents/agent-messages.ts'
import type { DenyEntry } from '../../../policy/documents/store-documents.ts'
import { genesisHash } from '../../../policy/journal.ts'
import type { RightClass } from '../../../policy/vocabulary.ts'
import { Failure } from '../../foundation/failure.ts'
import { iso } from '../../operations/fields.ts'
import type { Call } from '../../operations/operation.ts'
import type { AgentRow } from '../../persistence/tables/agents.ts'
import { distrustHome } from '../../protection/devices/adopt-device.ts'
import { deny } from '../../protection/rights/deny-list.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { forkKey, markForked } from '../../agent-identity/agent-queries.ts'
import { knownHash } from '../journal/ingest.ts'
import { endLogins } from '../../agent-identity/sessions.ts'

/**
 *   head at or behind ours, same hash ─▶ put back: generation + 1, online only for 11 min, used rights told again
 *   the agent says that it was restored ─▶ the same, also where the cloud lacks the rows that were lost
 *   same number, other hash, an older generation than one in use, or put back again within the hour ─▶ there are two: agent_fork
 *
 * What an agent's hello says of its ledger (contracts §5).
 */
export interface LedgerHandshake {
  generation: number
  /** How far the store's deny list goes: what it may have forgotten is in there. */
  denySeq: number
  onlineOnlyUntil?: string
  /** Its ledger exists twice: each claim needs our yes until resolveAgentFork. */
  forked?: true
}

/** As long as a token and its guard can live, twice over, ms. */
const ONLINE_ONLY_MS = 11 * 60_000
/** Two copies of which one only listens take turns, one at each login: each would be put back by the other for ever, ms after the first time. */
const REPEATED_ROLLBACK_MS = 3_600_000
const ROLLBACK = 'ledger_rollback'
const GUARD_SECONDS = 60
/** Rights that are told again; a store sells less in the life of a receipt. */
const RIGHTS_LIMIT = 20_000

/** Looks at the head of a ledger that says hello; heals one that was put back, raises one that exists twice. `openedMs`: when its challenge was opened. */
export async function ledgerHandshake(
  call: Call,
  agent: AgentRow,
  assertion: AssertionClaims,
  openedMs: number,
): Promise<LedgerHandshake> {
  const {
    generation,
    online_only_until_ms: until,
    fork_ms: forkMs,
  } = await compareHead(call, agent, assertion, openedMs)
  // Behind what was put on the list for this ledger just now, and for the answer that was lost before.
  const { deny_seq: denySeq } = await call.db
    .selectFrom('store')
    .select('deny_seq')
    .where('store_id', '=', agent.store_id)
    .executeTakeFirstOrThrow()
  return {
    generation,
    denySeq,
    ...(until !== null && until > call.nowMs && { onlineOnlyUntil: iso(until) }),
    ...(forkMs !== null && { forked: true as const }),
  }
}

/** The agent as it is after its hello. */
async function compareHead(
  call: Call,
  agent: AgentRow,
  { generation, seq, head, restored }: AssertionClaims,
  openedMs: number,
): Promise<AgentRow> {
  if (generation > agent.generation) {
    // Only a cloud that was restored can know of an older one: the ledger had been put back since the backup.
    if (agent.resync === null) throw new Failure('unauthenticated', 'the assertion is not valid')
    return followGeneration(call, agent, generation)
  }
  if (seq === undefined || head === undefined) return agent
  if (generation < agent.generation) {
    // Nothing was told in the new generation yet: the answer that began it may have been lost.
    const isFork = generation < agent.generation - 1 || agent.last_seq > 0
    return isFork ? raiseFork(call, agent) : agent
  }
  if (seq > agent.last_seq && !restored) return agent
  if (seq <= agent.last_seq) {
    const known = seq === 0 ? genesisHash(agent.ledger_id, agent.generation) : await knownHash(call, agent, seq)
    if (known !== head) return raiseFork(call, agent)
    if (!restored && (seq === agent.last_seq || (await isOvertaken(call, agent, openedMs)))) return agent
  }
  return (await wasRecentlyRolledBack(call, agent)) ? raiseFork(call, agent) : handleRollback(call, agent, seq)
}

/** Whether its generation began by being put back, and lately. */
async function wasRecentlyRolledBack(
  { db, nowMs }: Call,
  { store_id, agent_id, generation }: AgentRow,
): Promise<boolean> {
  const row = await db
    .selectFrom('protection_exception')
    .select('raised_ms')
    .where('store_id', '=', store_id)
    .where('kind', '=', ROLLBACK)
    .where('subject', '=', rollbackKey(agent_id, generation))
    .executeTakeFirst()
  return row !== undefined && nowMs - row.raised_ms < REPEATED_ROLLBACK_MS
}

function rollbackKey(agentId: string, generation: number): string {
  return `${agentId}/${generation}`
}

/** Whether rows have come in since the challenge was opened: the hello was only on its way for longer than they, and nothing was put back. */
async function isOvertaken(
  { db }: Call,
  { ledger_id, generation, last_seq }: AgentRow,
  openedMs: number,
): Promise<boolean> {
  const last = await db
    .selectFrom('journal_row')
    .select('received_ms')
    .where('ledger_id', '=', ledger_id)
    .where('generation', '=', generation)
    .where('seq', '=', last_seq)
    .executeTakeFirst()
  return last !== undefined && last.received_ms >= openedMs
}

/**
 * Goes on with the generation in which the agent's ledger is; all of its rows are still to come. What it had told the lost cloud in the
 * generation before went with that one's rows.
 */
async function followGeneration(call: Call, agent: AgentRow, generation: number): Promise<AgentRow> {
  const scope = { db: call.db, tenant: agent.tenant, platform: call.services.platform, nowMs: call.nowMs }
  await raiseException(scope, {
    storeId: agent.store_id,
    kind: 'ledger_gap',
    subject: rollbackKey(agent.agent_id, generation),
    detail: `since the backup the ledger went from generation ${agent.generation} to ${generation}: what it told after row ${agent.last_seq} of the former is lost with the restored cloud`,
  })
  const change = { generation, last_seq: 0, head_hash: genesisHash(agent.ledger_id, generation) }
  await call.db.updateTable('agent').set(change).where('agent_id', '=', agent.agent_id).execute()
  return { ...agent, ...change }
}

async function raiseFork(call: Call, agent: AgentRow): Promise<AgentRow> {
  const { agent_id, tenant, store_id } = agent
  const forkMs = await markForked(call.db, agent_id, call.nowMs)
  const detail = 'two copies of one ledger report: until resolveAgentFork each of its claims needs the cloud'
  const scope = { db: call.db, tenant, platform: call.services.platform, nowMs: call.nowMs }
  await raiseException(scope, { storeId: store_id, kind: 'agent_fork', subject: forkKey(agent_id, forkMs), detail })
  // The other copy may be the one that listens.
  call.afterCommit(() =>
    call.services.agents.sendCommand({ storeId: store_id, agentId: agent_id }, { command: 'sync' }),
  )
  return { ...agent, fork_ms: forkMs }
}

/**
 * Of two copies one was taken away: whichever is left goes on in a new generation, in which it tells all that it has not told.
 * What the other has used it does not know, as if it had been put back. Answers the agent as it is then.
 */
export function trustLedger(call: Call, agent: AgentRow): Promise<AgentRow> {
  return nextGeneration(call, agent, { fork_ms: null })
}

async function nextGeneration(call: Call, agent: AgentRow, more: Partial<AgentRow> = {}): Promise<AgentRow> {
  const generation = agent.generation + 1
  const change = {
    ...more,
    generation,
    last_seq: 0,
    head_hash: genesisHash(agent.ledger_id, generation),
    online_only_until_ms: call.nowMs + ONLINE_ONLY_MS,
  }
  await call.db.updateTable('agent').set(change).where('agent_id', '=', agent.agent_id).execute()
  if (!(await distrustHome(call, agent.store_id, agent.agent_id))) await denyUsedRights(call, agent)
  // It may be a copy that says hello, and the agent itself that goes on in the former generation, in which no token counts any more.
  await endLogins(call.db, agent.agent_id)
  return { ...agent, ...change }
}

async function handleRollback(call: Call, agent: AgentRow, seq: number): Promise<AgentRow> {
  const anew = await nextGeneration(call, agent)
  const { generation } = anew
  const scope = { db: call.db, tenant: agent.tenant, platform: call.services.platform, nowMs: call.nowMs }
  await raiseException(scope, {
    storeId: agent.store_id,
    kind: ROLLBACK,
    subject: rollbackKey(agent.agent_id, generation),
    detail:
      seq < agent.last_seq
        ? `the ledger was put back from row ${agent.last_seq} to ${seq}: it goes on as generation ${generation}`
        : `the ledger was restored to row ${seq}: releases after it are unknown that the agent had not reported; it goes on as generation ${generation}`,
  })
  return anew
}

/** What the ledger has forgotten: every right of a receipt that still lives and was used up, by whomever. */
async function denyUsedRights(call: Call, { store_id }: AgentRow): Promise<void> {
  const used = await call.db
    .selectFrom('unit_right')
    .innerJoin('purchase', 'purchase.purchase_id', 'unit_right.purchase_id')
    .innerJoin('purchase_unit', (join) =>
      join
        .onRef('purchase_unit.line_id', '=', 'unit_right.line_id')
        .onRef('purchase_unit.unit_no', '=', 'unit_right.unit_no'),
    )
    .select(['purchase.cti', 'purchase.receipt_exp', 'unit_right.right_class', 'purchase_unit.receipt_index'])
    .where('purchase.store_id', '=', store_id)
    .where('purchase.receipt_exp', '>', Math.floor(call.nowMs / 1_000))
    .where('unit_right.state', '=', 'used')
    .limit(RIGHTS_LIMIT)
    .execute()
  const entries = new Map<string, DenyEntry & { kind: 'right' }>()
  for (const { cti, receipt_exp, right_class, receipt_index } of used) {
    if (cti === null || receipt_exp === null || receipt_index === null) continue
    const key = `${cti} ${right_class}`
    const entry = entries.get(key) ?? {
      kind: 'right',
      cti,
      rightClass: right_class as RightClass,
      ordinals: [],
      until: receipt_exp + GUARD_SECONDS,
    }
    entry.ordinals.push(receipt_index)
    entries.set(key, entry)
  }
  const all = [...entries.values()]
  // As many in one statement as every database takes.
  for (let i = 0; i < all.length; i += 200) await deny(call, store_id, all.slice(i, i + 200))
}
