import cluster from 'node:cluster'
import { openIdConfig } from '../openid-settings.ts'
import { join } from 'node:path'
import { loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import { createCloud, type Cloud } from '../../cloud/cloud.ts'
import type { CloudConfig } from '../../cloud/platform/foundation/config.ts'
import type { ImageStore } from '../../cloud/platform/foundation/image-store.ts'
import type { Log } from '../../cloud/platform/foundation/log.ts'
import type { Database } from '../../cloud/platform/persistence/database.ts'
import { pause, type Platform } from '../../policy/platform.ts'
import { brokerOf, drainDelayMs, mayHaveOthers, shownHost, type CloudBroker, type Membership } from '../cloud-broker.ts'
import { isOfRun, openDataFolder } from '../data-folder.ts'
import { listen } from '../http-server.ts'
import { imageBucket } from '../image-bucket.ts'
import { imageFolder } from '../image-folder.ts'
import { keyPlaceOf } from '../key-place.ts'
import { newLog } from '../log.ts'
import { metricsServer } from '../metrics-server.ts'
import type { Values } from '../options.ts'
import { outgoingHttp } from '../outgoing-http.ts'
import { UNTAG_VERSION } from '../../policy/version.ts'
import { printReady } from '../output.ts'
import { realPlatform } from '../platform.ts'
import { cloudLines } from '../ready-lines.ts'
import { freeBytes, probeDisk } from '../probe-disk.ts'
import { secretFiles } from '../secret-files.ts'
import { answersHealthz } from '../service/healthz.ts'
import { ownServiceManager } from '../service/service-manager.ts'
import type { CLOUD_OPTIONS } from '../settings.ts'
import { stopOnSignals } from '../shutdown.ts'
import { uploadProcesses } from '../upload-process.ts'
import { hasApiTls, openCloudTls, type CloudTls } from '../tls/cloud-tls.ts'
import { runPrimary } from '../workers/primary.ts'
import { startOfWorker } from '../workers/worker.ts'
import { openCloudDatabase } from './cloud-database.ts'

export type CloudSettings = Values<typeof CLOUD_OPTIONS>

/** A running cloud. */
export interface RunningCloud {
  baseUrl: string
  mqttUrl: string
  /** Port of the API. */
  port: number
  cloud: Cloud
  database: Database
  stop(): Promise<void>
}

/** Maximum time for the stop of one of several processes, ms. It waits for its requests first. */
const REPLACEABLE_STOPS_WITHIN_MS = 30_000

export async function runCloud(settings: CloudSettings): Promise<void> {
  const log = newLog('cloud', settings.logLevel, cluster.worker && { worker: cluster.worker.id })
  if (cluster.isWorker) return runWorker(settings, log)
  if (settings.workers > 1) return runPrimary(settings, realPlatform(), log)
  const platform = realPlatform()
  const running = await startCloud(settings, platform, log)
  const metrics = await metricsServer(settings, platform, log, async () => {
    const collected = await running.cloud.metrics?.collect()
    return collected ? [collected] : []
  })
  const stop = async () => {
    await metrics?.close()
    await running.stop()
  }
  const service = ownServiceManager(platform, log, () =>
    answersHealthz(settings.host, running.port, hasApiTls(settings)),
  )
  const delayMs = drainDelayMs(settings)
  if (mayHaveOthers(settings)) {
    const stopLater = stopAfterDelay({ ...running, stop }, delayMs)
    stopOnSignals(service.reportStop(stopLater), delayMs + REPLACEABLE_STOPS_WITHIN_MS)
  } else stopOnSignals(service.reportStop(stop))
  const { migrated } = running.database
  log.info({ release: UNTAG_VERSION, ...(migrated.length > 0 && { migrated }) }, 'the cloud runs')
  const ready = { baseUrl: running.baseUrl, mqttUrl: running.mqttUrl, ...metrics?.ready }
  printReady(ready, cloudLines(ready, settings))
  service.ready()
}

/** Stops the cloud after load balancers had time to notice. */
function stopAfterDelay({ cloud, stop }: RunningCloud, delayMs: number): () => Promise<void> {
  return async () => {
    cloud.services.readiness.leave()
    await pause(realPlatform().timers, delayMs)
    await stop()
  }
}

/** Runs one of the processes that `runPrimary` starts. */
async function runWorker(settings: CloudSettings, log: Log): Promise<void> {
  const start = await startOfWorker()
  const running = await serveCloud({ ...settings, port: start.port, mqttPort: start.mqttPort }, realPlatform(), log, {
    processId: start.processId,
    hasEnded: start.hasEnded,
    siblings: start.siblings,
    isReplaceable: true,
  })
  stopOnSignals(running.stop, REPLACEABLE_STOPS_WITHIN_MS)
  const { metrics, services } = running.cloud
  start.serving(
    { baseUrl: running.baseUrl, mqttUrl: running.mqttUrl },
    {
      onEnded: running.wakeElection,
      onLeave: () => services.readiness.leave(),
      ...(metrics && { collectMetrics: () => metrics.collect() }),
    },
  )
}

/** Starts the cloud as one process. */
export async function startCloud(settings: CloudSettings, platform: Platform, log: Log): Promise<RunningCloud> {
  const folder = openDataFolder(settings, platform.random)
  try {
    const running = await serveCloud(settings, platform, log, {
      processId: folder.run,
      hasEnded: (processId) => isOfRun(processId, folder.formerRun),
      isReplaceable: mayHaveOthers(settings),
    })
    return {
      ...running,
      async stop() {
        await running.stop()
        folder.release()
      },
    }
  } catch (error) {
    folder.release()
    throw error
  }
}

interface ServingCloud extends RunningCloud {
  /** Checks at once whether a process must take over the broker. */
  wakeElection(): void
}

/** Serves the cloud from this process. The data folder is already locked. */
async function serveCloud(
  settings: CloudSettings,
  platform: Platform,
  log: Log,
  membership: Membership,
): Promise<ServingCloud> {
  const { data, host } = settings
  // Functions that stop the parts of the cloud, in the order of the calls: requests first, the database last.
  const stops: (() => Promise<void>)[] = []
  const stop = async () => {
    for (const each of stops.splice(0)) await each()
  }
  try {
    const tls = openCloudTls(settings, { platform, log })
    if (tls) stops.push(async () => tls.stop())
    const listening = { host, port: settings.port, flag: 'port', platform, warn: log.warn, certificate: tls?.api }
    const open = async () => {
      const opened = await listen(listening)
      stops.unshift(membership.isReplaceable ? opened.drain : opened.close)
      return opened
    }
    // A cloud alone answers 503 while it starts. One of several must not, because the others already serve.
    const early = membership.isReplaceable ? undefined : await open()
    const database = await openCloudDatabase(settings, platform, log)
    stops.push(() => database.close())
    const broker = await brokerOf(settings, database, { platform, log, membership, certificate: tls?.broker })
    stops.unshift(broker.stop)
    const config = configOf(settings, early?.port ?? settings.port, broker.config, tls)
    const uploads = uploadProcesses({ platform, log })
    const cloud = await createCloud({
      config,
      platform,
      log,
      database,
      keyFiles: await loadKeyFiles(keyPlaceOf(settings), secretFiles, platform.random),
      images: imagesOf(settings),
      outgoing: outgoingHttp(),
      uploads,
      probeDisk: () => probeDisk(data),
      ...(settings.minFreeMb > 0 && {
        disk: { freeBytes: () => freeBytes(data), minFreeBytes: settings.minFreeMb * 1_048_576 },
      }),
      hasMetrics: settings.metricsPort !== undefined,
      ...(tls && { certificate: () => tls.status() }),
      others: { siblings: membership.siblings, isBrokerElsewhere: broker.isElsewhere },
    })
    stops.splice(-1, 0, cloud.stop, async () => uploads.stop())
    await broker.attach(cloud)
    const server = early ?? (await open())
    server.serve(cloud.app)
    const { baseUrl, mqttUrl } = config
    return { baseUrl, mqttUrl, port: server.port, cloud, database, stop, wakeElection: broker.wakeElection }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Store for images: the bucket of --images-bucket, or by default a folder in the data folder. */
function imagesOf({
  data,
  imagesBucket: url,
  imagesRegion: region,
  imagesAccessKeyId: accessKeyId,
  imagesSecretAccessKey: secretAccessKey,
}: CloudSettings): ImageStore {
  if (url === undefined) return imageFolder(join(data, 'images'))
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new Error('--images-bucket needs UNTAG_IMAGES_ACCESS_KEY_ID and UNTAG_IMAGES_SECRET_ACCESS_KEY')
  }
  return imageBucket({ url, region, accessKeyId, secretAccessKey })
}

function configOf(
  settings: CloudSettings,
  port: number,
  broker: CloudBroker['config'],
  tls: CloudTls | undefined,
): CloudConfig {
  const openId = openIdConfig(settings)
  const origin = settings.publicUrl ?? `${tls?.api ? 'https' : 'http'}://${shownHost(settings.host)}:${port}`
  return {
    ...broker,
    baseUrl: `${new URL(origin).origin}/api/v1`,
    servesTls: tls?.api !== undefined,
    rateLimit: settings.rateLimit,
    publishableRateLimit: 10,
    checkAnswers: false,
    allowPrivateTargets: settings.allowPrivateTargets,
    ...(settings.silentMinutes > 0 && { silentAfterMs: settings.silentMinutes * 60_000 }),
    ...(settings.keepDays && { keepDays: settings.keepDays }),
    ...(openId && { openId }),
    ...(settings.securityContact !== undefined && { securityContact: settings.securityContact }),
    trustedProxies: settings.trustedProxies?.split(',').map((p) => p.trim()) ?? [],
  }
}
