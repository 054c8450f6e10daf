import { noteDemo } from '../demo-place.ts'
import { join } from 'node:path'
import { PCSCD_SOCKET } from '../../device-drivers/transports/link-settings.ts'
import { readIdentity, writeIdentity } from '../../edge-agent/identity/identity.ts'
import { shopper, type Shopper } from '../../simulators/services/shopper.ts'
import { boundedFetch } from '../api-client.ts'
import { newLog } from '../../host/log.ts'
import { openMqttLine } from '../../host/mqtt-line.ts'
import { networkSwitch } from '../../host/network-switch.ts'
import { CLOUD_OPTIONS, START_OPTIONS } from '../../host/settings/cloud.ts'
import { type Values, readOptions } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import { secretFiles } from '../../host/secret-files.ts'
import { stopOnSignals } from '../../host/shutdown.ts'
import { startCloud, type CloudSettings, type RunningCloud } from './cloud.ts'
import { startDemoDevices } from './demo-devices.ts'
import { demoFile, demoKey, demoOperator, demoOwner, type DemoFile } from './demo-secrets.ts'
import { rfidStore } from './demo-store.ts'
import { fillDemoWeek } from './demo-week.ts'
import { demonstration } from './demonstration.ts'
import { startEdge } from './edge.ts'
import { enrolAgent } from './edge-enrol.ts'
import { existsSync, readFileSync } from 'node:fs'
import { readConfig, type AgentConfig } from '../../edge-agent/config.ts'
import { replaceFile } from '../../host/replace-file.ts'

/** Outlines of clothes on a canvas of 96 × 96, by words in a product's name. The last one has no word. */
const SHAPES: readonly (readonly [names: RegExp, path: string])[] = [
  [/jeans|hose/i, 'M30 12H66L72 86H54L48 40L42 86H24Z'],
  [/socken/i, 'M36 10H58V52L74 66Q80 80 64 84Q56 86 50 78L36 60Z'],
  [/schal/i, 'M28 14Q48 34 68 14L74 28Q64 38 58 38L64 84H44L46 40Q32 38 22 28Z'],
  [/jacke|mantel/i, 'M36 10L48 18L60 10L80 24L86 70H74L70 44V86H50V30H46V86H26V44L22 70H10L16 24Z'],
  [/./, 'M34 14Q48 26 62 14L86 28L78 48L68 42V84H28V42L18 48L10 28Z'],
]
const COLOURS = ['#2b6777', '#8c4a6b', '#47629c', '#6b7f3a', '#a5623a', '#4d4f59']

/** Part of `sharp` that draws. `sharp` is an optional dependency. */
type Draw = (svg: Buffer) => { png(): { toBuffer(): Promise<Buffer> } }

/** Uploads the pictures again if the cloud has another address than at the last start: their addresses contain it. */
async function keepPictures({
  api,
  storeId,
  baseUrl,
  file,
}: {
  api: Shopper
  storeId: string
  baseUrl: string
  file: DemoFile
}): Promise<void> {
  if (file.read().picturesAt === baseUrl) return
  await uploadPictures(api, storeId)
  file.write({ picturesAt: baseUrl })
}

/** Gives the clothes of the sandbox drawn pictures. Without the optional package `sharp` they have none. */
async function uploadPictures(api: Shopper, storeId: string): Promise<void> {
  const name: string = 'sharp'
  const draw = await import(name).then(
    (sharp: { default: Draw }) => sharp.default,
    () => undefined,
  )
  if (!draw) return
  const { products } = (await api.call('fetchProducts', { storeId, limit: 100, category: 'Bekleidung' })) as {
    products: { productId: string; name: string }[]
  }
  for (const [i, product] of products.entries()) {
    const shape = SHAPES.find(([names]) => names.test(product.name))?.[1] ?? ''
    const svg =
      `<svg xmlns="http://www.w3.org/2000/svg" width="384" height="384" viewBox="0 0 96 96"><rect width="96" height="96" ` +
      `fill="#f1efe9"/><path d="${shape}" fill="${COLOURS[i % COLOURS.length]}"/></svg>`
    const png = await draw(Buffer.from(svg)).png().toBuffer()
    await api.call('uploadImageToProduct', {
      productId: product.productId,
      imageBase64: png.toString('base64'),
    })
  }
}

/** Mode of the file. Only its owner may read it, because it may contain passwords of readers. */
const FILE_MODE = 0o600

/**
 * Writes the configuration file of the demonstration's agent: the simulated devices, then the devices that the set-up
 * page added before. The simulated devices have new ports at each start. Throws if the file or its result is invalid.
 */
export function demoConfig(file: string, simulated: AgentConfig): AgentConfig {
  const before = existsSync(file) ? valid(file, readFileSync(file, 'utf8')) : simulated
  const ids = new Set(simulated.devices.map(({ deviceId }) => deviceId))
  const added = before.devices.filter(({ deviceId }) => !ids.has(deviceId))
  const text = `${JSON.stringify({ ...before, devices: [...simulated.devices, ...added] }, null, 2)}\n`
  const config = valid(file, text)
  replaceFile(file, text, FILE_MODE)
  return config
}

