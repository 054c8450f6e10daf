import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startCloud, type RunningCloud } from '../../../bin/commands/cloud.ts'
import { enrolAgent } from '../../../bin/commands/edge-enrol.ts'
import { newLog } from '../../../host/log.ts'
import { readOptions } from '../../../host/options.ts'
import { CLOUD_OPTIONS } from '../../../host/settings/cloud.ts'
import { shopper } from '../../../simulators/services/shopper.ts'
import { pause, randomFraction } from '../../../policy/platform.ts'
import { processesOf } from '../kills/processes.ts'
import { eventually } from '../kills/store-processes.ts'
import { unusedPort } from '../kills/tcp-wire.ts'
import { seededRandom } from '../simulation/virtual/virtual-platform.ts'
import { jumpingPlatform, type JumpingPlatform } from './jumping-platform.ts'
import { auditSales, epcOf, saleOf, TILLS, type Audit, type RecordedSale } from './till-sales.ts'

export interface OutageOptions {
  /** Folder of the built project. */
  readonly root: string
  /** Folder for the files of agent and cloud. */
  readonly folder: string
  readonly sales: number
  readonly hours: number
  readonly kills: number
  readonly seed: number
  onProgress(text: string): void
}

export interface OutageResult extends Audit {
  readonly acknowledged: number
  /** Tags of sold items that are not paid in the cloud. */
  readonly unpaidTags: number
  readonly kills: number
  /** Reports that got no answer, and were sent again. */
  readonly repeated: number
  readonly sellingSeconds: number
  readonly ledgerBytes: number
  /** From the start of the cloud to the last acknowledgement at the agent. */
  readonly drainSeconds: number
}

/** Tagged items of the store. Their sales are spread over the outage. */
const ITEMS = 500
/** Longest wait for one step, ms. The drain has its own limit. */
const STEP_MS = 120_000
/** Longest wait for the drain for each sale, ms. */
const DRAIN_MS_PER_SALE = 30
const PROGRESS_ROUNDS = 500
const PROGRESS_MS = 10_000
/** Time after the begin of a round within which the agent is killed, ms. */
const KILLED_WITHIN_MS = 30

/**
 * Sells at an agent whose cloud is away for days, and kills the agent meanwhile. Then the cloud is back. Files,
 * processes and HTTP are real; only the time jumps from sale to sale.
 */
