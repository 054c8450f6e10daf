import type { Hono } from 'hono'
import type { Platform } from '../policy/platform.ts'
import { keyUsage } from './accounts/key-usage.ts'
import { lastSeen } from './agent-identity/last-seen.ts'
import { openAuthority } from './authority/authority.ts'
import type { KeyFiles } from './authority/key-files.ts'
import { refreshDocuments } from './catalogue/refresh-documents.ts'
import type { CloudConfig } from './foundation/config.ts'
import { createApp } from './http/app.ts'
import { readiness, type Readiness } from './foundation/readiness.ts'
import type { ImageStore } from './foundation/image-store.ts'
import { startJobs } from './jobs.ts'
import type { Log } from './foundation/log.ts'
import type { Metrics } from './monitoring/metrics.ts'
import { agentMessages, type AgentMessages, type OtherProcesses } from './messaging/agent-messages.ts'
import type { AgentBroker } from './messaging/embedded-broker.ts'
import type { Services } from './operations/operation.ts'
import { releaseAbandonedRequests } from './operations/idempotency.ts'
import { notifier } from './operations/notifier.ts'
import { OPERATION_TABLE } from './operation-table.ts'
import type { OutgoingHttp } from './outgoing/outgoing-http.ts'
import type { Database } from './persistence/database.ts'
import { startPushSender } from './push/sender.ts'
import { openVapid } from './push/vapid.ts'
import { startDispatcher } from './webhooks/dispatcher.ts'
import { assertEvent } from './webhooks/event-types.ts'

/** A running cloud without sockets: bin/ opens them, tests call `app` directly. */
export interface Cloud {
  readonly app: Hono
  readonly services: Services
  readonly messages: AgentMessages
  /** The metrics of this process, if `hasMetrics` was set. */
  readonly metrics: Metrics | undefined
  /** Sets the broker of this process; undefined if it has none. */
  attachBroker(broker: AgentBroker | undefined): void
  stop(): Promise<void>
}

export interface CloudParts {
  config: CloudConfig
  platform: Platform
  log: Log
  database: Database
  keyFiles: KeyFiles
  images: ImageStore
  outgoing: OutgoingHttp
  /** Rejects if the data folder cannot be written. Default: never. */
  probeDisk?: () => Promise<void>
  others?: OtherProcesses
  /** True to count requests for `/metrics`. Default: false. */
  hasMetrics?: boolean
}

/** Starts the modules of the cloud on an open database. Opens no socket. */
export async function createCloud({
  config,
  platform,
  log,
  database,
  keyFiles,
  images,
  outgoing,
  probeDisk = () => Promise.resolve(),
  others = {},
  hasMetrics = false,
}: CloudParts): Promise<Cloud> {
  await refreshDocuments(database)
  // Only this process has the SQLite file open (data-dir-lock.ts). On PostgreSQL, other processes may run, and leases
  // expire.
  if (database.dialect === 'sqlite') await database.write(releaseAbandonedRequests)
  const authority = await openAuthority(database, keyFiles, platform)
  const messages = agentMessages(database, () => services, others)
  const readinessOfProcess = readiness({
    platform,
    reads: database.reads,
    replica: database.replica,
    authority,
    probeDisk,
    isBrokerListening: messages.isBrokerListening,
  })
  const metrics = hasMetrics ? await openMetrics(database, platform, readinessOfProcess) : undefined
  const services: Services = {
    platform,
    config,
    log,
    authority,
    agents: messages.channel,
    siblings: others.siblings,
    images,
    push: { wake: () => pushSender.wake(), vapid: await openVapid(database, authority.sealer, platform.random) },
    keyUsage: keyUsage(),
    lastSeen: lastSeen(),
    readiness: readinessOfProcess,
    metrics,
    offersChanged: notifier(),
    entityRegistered: notifier(),
    paymentsDue: notifier(),
    outgoing,
    webhooks: { wake: () => dispatcher.wake(), assertEvent },
  }
  const dispatcher = startDispatcher(database, () => services, platform)
  const pushSender = startPushSender(database, () => services, platform)
  const jobs = startJobs(database, services, messages)
  return {
    app: createApp(OPERATION_TABLE, database, services),
    services,
    messages,
    metrics,
    attachBroker: (broker) => messages.attach(broker),
    async stop() {
      await jobs.stop()
      await Promise.all([dispatcher.stop(), pushSender.stop()])
      // A full disk must not prevent the stop. At most one minute of last-use times is lost.
      await services.keyUsage
        .flush(database)
        .catch((error: unknown) => log.error({ err: error }, 'the last-use times of keys were not stored'))
      await messages.settled()
      await services.lastSeen
        .flush(database)
        .catch((error: unknown) => log.error({ err: error }, 'the last contact times of agents were not stored'))
    },
  }
}

/** Loads the metrics library only if metrics are read. */
async function openMetrics(database: Database, platform: Platform, ready: Readiness): Promise<Metrics> {
  const [{ createMetrics }, { readPresentValues }] = await Promise.all([
    import('./monitoring/metrics.ts'),
    import('./monitoring/present-values.ts'),
  ])
  return createMetrics(() => readPresentValues(database.reads, platform, ready))
}
