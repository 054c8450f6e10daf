import { newId } from '../../../../policy/ids.ts'
import { systemCaller, type Tenant } from '../../../platform/foundation/caller.ts'
import { startDueLoop, type DueLoop } from '../../../platform/operations/send-loop.ts'
import { endsSoon, inTurns, isProcessed } from '../../../platform/operations/job-steps.ts'
import type { Services } from '../../../platform/operations/operation.ts'
import { readPageWithinText } from '../../../platform/operations/paging.ts'
import { performTask } from '../../../platform/operations/perform.ts'
import { type Database, type Db, groupBy } from '../../../platform/persistence/database.ts'
import type { Row } from '../../../platform/persistence/schema.ts'
import { reportProtectionEvents } from './ingest.ts'
import { acknowledgeOpenException, WITHDRAWN } from '../../records/exceptions.ts'
import { applyRows, IS_UNAPPLIED, unappliedKey, type IngestCall, readRow } from './apply-rows.ts'
import { findAgent } from '../../agent-identity/sessions.ts'

/** Age from which the cloud no longer retries a row, ms. */
const RETRY_FOR_MS = 30 * 86_400_000
/** Maximum rows per transaction. Long rows are fewer (`readPageWithinText`). */
const PAGE = 500
/** Maximum transactions per agent and round, so that an agent with many bad rows does not delay the account's others. */
const PAGES_LIMIT = 100
/** Time between rounds, ms. */
const POLL_MS = 600_000
const NAME = 'unapplied events'

/** Retries unapplied rows when the cloud starts, after an `entityRegistered` notification and every 10 minutes. */
export function startRetrying(database: Database, services: Services): DueLoop {
  let stopped = false
  const loop = startDueLoop(services, {
    name: NAME,
    changed: services.entityRegistered,
    pollMs: POLL_MS,
    async processDue() {
      await retryAllUnapplied(database, services, () => stopped)
      return POLL_MS
    },
  })
  return {
    stop() {
      stopped = true
      return loop.stop()
    },
  }
}

/** An account's agents that remain in this run, and how far the first of them is. */
interface RetryPlace {
  readonly agentIds: readonly string[]
  readonly pages: number
  readonly progress: RetryProgress
}

/**
 * Retries unapplied rows of all agents, one page a turn. A newer release of the cloud, or a new registration, may make it
 * possible to apply these rows.
 */
async function retryAllUnapplied(database: Database, services: Services, isStopped: () => boolean): Promise<void> {
  const waiting = groupBy(
    await agentsWithUnapplied(database.reads, services.platform.clock.wall()),
    (row) => row.tenant,
  )
  await inTurns<RetryPlace>(database, services, {
    job: NAME,
    accounts: () => Promise.resolve([...waiting.keys()]),
    turns: Infinity,
    async turn(tenant, place) {
      const agentIds = place?.agentIds ?? (waiting.get(tenant) ?? []).map((row) => row.agent_id)
      const [agentId, ...others] = agentIds
      if (agentId === undefined || isStopped()) return undefined
      const next = { agentIds: others, pages: 0, progress: START }
      const step = pageRunner(database, services, { tenant, agentId })
      let progress = START
      const done = await isProcessed(services.log, NAME, async () => {
        progress = await retryPageOf(agentId, place?.progress ?? START, step)
      })
      const pages = (place?.pages ?? 0) + 1
      return !done || progress.isAll || pages >= PAGES_LIMIT ? next : { agentIds, pages, progress }
    },
  })
}

type PageRunner = (work: (call: IngestCall) => Promise<number>) => Promise<void>

function pageRunner(
  database: Database,
  services: Services,
  { tenant, agentId }: { tenant: string; agentId: string },
): PageRunner {
  const who = {
    operation: reportProtectionEvents,
    caller: systemCaller(tenant as Tenant, 'reconciliation'),
    requestId: newId('req', services.platform),
  }
  return (work) =>
    performTask(who, database, services, async (call) => {
      if ((await work(call)) > 0) call.changed(agentId)
    })
}

/** Agents per run. */
const AGENTS = 10_000

function agentsWithUnapplied(db: Db, nowMs: number): Promise<{ agent_id: string; tenant: string }[]> {
  return db
    .selectFrom('agent')
    .select(['agent_id', 'tenant'])
    .where('agent_id', '!=', '')
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('journal_row')
          .select('seq')
          .whereRef('journal_row.agent_id', '=', 'agent.agent_id')
          .where(IS_UNAPPLIED)
          .where('received_ms', '>=', nowMs - RETRY_FOR_MS),
      ),
    )
    .orderBy('agent_id')
    .limit(AGENTS)
    .execute()
}

