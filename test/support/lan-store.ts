import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import { listen, type HttpServer } from '../../host/http-server.ts'
import type { Platform } from '../../policy/platform.ts'
import { secretFiles } from '../../host/secret-files.ts'
import { result, type ProtectionDevice } from '../../device-drivers/kit/device.ts'
import { readConfig } from '../../edge-agent/config.ts'
import { localApp } from '../../edge-agent/http/local-app.ts'
import { enrol, storeFirstDocuments } from '../../edge-agent/enrolment/enrol.ts'
import type { Fetch } from '../../edge-agent/link/wire/http-client.ts'
import { startAgent, type Agent } from '../../edge-agent/runtime.ts'
import { readIdentity, writeIdentity, type Identity } from '../../edge-agent/identity/identity.ts'
import { checkedApp } from '../verification/simulation/nodes/agent-response-check.ts'
import type { Json } from './cloud.ts'
import { AUTHORIZATION, CREDENTIAL } from './credential.ts'
import { temporaryFolder } from './databases.ts'
import { passingTime } from './passing-time.ts'
import { until } from './receiver.ts'
import { openShop, type Shop } from './shop.ts'

/** One agent of a store, with one exit gate. */
export interface LanAgent {
  agent: Agent
  folder: string
  deviceId: string
  port: number
  server: HttpServer
  /** Outcome of its device. */
  outcome: 'confirmed' | 'failed' | 'unknown'
  moved: number
  /** Cuts only this agent from the cloud. */
  isCutOff?: boolean
  /** Platform of its machine, if it runs on another machine. */
  platform?: Platform
}

/** Agents of one store over real sockets, and a cloud that can be cut off. */
export interface LanStore {
  /** Its time passes by itself (passing-time.ts). */
  readonly platform: Platform
  readonly shop: Shop
  readonly nodes: readonly LanAgent[]
  /** The receipt home. */
  readonly home: LanAgent
  readonly other: LanAgent
  /** True if the cloud is online. */
  isUp: boolean
  /** Decides by its URL what happens to a request between agents. */
  onLan: (url: string) => 'pass' | 'lose answer' | 'cut'
  /** Delivered requests between agents. */
  readonly sent: readonly { url: string; body: string; answer: string }[]
  /** URLs of requests that were cut. */
  readonly lost: readonly string[]
  addAgent(deviceId: string): Promise<LanAgent>
  /** Starts a killed agent. */
  run(node: Omit<LanAgent, 'agent' | 'server'>): Promise<void>
  ready(node: LanAgent): Promise<void>
  kill(node: LanAgent): Promise<void>
  /** Removes a killed agent and its disk. */
  remove(node: LanAgent): void
  /** Presents a receipt at the gate of the agent. */
  leave(node: LanAgent, receipt: string, headers?: Record<string, string>): Promise<Json>
  /** Buys two units and returns the receipt. */
  receipt(): Promise<{ purchaseId: string; text: string }>
  /** Repeats a signed home request. */
  resend(question: string): Promise<Response>
  /** Waits until the receipt home has the outcome reports of this agent. */
  reportsDelivered(node: LanAgent): Promise<void>
  cutCloud(): Promise<void>
}

const log = { info: () => undefined, warn: () => undefined, error: () => undefined }

