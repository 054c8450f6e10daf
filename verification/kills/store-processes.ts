import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scannerSimulator, type ScannerSimulator } from '../../simulators/devices/scanner.ts'
import { serveTcp, type TcpService } from '../../simulators/devices/serve.ts'
import { shopper, type BasketLine, type Bought, type Shopper } from '../../simulators/services/shopper.ts'
import { authorizationIn } from '../../bin/credential-file.ts'
import { realPlatform } from '../../bin/platform.ts'
import type { Processes, RunningProcess, Surroundings } from './processes.ts'
import { newWire, unusedPort, type Wire } from './wire.ts'

/**
 *   shopper ──HTTP──▶ cloud process ◀──[ wire ]──▶ agent process ──TCP──▶ boards and scanners of whoever tests
 *
 * A store as it is run: cloud and agent as processes of their own, started by the command line, with a
 * wire between them that can be cut, and devices that speak their real protocols.
 */
export interface StoreProcesses {
  folder: string
  cloud: RunningProcess
  agent: RunningProcess
  api: Shopper
  key: string
  baseUrl: string
  /** The cloud's own broker, past the wire. */
  brokerPort: number
  storeId: string
  otherStoreId: string
  devices: Record<'pos_deactivator' | 'self_checkout_detacher' | 'exit_gate', string>
  scanners: Record<'station' | 'gate', ScannerSimulator>
  products: Fields[]
  wire: Wire
  startCloud(): Promise<void>
  startAgent(): Promise<void>
  buy(items: BasketLine[]): Promise<Bought>
  /** A POST to the agent's local HTTP, with its credential. */
  local(path: string, body: Fields, headers?: Record<string, string>): Promise<{ status: number; body: Fields }>
  authorize(body: Fields): Promise<Fields>
  status(): Promise<Fields>
  events(filter?: Fields): Promise<Fields[]>
  /** Stops both in order, and keeps the folder. */
  stopProcesses(): Promise<void>
  stop(): Promise<void>
}

/** JSON of an API, by the names of its fields. */
export type Fields = Record<string, unknown>

export interface StoreOptions {
  processes: Processes
  /** Where the station's, detacher's and gate's relay boards listen. */
  boards: Record<'station' | 'detacher' | 'gate', string>
  databaseUrl?: string
  /** More options of `untag cloud` and of `untag edge`. */
  cloudOptions?: readonly string[]
  agentOptions?: readonly string[]
  /** The address at which the cloud listens; 127.0.0.1. */
  cloudHost?: string
  /** Where they run; looked at again at every start. */
  cloudIn?: Surroundings
  agentIn?: Surroundings
}

