import { join } from 'node:path'
import { PCSCD_SOCKET } from '../../device-drivers/transports/link-settings.ts'
import { readIdentity, writeIdentity } from '../../edge-agent/identity/identity.ts'
import { shopper } from '../../simulators/services/shopper.ts'
import { boundedFetch } from '../bounded-fetch.ts'
import { newLog } from '../log.ts'
import { openMqttLine } from '../mqtt-line.ts'
import { networkSwitch } from '../network-switch.ts'
import { CLOUD_OPTIONS, START_OPTIONS } from '../settings.ts'
import type { Values } from '../options.ts'
import { readOptions } from '../options.ts'
import { realPlatform } from '../platform.ts'
import { secretFiles } from '../secret-files.ts'
import { stopOnSignals } from '../shutdown.ts'
import { startCloud, type CloudSettings, type RunningCloud } from './cloud.ts'
import { demoConfig } from './demo-config.ts'
import { startDemoDevices } from './demo-devices.ts'
import { demoFile, demoKey, demoOperator, demoOwner } from './demo-secrets.ts'
import { keepPictures } from './demo-pictures.ts'
import { rfidStore } from './demo-store.ts'
import { fillDemoWeek } from './demo-week.ts'
import { demonstration } from './demonstration.ts'
import { startEdge } from './edge.ts'
import { enrolAgent } from './edge-enrol.ts'

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
    await fillDemoWeek(cloudSettings(settings), file, platform, log)
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
    stops.push(edge.stop)
    await demonstration({
      platform,
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
