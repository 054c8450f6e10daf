import { newId } from '../../policy/ids.ts'
import type { JournalBody } from '../../policy/journal.ts'
import { systemCaller, type Tenant } from '../operations/caller.ts'
import { oneByOne } from '../operations/one-by-one.ts'
import type { Services } from '../operations/operation.ts'
import { performTask } from '../operations/perform.ts'
import type { Database, Db } from '../persistence/database.ts'
import type { AgentRow } from '../persistence/tables/agents.ts'
import type { JournalRowRow } from '../persistence/tables/protection.ts'
import { reportProtectionEvents } from '../protection/event-operations.ts'
import { acknowledgeAbout, WITHDRAWN } from '../protection/exceptions.ts'
import { applyRows, unappliedSubject, type IngestCall } from './apply-rows.ts'
import { readRow } from './read-row.ts'
import { findAgent } from './sessions.ts'

/** After so long nothing will make it known any more, ms. */
const RETRY_FOR_MS = 30 * 86_400_000
/** Rows of one agent that one look tries again. */
const RETRY_LIMIT = 500
/** Rows that it looks at for that, a page at a time: what cannot be read must not stand before what can. */
const PAGE = 500
const PAGES_LIMIT = 20

/** Tries again what agents reported and nobody could apply: a newer release may know what it is about. */
export function retryAllUnapplied(database: Database, services: Services): Promise<void> {
  const seen = new Set<string>()
  return oneByOne(services, {
    job: 'unapplied events',
    // What stays unapplied is looked at once in a round.
    async read(limit) {
      const agents = await agentsWithUnapplied(database.reads, services.platform.clock.wall(), [...seen], limit)
      for (const { agent_id } of agents) seen.add(agent_id)
      return agents
    },
    carryOut: ({ agent_id, tenant }) => {
      const who = { operation: reportProtectionEvents, caller: systemCaller(tenant as Tenant, 'reconciliation'), requestId: newId('req', services.platform) }
      return performTask(who, database, services, async (call) => {
        if ((await retryUnapplied(call, agent_id)) > 0) call.changed(agent_id)
      })
    },
  })
}

function agentsWithUnapplied(db: Db, nowMs: number, seen: readonly string[], limit: number): Promise<{ agent_id: string; tenant: string }[]> {
  return db
    .selectFrom('agent')
    .select(['agent_id', 'tenant'])
    .where('agent_id', 'not in', ['', ...seen])
    .where((eb) =>
      eb.exists(
        eb
          .selectFrom('journal_row')
          .select('seq')
          .whereRef('journal_row.agent_id', '=', 'agent.agent_id')
          .where('applied', '=', 0)
          .where('received_ms', '>=', nowMs - RETRY_FOR_MS),
      ),
    )
    .orderBy('agent_id')
    .limit(limit)
    .execute()
}

/** Tries an agent's unapplied rows again, in the order of its ledger; answers how many were applied. */
export async function retryUnapplied(call: IngestCall, agentId: string): Promise<number> {
  const { db, nowMs } = call
  const agent = await findAgent(db, agentId)
  if (!agent) return 0
  let applied = 0
  const { readable, isAll } = await readableRows(db, agentId, nowMs - RETRY_FOR_MS)
  // What cannot be read at all is about the agent, whatever it turns out to be.
  let isAgentDone = isAll
  for (const { row, body } of readable) {
    const subject = unappliedSubject(agent, body)
    const [isApplied] = await applyRows(call, agent, [body])
    if (!isApplied && subject === agentId) isAgentDone = false
    if (!isApplied) continue
    applied++
    await db.updateTable('journal_row').set({ applied: 1 }).where('ledger_id', '=', row.ledger_id).where('generation', '=', row.generation).where('seq', '=', row.seq).execute()
    if (subject !== agentId) await withdraw(call, agent, subject)
  }
  if (applied > 0 && isAgentDone) await withdraw(call, agent, agentId)
  return applied
}

function withdraw({ db, nowMs }: IngestCall, { store_id: storeId }: AgentRow, subject: string): Promise<void> {
  return acknowledgeAbout(db, { storeId, kind: 'unapplied', subject, by: WITHDRAWN, atMs: nowMs })
}

/** Of the agent's unapplied rows the first that this release can read; `isAll`: there are no others. */
async function readableRows(db: Db, agentId: string, sinceMs: number): Promise<{ readable: { row: JournalRowRow; body: JournalBody }[]; isAll: boolean }> {
  const readable: { row: JournalRowRow; body: JournalBody }[] = []
  let last = { generation: 0, seq: 0 }
  let isAll = false
  let unread = 0
  for (let page = 0; page < PAGES_LIMIT && readable.length < RETRY_LIMIT; page++) {
    const { generation, seq } = last
    const rows = await db
      .selectFrom('journal_row')
      .selectAll()
      .where('agent_id', '=', agentId)
      .where('applied', '=', 0)
      .where('received_ms', '>=', sinceMs)
      .where((eb) => eb.or([eb('generation', '>', generation), eb.and([eb('generation', '=', generation), eb('seq', '>', seq)])]))
      .orderBy('generation')
      .orderBy('seq')
      .limit(PAGE)
      .execute()
    for (const row of rows) {
      const { body, fault } = readRow(JSON.parse(row.body))
      if (fault === undefined) readable.push({ row, body })
      else unread++
    }
    last = rows.at(-1) ?? last
    isAll = rows.length < PAGE
    if (isAll) break
  }
  return { readable: readable.slice(0, RETRY_LIMIT), isAll: isAll && unread === 0 && readable.length <= RETRY_LIMIT }
}