/** Progress through an agent's unapplied rows. */
interface RetryProgress {
  readonly generation: number
  readonly seq: number
  /** Rows applied so far. */
  readonly applied: number
  /** False if a row stayed unapplied whose exception is for the whole agent, such as an unreadable row. */
  readonly isAgentDone: boolean
  /** True after the last row. */
  readonly isAll: boolean
}

const START: RetryProgress = { generation: 0, seq: 0, applied: 0, isAgentDone: true, isAll: false }

/** Retries an agent's unapplied rows in ledger order. `step` runs one transaction; see `retryPageOf`. */
export async function retryUnapplied(agentId: string, step: PageRunner): Promise<void> {
  let progress = START
  for (let page = 0; page < PAGES_LIMIT && !progress.isAll; page++)
    progress = await retryPageOf(agentId, progress, step)
}

/** Retries the next rows. `step` runs one transaction; its `work` returns the number of rows that were applied. */
async function retryPageOf(agentId: string, from: RetryProgress, step: PageRunner): Promise<RetryProgress> {
  let progress = from
  await step(async (call) => {
    progress = await retryPage(call, agentId, from)
    return progress.applied - from.applied
  })
  return progress
}

async function retryPage(call: IngestCall, agentId: string, after: RetryProgress): Promise<RetryProgress> {
  const { db, nowMs } = call
  const agent = await findAgent(db, agentId)
  if (!agent) return { ...after, isAll: true }
  let { generation, seq, applied, isAgentDone } = after
  // An agent chooses the length of rows that nobody can read.
  const { items: rows, nextCursor } = await readPageWithinText(
    (limit, last: RetriedRow | undefined) => unappliedRows(db, agentId, nowMs - RETRY_FOR_MS, last ?? after, limit),
    ({ seq: cursor }) => String(cursor),
    ({ body }) => body.length,
    { limit: PAGE },
  )
  const isOver = endsSoon(call.services.platform.clock)
  let read = 0
  for (const row of rows) {
    if (read > 0 && isOver()) break
    read++
    ;({ generation, seq } = row)
    const { body, fault } = readRow(JSON.parse(row.body))
    // The exception of an unreadable row has the agent's id as its key.
    const subject = fault === undefined ? unappliedKey(agent, body) : agentId
    const [isApplied] = fault === undefined ? await applyRows(call, agent, [body]) : [false]
    if (!isApplied && subject === agentId) isAgentDone = false
    if (!isApplied) continue
    applied++
    await db
      .updateTable('journal_row')
      .set({ applied: 1 })
      .where('ledger_id', '=', row.ledger_id)
      .where('generation', '=', generation)
      .where('seq', '=', seq)
      .execute()
    if (subject !== agentId) await withdraw(call, agent, subject)
  }
  const isAll = nextCursor === undefined && read === rows.length
  if (isAll && isAgentDone && applied > 0) await withdraw(call, agent, agentId)
  return { generation, seq, applied, isAgentDone, isAll }
}

function withdraw({ db, nowMs }: IngestCall, { store_id: storeId }: Row<'agent'>, subject: string): Promise<void> {
  return acknowledgeOpenException(db, { storeId, kind: 'unapplied', subject, by: WITHDRAWN, atMs: nowMs })
}

type RetriedRow = Pick<Row<'journal_row'>, 'ledger_id' | 'generation' | 'seq' | 'body'>

function unappliedRows(
  db: Db,
  agentId: string,
  sinceMs: number,
  { generation, seq }: Pick<RetriedRow, 'generation' | 'seq'>,
  limit: number,
): Promise<RetriedRow[]> {
  return db
    .selectFrom('journal_row')
    .select(['ledger_id', 'generation', 'seq', 'body'])
    .where('agent_id', '=', agentId)
    .where(IS_UNAPPLIED)
    .where('received_ms', '>=', sinceMs)
    .where((eb) =>
      eb.or([eb('generation', '>', generation), eb.and([eb('generation', '=', generation), eb('seq', '>', seq)])]),
    )
    .orderBy('generation')
    .orderBy('seq')
    .limit(limit)
    .execute()
}
