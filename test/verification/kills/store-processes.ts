import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scannerSimulator, type ScannerSimulator } from '../../../simulators/devices/scanner.ts'
import { serveTcp, type TcpService } from '../../../simulators/devices/serve.ts'
import { shopper, type BasketLine, type Bought, type Shopper } from '../../../simulators/services/shopper.ts'
import { authorizationIn } from '../../../host/credential-file.ts'
import { realPlatform } from '../../../host/platform.ts'
import type { Processes, RunningProcess, ProcessEnvironment } from './processes.ts'
import { newTcpWire, unusedPort, type TcpWire } from './tcp-wire.ts'

/**
 * A store with cloud and agent as separate processes, started by the command line. The test can cut the connection
 * between them. Boards and scanners speak their real protocols.
 */
export interface StoreProcesses {
  folder: string
  cloud: RunningProcess
  agent: RunningProcess
  api: Shopper
  key: string
  baseUrl: string
  /** Port of the cloud's MQTT broker, without the proxy. */
  brokerPort: number
  storeId: string
  otherStoreId: string
  devices: Record<'pos_deactivator' | 'self_checkout_detacher' | 'exit_gate', string>
  scanners: Record<'station' | 'gate', ScannerSimulator>
  products: Fields[]
  wire: TcpWire
  startCloud(): Promise<void>
  startAgent(): Promise<void>
  buy(items: BasketLine[]): Promise<Bought>
  /** Sends a POST request to the agent's local API, with its credential. */
  local(path: string, body: Fields, headers?: Record<string, string>): Promise<{ status: number; body: Fields }>
  authorize(body: Fields): Promise<Fields>
  status(): Promise<Fields>
  events(filter?: Fields): Promise<Fields[]>
  /** Stops agent and cloud with SIGTERM; the folder remains. */
  stopProcesses(): Promise<void>
  stop(): Promise<void>
}

/** JSON object of an API. */
export type Fields = Record<string, unknown>

export interface StoreOptions {
  processes: Processes
  /** Addresses of the relay boards of station, detacher and gate. With `gateReader`, the gate has no board. */
  boards: Record<'station' | 'detacher', string> & { gate?: string }
  /** Address of an LLRP reader that is the exit gate, with antenna 1 inside, antenna 2 outside and a siren at GPO 1. */
  gateReader?: string
  /** Folder in which the folder of the store is created. Default: the system's folder of temporary files. */
  parentFolder?: string
  databaseUrl?: string
  /** Port of an external broker. If it is set, the proxy connects the agent to this broker. */
  brokerPort?: number
  /** Additional options of `untag cloud` and `untag edge`. */
  cloudOptions?: readonly string[]
  agentOptions?: readonly string[]
  /** Address on which the cloud listens. Default: 127.0.0.1. */
  cloudHost?: string
  /** Environment of the cloud, read again at every start. */
  cloudIn?: ProcessEnvironment
  agentIn?: ProcessEnvironment
}

