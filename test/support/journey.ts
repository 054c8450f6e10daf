import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { realPlatform } from '../../bin/platform.ts'
import { scannerSimulator, type ScannerSimulator } from '../../simulators/devices/scanner.ts'
import { serveTcp, type TcpService } from '../../simulators/devices/serve.ts'
import { shopper, type BasketLine, type Bought, type Shopper } from '../../simulators/services/shopper.ts'
import type { Json } from './cloud.ts'
import { temporaryFolder } from './databases.ts'
import { runProcess, startProcess, type RunningProcess, type Surroundings } from './processes.ts'

/**
 *   shopper ──HTTP──▶ cloud process ◀──[ wire ]──▶ agent process ──TCP──▶ boards and scanners of the test
 *
 * A store as it is run: cloud and agent as processes of their own, started by the command line, with a
 * wire between them that can be cut, and devices that speak their real protocols.
 */
export interface Journey {
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
  products: Json[]
  wire: Wire
  startCloud(): Promise<void>
  startAgent(): Promise<void>
  buy(items: BasketLine[]): Promise<Bought>
  /** A POST to the agent's local HTTP. */
  local(path: string, body: Json, headers?: Record<string, string>): Promise<{ status: number; body: Json }>
  authorize(body: Json): Promise<Json>
  status(): Promise<Json>
  events(filter?: Json): Promise<Json[]>
  stop(): Promise<void>
}

/** What stands between agent and cloud. */
export interface Wire {
  cut(): void
  restore(): void
  /** Whatever is said either way arrives this much later, ms. */
  delay(ms: number): void
  /** Called whenever the agent says something to the cloud. */
  onAsked: () => void
}

interface Forward {
  port: number
  cut(): void
  restore(): void
  delay(ms: number): void
  close(): void
}

/** A TCP proxy that can be cut: open connections die, new ones are refused at once. */
async function forwardTo(target: () => number, onAsked: () => void = () => undefined, host = '127.0.0.1'): Promise<Forward> {
  const sockets = new Set<Socket>()
  const { timers } = realPlatform()
  let isCut = false
  let delayMs = 0
  const server: Server = createServer((incoming) => {
    if (isCut) return void incoming.destroy()
    const outgoing = connect(target(), host)
    for (const socket of [incoming, outgoing]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        sockets.delete(socket)
        incoming.destroy()
        outgoing.destroy()
      })
    }
    incoming.on('data', onAsked)
    const late = () => new Transform({ transform: (chunk, _encoding, done) => void (delayMs > 0 ? timers.after(delayMs, () => done(null, chunk)) : done(null, chunk)) })
    incoming.pipe(late()).pipe(outgoing).pipe(late()).pipe(incoming)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as { port: number }).port,
    cut() {
      isCut = true
      for (const socket of sockets) socket.destroy()
    },
    restore: () => void (isCut = false),
    delay: (ms) => void (delayMs = ms),
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

