import type { AssertionClaims } from '../../../../policy/documents/agent-messages.ts'
import type { DenyEntry } from '../../../../policy/documents/store-documents.ts'
import { assert } from '../../../../policy/assert.ts'
import { genesisHash } from '../../../../policy/journal.ts'
import type { RightClass } from '../../../../policy/vocabulary.ts'
import { Failure } from '../../../platform/foundation/failure.ts'
import { iso } from '../../../platform/operations/fields.ts'
import type { Call } from '../../../platform/operations/operation.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { distrustHome } from '../../devices/move-device.ts'
import { PASS } from '../../../../policy/receipts/receipt-claims.ts'
import { deny } from '../../rights/deny-list.ts'
import { isPass } from '../../rights/rights.ts'
import { raiseException } from '../../records/exceptions.ts'
import { forkKey, markForked } from '../../agent-identity/agent-queries.ts'
import { knownHash } from '../journal/ingest.ts'
import { endLogins } from '../../agent-identity/sessions.ts'

/**
 * Compares the head of an agent's ledger at login with the stored rows (ADR agents).
 *
 * A rollback: the agent reports a restored ledger, or the ledger's head has the right hash but is behind the stored
 * head. The cloud starts the next generation, lets the agent claim only online for 11 min, and denies used rights
 * again.
 *
 * A fork: the hash of a stored row is wrong, or the generation is older than the current one. A second rollback within
 * an hour also counts as a fork. For a fork, the cloud raises `agent_fork`.
 */
interface LedgerHandshake {
  generation: number
  /**
   * Newest number of the deny list. The entries up to this number include the rights whose use the ledger may have
   * lost.
   */
  denySeq: number
  onlineOnlyUntil?: string
  /** The ledger exists twice: each claim needs the cloud until staff call `resolveAgentFork`. */
  forked?: true
}

/** Two token lifetimes and one minute for clock differences, ms. */
const ONLINE_ONLY_MS = 11 * 60_000
/**
 * Two rollbacks within this time count as a fork, ms. If two copies of the ledger log in alternately, each login looks
 * like a rollback.
 */
const REPEATED_ROLLBACK_MS = 3_600_000
const ROLLBACK = 'ledger_rollback'
const GUARD_SECONDS = 60
/** Maximum number of rights that are denied again. A store sells fewer units within a receipt's life. */
const RIGHTS_LIMIT = 20_000

/**
 * Checks the ledger head in a login. Starts a new generation after a rollback and raises `agent_fork` for a copy.
 * `openedMs`: time at which the cloud created the login's challenge.
 */