function valid(file: string, text: string): AgentConfig {
  const checked = readConfig(text)
  if (checked.ok) return checked.config
  throw new Error(
    [`${file} has a fault. Correct the file, or delete it to remove the devices that were added:`]
      .concat(checked.faults.map((fault) => `  ${fault}`))
      .join('\n'),
  )
}

/** Starts the demonstration: cloud, MQTT broker, one agent and three simulated lanes with sandbox data. */
export async function runStart(settings: Values<typeof START_OPTIONS>): Promise<void> {
  const platform = realPlatform()
  const log = newLog('start', settings.logLevel)
  const stops: (() => Promise<void>)[] = []
  const stop = async () => {
    for (const each of stops.splice(0).reverse()) await each()
  }
  stopOnSignals(stop)
  try {
    const notes: string[] = []
    const file = demoFile(settings.data, secretFiles)
    const isNew = await fillDemoWeek(cloudSettings(settings), file, platform, log)
    const running = await startAnyPort(settings, log, notes)
    stops.push(running.stop)
    const { baseUrl } = running
    const key = await demoKey(running, file)
    const consolePassword = await demoOwner(running, file)
    const api = shopper({ baseUrl, key, fetch })
    const store = await rfidStore(api)
    await keepPictures({ api, storeId: store.storeId, baseUrl, file })

    const data = join(settings.data, 'edge')
    const identity = readIdentity(data, secretFiles)
    // The cloud may have another port than at the last start.
    if (identity) writeIdentity(data, { ...identity, cloud: baseUrl, mqttUrl: running.mqttUrl }, secretFiles)
    else {
      const { code } = await api.call('createEnrolmentCode', { storeId: store.storeId, name: 'demo' })
      await enrolAgent({ cloud: baseUrl, code: String(code), data, name: 'demo' }, platform)
    }
    const pin = await demoOperator(api, store.storeId, file, platform)
    const devices = await startDemoDevices(store.devices, platform)
    stops.push(devices.stop)
    const configPath = join(data, 'edge.json')
    const config = demoConfig(configPath, devices.config)
    const network = networkSwitch(boundedFetch, openMqttLine)
    const edgeSettings = {
      data,
      config: configPath,
      host: '127.0.0.1',
      port: settings.edgePort,
      mqttUrl: running.mqttUrl,
      pcscdSocket: PCSCD_SOCKET,
      tlsCert: undefined,
      tlsKey: undefined,
      ca: undefined,
      trace: undefined,
      runtimeDir: undefined,
      json: settings.json,
      logLevel: settings.logLevel,
    }
    const parts = { fetch: network.fetch, openLine: network.openLine }
    const edge = await startEdge(edgeSettings, config, platform, log, parts).catch((error: unknown) => {
      // Only the default port may be replaced by a free port. A port that the user chose is never replaced.
      if (settings.edgePort !== START_OPTIONS.edgePort.fallback || !isTaken(error)) throw error
      notes.push(`Port ${settings.edgePort} is taken, so the agent uses another one. Choose a port with --edge-port.`)
      return startEdge({ ...edgeSettings, port: 0 }, config, platform, log, parts)
    })
    stops.push(edge.stop, noteDemo(data))
    await demonstration({
      platform,
      isNew,
      baseUrl,
      key,
      pin,
      consolePassword,
      notes,
      api,
      store,
      edge,
      devices,
      network,
      data: settings.data,
      edgeData: data,
      quit: () => process.kill(process.pid, 'SIGTERM'),
    })
  } catch (error) {
    await stop()
    throw error
  }
}

function isTaken(error: unknown): error is Error {
  return error instanceof Error && error.message.includes('is taken')
}

function cloudSettings(settings: Values<typeof START_OPTIONS>): CloudSettings {
  const { port, mqttPort, data, databaseUrl, allowPrivateTargets } = settings
  const defaults = readOptions(CLOUD_OPTIONS, [], {})
  return { ...defaults, port, mqttPort, databaseUrl, allowPrivateTargets, data: join(data, 'cloud') }
}

async function startAnyPort(
  settings: Values<typeof START_OPTIONS>,
  log: ReturnType<typeof newLog>,
  notes: string[],
): Promise<RunningCloud> {
  const wanted = cloudSettings(settings)
  const { port, mqttPort } = wanted
  try {
    return await startCloud(wanted, realPlatform(), log)
  } catch (error) {
    const isDefault = port === START_OPTIONS.port.fallback && mqttPort === START_OPTIONS.mqttPort.fallback
    if (!isDefault || !isTaken(error)) throw error
    notes.push(
      `Port ${/port (\d+)/.exec(error.message)?.[1]} is taken, so the cloud and its broker use other ones. Choose ports with --port and --mqtt-port.`,
    )
    return startCloud({ ...wanted, port: 0, mqttPort: 0 }, realPlatform(), log)
  }
}
