import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import { serveTcp, type TcpService } from '../../../simulators/devices/serve.ts'
import { authorizationIn } from '../../../host/credential-file.ts'
import { realPlatform } from '../../../host/platform.ts'
import { runCommand, startProcess, type UntagProcess } from './untag-process.ts'
import type { TraceOptions } from './strace.ts'

/**
 * A store of real processes. With strace, a test can record their system calls or make some calls fail. The relay
 * boards run in the process of the test.
 */
export interface FaultStore {
  readonly folder: string
  /** Parent folder of the data folders `cloud` and `edge`. */
  readonly disks: string
  cloud: UntagProcess
  agent: UntagProcess
  readonly storeId: string
  /** Another store of the account; it has no agent. */
  readonly otherStoreId: string
  readonly devices: Readonly<Record<DeviceType, string>>
  /** EAN of a tagged product whose release needs no approval by staff. */
  readonly ean: string
  readonly boards: Readonly<Record<DeviceType, RelayBoard>>
  /** TCP ports of the boards. */
  readonly boardPorts: Readonly<Record<DeviceType, number>>
  /** Calls the cloud, with an optional Idempotency-Key. Resolves to undefined if no response arrives. */
  ask(operation: string, body: object, idempotencyKey?: string): Promise<Answer | undefined>
  /** Like `ask`, but throws if the call fails. */
  call(operation: string, body: object): Promise<Record<string, unknown>>
  /** Sends a release request to the agent. */
  authorize(body: object): Promise<Answer | undefined>
  status(): Promise<AgentStatus | undefined>
  startCloud(traced?: TraceOptions): Promise<void>
  startAgent(traced?: TraceOptions): Promise<void>
  /** Buys and pays for `quantity` units (default 1); returns the receipt. */
  buy(key: string, quantity?: number): Promise<PaidPurchase>
  close(): Promise<void>
}

export interface Answer {
  status: number
  text: string
  body: Record<string, unknown>
}

export interface PaidPurchase {
  purchaseId: string
  receipt: string
}

export interface AgentStatus {
  online: boolean
  queueDepth: number
  fault: string | null
  items: { known: number }
  devices: { deviceId: string; state: string }[]
}

export const DEVICE_TYPES = ['pos_deactivator', 'self_checkout_detacher', 'exit_gate'] as const
export type DeviceType = (typeof DEVICE_TYPES)[number]

/**
 * Returns the trace settings of the process `part`, with log files in `folder`. Returns undefined for a process that
 * starts without strace.
 */
export type TraceOf = (part: string, folder: string) => TraceOptions | undefined

const ASK_WITHIN_MS = 20_000
/** A lock whose contact confirms each pulse at once. */
const LOCK = { coil: 0, input: 0, openMs: 0, closeMs: 0 }

