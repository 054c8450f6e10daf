import type { JournalBody } from '../../policy/journal.ts'
import { newId } from '../../policy/ids.ts'
import { systemCaller, type Tenant } from '../operations/caller.ts'
import { oneByOne } from '../operations/one-by-one.ts'
import type { Services } from '../operations/operation.ts'
import { performTask } from '../operations/perform.ts'
import type { Database, Db } from '../persistence/database.ts'
import { reportProtectionEvents } from '../protection/event-operations.ts'
import { acknowledgeAbout, WITHDRAWN } from '../protection/exceptions.ts'
import { applyRows, unappliedSubject, type IngestCall } from './apply-rows.ts'
import { findAgent } from './sessions.ts'

/** After so long nothing will make it known any more, ms. */
const RETRY_FOR_MS = 30 * 86_400_000
/** Rows of one agent that one look tries again. */
const RETRY_LIMIT = 500

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
  const rows = await db
    .selectFrom('journal_row')
    .selectAll()
    .where('agent_id', '=', agentId)
    .where('applied', '=', 0)
    .where('received_ms', '>=', nowMs - RETRY_FOR_MS)
    .orderBy('generation')
    .orderBy('seq')
    .limit(RETRY_LIMIT)
    .execute()
  let applied = 0
  for (const row of rows) {
    const body = JSON.parse(row.body) as JournalBody
    const [isApplied] = await applyRows(call, agent, [body])
    if (!isApplied) continue
    applied++
    await db.updateTable('journal_row').set({ applied: 1 }).where('ledger_id', '=', row.ledger_id).where('generation', '=', row.generation).where('seq', '=', row.seq).execute()
    await acknowledgeAbout(db, { storeId: agent.store_id, kind: 'unapplied', subject: unappliedSubject(agent, body), by: WITHDRAWN, atMs: nowMs })
  }
  return applied
}
