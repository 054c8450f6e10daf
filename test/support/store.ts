import type { ProtectionDevice } from '../../device-drivers/kit/device.ts'
import { openDevice } from '../../device-drivers/registry.ts'
import type { AntennaSides } from '../../device-drivers/kit/driver.ts'
import { join } from 'node:path'
import { rmSync } from 'node:fs'
import { secretFiles } from '../../host/secret-files.ts'
import type { OtherProcesses } from '../../cloud/service/messaging/agent-messages.ts'
import { type AgentConfig, readConfig } from '../../edge-agent/config.ts'
import { REGISTRATION_FAULTS } from '../../edge-agent/health/registration.ts'
import { localApp } from '../../edge-agent/http/local-app.ts'
import { enrol, storeFirstDocuments } from '../../edge-agent/enrolment/enrol.ts'
import type { Fetch } from '../../edge-agent/link/wire/http-client.ts'
import { startAgent, type Agent, type AgentParts } from '../../edge-agent/runtime.ts'
import { readIdentity, writeIdentity, type Identity } from '../../edge-agent/identity/identity.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import type { AnyLink } from '../../device-drivers/transports/link-settings.ts'
import { memoryPort, type MemoryPort, pushPort } from '../../device-drivers/transports/memory.ts'
import { llrpReader, type LlrpReader } from '../../simulators/devices/llrp.ts'
import { RelayBoard } from '../../simulators/devices/modbus.ts'
import { scannerSimulator, type ScannerSimulator } from '../../simulators/devices/scanner.ts'
import { assertResponseMatchesApi } from '../verification/simulation/nodes/agent-response-check.ts'
import {
  letPromisesSettle,
  virtualPlatform,
  type VirtualPlatform,
} from '../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from './cloud.ts'
import { AUTHORIZATION, CREDENTIAL } from './credential.ts'
import { temporaryFolder } from './databases.ts'
import { memoryBroker } from './memory-broker.ts'
import { openShop, type Shop } from './shop.ts'

/**
 * A whole store in one process on a virtual clock: the real cloud on SQLite and the real agent with its ledger on disk.
 * Boards and scanners are simulated, and the network can be cut.
 */
export interface TestStore {
  world: VirtualPlatform
  shop: Shop
  agent: Agent
  identity: Identity
  dataDir: string
  boards: Record<LaneName, RelayBoard>
  /** Plugs of the boards. */
  boardPorts: Record<LaneName, MemoryPort>
  /** Reader of the gate, if the option `llrpGate` is set. */
  gateReader: LlrpReader
  gatePort: MemoryPort
  scanners: Record<LaneName, ScannerSimulator>
  /** `fetch` to the cloud. Rejects while the network is cut. */
  fetch: Fetch
  /** Cuts or restores the network. */
  network(isUp: boolean): void
  /** Sets a filter for requests of the agent. A request passes only if the filter returns true. */
  onFetch(look: (url: string) => boolean | Promise<boolean>): void
  /** Advances virtual time until the promise settles. */
  drive<T>(promise: Promise<T>, limitMs?: number): Promise<T>
  /** Advances virtual time until the condition holds. */
  until(what: string, condition: () => boolean | Promise<boolean>, limitMs?: number): Promise<void>
  /**
   * Sends a request to the agent's local API with the credential of a program. The header `authorization` replaces the
   * credential.
   */
  local(
    path: string,
    init?: { method?: string; body?: Json; headers?: Record<string, string> },
  ): Promise<{ status: number; body: Json; cookie: string }>
  authorize(body: Json, headers?: Record<string, string>): Promise<Json>
  /** Number of pulses of a lane's release output. */
  pulses(lane: LaneName): number
  /** Simulates a killed agent and a restart on the same disk. `between` runs before the restart. */
  restart(between?: () => Promise<void> | void): Promise<void>
  buy(items: Json[]): Promise<{ purchase: Json; receipt: string }>
  stop(): Promise<void>
}

/** Additional or replacing hardware of a test. */
export interface ExtraHardware {
  /** Entries of the configuration; an entry with the deviceId of a lane replaces it. */
  entries?: Json[]
  /** Devices without a link, by deviceId. */
  devices?: Record<string, ProtectionDevice>
  /** Simulators of devices by address. */
  ports?: Record<string, (link: ByteLink) => Promise<void>>
}

export const LANES = { station: 'pos_deactivator', detacher: 'self_checkout_detacher', gate: 'exit_gate' } as const
/** True if each device is connected or rejected by the agent. */
export function areSettled(agent: Agent): boolean {
  const settled = new Set<string>(['ready', ...REGISTRATION_FAULTS])
  return agent.status().devices.every(({ state }) => settled.has(state))
}

export type LaneName = keyof typeof LANES

const HOST = '127.0.0.1:8090'

/**
 * Interval at which a board without a passage sensor is read, ms. It is long, because the reads were most of the work of
 * long virtual times. During a release the driver reads every 5 ms.
 */