/** A new store with two agents for each test of a file. */
export function lanStore(): LanStore {
  let time: ReturnType<typeof passingTime>
  let shop: Shop
  let home: LanAgent
  let other: LanAgent
  let nodes: LanAgent[] = []
  let isUp = true
  let sent: { url: string; body: string; answer: string }[] = []
  let lost: string[] = []
  let onLan: LanStore['onLan'] = () => 'pass'

  const fetchAll: Fetch = async (url, init) => {
    if (url.startsWith('https://shop.example')) {
      if (!isUp) throw new Error('the cloud is away')
      const answer = await shop.cloud.cloud.app.request(url.replace('https://shop.example', ''), {
        method: init.method,
        headers: init.headers,
        ...(init.body !== undefined && { body: init.body }),
      })
      return { status: answer.status, text: () => answer.text() }
    }
    const fate = onLan(url)
    if (fate === 'cut') {
      lost.push(init.body ?? '')
      throw new Error('no way there')
    }
    const answer = await fetch(url, init)
    const text = await answer.text()
    sent.push({ url, body: init.body ?? '', answer: text })
    if (fate === 'lose answer') throw new Error('the answer was lost')
    return { status: answer.status, text: () => Promise.resolve(text) }
  }

  async function run(node: Omit<LanAgent, 'agent' | 'server'>): Promise<void> {
    const server = await listen({ host: '127.0.0.1', port: node.port, flag: 'port' })
    const checked = readConfig(
      JSON.stringify({
        devices: [{ deviceId: node.deviceId, driver: 'modbus', link: { tcp: '127.0.0.1:1' }, output: 0 }],
      }),
    )
    if (!checked.ok) throw new Error(checked.faults.join())
    const running = node as LanAgent
    let end: () => void = () => undefined
    const ended = new Promise<void>((resolve) => (end = resolve))
    const device: ProtectionDevice = {
      connect: async () => undefined,
      identify: async () => ({ description: 'a gate' }),
      untilLost: () => new Promise(() => undefined),
      execute: async ({ kind }) => {
        if (kind === 'release') running.moved++
        const details = { failed: 'refused', unknown: 'answer_lost', confirmed: 'acknowledged' } as const
        return result(running.outcome, true, details[running.outcome])
      },
      events: (async function* () {
        await ended
        yield* []
      })(),
      close: async () => end(),
    }
    running.server = server
    running.port = server.port
    running.agent = startAgent({
      platform: node.platform ?? time.platform,
      dataDir: node.folder,
      identity: readIdentity(node.folder, secretFiles) as Identity,
      keepIdentity: (identity) => writeIdentity(node.folder, identity, secretFiles),
      secretFiles,
      config: checked.config,
      fetch: (url, init) =>
        running.isCutOff && url.startsWith('https://shop.example')
          ? Promise.reject(new Error('the cloud is away'))
          : fetchAll(url, init),
      openLine: () => Promise.reject(new Error('no broker')),
      openLink: () => Promise.reject(new Error('no link')),
      openDevice: () => device,
      address: `http://127.0.0.1:${server.port}`,
      log,
      onFatal: () => undefined,
    })
    const hosts = () => [`127.0.0.1:${server.port}`]
    server.serve(checkedApp(localApp(running.agent, { hosts, log, credential: () => CREDENTIAL })))
  }

  async function addAgent(deviceId: string): Promise<LanAgent> {
    const folder = temporaryFolder('home')
    const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
    const enrolled = await enrol({ cloud: shop.cloud.baseUrl, code, platform: time.platform, fetch: fetchAll })
    if (!enrolled.ok) throw new Error(enrolled.why)
    storeFirstDocuments(join(folder, 'ledger.db'), enrolled.identity, enrolled.documents, time.platform)
    writeIdentity(folder, enrolled.identity, secretFiles)
    const node = { folder, deviceId, port: 0, outcome: 'confirmed' as const, moved: 0 }
    await run(node)
    nodes.push(node as LanAgent)
    await (node as LanAgent).agent.ready(5_000)
    await ready(node as LanAgent)
    return node as LanAgent
  }
  const ready = (node: LanAgent) =>
    until('the device', async () => node.agent.status().devices.every((d) => d.state === 'ready'))
  const kill = async (node: LanAgent) => {
    await node.server.close()
    await node.agent.stop()
  }
  const leave = async (node: LanAgent, receipt: string, headers: Record<string, string> = {}): Promise<Json> => {
    const answer = await fetch(`http://127.0.0.1:${node.port}/v1/authorize`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...AUTHORIZATION, ...headers },
      body: JSON.stringify({ deviceId: node.deviceId, protectionAction: 'authorize_exit', receipt }),
    })
    return answer.json()
  }
  const receipt = async () => {
    const { transactionId } = await shop.buy([
      { ean: shop.products.toSorted((a, b) => a.price - b.price)[0].ean, quantity: 2 },
    ])
    return {
      purchaseId: transactionId as string,
      text: (await shop.ok('generateReceiptQR', { purchaseId: transactionId })).url as string,
    }
  }
  const resend = (question: string) =>
    fetch(`http://127.0.0.1:${home.port}/v1/home/redeem`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: question,
    })
  const reportsDelivered = (node: LanAgent) =>
    until(
      'the delivery of all outcome reports',
      async () => !node.agent.ledger.homeRequests.hasReports && node.agent.ledger.homeRequests.openIds().length === 0,
    )
  const cutCloud = async () => {
    isUp = false
    for (const node of nodes) {
      await node.agent.link.poll()
      await until('offline', async () => !node.agent.link.isOnline)
    }
  }

  beforeEach(async () => {
    isUp = true
    onLan = () => 'pass'
    sent = []
    lost = []
    nodes = []
    time = passingTime()
    shop = await openShop('sqlite', { platform: time.platform })
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    await shop.ok('updateProtectionPolicy', {
      storeId: shop.storeId,
      policy: { ...policy, offline: { ...policy.offline, hardCount: 1 } },
    })
    const { deviceId } = await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'exit_gate' })
    home = await addAgent(shop.devices.exit_gate)
    other = await addAgent(deviceId)
    for (const node of nodes)
      await until('everybody known', async () => {
        await node.agent.link.poll()
        const { agents, policy: known } = node.agent.trust.policy ?? {}
        return known?.home === home.agent.identity.agentId && agents?.filter((a) => a.url !== null).length === 2
      })
  })
  afterEach(async () => {
    for (const node of nodes) {
      await kill(node).catch(() => undefined)
      rmSync(node.folder, { recursive: true, force: true })
    }
    await shop.stop()
    time.stop()
  })

  return {
    get platform() {
      return time.platform
    },
    get shop() {
      return shop
    },
    get nodes() {
      return nodes
    },
    get home() {
      return home
    },
    get other() {
      return other
    },
    get isUp() {
      return isUp
    },
    set isUp(now) {
      isUp = now
    },
    get onLan() {
      return onLan
    },
    set onLan(now) {
      onLan = now
    },
    get sent() {
      return sent
    },
    get lost() {
      return lost
    },
    addAgent,
    run,
    ready,
    kill,
    remove(gone) {
      nodes = nodes.filter((node) => node !== gone)
      rmSync(gone.folder, { recursive: true, force: true })
    },
    leave,
    receipt,
    resend,
    reportsDelivered,
    cutCloud,
  }
}
