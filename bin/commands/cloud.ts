import { assert } from '../../policy/assert.ts'
import { printReady } from '../output.ts'
import { join } from 'node:path'
import { loadKeyFiles } from '../../cloud/authority/key-files.ts'
import { createCloud, type Cloud } from '../../cloud/cloud.ts'
import type { CloudConfig } from '../../cloud/foundation/config.ts'
import type { ImageStore } from '../../cloud/foundation/image-store.ts'
import type { Log } from '../../cloud/foundation/log.ts'
import { startBroker, type AgentBroker, type BrokerParts } from '../../cloud/messaging/embedded-broker.ts'
import type { Database } from '../../cloud/persistence/database.ts'
import { openDatabase } from '../../cloud/persistence/open-database.ts'
import type { Platform } from '../../policy/platform.ts'
import { assertRestored } from '../backup/unfinished.ts'
import { connectionLimits } from '../connection-limits.ts'
import { assertNotCopied } from '../database-copy/copy-record.ts'
import { lockDataDir } from '../data-dir-lock.ts'
import { makeFolder } from '../durable-folder.ts'
import { explain, listen } from '../http-server.ts'
import { imageBucket } from '../image-bucket.ts'
import { imageFolder } from '../image-folder.ts'
import { newLog } from '../log.ts'
import type { Values } from '../options.ts'
import { outgoingHttp } from '../outgoing-http.ts'
import { connectOutsideBroker, outsideBrokerSettings } from '../outside-broker.ts'
import { realPlatform } from '../platform.ts'
import { probeDisk } from '../probe-disk.ts'
import { hideFromOthers } from '../private-files.ts'
import { secretFiles } from '../secret-files.ts'
import type { CLOUD_OPTIONS } from '../settings.ts'
import { stopOnSignals } from '../shutdown.ts'
import { assertNoCloudBelow } from './known-database.ts'

export type CloudSettings = Values<typeof CLOUD_OPTIONS>

/** A running cloud. */
export interface RunningCloud {
  baseUrl: string
  mqttUrl: string
  cloud: Cloud
  database: Database
  stop(): Promise<void>
}

export async function runCloud(settings: CloudSettings): Promise<void> {
  assert(settings.workers === 1, 'the cloud runs as one process')
  const log = newLog('cloud', settings.logLevel)
  const running = await startCloud(settings, realPlatform(), log)
  stopOnSignals(running.stop)
  printReady({ baseUrl: running.baseUrl, mqttUrl: running.mqttUrl })
}

export async function startCloud(settings: CloudSettings, platform: Platform, log: Log): Promise<RunningCloud> {
  const { data, host } = settings
  assertNoCloudBelow(settings)
  makeFolder(data)
  const lock = lockDataDir(
    join(data, 'cloud.lock'),
    `another cloud runs with the data in ${data}: stop it, or choose another folder with --data`,
  )
  const stops: (() => Promise<void> | void)[] = [() => lock.release()]
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each()
  }
  try {
    assertRestored(data)
    assertNotCopied(settings)
    hideFromOthers(data, ['cloud.db'])
    const server = await listen({ host, port: settings.port, flag: 'port', platform, warn: log.warn })
    stops.push(server.close)
    const migrations = settings.requireMigrated ? 'require' : 'apply'
    const database = await openDatabase(
      settings.databaseUrl === undefined
        ? { file: join(data, 'cloud.db'), migrations }
        : { url: settings.databaseUrl, clock: platform.clock, migrations, pooling: settings.databasePooling },
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
    stops.push(() => database.close())
    const { config, attach } = await withBroker(settings, server.port, { log, platform })
    const cloud = await createCloud({
      config,
      platform,
      log,
      database,
      keyFiles: await loadKeyFiles(data, secretFiles, platform.random),
      images: imagesOf(settings),
      outgoing: outgoingHttp(),
      probeDisk: () => probeDisk(data),
    })
    stops.push(cloud.stop)
    const broker = await attach(cloud)
    stops.push(() => broker.close())
    server.serve(cloud.app)
    return { baseUrl: config.baseUrl, mqttUrl: config.mqttUrl, cloud, database, stop }
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

interface WithBroker {
  config: CloudConfig
  attach(cloud: Cloud): Promise<AgentBroker>
}

function withBroker(
  settings: CloudSettings,
  port: number,
  parts: { log: Log; platform: Platform },
): Promise<WithBroker> {
  const outside = outsideBrokerSettings(settings)
  if (!outside) return withEmbeddedBroker(settings, port, { ...parts, limits: connectionLimits().broker })
  const { publicUrl: mqttUrl, ca } = outside
  const outsideBroker = ca === undefined ? {} : { ca }
  return Promise.resolve({
    config: { ...configOf(settings, port, mqttUrl), outsideBroker },
    attach: ({ messages }) =>
      connectOutsideBroker(outside, messages.hooks, { ...parts, onAttached: (broker) => messages.attach(broker) }),
  })
}

/** Starts the MQTT broker first, because the cloud needs its port. The broker rejects logins until `attach`. */
async function withEmbeddedBroker(settings: CloudSettings, port: number, parts: BrokerParts): Promise<WithBroker> {
  const { host, mqttPort } = settings
  let cloud: Cloud | undefined
  const broker = await startBroker(
    { host, port: mqttPort },
    {
      authenticate: (agentId, password) =>
        cloud?.messages.hooks.authenticate(agentId, password) ?? Promise.resolve(undefined),
      onMessage: (from, topic, payload) => cloud?.messages.hooks.onMessage(from, topic, payload),
      onConnected: (agent) => cloud?.messages.hooks.onConnected(agent),
      onActivity: (agentId) => cloud?.messages.hooks.onActivity(agentId),
    },
    parts,
  ).catch((error: unknown) => {
    throw explain(error as NodeJS.ErrnoException, { host, port: mqttPort, flag: 'mqtt-port' })
  })
  return {
    config: configOf(settings, port, settings.publicMqttUrl ?? `mqtt://${shownHost(host)}:${broker.port}`),
    async attach(made) {
      cloud = made
      made.attachBroker(broker)
      return broker
    },
  }
}

function configOf(settings: CloudSettings, port: number, mqttUrl: string): CloudConfig {
  const origin = settings.publicUrl ?? `http://${shownHost(settings.host)}:${port}`
  return {
    baseUrl: `${new URL(origin).origin}/api/v1`,
    mqttUrl,
    rateLimit: settings.rateLimit,
    publishableRateLimit: 10,
    checkAnswers: false,
    allowPrivateTargets: settings.allowPrivateTargets,
    trustedProxies: settings.trustedProxies?.split(',').map((p) => p.trim()) ?? [],
  }
}

/** The host of addresses that the cloud prints. */
function shownHost(host: string): string {
  return host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host
}