const IDLE_POLL_MS = 200

export async function openStore(
  options: {
    passageSensor?: boolean
    startMs?: number
    devices?: Json[]
    reader?: { device: ProtectionDevice; antennas?: AntennaSides }
    broker?: boolean
    llrpGate?: boolean
    extra?: (shop: Shop, world: VirtualPlatform) => Promise<ExtraHardware>
    parts?: Partial<AgentParts>
    /** Requests to other agents of the store, which pass even when the network is cut. */
    lan?: Fetch
    others?: OtherProcesses
  } = {},
): Promise<TestStore> {
  const world = virtualPlatform({ seed: 5, ...(options.startMs !== undefined && { startMs: options.startMs }) })
  const shop = await openShop('sqlite', { platform: world, ...(options.others && { others: options.others }) })
  const dataDir = temporaryFolder('agent')
  let isUp = true
  let onFetch: (url: string) => boolean | Promise<boolean> = () => true
  const fetch: Fetch = async (url, init) => {
    if (options.lan && !url.startsWith('https://shop.example')) return options.lan(url, init)
    if (!isUp || !(await onFetch(url))) throw new Error('the network is cut')
    const answer = await shop.cloud.cloud.app.request(url.replace('https://shop.example', ''), {
      method: init.method,
      headers: init.headers,
      ...(init.body !== undefined && { body: init.body }),
    })
    const text = await answer.text()
    if (!isUp) throw new Error('the network is cut')
    return { status: answer.status, text: () => Promise.resolve(text) }
  }

  const boards = {} as TestStore['boards']
  const boardPorts = {} as TestStore['boardPorts']
  const scanners = {} as TestStore['scanners']
  const pushes = pushPort()
  const ports = new Map<string, ReturnType<typeof memoryPort>>()
  const entries: Json[] = []
  for (const [i, lane] of (Object.keys(LANES) as LaneName[]).entries()) {
    const deviceId = shop.devices[LANES[lane]]
    boards[lane] = new RelayBoard({ platform: world, locks: [{ coil: 0, input: 0, openMs: 30, closeMs: 30 }] })
    scanners[lane] = scannerSimulator({ platform: world })
    const [board, scanner] = [boards[lane], scanners[lane]]
    boardPorts[lane] = memoryPort((link) => board.serve(link))
    ports.set(`10.0.0.${i}:502`, boardPorts[lane])
    ports.set(
      `10.0.0.${i}:4000`,
      memoryPort((link) => scanner.serve(link)),
    )
    const gate = {
      siren: { output: 1, seconds: 3 },
      amber: { output: 2 },
      green: { output: 3 },
      ...(options.passageSensor && { passageInput: 1 }),
    }
    entries.push(
      {
        deviceId,
        driver: 'modbus',
        link: { tcp: `10.0.0.${i}:502` },
        output: 0,
        confirmInput: 0,
        pulseMs: 200,
        pollMs: options.passageSensor ? 20 : IDLE_POLL_MS,
        ...(lane === 'gate' && gate),
      },
      { deviceId: `${lane}-scanner`, driver: 'scanner', link: { tcp: `10.0.0.${i}:4000` }, feeds: deviceId },
    )
  }
  // The gate has a reader with antennas and a siren instead of a board.
  const gateReader = llrpReader({ platform: world })
  const gatePort = memoryPort((link) => gateReader.serve(link))
  if (options.llrpGate) {
    ports.set('10.0.0.9:5084', gatePort)
    const own = {
      driver: 'llrp',
      link: { tcp: '10.0.0.9:5084' },
      antennas: { inside: [1], outside: [2] },
      siren: { gpo: 1, seconds: 5 },
      amber: { gpo: 2 },
    }
    for (const [i, entry] of entries.entries())
      if (entry.deviceId === shop.devices.exit_gate) entries[i] = { deviceId: entry.deviceId, ...own }
  }
  // Simulated reads replace the gate's scanner.
  const reads = (deviceId: string) => options.reader !== undefined && deviceId === 'gate-scanner'
  for (const [i, { deviceId, link, feeds }] of entries.entries()) {
    if (reads(deviceId))
      entries[i] = {
        deviceId,
        driver: 'llrp',
        link,
        feeds,
        ...(options.reader?.antennas && { antennas: options.reader.antennas }),
      }
  }
  const extra = (await options.extra?.(shop, world)) ?? {}
  for (const [address, serve] of Object.entries(extra.ports ?? {})) ports.set(address, memoryPort(serve))
  const added = extra.entries ?? []
  const all = [...entries.filter(({ deviceId }) => !added.some((entry) => entry.deviceId === deviceId)), ...added]
  const checked = readConfig(JSON.stringify({ devices: [...all, ...(options.devices ?? [])] }))
  if (!checked.ok) throw new Error(checked.faults.join('\n'))
  const config: AgentConfig = checked.config

  const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
  const enrolled = await enrol({ cloud: shop.cloud.baseUrl, code, platform: world, fetch })
  if (!enrolled.ok) throw new Error(enrolled.why)
  storeFirstDocuments(join(dataDir, 'ledger.db'), enrolled.identity, enrolled.documents, world)
  writeIdentity(dataDir, enrolled.identity, secretFiles)
  const errors: unknown[] = []
  const log = { info: () => undefined, warn: () => undefined, error: (fields: object) => void errors.push(fields) }

  const openLine = options.broker
    ? memoryBroker(shop.cloud.cloud, enrolled.identity)
    : () => Promise.reject(new Error('no broker in this test'))

  function start(): Agent {
    const identity = readIdentity(dataDir, secretFiles)
    if (!identity) throw new Error('not enrolled')
    return startAgent({
      platform: world,
      dataDir,
      identity,
      keepIdentity: (changed) => writeIdentity(dataDir, changed, secretFiles),
      secretFiles,
      config,
      fetch,
      openLine,
      log,
      openLink: (settings: AnyLink, signal: AbortSignal) => {
        if ('push' in settings) return pushes.open(settings.push, signal)
        const port = ports.get('tcp' in settings ? settings.tcp : '')
        return port ? port.open(signal) : Promise.reject(new Error('no such port'))
      },
      openDevice: (entry, links, platform) =>
        options.reader && reads(entry.deviceId)
          ? options.reader.device
          : (extra.devices?.[entry.deviceId] ?? openDevice(entry, links, platform)),
      onFatal: (why) => void errors.push(why),
      ...options.parts,
    })
  }

  async function drive<T>(promise: Promise<T>, limitMs = 60_000): Promise<T> {
    let settled = false
    const mark = () => void (settled = true)
    promise.then(mark, mark)
    for (let spent = 0; !settled; spent += 5) {
      for (let turn = 0; turn < 6 && !settled; turn++) await letPromisesSettle()
      if (settled) break
      if (spent > limitMs) throw new Error(`nothing settled within ${limitMs} ms of virtual time`)
      await world.advance(5)
    }
    return promise
  }

  async function until(what: string, condition: () => boolean | Promise<boolean>, limitMs = 60_000): Promise<void> {
    for (let spent = 0; !(await condition()); spent += 20) {
      if (spent > limitMs) throw new Error(`${what}: not within ${limitMs} ms of virtual time`)
      for (let turn = 0; turn < 6; turn++) await letPromisesSettle()
      await world.advance(20)
    }
  }

  const store: TestStore = {
    world,
    shop,
    agent: start(),
    identity: enrolled.identity,
    dataDir,
    boards,
    boardPorts,
    gateReader,
    gatePort,
    scanners,
    fetch,
    network: (up) => void (isUp = up),
    onFetch: (look) => void (onFetch = look),
    drive,
    until,
    async local(path, { method = 'GET', body, headers = {} } = {}) {
      const app = localApp(store.agent, { hosts: () => [HOST], log, pushes, credential: () => CREDENTIAL })
      const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
      const init = {
        method,
        headers: {
          host: HOST,
          ...AUTHORIZATION,
          ...(text !== undefined && {
            'content-type': 'application/json',
            'content-length': String(Buffer.byteLength(text)),
          }),
          ...headers,
        },
        ...(text !== undefined && { body: text }),
      }
      const answer = await drive(Promise.resolve(app.request(`http://${HOST}${path}`, init)))
      const read = await answer.text()
      assertResponseMatchesApi({ method, path, status: answer.status, headers: answer.headers, text: read })
      return {
        status: answer.status,
        body: read.startsWith('{') ? JSON.parse(read) : read,
        cookie: answer.headers.get('set-cookie')?.split(';')[0] ?? '',
      }
    },
    async authorize(body, headers) {
      const answer = await store.local('/v1/authorize', { method: 'POST', body, ...(headers && { headers }) })
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
      return answer.body
    },
    pulses: (lane) => boards[lane].log.filter((change) => change.coil === 0 && change.on).length,
    async restart(between) {
      // The new agent has only the data on the disk.
      const dead = store.agent
      await drive(dead.stop())
      await between?.()
      store.agent = start()
      await until('the devices', () => areSettled(store.agent))
    },
    async buy(items) {
      const purchase = await drive(shop.buy(items))
      const { url } = await shop.ok('generateReceiptQR', { purchaseId: purchase.transactionId })
      return { purchase, receipt: url }
    },
    async stop() {
      await drive(store.agent.stop())
      await shop.stop()
      rmSync(join(dataDir), { recursive: true, force: true })
      if (errors.length > 0)
        throw new Error(
          `errors in the agent's log: ${errors.map((e) => (e as { err?: Error }).err?.stack ?? String(e)).join('\n')}`,
        )
    },
  }
  await until('the agent online with its devices', () => store.agent.link.isOnline && areSettled(store.agent))
  return store
}
