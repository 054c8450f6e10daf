import {
  AggregatorRegistry,
  Counter,
  Gauge,
  Histogram,
  Registry,
  collectDefaultMetrics,
  type MetricObjectWithValues,
  type MetricValue,
} from 'prom-client'
import type { RequestMetrics } from '../../platform/foundation/ports.ts'
import type { CertificateStatus } from '../../platform/foundation/config.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { readValue, writeValue } from '../../platform/persistence/installation.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Readiness } from '../../platform/foundation/readiness.ts'
import { sql } from 'kysely'
import { stateOf } from '../../protection/agent-identity/agent-queries.ts'

const NAME = 'last_backup_ms'

/** Stores the time of the last complete backup, ms. `/metrics` shows its age. */
export async function writeLastBackup(db: Db, madeMs: number): Promise<void> {
  await writeValue(db, NAME, String(madeMs))
}

/** Time of the last complete backup, ms; undefined if `untag backup` never made one. */
async function readLastBackup(db: Db): Promise<number | undefined> {
  const value = await readValue(db, NAME)
  return value === undefined ? undefined : Number(value)
}

/** Metrics of one process, in the form that the primary process adds up over its workers. */
export type MetricsOfProcess = MetricObjectWithValues<MetricValue<string>>[]

/** Content type of the text format of Prometheus. */
export const METRICS_TYPE = Registry.PROMETHEUS_CONTENT_TYPE

/** Upper bounds of the latency histogram, s. A shopper notices more than 0.25 s at the till. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Values that the database holds. Each process reads the same values. */
interface SharedValues {
  /** Agents that are not revoked, by `online` and `offline`. */
  readonly agents: { readonly online: number; readonly offline: number }
  /** Journal rows that agents have not sent, and the highest number of one agent. */
  readonly journalRowsWaiting: number
  /** Agents whose policy is older than that of their store. */
  readonly agentsWithOldPolicy: number
  /** Longest time since a connected agent contacted the cloud, s. */
  readonly longestSilenceSeconds: number
  /** Webhook deliveries that wait, and the age of the oldest, s. */
  readonly webhooksWaiting: number
  readonly oldestWebhookSeconds: number
  /** Push notices that wait, and the age of the oldest, s. */
  readonly noticesWaiting: number
  /** Open exceptions of all stores. */
  readonly openExceptions: number
  /** Time since the last complete backup, s; undefined if there is none. */
  readonly backupAgeSeconds: number | undefined
}

/** Values of this process at the time of a request for metrics. */
interface PresentValues {
  /** Parts that are not ready (`/readyz`). */
  readonly unready: readonly string[]
  /** Undefined if the database does not answer. */
  readonly shared: SharedValues | undefined
  /** Time that the database took for these values, s; undefined if it does not answer. */
  readonly databaseSeconds: number | undefined
  /** Undefined if this process serves no TLS. */
  readonly certificate: CertificateStatus | undefined
}

/** Counts requests, and makes the metrics of this process. */
export interface Metrics extends RequestMetrics {
  /** The metrics of this process. */
  collect(): Promise<MetricsOfProcess>
}

/** The parts that `/readyz` checks. */
const PARTS = ['database', 'disk', 'clock', 'keys', 'broker'] as const

/** Names and help texts of the values that all processes share. All are gauges. */
const SHARED: Record<string, readonly [help: string, valueOf: (values: SharedValues) => number | undefined]> = {
  agents_online: ['Agents with a connection to the broker.', (v) => v.agents.online],
  agents_offline: ['Agents without a connection to the broker. Revoked agents do not count.', (v) => v.agents.offline],
  agents_longest_silence_seconds: [
    'Longest time since a connected agent contacted the cloud.',
    (v) => v.longestSilenceSeconds,
  ],
  agents_with_old_policy: ['Agents whose policy is older than that of their store.', (v) => v.agentsWithOldPolicy],
  agents_journal_rows_waiting: ['Journal rows that agents have not sent.', (v) => v.journalRowsWaiting],
  webhook_deliveries_waiting: ['Webhook deliveries that are not finished, up to 10,000.', (v) => v.webhooksWaiting],
  webhook_oldest_seconds: ['Age of the oldest webhook delivery that is not finished.', (v) => v.oldestWebhookSeconds],
  push_notices_waiting: ['Push notices that wait, up to 10,000.', (v) => v.noticesWaiting],
  exceptions_open: ['Exceptions that nobody has acknowledged, up to 10,000.', (v) => v.openExceptions],
  backup_age_seconds: [
    'Time since the last complete backup. Missing if untag backup never made one.',
    (v) => v.backupAgeSeconds,
  ],
}

