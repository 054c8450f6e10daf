import { bodyRoom } from './service/http/body.ts'
import { applyTill } from './sales/tills/apply-till.ts'
import type { Hono } from 'hono'
import type { Platform } from '../policy/platform.ts'
import { keyUsage } from './platform/accounts/key-operations.ts'
import { lastSeen } from './protection/agent-identity/agent-queries.ts'
import type { DiskSpace } from './protection/agents/watch/incidents.ts'
import { openAuthority } from './platform/authority/authority.ts'
import type { KeyFiles } from './platform/authority/key-files.ts'
import { refreshDocuments } from './shop/catalogue/refresh-documents.ts'
import type { Log } from './platform/foundation/log.ts'
import type { CloudConfig, CertificateStatus } from './platform/foundation/config.ts'
import { consoleRoutes } from './console/frame/console.tsx'
import { completeErasures } from './sales/customers/erasures.ts'
import { consoleAccess, SignInPages } from './console/sign-in/routes.ts'
import { OperationLimits } from './service/http/operation-limits.ts'
import { createApp } from './service/http/app.ts'
import { readiness, type Readiness } from './platform/foundation/readiness.ts'
import { type ImageStore, READ_HERE, type UploadReader } from './platform/foundation/ports.ts'
import { startJobs } from './service/jobs.ts'
import type { Metrics } from './service/monitoring/metrics.ts'
import { agentMessages, type AgentMessages, type OtherProcesses } from './service/messaging/agent-messages.ts'
import type { AgentBroker } from './service/messaging/embedded-broker.ts'
import type { Services } from './platform/operations/operation.ts'
import { releaseAbandonedRequests } from './platform/operations/idempotency.ts'
import { ChangeFeed, notifier } from './platform/operations/notifier.ts'
import { OPERATION_TABLE } from './service/operation-table.ts'
import type { OutgoingHttp } from './platform/outgoing/outgoing-http.ts'
import { findCaller } from './service/http/authentication.ts'
import { openIdProvider } from './platform/users/openid-provider.ts'
import type { Database } from './platform/persistence/database.ts'
import { storeConsoleUrl } from './platform/users/console-address.ts'
import { startPushSender, openVapid } from './shop/push/sender.ts'
import { startDispatcher } from './platform/webhooks/dispatcher.ts'
import { assertEvent } from './platform/webhooks/event-types.ts'

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

interface CloudParts {
  config: CloudConfig
  platform: Platform
  log: Log
  database: Database
  keyFiles: KeyFiles
  images: ImageStore
  outgoing: OutgoingHttp
  /** Reads uploaded files. Default: this process, for tests and simulations. */
  uploads?: UploadReader
  /** Rejects if the data folder cannot be written. Default: never. */
  probeDisk?: () => Promise<void>
  /** Free space of the data folder. Default: not watched. */
  disk?: DiskSpace
  /** State of the certificate, if this process serves TLS. */
  certificate?: () => CertificateStatus
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
  uploads = READ_HERE,
  probeDisk = () => Promise.resolve(),
  disk,
  certificate,
  others = {},
  hasMetrics = false,
}: CloudParts): Promise<Cloud> {
  await refreshDocuments(database)
  await storeConsoleUrl(database, config)
  // Only this process has the SQLite file open (host/data-dir-lock.ts). On PostgreSQL, other processes may run, and leases
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
    certificate,
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
    uploads,
    push: { wake: () => pushSender.wake(), vapid: await openVapid(database, authority.sealer, platform.random) },
    changes: new ChangeFeed(platform, others.siblings),
    keyUsage: keyUsage(),
    findCaller,
    lastSeen: lastSeen(),
    readiness: readinessOfProcess,
    metrics,
    offersChanged: notifier(),
    entityRegistered: notifier(),
    applyTill,
    paymentsDue: notifier(),
    identityProvider: openIdProvider(config, { outgoing, platform, log }),
    outgoing,
    webhooks: { wake: () => dispatcher.wake(), assertEvent },
  }
  // Erases the customers that a restored backup brought back, before anything about them leaves the cloud.
  await completeErasures(database, services)
  void services.identityProvider?.check()
  const dispatcher = startDispatcher(database, () => services, platform)
  const pushSender = startPushSender(database, () => services, platform)
  const jobs = startJobs(database, services, messages, disk)
  // A full disk must not prevent the stop. At most one minute of these times is lost.
  const stored = (what: string, flushed: Promise<void>) =>
    flushed.catch((error: unknown) => log.error({ err: error }, `the ${what} were not stored`))
  return {
    app: appOf(database, services),
    services,
    messages,
    metrics,
    attachBroker: (broker) => messages.attach(broker),
    async stop() {
      await jobs.stop()
      await Promise.all([dispatcher.stop(), pushSender.stop()])
      await stored('last-use times of keys', services.keyUsage.flush(database))
      await messages.settled()
      await stored('last contact times of agents', services.lastSeen.flush(database))
    },
  }
}

/** The routes of the API and of the console, which share their rate limits. */
function appOf(database: Database, services: Services): Hono {
  const limits = new OperationLimits(services)
  const takeRoom = bodyRoom()
  const app = createApp(OPERATION_TABLE, database, services, limits, takeRoom)
  const signIn = new SignInPages(database, services, limits)
  signIn.addTo(app)
  const access = consoleAccess(database, services, limits, (c) => signIn.page(c))
  consoleRoutes(app, { access, services, takeRoom })
  return app
}

/** Loads the metrics library only if metrics are read. */
async function openMetrics(database: Database, platform: Platform, ready: Readiness): Promise<Metrics> {
  const [{ createMetrics }, { readPresentValues }] = await Promise.all([
    import('./service/monitoring/metrics.ts'),
    import('./service/monitoring/metrics.ts'),
  ])
  return createMetrics(() => readPresentValues(database.reads, platform, ready))
}