export async function ledgerHandshake(
  call: Call,
  agent: Row<'agent'>,
  assertion: AssertionClaims,
  openedMs: number,
): Promise<LedgerHandshake> {
  const {
    generation,
    online_only_until_ms: until,
    fork_ms: forkMs,
  } = await compareHead(call, agent, assertion, openedMs)
  // Reads `deny_seq` last, so that the number covers the entries that this handshake adds.
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

/** Compares the head. Returns the agent's row with any changes. */
async function compareHead(
  call: Call,
  agent: Row<'agent'>,
  { generation, seq, head, restored }: AssertionClaims,
  openedMs: number,
): Promise<Row<'agent'>> {
  if (generation > agent.generation) {
    // If the agent's generation is newer, the cloud was restored from a backup that is older than the rollback.
    if (agent.resync === null) throw new Failure('unauthenticated', 'the assertion is not valid')
    return followGeneration(call, agent, generation)
  }
  if (seq === undefined || head === undefined) return agent
  if (generation < agent.generation) {
    // If the cloud has no row of the new generation, the agent may have missed the response that announced this
    // generation, or a copy of its ledger received it before staff trusted this one.
    return agent.last_seq > 0 ? raiseFork(call, agent) : needOnline(call, agent)
  }
  if (seq > agent.last_seq && !restored) return agent
  if (seq <= agent.last_seq) {
    const known = seq === 0 ? genesisHash(agent.ledger_id, agent.generation) : await knownHash(call, agent, seq)
    if (known !== head) return raiseFork(call, agent)
    if (!restored && (seq === agent.last_seq || (await isOvertaken(call, agent, openedMs)))) return agent
  }
  return (await wasRecentlyRolledBack(call, agent)) ? raiseFork(call, agent) : handleRollback(call, agent, seq)
}

/** True if the current generation began with a recent rollback. */
async function wasRecentlyRolledBack(
  { db, nowMs }: Call,
  { store_id, agent_id, generation }: Row<'agent'>,
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

/**
 * True if the newest stored row arrived after the cloud created the challenge. The head is then older only because the
 * login was slow.
 */
async function isOvertaken(
  { db }: Call,
  { ledger_id, generation, last_seq }: Row<'agent'>,
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
 * Adopts the agent's newer generation; the agent then sends all of its rows. The restored cloud has lost the last rows
 * of the previous generation.
 */
async function followGeneration(call: Call, agent: Row<'agent'>, generation: number): Promise<Row<'agent'>> {
  const scope = { db: call.db, tenant: agent.tenant, platform: call.services.platform, nowMs: call.nowMs }
  await raiseException(scope, {
    storeId: agent.store_id,
    kind: 'ledger_gap',
    subject: rollbackKey(agent.agent_id, generation),
    detail: `since the backup the ledger went from generation ${agent.generation} to ${generation}: rows after ${agent.last_seq} of the earlier generation are lost`,
  })
  const change = { generation, last_seq: 0, head_hash: genesisHash(agent.ledger_id, generation) }
  await call.db.updateTable('agent').set(change).where('agent_id', '=', agent.agent_id).execute()
  return { ...agent, ...change }
}

async function raiseFork(call: Call, agent: Row<'agent'>): Promise<Row<'agent'>> {
  const { agent_id, tenant, store_id } = agent
  const fork = await markForked(call.db, agent, call.nowMs)
  assert(fork, 'the generation of the agent changed within a transaction')
  const detail = 'two copies of one ledger report: each claim needs the cloud until you decide with resolveAgentFork'
  const scope = { db: call.db, tenant, platform: call.services.platform, nowMs: call.nowMs }
  await raiseException(scope, {
    storeId: store_id,
    kind: 'agent_fork',
    subject: forkKey(agent_id, fork.forkMs),
    detail,
  })
  // If the other copy is connected, the command makes that copy send its rows.
  if (fork.isNew)
    call.afterCommit(() =>
      call.services.agents.sendCommand({ storeId: store_id, agentId: agent_id }, { command: 'sync' }),
    )
  return { ...agent, fork_ms: fork.forkMs }
}

/**
 * Trusts the remaining copy of a forked ledger in a new generation. This copy does not know which rights the other copy
 * used. Returns the agent's row.
 */
export function trustLedger(call: Call, agent: Row<'agent'>): Promise<Row<'agent'>> {
  return nextGeneration(call, agent, { fork_ms: null })
}

async function nextGeneration(
  call: Call,
  agent: Row<'agent'>,
  more: Partial<Row<'agent'>> = {},
): Promise<Row<'agent'>> {
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
  // Ends all logins. If this login came from a copy, the agent itself still uses the former generation and must log in
  // again.
  await endLogins(call.db, agent.agent_id)
  return { ...agent, ...change }
}

/** Makes the ledger need the cloud for a while: it may lack claims of the copy that used its generation before. */
async function needOnline(call: Call, agent: Row<'agent'>): Promise<Row<'agent'>> {
  const change = { online_only_until_ms: call.nowMs + ONLINE_ONLY_MS }
  await call.db.updateTable('agent').set(change).where('agent_id', '=', agent.agent_id).execute()
  return { ...agent, ...change }
}

async function handleRollback(call: Call, agent: Row<'agent'>, seq: number): Promise<Row<'agent'>> {
  const changed = await nextGeneration(call, agent)
  const { generation } = changed
  const scope = { db: call.db, tenant: agent.tenant, platform: call.services.platform, nowMs: call.nowMs }
  await raiseException(scope, {
    storeId: agent.store_id,
    kind: ROLLBACK,
    subject: rollbackKey(agent.agent_id, generation),
    detail:
      seq < agent.last_seq
        ? `the ledger was rolled back from row ${agent.last_seq} to ${seq}: it continues as generation ${generation}`
        : `the ledger was restored to row ${seq}: later releases that the agent had not reported are unknown; it continues as generation ${generation}`,
  })
  return changed
}

/** Denies all used rights of valid receipts again, because the ledger may have lost the claims that used them. */
async function denyUsedRights(call: Call, { store_id }: Row<'agent'>): Promise<void> {
  const used = await call.db
    .selectFrom('unit_right')
    .innerJoin('purchase', 'purchase.purchase_id', 'unit_right.purchase_id')
    .leftJoin('purchase_unit', (join) =>
      join
        .onRef('purchase_unit.line_id', '=', 'unit_right.line_id')
        .onRef('purchase_unit.unit_no', '=', 'unit_right.unit_no'),
    )
    .select(['purchase.cti', 'purchase.receipt_exp', 'unit_right.right_class', 'purchase_unit.receipt_index'])
    .select(['unit_right.line_id', 'unit_right.purchase_id'])
    .where('purchase.store_id', '=', store_id)
    .where('purchase.receipt_exp', '>', Math.floor(call.nowMs / 1_000))
    .where('unit_right.state', '=', 'used')
    .limit(RIGHTS_LIMIT)
    .execute()
  const entries = new Map<string, DenyEntry & { kind: 'right' }>()
  for (const row of used) {
    const { cti, receipt_exp, right_class } = row
    const ordinal = isPass(row) ? PASS : row.receipt_index
    if (cti === null || receipt_exp === null || ordinal === null) continue
    const key = `${cti} ${right_class}`
    const entry = entries.get(key) ?? {
      kind: 'right',
      cti,
      rightClass: right_class as RightClass,
      ordinals: [],
      until: receipt_exp + GUARD_SECONDS,
    }
    entry.ordinals.push(ordinal)
    entries.set(key, entry)
  }
  const all = [...entries.values()]
  // Each chunk fits into one statement of every supported database.
  for (let i = 0; i < all.length; i += 200) await deny(call, store_id, all.slice(i, i + 200))
}