/** Creates the metrics of this process. `readValues` runs once for each call of `collect`. */
export function createMetrics(readValues: () => Promise<PresentValues>): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({
    name: 'untag_cloud_requests_total',
    help: 'Answered requests, by operation and HTTP status.',
    labelNames: ['operation', 'status'],
    registers: [registry],
  })
  const durations = new Histogram({
    name: 'untag_cloud_request_seconds',
    help: 'Time from the arrival of a request to its response.',
    labelNames: ['operation'],
    buckets: SECONDS,
    registers: [registry],
  })
  const ready = new Gauge({
    name: 'untag_cloud_ready',
    help: '1 if this part of the cloud works (see /readyz).',
    labelNames: ['check'],
    aggregator: 'min',
    registers: [registry],
  })
  const database = new Gauge({
    name: 'untag_cloud_database_seconds',
    help: 'Time that the database took for the values of this response.',
    aggregator: 'max',
    registers: [registry],
  })
  const setCertificate = certificateGauges(registry)
  new Gauge({
    name: 'untag_cloud_processes',
    help: 'Processes of the cloud that answered this request for metrics.',
    aggregator: 'sum',
    registers: [registry],
  }).set(1)
  const shared = Object.entries(SHARED).map(([name, [help, valueOf]]) => ({
    gauge: new Gauge({ name: `untag_cloud_${name}`, help, aggregator: 'max', registers: [registry] }),
    valueOf,
  }))
  return {
    observeRequest(operation, status, seconds) {
      requests.inc({ operation, status: String(status) })
      durations.observe({ operation }, seconds)
    },
    async collect() {
      const values = await readValues()
      for (const part of PARTS) ready.set({ check: part }, values.unready.includes(part) ? 0 : 1)
      // Without an answer of the database, no value is better than an old value.
      for (const { gauge, valueOf } of shared) setOrRemove(gauge, values.shared && valueOf(values.shared))
      setOrRemove(database, values.databaseSeconds)
      setCertificate(values.certificate)
      return (await registry.getMetricsAsJSON()) as MetricsOfProcess
    },
  }
}

/** Gauges of the TLS certificate. Without TLS they have no value. */
function certificateGauges(registry: Registry): (status: CertificateStatus | undefined) => void {
  const expiry = new Gauge({
    name: 'untag_cloud_certificate_expiry_timestamp_seconds',
    help: 'End of the validity of the TLS certificate in use, s since 1970.',
    aggregator: 'min',
    registers: [registry],
  })
  const current = new Gauge({
    name: 'untag_cloud_certificate_current',
    help: '0 if the latest files of the TLS certificate are not usable, so that the former certificate stays in use.',
    aggregator: 'min',
    registers: [registry],
  })
  return (status) => {
    setOrRemove(expiry, status && status.expiresMs / 1_000)
    setOrRemove(current, status && (status.fault === undefined ? 1 : 0))
  }
}

function setOrRemove(gauge: Gauge, value: number | undefined): void {
  if (value === undefined) gauge.remove()
  else gauge.set(value)
}

/** Adds up the metrics of all processes, as text for Prometheus. */
export async function metricsText(processes: readonly MetricsOfProcess[]): Promise<string> {
  return AggregatorRegistry.aggregate([...processes]).metrics()
}

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
    .select(['agent.online', 'agent.last_seen_ms', 'agent.state', 'store.document_version'])
    .where('agent.revoked_ms', 'is', null)
    .limit(ROWS_LIMIT)
    .execute()
}

function agentValues(
  rows: AgentRows,
  nowMs: number,
): Pick<SharedValues, 'agents' | 'journalRowsWaiting' | 'agentsWithOldPolicy' | 'longestSilenceSeconds'> {
  const online = rows.filter((row) => row.online === 1)
  const states = rows.map((row) => ({ state: stateOf(row), policyVersion: row.document_version }))
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