/** Starts a store in a folder of its own. Takes a few seconds. */
export async function openStoreProcesses({
  processes,
  boards,
  databaseUrl,
  cloudOptions = [],
  agentOptions = [],
  cloudHost = '127.0.0.1',
  cloudIn = {},
  agentIn = {},
}: StoreOptions): Promise<StoreProcesses> {
  const folder = mkdtempSync(join(tmpdir(), 'untag-journey-'))
  const edge = join(folder, 'edge')
  const platform = realPlatform()
  const database = databaseUrl === undefined ? [] : ['--database-url', databaseUrl]
  // Ports are picked once, so that a restarted cloud is where it was. What the cloud calls itself is where agents find it: the wire.
  const ports = { http: await unusedPort(), mqtt: await unusedPort() }
  const wire = await newWire(ports, cloudHost)
  const cloudArgs = [
    'cloud',
    `--host=${cloudHost}`,
    `--port=${ports.http}`,
    `--mqtt-port=${ports.mqtt}`,
    `--data=${join(folder, 'cloud')}`,
    '--rate-limit=0',
    `--public-url=http://127.0.0.1:${wire.httpPort}`,
    `--public-mqtt-url=mqtt://127.0.0.1:${wire.mqttPort}`,
    ...database,
    ...cloudOptions,
  ]
  const cloud = await processes.start(cloudArgs, cloudIn)
  const keys = await processes.run([
    'keys',
    'create',
    '--data',
    join(folder, 'cloud'),
    ...database,
    '--account',
    'Journey',
    '--mode',
    'test',
    '--package',
    'PRIME',
    '--json',
  ])
  if (keys.code !== 0) throw new Error(keys.stderr)
  const { key } = JSON.parse(keys.stdout) as { key: string }
  // A shopper's phone has a network of its own.
  const baseUrl = `http://${cloudHost}:${ports.http}/api/v1`
  const api = shopper({ baseUrl, key, fetch })

  const { stores } = (await api.call('fetchStores', {})) as { stores: { storeId: string; securityTagMode: string }[] }
  const storeId = stores.find((s) => s.securityTagMode === 'rfid')?.storeId ?? ''
  const { devices: list } = (await api.call('fetchDevices', { storeId })) as {
    devices: { deviceId: string; deviceType: string }[]
  }
  const devices = Object.fromEntries(list.map((d) => [d.deviceType, d.deviceId])) as StoreProcesses['devices']
  const { products } = (await api.call('fetchProducts', { storeId, category: 'bekleidung', limit: 100 })) as {
    products: ({ price: number } & Fields)[]
  }
  const { code } = await api.call('createEnrolmentCode', { storeId, name: 'journey' })
  const enrolled = await processes.run(
    ['edge', 'enrol', '--cloud', `http://127.0.0.1:${wire.httpPort}/api/v1`, '--code', String(code), '--data', edge],
    agentIn.env,
  )
  if (enrolled.code !== 0) throw new Error(enrolled.stderr)

  const scanners = { station: scannerSimulator({ platform }), gate: scannerSimulator({ platform }) }
  const services: TcpService[] = []
  for (const scanner of Object.values(scanners))
    services.push(await serveTcp({ port: 0, serve: (link) => scanner.serve(link) }))
  const board = (deviceId: string, tcp: string, extra: object = {}) => ({
    deviceId,
    driver: 'modbus',
    link: { tcp },
    output: 0,
    confirmInput: 0,
    pulseMs: 50,
    ...extra,
  })
  mkdirSync(edge, { recursive: true })
  writeFileSync(
    join(folder, 'edge.json'),
    JSON.stringify({
      devices: [
        board(devices.pos_deactivator, boards.station),
        board(devices.self_checkout_detacher, boards.detacher),
        board(devices.exit_gate, boards.gate, {
          siren: { output: 1, seconds: 1 },
          amber: { output: 2 },
          green: { output: 3 },
        }),
        {
          deviceId: 'scanner-station',
          driver: 'scanner',
          link: { tcp: `127.0.0.1:${services[0]?.port}` },
          feeds: devices.pos_deactivator,
        },
        {
          deviceId: 'scanner-gate',
          driver: 'scanner',
          link: { tcp: `127.0.0.1:${services[1]?.port}` },
          feeds: devices.exit_gate,
          duplicateMs: 0,
        },
      ],
    }),
  )
  const agentArgs = [
    'edge',
    '--data',
    edge,
    '--config',
    join(folder, 'edge.json'),
    '--port',
    '0',
    '--runtime-dir',
    join(folder, 'run'),
    ...agentOptions,
  ]

  const store: StoreProcesses = {
    folder,
    cloud,
    agent: await processes.start(agentArgs, agentIn),
    api,
    key,
    baseUrl,
    brokerPort: ports.mqtt,
    storeId,
    otherStoreId: stores.find((s) => s.storeId !== storeId)?.storeId ?? '',
    devices,
    scanners,
    products: products.filter((p) => p.price < 150 && p.price > 10).sort((a, b) => a.price - b.price),
    wire,
    startCloud: async () => void (store.cloud = await processes.start(cloudArgs, cloudIn)),
    startAgent: async () => void (store.agent = await processes.start(agentArgs, agentIn)),
    buy: (items) => api.buy({ storeId, items }),
    async local(path, body, headers = {}) {
      const answer = await fetch(`${store.agent.ready['url']}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...authorizationIn(edge), ...headers },
        body: JSON.stringify(body),
      })
      return { status: answer.status, body: (await answer.json()) as Fields }
    },
    async authorize(body) {
      const answer = await store.local('/v1/authorize', body)
      if (answer.status !== 200) throw new Error(JSON.stringify(answer))
      return answer.body
    },
    status: async () => {
      const answer = await fetch(`${store.agent.ready['url']}/v1/status`, { headers: authorizationIn(edge) })
      return (await answer.json()) as Fields
    },
    async events(filter = {}) {
      const all: Fields[] = []
      let cursor: string | undefined
      do {
        const page = (await api.call('fetchProtectionEvents', {
          storeId,
          limit: 500,
          ...filter,
          ...(cursor !== undefined && { cursor }),
        })) as { events: Fields[]; nextCursor?: string }
        all.push(...page.events)
        cursor = page.nextCursor
      } while (cursor !== undefined)
      return all
    },
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

/** Asks again until the condition holds; fails with its name when it does not within the limit, ms. */
export async function eventually<T>(
  what: string,
  ask: () => Promise<T | false | undefined | null>,
  limitMs = 15_000,
): Promise<T> {
  const { timers, clock } = realPlatform()
  const started = clock.elapsed()
  for (;;) {
    const answer = await ask()
    if (answer !== false && answer !== undefined && answer !== null) return answer
    if (clock.elapsed() - started > limitMs) throw new Error(`${what}: not within ${limitMs} ms`)
    await new Promise<void>((resolve) => timers.after(25, resolve))
  }
}
