import cluster from 'node:cluster'
import type { CLOUD_OPTIONS } from '../../host/settings/cloud.ts'
import { openIdConfig } from '../../host/openid-settings.ts'
import { join, dirname } from 'node:path'
import { loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import { createCloud, type Cloud } from '../../cloud/cloud.ts'
import type { Log } from '../../cloud/platform/foundation/log.ts'
import type { CloudConfig } from '../../cloud/platform/foundation/config.ts'
import { type ImageStore, IMAGE_NAME } from '../../cloud/platform/foundation/ports.ts'
import type { Database } from '../../cloud/platform/persistence/database.ts'
import { pause, type Platform } from '../../policy/platform.ts'
import {
  brokerOf,
  drainDelayMs,
  mayHaveOthers,
  shownHost,
  type CloudBroker,
  type Membership,
} from '../../host/cloud-broker.ts'
import { isOfRun, openDataFolder } from '../../host/data-folder.ts'
import { listen } from '../../host/http-server.ts'
import { keyPlaceOf, secretFiles } from '../../host/secret-files.ts'
import { newLog } from '../../host/log.ts'
import { writesJson, printReady } from '../../host/output.ts'
import { metricsServer } from '../../host/metrics-server.ts'
import { type Values, WrongUsage } from '../../host/options.ts'
import { outgoingHttp } from '../../host/outgoing-http.ts'
import { UNTAG_VERSION } from '../../policy/version.ts'
import { realPlatform } from '../../host/platform.ts'
import { consoleUrlAt } from '../../cloud/platform/users/console-address.ts'
import { cloudLines } from '../../host/ready-lines.ts'
import { freeBytes, probeDisk, flushFolder, makeFolder } from '../../host/replace-file.ts'
import { answersHealthz } from '../../host/service/healthz.ts'
import { ownServiceManager } from '../../host/service/service-manager.ts'
import { stopOnSignals } from '../../host/shutdown.ts'
import { uploadProcesses } from '../../host/upload-process.ts'
import { hasApiTls, openCloudTls, type CloudTls } from '../../host/tls/cloud-tls.ts'
import { runPrimary } from '../../host/workers/primary.ts'
import { startOfWorker } from '../../host/workers/worker.ts'
import { openDatabase } from '../../cloud/platform/persistence/open-database.ts'
import type { PostgresPlace } from '../../cloud/platform/persistence/postgres.ts'
import type { ReplicaPlace } from '../../cloud/platform/persistence/replica.ts'
import { AwsClient } from 'aws4fetch'
import { closeSync, existsSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/** Images in a folder, spread over subfolders by the first two characters of their names. */
export function imageFolder(folder: string): ImageStore {
  const pathOf = (name: string) => {
    if (!IMAGE_NAME.test(name)) throw new Error(`not the name of an image: ${name.slice(0, 80)}`)
    return join(folder, name.slice(0, 2), name)
  }
  return {
    async put(name, bytes) {
      const file = pathOf(name)
      if (existsSync(file)) return
      makeFolder(dirname(file))
      // Writes, flushes and renames, so that a power cut leaves no partial file.
      const fresh = `${file}.${process.pid}.new`
      const fd = openSync(fresh, 'w')
      try {
        writeFileSync(fd, bytes)
        fsyncSync(fd)
      } finally {
        closeSync(fd)
      }
      renameSync(fresh, file)
      flushFolder(dirname(file))
    },
    async get(name) {
      try {
        return await readFile(pathOf(name))
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw error
      }
    },
  }
}

/** A bucket of an S3-compatible storage: AWS, MinIO, Ceph, R2 … */
interface BucketSettings {
  /** Address with the bucket as path, such as `https://s3.eu-central-1.amazonaws.com/my-images`. */
  url: string
  region: string
  accessKeyId: string
  secretAccessKey: string
}

const ANSWER_WITHIN_MS = 10_000
/** Maximum size of a stored image, bytes. The cloud stores no larger images. */
const ANSWER_LIMIT = 32 * 1024 * 1024

/** Images in a bucket. */
export function imageBucket({ url, region, accessKeyId, secretAccessKey }: BucketSettings): ImageStore {
  const client = new AwsClient({ accessKeyId, secretAccessKey, region, service: 's3', retries: 2 })
  const addressOf = (name: string) => {
    if (!IMAGE_NAME.test(name)) throw new Error(`not the name of an image: ${name.slice(0, 80)}`)
    return `${url.replace(/\/$/, '')}/${name}`
  }
  return {
    async put(name, bytes, contentType) {
      const answer = await client.fetch(addressOf(name), {
        method: 'PUT',
        headers: { 'content-type': contentType, 'cache-control': 'public, max-age=31536000, immutable' },
        body: bytes as Uint8Array<ArrayBuffer>,
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        redirect: 'error',
      })
      await answer.body?.cancel()
      if (!answer.ok) throw new Error(`the image storage answered ${answer.status} to PUT`)
    },
    async get(name) {
      const answer = await client.fetch(addressOf(name), {
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
        redirect: 'error',
      })
      if (answer.status === 404 || answer.status === 403) {
        await answer.body?.cancel()
        return undefined
      }
      if (!answer.ok || Number(answer.headers.get('content-length') ?? 0) > ANSWER_LIMIT) {
        await answer.body?.cancel()
        throw new Error(`the image storage answered ${answer.status} to GET`)
      }
      return new Uint8Array(await answer.arrayBuffer())
    },
  }
}

type Settings = Values<typeof CLOUD_OPTIONS>

/** Opens the database of a cloud, and logs the changes of its state. */
function openCloudDatabase(settings: Settings, platform: Platform, log: Log): Promise<Database> {
  return openDatabase(
    placeOf(settings, platform, log),
    (failure) => {
      log.error(
        { err: failure },
        'a write to the database failed, so this process ends: check the disk and start the cloud again',
      )
      process.exit(1)
    },
    (state, err) => {
      if (state === 'available') log.warn({}, 'the database accepts writes again')
      else if (state === 'full') log.error({ err }, 'the disk is full: changes get 503 until there is free space')
      else log.error({ err }, 'the database does not respond: requests get 503, jobs and webhooks wait')
    },
  )
}

function placeOf(settings: Settings, platform: Platform, log: Log): Parameters<typeof openDatabase>[0] {
  const { data, databaseUrl, replicaUrl, databasePooling } = settings
  const migrations = settings.requireMigrated ? 'require' : 'apply'
  if (databaseUrl === undefined) {
    if (replicaUrl !== undefined) throw new WrongUsage(['--replica-url needs --database-url: SQLite has no replica'])
    return { file: join(data, 'cloud.db'), migrations, clock: platform.clock }
  }
  const place: PostgresPlace = {
    url: databaseUrl,
    clock: platform.clock,
    timers: platform.timers,
    migrations,
    pooling: databasePooling,
  }
  return replicaUrl === undefined ? place : { ...place, replica: replicaPlace(settings, replicaUrl, platform, log) }
}

function replicaPlace({ replicaMaxLag }: Settings, url: string, { timers }: Platform, log: Log): ReplicaPlace {
  return {
    url,
    maxLagMs: replicaMaxLag * 1_000,
    timers,
    onState(state, err) {
      if (state === 'used') log.warn({}, 'the replica answers reads again')
      else if (state === 'late')
        log.warn({}, `the replica lags more than ${replicaMaxLag} s behind: the primary answers its reads`)
      else log.warn({ err }, 'the replica does not respond: the primary answers its reads')
    },
  }
}

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
  // In a terminal the lines for a person say so.
  const started = { release: UNTAG_VERSION, ...(migrated.length > 0 && { migrated }) }
  if (!(process.stdout.isTTY && process.stderr.isTTY) || writesJson()) log.info(started, 'the cloud runs')
  const ready = { baseUrl: running.baseUrl, mqttUrl: running.mqttUrl, ...metrics?.ready }
  printReady(ready, cloudLines({ ...ready, consoleUrl: consoleUrlAt(new URL(ready.baseUrl).origin) }, settings))
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
