import type { Platform } from '../../../policy/platform.ts'
import type { Readiness } from '../../platform/foundation/readiness.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { PresentValues, SharedValues } from './metrics.ts'
import { sql } from 'kysely'
import { stateOf } from '../../protection/agent-identity/reported-state.ts'
import { readLastBackup } from './last-backup.ts'

/** Maximum number of rows of a kind that one request for metrics reads. */
const ROWS_LIMIT = 10_000

/** Reads the values that all processes share. Reads a limited number of rows. */
async function readSharedValues(db: Db, nowMs: number): Promise<SharedValues> {
  const [agents, webhooks, notices, exceptions, lastBackupMs] = await Promise.all([
    agentRows(db),
    waiting(
      db,
      nowMs,
      sql`select created_ms as since_ms from webhook_delivery where status = 'pending' limit ${ROWS_LIMIT}`,
    ),
    waiting(db, nowMs, sql`select due_ms as since_ms from push_delivery limit ${ROWS_LIMIT}`),
    waiting(
      db,
      nowMs,
      sql`select raised_ms as since_ms from protection_exception where acknowledged_ms is null limit ${ROWS_LIMIT}`,
    ),
    readLastBackup(db),
  ])
  return {
    ...agentValues(agents, nowMs),
    webhooksWaiting: webhooks.count,
    oldestWebhookSeconds: webhooks.oldestSeconds,
    noticesWaiting: notices.count,
    openExceptions: exceptions.count,
    backupAgeSeconds: lastBackupMs === undefined ? undefined : Math.max(0, (nowMs - lastBackupMs) / 1_000),
  }
}

type AgentRows = Awaited<ReturnType<typeof agentRows>>

function agentRows(db: Db) {
  return db
    .selectFrom('agent')
    .innerJoin('store', 'store.store_id', 'agent.store_id')
    .select(['agent.online', 'agent.last_seen_ms', 'agent.state', 'store.policy_version'])
    .where('agent.revoked_ms', 'is', null)
    .limit(ROWS_LIMIT)
    .execute()
}

function agentValues(
  rows: AgentRows,
  nowMs: number,
): Pick<SharedValues, 'agents' | 'journalRowsWaiting' | 'agentsWithOldPolicy' | 'longestSilenceSeconds'> {
  const online = rows.filter((row) => row.online === 1)
  const states = rows.map((row) => ({ state: stateOf(row.state), policyVersion: row.policy_version }))
  const isOld = ({ state, policyVersion }: (typeof states)[number]) =>
    state?.policyVersion !== undefined && state.policyVersion < policyVersion
  return {
    agents: { online: online.length, offline: rows.length - online.length },
    journalRowsWaiting: states.reduce((sum, { state }) => sum + (state?.queueDepth ?? 0), 0),
    agentsWithOldPolicy: states.filter(isOld).length,
    longestSilenceSeconds: Math.max(0, ...online.map((row) => (nowMs - row.last_seen_ms) / 1_000)),
  }
}

/** Number of rows of `query`, and the age of the oldest by its column `since_ms`, s. */
async function waiting(
  db: Db,
  nowMs: number,
  query: ReturnType<typeof sql>,
): Promise<{ count: number; oldestSeconds: number }> {
  const { rows } = await sql<{ count: number; oldest: number | null }>`
    select count(*) as count, min(since_ms) as oldest from (${query}) as rows_waiting`.execute(db)
  const { count = 0, oldest = null } = rows[0] ?? {}
  return { count: Number(count), oldestSeconds: oldest === null ? 0 : Math.max(0, (nowMs - oldest) / 1_000) }
}

/** Reads the values of this process. Without the database, `shared` is undefined. */
export async function readPresentValues(
  db: Db,
  { clock }: Pick<Platform, 'clock'>,
  readiness: Pick<Readiness, 'check' | 'certificate'>,
): Promise<PresentValues> {
  const unready = (await readiness.check()).map(({ check }) => check)
  const beganMs = clock.elapsed()
  const shared = unready.includes('database')
    ? undefined
    : await readSharedValues(db, clock.wall()).catch(() => undefined)
  return {
    unready,
    shared,
    databaseSeconds: shared && (clock.elapsed() - beganMs) / 1_000,
    certificate: readiness.certificate(),
  }
}