/** Starts a store in a new folder. Takes a few seconds. */
export async function openStoreProcesses(options: StoreOptions): Promise<StoreProcesses> {
  const { processes, cloudHost = '127.0.0.1', agentIn = {}, parentFolder = tmpdir() } = options
  const folder = mkdtempSync(join(parentFolder, 'untag-journey-'))
  const edge = join(folder, 'edge')
  // The ports are fixed so that a restarted cloud keeps them. The public URLs of the cloud name the proxy, so agents
  // connect through the proxy.
  const ports = { http: await unusedPort(), mqtt: options.brokerPort ?? (await unusedPort()) }
  const wire = await newTcpWire(ports, cloudHost)
  const cloudArgs = cloudArgsOf(options, folder, ports)
  const cloudIn = () => withAddresses(options, wire)
  const agentArgs = agentArgsOf(options, folder)
  const cloud = await processes.start(cloudArgs, cloudIn())
  const key = await newKey(options, folder)
  // The shopper's phone connects without the proxy.
  const baseUrl = `http://${cloudHost}:${ports.http}/api/v1`
  const api = shopper({ baseUrl, key, fetch })
  const shop = await findShop(api)
  await enrol(options, api, shop.storeId, wire, edge)
  const { scanners, services } = await openScanners()
  mkdirSync(edge, { recursive: true })
  writeFileSync(join(folder, 'edge.json'), JSON.stringify(configOf(shop.devices, options, services)))
  const agent = await processes.start(agentArgs, agentIn)

  const store: StoreProcesses = {
    folder,
    cloud,
    agent,
    api,
    key,
    baseUrl,
    brokerPort: ports.mqtt,
    ...shop,
    scanners,
    wire,
    startCloud: async () => void (store.cloud = await processes.start(cloudArgs, cloudIn())),
    startAgent: async () => void (store.agent = await processes.start(agentArgs, agentIn)),
    buy: (items) => api.buy({ storeId: shop.storeId, items }),
    ...agentCalls(() => String(store.agent.ready['url']), edge),
    events: (filter = {}) => allEvents(api, shop.storeId, filter),
    async stopProcesses() {
      await store.agent.stop()
      await store.cloud.stop()
    },
    async stop() {
      await store.stopProcesses()
      wire.close()
      for (const service of services) await service.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return store
}

type Shop = Pick<StoreProcesses, 'storeId' | 'otherStoreId' | 'devices' | 'products'>

function databaseArgs({ databaseUrl }: StoreOptions): string[] {
  return databaseUrl === undefined ? [] : ['--database-url', databaseUrl]
}

/** Agents connect through the proxy, unless the environment names other addresses. */
function withAddresses({ cloudIn = {} }: StoreOptions, wire: TcpWire): ProcessEnvironment {
  const env = {
    UNTAG_PUBLIC_URL: `http://127.0.0.1:${wire.httpPort}`,
    UNTAG_PUBLIC_MQTT_URL: `mqtt://127.0.0.1:${wire.mqttPort}`,
  }
  return { ...cloudIn, env: { ...env, ...cloudIn.env } }
}

function cloudArgsOf(options: StoreOptions, folder: string, ports: { http: number; mqtt: number }) {
  return [
    'cloud',
    `--host=${options.cloudHost ?? '127.0.0.1'}`,
    `--port=${ports.http}`,
    `--mqtt-port=${ports.mqtt}`,
    `--data=${join(folder, 'cloud')}`,
    '--rate-limit=0',
    ...databaseArgs(options),
    ...(options.cloudOptions ?? []),
  ]
}

function agentArgsOf({ agentOptions = [] }: StoreOptions, folder: string): string[] {
  const files = ['--data', join(folder, 'edge'), '--config', join(folder, 'edge.json')]
  return ['edge', ...files, '--port', '0', '--runtime-dir', join(folder, 'run'), ...agentOptions]
}

async function newKey(options: StoreOptions, folder: string): Promise<string> {
  const account = ['--account', 'Journey', '--mode', 'test', '--package', 'PRIME', '--json']
  const data = ['--data', join(folder, 'cloud'), ...databaseArgs(options)]
  const keys = await options.processes.run(['keys', 'create', ...data, ...account])
  if (keys.code !== 0) throw new Error(keys.stderr)
  return (JSON.parse(keys.stdout) as { key: string }).key
}

async function findShop(api: Shopper): Promise<Shop> {
  const { stores } = (await api.call('fetchStores', {})) as { stores: { storeId: string; securityTagMode: string }[] }
  const storeId = stores.find((s) => s.securityTagMode === 'rfid')?.storeId ?? ''
  const { devices: list } = (await api.call('fetchDevices', { storeId })) as {
    devices: { deviceId: string; deviceType: string }[]
  }
  const { products } = (await api.call('fetchProducts', { storeId, category: 'bekleidung', limit: 100 })) as {
    products: ({ price: number } & Fields)[]
  }
  return {
    storeId,
    otherStoreId: stores.find((s) => s.storeId !== storeId)?.storeId ?? '',
    devices: Object.fromEntries(list.map((d) => [d.deviceType, d.deviceId])) as StoreProcesses['devices'],
    products: products.filter((p) => p.price < 150 && p.price > 10).sort((a, b) => a.price - b.price),
  }
}

async function enrol(
  { processes, agentIn = {} }: StoreOptions,
  api: Shopper,
  storeId: string,
  wire: TcpWire,
  edge: string,
): Promise<void> {
  const { code } = await api.call('createEnrolmentCode', { storeId, name: 'journey' })
  const enrolled = await processes.run(
    ['edge', 'enrol', '--cloud', `http://127.0.0.1:${wire.httpPort}/api/v1`, '--code', String(code), '--data', edge],
    agentIn.env,
  )
  if (enrolled.code !== 0) throw new Error(enrolled.stderr)
}

async function openScanners() {
  const platform = realPlatform()
  const scanners = { station: scannerSimulator({ platform }), gate: scannerSimulator({ platform }) }
  const services: TcpService[] = []
  for (const scanner of Object.values(scanners))
    services.push(await serveTcp({ port: 0, serve: (link) => scanner.serve(link) }))
  return { scanners, services }
}

/** Configuration with boards, two scanners, and the gate as board or LLRP reader. */
function configOf(
  devices: StoreProcesses['devices'],
  { boards, gateReader }: StoreOptions,
  [station, gate]: readonly TcpService[],
) {
  const board = (deviceId: string, tcp: string, extra: object = {}) => ({
    deviceId,
    driver: 'modbus',
    link: { tcp },
    output: 0,
    confirmInput: 0,
    pulseMs: 50,
    ...extra,
  })
  const signals = { siren: { output: 1, seconds: 1 }, amber: { output: 2 }, green: { output: 3 } }
  const gateOf = () =>
    gateReader === undefined
      ? board(devices.exit_gate, boards.gate ?? '', signals)
      : {
          deviceId: devices.exit_gate,
          driver: 'llrp',
          link: { tcp: gateReader },
          antennas: { inside: [1], outside: [2] },
          siren: { gpo: 1, seconds: 1 },
        }
  const scanner = (deviceId: string, service: TcpService | undefined, feeds: string, extra: object = {}) => ({
    deviceId,
    driver: 'scanner',
    link: { tcp: `127.0.0.1:${service?.port}` },
    feeds,
    ...extra,
  })
  return {
    devices: [
      board(devices.pos_deactivator, boards.station),
      board(devices.self_checkout_detacher, boards.detacher),
      gateOf(),
      scanner('scanner-station', station, devices.pos_deactivator),
      scanner('scanner-gate', gate, devices.exit_gate, { duplicateMs: 0 }),
    ],
  }
}

function agentCalls(url: () => string, edge: string): Pick<StoreProcesses, 'local' | 'authorize' | 'status'> {
  const local: StoreProcesses['local'] = async (path, body, headers = {}) => {
    const answer = await fetch(`${url()}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...authorizationIn(edge), ...headers },
      body: JSON.stringify(body),
    })
    return { status: answer.status, body: (await answer.json()) as Fields }
  }
  return {
    local,
    async authorize(body) {
      const answer = await local('/v1/authorize', body)
      if (answer.status !== 200) throw new Error(JSON.stringify(answer))
      return answer.body
    },
    async status() {
      const answer = await fetch(`${url()}/v1/status`, { headers: authorizationIn(edge) })
      return (await answer.json()) as Fields
    },
  }
}

async function allEvents(api: Shopper, storeId: string, filter: Fields): Promise<Fields[]> {
  const all: Fields[] = []
  let cursor: string | undefined
  do {
    const next = cursor === undefined ? {} : { cursor }
    const page = (await api.call('fetchProtectionEvents', { storeId, limit: 500, ...filter, ...next })) as {
      events: Fields[]
      nextCursor?: string
    }
    all.push(...page.events)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return all
}

/** Repeats `ask` until it returns a value. Throws after `limitMs`, with `what` in the message. */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | false | undefined | null>,
  limitMs = 60_000,
): Promise<T> {
  const { timers, clock } = realPlatform()
  const started = clock.elapsed()
  for (;;) {
    const answer = await ask()
    if (answer !== false && answer !== undefined && answer !== null) return answer
    const waitedMs = clock.elapsed() - started
    if (waitedMs > limitMs) throw new Error(`${what}: not within ${limitMs} ms`)
    // Asks at first often, and then less: the questions of a long wait would slow down what it waits for.
    await new Promise<void>((resolve) => timers.after(Math.min(10 + waitedMs / 10, 200), resolve))
  }
}