export interface JourneyOptions {
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

export async function openJourney({ boards, databaseUrl, cloudOptions = [], agentOptions = [], cloudHost = '127.0.0.1', cloudIn = {}, agentIn = {} }: JourneyOptions): Promise<Journey> {
  const folder = temporaryFolder('journey')
  const platform = realPlatform()
  const database = databaseUrl === undefined ? [] : ['--database-url', databaseUrl]
  const ports = { http: 0, mqtt: 0 }
  // The wire comes first: what the cloud calls itself is where agents find it.
  const onAsked = () => wire.onAsked()
  const http = await forwardTo(() => ports.http, onAsked, cloudHost)
  const mqtt = await forwardTo(() => ports.mqtt, onAsked, cloudHost)
  const wire: Wire = {
    cut: () => [http, mqtt].forEach((forward) => forward.cut()),
    restore: () => [http, mqtt].forEach((forward) => forward.restore()),
    delay: (ms) => [http, mqtt].forEach((forward) => forward.delay(ms)),
    onAsked: () => undefined,
  }
  const cloudArgs = () => [
    'cloud',
    `--host=${cloudHost}`,
    `--port=${ports.http}`,
    `--mqtt-port=${ports.mqtt}`,
    `--data=${join(folder, 'cloud')}`,
    '--rate-limit=0',
    `--public-url=http://127.0.0.1:${http.port}`,
    `--public-mqtt-url=mqtt://127.0.0.1:${mqtt.port}`,
    ...database,
    ...cloudOptions,
  ]
  // Ports are picked once, so that a restarted cloud is where it was.
  for (const name of ['http', 'mqtt'] as const) {
    const probe = await forwardTo(() => 0)
    ports[name] = probe.port
    probe.close()
  }
  const cloud = await startProcess(cloudArgs(), cloudIn)
  const keys = await runProcess(['keys', 'create', '--data', join(folder, 'cloud'), ...database, '--account', 'Journey', '--mode', 'test', '--package', 'PRIME', '--json'])
  if (keys.code !== 0) throw new Error(keys.stderr)
  const { key } = JSON.parse(keys.stdout) as { key: string }
  // A shopper's phone has a network of its own.
  const baseUrl = `http://${cloudHost}:${ports.http}/api/v1`
  const api = shopper({ baseUrl, key, fetch })

  const { stores } = (await api.call('fetchStores', {})) as Json
  const storeId = stores.find((s: Json) => s.securityTagMode === 'rfid').storeId
  const { devices: list } = (await api.call('fetchDevices', { storeId })) as Json
  const devices = Object.fromEntries(list.map((d: Json) => [d.deviceType, d.deviceId])) as Journey['devices']
  const { products } = (await api.call('fetchProducts', { storeId, category: 'bekleidung', limit: 100 })) as Json
  const { code } = await api.call('createEnrolmentCode', { storeId, name: 'journey' })
  const enrolled = await runProcess(['edge', 'enrol', '--cloud', `http://127.0.0.1:${http.port}/api/v1`, '--code', String(code), '--data', join(folder, 'edge')], agentIn.env)
  if (enrolled.code !== 0) throw new Error(enrolled.stderr)

  const scanners = { station: scannerSimulator({ platform }), gate: scannerSimulator({ platform }) }
  const services: TcpService[] = []
  for (const scanner of Object.values(scanners)) services.push(await serveTcp({ port: 0, serve: (link) => scanner.serve(link) }))
  const board = (deviceId: string, tcp: string, extra: object = {}) => ({ deviceId, driver: 'modbus', link: { tcp }, output: 0, confirmInput: 0, pulseMs: 50, ...extra })
  mkdirSync(join(folder, 'edge'), { recursive: true })
  writeFileSync(
    join(folder, 'edge.json'),
    JSON.stringify({
      devices: [
        board(devices.pos_deactivator, boards.station),
        board(devices.self_checkout_detacher, boards.detacher),
        board(devices.exit_gate, boards.gate, { siren: { output: 1, seconds: 1 }, amber: { output: 2 }, green: { output: 3 } }),
        { deviceId: 'scanner-station', driver: 'scanner', link: { tcp: `127.0.0.1:${services[0]?.port}` }, feeds: devices.pos_deactivator },
        { deviceId: 'scanner-gate', driver: 'scanner', link: { tcp: `127.0.0.1:${services[1]?.port}` }, feeds: devices.exit_gate, duplicateMs: 0 },
      ],
    }),
  )
  const agentArgs = ['edge', '--data', join(folder, 'edge'), '--config', join(folder, 'edge.json'), '--port', '0', ...agentOptions]

  const journey: Journey = {
    folder,
    cloud,
    agent: await startProcess(agentArgs, agentIn),
    api,
    key,
    baseUrl,
    brokerPort: ports.mqtt,
    storeId,
    otherStoreId: stores.find((s: Json) => s.storeId !== storeId).storeId,
    devices,
    scanners,
    products: products.filter((p: Json) => p.price < 150 && p.price > 10).sort((a: Json, b: Json) => a.price - b.price),
    wire,
    startCloud: async () => void (journey.cloud = await startProcess(cloudArgs(), cloudIn)),
    startAgent: async () => void (journey.agent = await startProcess(agentArgs, agentIn)),
    buy: (items) => api.buy({ storeId, items }),
    async local(path, body, headers = {}) {
      const answer = await fetch(`${journey.agent.ready['url']}${path}`, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) })
      return { status: answer.status, body: await answer.json() }
    },
    async authorize(body) {
      const answer = await journey.local('/v1/authorize', body)
      if (answer.status !== 200) throw new Error(JSON.stringify(answer))
      return answer.body
    },
    status: async () => (await fetch(`${journey.agent.ready['url']}/v1/status`)).json(),
    async events(filter = {}) {
      const all: Json[] = []
      let cursor: string | undefined
      do {
        const page = (await api.call('fetchProtectionEvents', { storeId, limit: 500, ...filter, ...(cursor && { cursor }) })) as Json
        all.push(...page.events)
        cursor = page.nextCursor
      } while (cursor !== undefined)
      return all
    },
    async stop() {
      await journey.agent.stop()
      await journey.cloud.stop()
      http.close()
      mqtt.close()
      for (const service of services) await service.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return journey
}

/** Asks again until the condition holds; fails with its name when it does not within the limit. */
export async function eventually<T>(what: string, ask: () => Promise<T | false | undefined | null>, limitMs = 15_000): Promise<T> {
  const { timers, clock } = realPlatform()
  const started = clock.elapsed()
  for (;;) {
    const answer = await ask()
    if (answer !== false && answer !== undefined && answer !== null) return answer
    if (clock.elapsed() - started > limitMs) throw new Error(`${what}: not within ${limitMs} ms`)
    await new Promise<void>((resolve) => timers.after(25, resolve))
  }
}