export async function runOutage(options: OutageOptions): Promise<OutageResult> {
  const folder = mkdtempSync(join(options.folder, 'untag-outage-'))
  const outage = new Outage(options, folder)
  try {
    return await outage.run()
  } finally {
    await outage.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

class Outage {
  readonly #options: OutageOptions
  readonly #folder: string
  readonly #platform: JumpingPlatform = jumpingPlatform(0)
  readonly #startMs: number
  /** Total of each acknowledged sale, cents. */
  readonly #totals = new Map<string, number>()
  #cloud: RunningCloud | undefined
  #agent: { child: ChildProcess; url: string } | undefined
  #headers: Record<string, string> = {}
  #repeated = 0
  #kills = 0

  constructor(options: OutageOptions, folder: string) {
    this.#options = options
    this.#folder = folder
    this.#startMs = this.#platform.clock.wall()
  }

  async run(): Promise<OutageResult> {
    const { onProgress } = this.#options
    const { clock } = this.#platform
    const ports = { port: await unusedPort(), mqttPort: await unusedPort() }
    const storeId = await this.#open(ports)
    onProgress('the cloud is away')
    await this.#cloud?.stop()
    this.#cloud = undefined
    const [fromMs, aheadMs] = [clock.elapsed(), this.#platform.aheadMs]
    await this.#sellAll()
    const sellingSeconds = (clock.elapsed() - fromMs - (this.#platform.aheadMs - aheadMs)) / 1_000
    const ledgerBytes = ['', '-wal'].reduce((sum, end) => sum + sizeOf(join(this.#data, `ledger.db${end}`)), 0)
    const backMs = clock.elapsed()
    this.#cloud = await this.#startCloud(ports)
    await this.#drained()
    const drainSeconds = (clock.elapsed() - backMs) / 1_000
    onProgress('comparing')
    const audit = auditSales(this.#totals, await this.#recorded(storeId))
    const unpaidTags = await this.#unpaidTags(storeId)
    const acknowledged = this.#totals.size
    const counts = { acknowledged, unpaidTags, kills: this.#kills, repeated: this.#repeated }
    return { ...audit, ...counts, sellingSeconds, ledgerBytes, drainSeconds }
  }

  async stop(): Promise<void> {
    const child = this.#agent?.child
    if (child && child.exitCode === null && child.signalCode === null) {
      child.disconnect()
      await once(child, 'exit')
    }
    await this.#cloud?.stop()
  }

  get #data(): string {
    return join(this.#folder, 'edge')
  }

  get #tagged(): number {
    return Math.min(ITEMS, this.#options.sales)
  }

  /** Starts cloud and agent, and waits until the agent has the items and may take sales. */
  async #open(ports: Ports): Promise<string> {
    const processes = processesOf(this.#options.root)
    this.#cloud = await this.#startCloud(ports)
    const { baseUrl } = this.#cloud
    const account = ['--account', 'Outage', '--mode', 'test', '--package', 'PRIME', '--json']
    const keys = await processes.run(['keys', 'create', '--data', join(this.#folder, 'cloud'), ...account])
    if (keys.code !== 0) throw new Error(keys.stderr)
    const api = shopper({ baseUrl, key: (JSON.parse(keys.stdout) as { key: string }).key, fetch })
    const { stores } = (await api.call('fetchStores', {})) as { stores: { storeId: string; securityTagMode: string }[] }
    const storeId = stores.find(({ securityTagMode }) => securityTagMode === 'rfid')?.storeId ?? ''
    const items = Array.from({ length: this.#tagged }, (_, n) => ({ epc: epcOf(n), protectionTechnology: 'uhf_rfid' }))
    await api.call('registerProtectedItems', { storeId, items })
    const { code } = await api.call('createEnrolmentCode', { storeId, name: 'outage' })
    const { agentId } = await enrolAgent({ cloud: baseUrl, code: String(code), data: this.#data }, this.#platform)
    const { policy } = (await api.call('fetchProtectionPolicy', { storeId })) as { policy: object }
    const tillSales = { agents: [agentId], salesPerHour: 100_000, valuePerHour: 10_000_000 }
    await api.call('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } })
    const paired = await processes.run(['edge', 'pair', '--data', this.#data, '--name', 'tills', '--may', 'sales'])
    if (paired.code !== 0) throw new Error(paired.stderr)
    this.#headers = { 'content-type': 'application/json', authorization: `Bearer ${paired.stdout.trim()}` }
    await this.#startAgent()
    await eventually('the items and the policy at the agent', async () => {
      const { items: replica } = await this.#status()
      return replica.known >= this.#tagged && (await this.#send(0))
    })
    return storeId
  }

  #startCloud(ports: Ports): Promise<RunningCloud> {
    const settings = {
      ...readOptions(CLOUD_OPTIONS, [], {}),
      ...ports,
      data: join(this.#folder, 'cloud'),
      rateLimit: 0,
    }
    return startCloud(settings, this.#platform, newLog('outage', 'error'))
  }

  async #startAgent(): Promise<void> {
    const program = fileURLToPath(new URL('agent-program.js', import.meta.url))
    const args = [this.#data, join(this.#folder, 'run'), String(this.#platform.aheadMs)]
    const child = fork(program, args, { execArgv: ['--max-semi-space-size=4'] })
    const ended = once(child, 'exit').then(() => Promise.reject(new Error('the agent has ended')))
    const [ready] = (await Promise.race([once(child, 'message'), ended])) as [{ url: string }]
    ended.catch(() => {})
    this.#agent = { child, url: ready.url }
  }

  /** All tills sell at once, then the time jumps. In some rounds the agent is killed, and the tills report again. */
  async #sellAll(): Promise<void> {
    const { sales, kills, seed, onProgress } = this.#options
    const random = seededRandom(seed)
    const rounds = Math.ceil(sales / TILLS)
    const killedRounds = new Set(Array.from({ length: kills }, () => Math.floor(randomFraction(random) * rounds)))
    for (let round = 0; round < rounds; round++) {
      const numbers = Array.from({ length: Math.min(TILLS, sales - round * TILLS) }, (_, i) => round * TILLS + i)
      const sent = this.#sendAll(numbers)
      if (killedRounds.has(round)) await this.#kill(randomFraction(random) * KILLED_WITHIN_MS)
      let missing = await sent
      if (killedRounds.has(round)) await this.#startAgent()
      this.#repeated += missing.length
      const isDone = async () => (missing = await this.#sendAll(missing)).length === 0
      if (missing.length > 0) await eventually('the sales after a kill', isDone, STEP_MS)
      this.#jump(this.#stepMs * numbers.length)
      if (round % PROGRESS_ROUNDS === 0) onProgress(`${this.#totals.size} of ${sales} sales, ${this.#kills} kills`)
    }
  }

  get #stepMs(): number {
    return (this.#options.hours * 3_600_000) / this.#options.sales
  }

  #jump(ms: number): void {
    this.#platform.jump(ms)
    this.#agent?.child.send(ms)
  }

  async #kill(afterMs: number): Promise<void> {
    const { child } = this.#agent ?? {}
    await pause(this.#platform.timers, afterMs)
    child?.kill('SIGKILL')
    if (child && child.signalCode === null) await once(child, 'exit')
    this.#kills++
  }

  /** Sends these sales. Returns those without an answer. */
  async #sendAll(numbers: readonly number[]): Promise<number[]> {
    const isAcknowledged = await Promise.all(numbers.map((n) => this.#send(n)))
    return numbers.filter((_, i) => !isAcknowledged[i])
  }

  /** Reports a sale. Returns true if the agent acknowledged it, and false if no answer came or it is not ready. */
  async #send(n: number): Promise<boolean> {
    const { sales } = this.#options
    const every = Math.floor(sales / this.#tagged)
    const epc = n % every === 0 && n / every < this.#tagged ? epcOf(n / every) : undefined
    const sale = saleOf(n, this.#startMs + n * this.#stepMs, epc)
    const init = { method: 'POST', headers: this.#headers, body: JSON.stringify(sale) }
    const answer = await fetch(`${this.#agent?.url}/v1/sales`, init).catch(() => undefined)
    const text = await answer?.text().catch(() => undefined)
    if (!answer || text === undefined || answer.status === 503) return false
    if (answer.status === 403 && text.includes('sales_not_allowed')) return false
    if (answer.status !== 200) throw new Error(`the agent answered ${answer.status} to sale ${n}: ${text}`)
    this.#totals.set(sale.saleId, sale.totalCent)
    return true
  }

  async #status(): Promise<AgentStatus> {
    const answer = await fetch(`${this.#agent?.url}/v1/status`, { headers: this.#headers })
    return (await answer.json()) as AgentStatus
  }

  async #drained(): Promise<void> {
    const { sales, onProgress } = this.#options
    const { clock } = this.#platform
    let saidMs = clock.elapsed()
    const isDrained = async () => {
      const { queueDepth } = await this.#status()
      if (clock.elapsed() - saidMs > PROGRESS_MS) {
        saidMs = clock.elapsed()
        onProgress(`${queueDepth} rows wait for the cloud`)
      }
      return queueDepth === 0
    }
    await eventually('the journal at the cloud', isDrained, STEP_MS + sales * DRAIN_MS_PER_SALE)
  }

  /** The purchases that the cloud made of sales of tills. */
  async #recorded(storeId: string): Promise<RecordedSale[]> {
    const purchases = this.#reads.selectFrom('purchase').select(['till', 'total_cent']).where('store_id', '=', storeId)
    const rows = await purchases.where('till', 'is not', null).execute()
    return rows.map(({ till, total_cent: totalCent }) => ({
      saleId: (JSON.parse(till ?? '{}') as { saleId: string }).saleId,
      totalCent,
    }))
  }

  async #unpaidTags(storeId: string): Promise<number> {
    const items = this.#reads.selectFrom('protected_item').select('epc').where('store_id', '=', storeId)
    const paid = await items.where('item_status', '=', 'paid').execute()
    const epcs = new Set(paid.map(({ epc }) => epc))
    return Array.from({ length: this.#tagged }, (_, n) => epcOf(n)).filter((epc) => !epcs.has(epc)).length
  }

  get #reads() {
    if (!this.#cloud) throw new Error('the cloud does not run')
    return this.#cloud.database.reads
  }
}

interface Ports {
  readonly port: number
  readonly mqttPort: number
}

interface AgentStatus {
  readonly items: { readonly known: number }
  readonly queueDepth: number
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}