/** Starts a cloud and an enrolled agent with empty data folders. */
export async function openFaultStore(traceIn: TraceOf = () => undefined): Promise<FaultStore> {
  const folder = mkdtempSync(join(tmpdir(), 'untag-faults-'))
  const traceOf = (part: string) => traceIn(part, folder)
  const disks = join(folder, 'disks')
  mkdirSync(disks)
  const [cloudData, edgeData] = [join(disks, 'cloud'), join(disks, 'edge')]
  const boards = await openBoards()
  const [port, mqttPort] = [await freePort(), await freePort()]
  const baseUrl = `http://127.0.0.1:${port}/api/v1`
  const cloudArgs = ['cloud', `--port=${port}`, `--mqtt-port=${mqttPort}`, `--data=${cloudData}`, '--rate-limit=0']
  const agentArgs = ['edge', '--data', edgeData, '--config', join(folder, 'edge.json'), '--port', '0']

  const key = await newKey(cloudData, traceOf('keys'))
  const cloud = await startProcess(cloudArgs, traceOf('cloud'))
  const calls = callsOf(baseUrl, key)
  const shop = await findShop(calls.call)
  writeFileSync(join(folder, 'edge.json'), JSON.stringify(configOf(shop.devices, boards.ports)))
  const { code } = await calls.call('createEnrolmentCode', { storeId: shop.storeId, name: 'faults' })
  await runCommand(['edge', 'enrol', '--cloud', baseUrl, '--code', String(code), '--data', edgeData], traceOf('enrol'))
  const agent = await startProcess(agentArgs, traceOf('agent'))

  const store: FaultStore = {
    folder,
    disks,
    cloud,
    agent,
    ...shop,
    boards: boards.boards,
    boardPorts: boards.ports,
    ...calls,
    authorize: (body) => post(`${store.agent.ready['url']}/v1/authorize`, body, authorizationIn(edgeData)),
    status: () => statusOf(store.agent, edgeData),
    startCloud: async (traced) => void (store.cloud = await startProcess(cloudArgs, traced)),
    startAgent: async (traced) => void (store.agent = await startProcess(agentArgs, traced)),
    buy: (name, quantity = 1) => buyAt(calls.call, shop, name, quantity),
    async close() {
      if (store.agent.isRunning) await store.agent.stop()
      if (store.cloud.isRunning) await store.cloud.stop()
      for (const service of boards.services) await service.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return store
}

/** Does some work in a new store, whose boards are ready. */
export async function inFaultStore<T>(work: (store: FaultStore) => Promise<T>): Promise<T> {
  const store = await openFaultStore()
  try {
    await boardsReady(store)
    return await work(store)
  } finally {
    await store.close()
  }
}

type Shop = Pick<FaultStore, 'storeId' | 'otherStoreId' | 'devices' | 'ean'>
type Call = (operation: string, body: object, idempotencyKey?: string) => Promise<Record<string, unknown>>

async function openBoards() {
  const platform = realPlatform()
  const services: TcpService[] = []
  const boards = perDevice(() => new RelayBoard({ platform, locks: [LOCK] }))
  const ports = perDevice(() => 0)
  for (const type of DEVICE_TYPES) {
    const service = await serveTcp({ port: 0, serve: (link) => boards[type].serve(link) })
    services.push(service)
    ports[type] = service.port
  }
  return { boards, ports, services }
}

async function newKey(cloudData: string, traced: TraceOptions | undefined): Promise<string> {
  const account = ['--account', 'Faults', '--mode', 'test', '--package', 'PRIME']
  const made = await runCommand(['keys', 'create', '--data', cloudData, ...account, '--json'], traced)
  return (JSON.parse(made) as { key: string }).key
}

function callsOf(baseUrl: string, key: string) {
  const ask = (operation: string, body: object, idempotencyKey?: string) =>
    post(`${baseUrl}/${operation}`, body, {
      authorization: `Bearer ${key}`,
      ...(idempotencyKey !== undefined && { 'idempotency-key': idempotencyKey }),
    })
  const call: Call = async (operation, body, idempotencyKey) => {
    const answer = await ask(operation, body, idempotencyKey)
    if (answer?.status !== 200) throw new Error(`${operation}: ${answer?.status ?? 'no answer'} ${answer?.text ?? ''}`)
    return answer.body
  }
  return { ask, call }
}

async function findShop(call: Call): Promise<Shop> {
  const { stores } = (await call('fetchStores', {})) as { stores: { storeId: string; securityTagMode: string }[] }
  const storeId = stores.find((s) => s.securityTagMode === 'rfid')?.storeId ?? ''
  const otherStoreId = stores.find((s) => s.storeId !== storeId)?.storeId ?? ''
  const { devices: list } = (await call('fetchDevices', { storeId })) as {
    devices: { deviceId: string; deviceType: string }[]
  }
  const devices = perDevice((type) => list.find((d) => d.deviceType === type)?.deviceId ?? '')
  return { storeId, otherStoreId, devices, ean: await taggedProduct(call, storeId) }
}

function configOf(devices: Shop['devices'], ports: FaultStore['boardPorts']) {
  return {
    devices: DEVICE_TYPES.map((type) => ({
      deviceId: devices[type],
      driver: 'modbus',
      link: { tcp: `127.0.0.1:${ports[type]}` },
      output: 0,
      confirmInput: 0,
      pulseMs: 20,
    })),
  }
}

async function statusOf(agent: UntagProcess, edgeData: string): Promise<AgentStatus | undefined> {
  const answer = await fetch(`${agent.ready['url']}/v1/status`, {
    headers: authorizationIn(edgeData),
    signal: AbortSignal.timeout(ASK_WITHIN_MS),
  }).catch(() => undefined)
  return answer?.ok ? ((await answer.json()) as AgentStatus) : undefined
}

async function buyAt(call: Call, { storeId, ean }: Shop, name: string, quantity: number): Promise<PaidPurchase> {
  const { sessionId } = await call('checkIn', { storeId, userId: 'shopper' }, `${name}-in`)
  const basket = { sessionId, items: [{ ean, quantity }] }
  const { transactionId } = await call('startCheckout', basket, `${name}-checkout`)
  await call('completeTestCheckout', { transactionId }, `${name}-pay`)
  const { url } = await call('generateReceiptQR', { purchaseId: transactionId }, `${name}-qr`)
  return { purchaseId: String(transactionId), receipt: String(url) }
}

async function post(url: string, body: object, headers: Record<string, string>): Promise<Answer | undefined> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ASK_WITHIN_MS),
    })
    const text = await answer.text()
    return { status: answer.status, text, body: JSON.parse(text) as Record<string, unknown> }
  } catch {
    return undefined
  }
}

function perDevice<T>(make: (type: DeviceType) => T): Record<DeviceType, T> {
  return {
    pos_deactivator: make('pos_deactivator'),
    self_checkout_detacher: make('self_checkout_detacher'),
    exit_gate: make('exit_gate'),
  }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Repeats `ask` until it returns a value. Throws after `limitMs`, with `what` in the message. */
export async function until<T>(what: string, ask: () => Promise<T | false | undefined>, limitMs = 60_000): Promise<T> {
  const began = Date.now()
  for (;;) {
    const answer = await ask()
    if (answer !== false && answer !== undefined) return answer
    const waitedMs = Date.now() - began
    if (waitedMs > limitMs) throw new Error(`${what}: not within ${limitMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, Math.min(10 + waitedMs / 10, 200)))
  }
}

/**
 * Returns the EAN of a tagged product that is cheap enough to be released without staff. The catalogue of a sandbox has
 * no fixed order.
 */
export async function taggedProduct(call: FaultStore['call'], storeId: string): Promise<string> {
  const { products } = (await call('fetchProducts', { storeId, category: 'bekleidung', limit: 100 })) as {
    products: { ean: string; price: number; tagged: boolean }[]
  }
  const product = products.find((p) => p.tagged && p.price < 50)
  if (!product) throw new Error(`store ${storeId} has no tagged product below 50 €`)
  return product.ean
}

/** Resolves when every board of the agent is ready. */
export async function boardsReady(store: FaultStore): Promise<void> {
  await until('the boards', async () => (await store.status())?.devices.every((d) => d.state === 'ready'))
}

/** Resolves when the cloud has acknowledged all rows of the agent. */
export async function outboxEmpty(store: FaultStore): Promise<void> {
  await until('an empty outbox', async () => {
    const status = await store.status()
    return status?.online === true && status.queueDepth === 0
  })
}
