import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentConfig } from '../../../../edge-agent/config.ts'
import { openLedgerFile } from '../../../../edge-agent/ledger/file/ledger-file.ts'
import { storeFirstDocuments, adoptLedger } from '../../../../edge-agent/enrolment/enrol.ts'
import { startAgent, type Agent } from '../../../../edge-agent/runtime.ts'
import type { Log } from '../../../../edge-agent/log.ts'
import type { Identity } from '../../../../edge-agent/identity/identity.ts'
import type { Actuators } from './actuators.ts'
import { serveAgent, type AgentServer } from './agent-server.ts'
import type { CloudNode } from './cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import { newDisk, type Disk, type DiskWatcher } from '../virtual/disk.ts'
import { request, type SimResponse, type SimRequest } from '../virtual/http.ts'
import { lanHost, type Lan } from '../virtual/lan.ts'
import { machine, type Machine, type Process } from '../virtual/machine.ts'
import type { Wire } from '../virtual/wire.ts'
import type { Chance } from '../virtual/chance.ts'

/** A real agent on a simulated machine, with a simulated disk and a wire to the cloud. */
export interface AgentNode {
  readonly name: string
  readonly identity: Identity
  readonly machine: Machine
  readonly disk: Disk
  readonly wire: Wire
  readonly agent: Agent | undefined
  start(): void
  crash(how: { powerCut: boolean }): void
  stop(): Promise<void>
  /**
   * Stops the agent and replaces its disk by an old copy. Returns true if the agent was running. In that case the
   * watermark on the machine is newer than the copy.
   */
  restore(copy: string): boolean
  /** Stops the agent and re-enrols it under a new identity (`untag edge enrol --replace`). */
  replace(next: Identity, documents: readonly string[]): void
  /** True if the agent has had signed time for some seconds, so that the times of its newest rows are correct. */
  readonly hasRecentCloudTime: boolean
  /**
   * Called at each effect outside the process, such as a commit or an answer. The process may die in this call;
   * `weight` multiplies the probability that the process dies.
   */
  maybeDie(where: string, weight?: number): void
}

/** Time after the first commit with signed time from which `hasRecentCloudTime` is true, ms. */
const WRITTEN_WITHIN_MS = 5_000

export interface AgentNodeParts {
  core: Core
  name: string
  identity: Identity
  /** Configuration for each start. */
  config(): AgentConfig
  template: string
  cloud: CloudNode
  wire: Wire
  lan: Lan
  actuators: Pick<Actuators, 'supervisor'>
  onCommit?: DiskWatcher['afterCommit']
  onStart?(node: AgentNode): void
  onEnded?(): void
  /** Called after the ledger was continued under another identity. */
  onReplaced?(): void
  /** Called when this agent sends a notice of till sales, and when it has acknowledged one. */
  onTillNotice?(how: 'sent' | 'acknowledged', body: string): void
}

const TILL_NOTICES = '/v1/till-notices'

export const LEDGER = 'ledger.db'
/** Replica of the items. If the replica is lost, the agent fetches it again. */
export const ITEMS = 'items.db'

/** Creates a machine with the files of an enrolled agent. The agent does not run yet. */
export function agentNode(parts: AgentNodeParts): AgentNode {
  return new SimulatedAgent(parts)
}

class SimulatedAgent implements AgentNode {
  readonly wire: Wire
  readonly name: string
  readonly #parts: AgentNodeParts
  readonly #chance: Chance
  /** Small files of the data folder. Each write replaces the complete file. */
  readonly #secrets = new Map<string, string>()
  /** Runtime folder; a reboot empties it. */
  readonly #runtime = new Map<string, string>()
  #agent: Agent | undefined
  #isRestored = false
  #served: AgentServer | undefined
  #inTouchSinceMs: number | undefined = Number.NEGATIVE_INFINITY
  /**
   * The process that received signed time. If this process ends before a commit, the next process has no signed time.
   */
  #timeReceivedBy: Process | undefined
  #identity: Identity
  readonly disk: Disk
  readonly machine: Machine

  constructor(parts: AgentNodeParts) {
    this.#parts = parts
    this.name = this.#parts.name
    this.wire = this.#parts.wire
    this.#chance = this.#parts.core.chance.fork(`agent node ${this.name}`)
    this.machine = machine(this.name, this.#parts.core)
    const watcher: DiskWatcher = {
      beforeCommit: () => this.maybeDie('before a commit'),
      afterCommit: (connection) => {
        // Checks the trust of the clock, because the agent rejects signed time whose key was revoked.
        if (this.#timeReceivedBy?.isAlive && this.#agent?.clock.now().trust === 'signed')
          this.#inTouchSinceMs ??= this.#parts.core.scheduler.nowMs
        this.#parts.onCommit?.(connection)
        this.maybeDie('after a commit')
      },
      isAlive: () => this.machine.isUp,
    }
    this.#identity = this.#parts.identity
    this.disk = newDisk(join(this.#parts.core.folder, this.name), [LEDGER, ITEMS], watcher, this.#parts.template)
    const running = () => this.#served && this.machine.process
    this.#parts.lan.join(this.name, {
      get process() {
        return running()
      },
      answer: (request) => this.#answer(request),
    })
  }

  async #answer(request: SimRequest): Promise<SimResponse> {
    this.maybeDie('when another agent asks')
    const { process } = this.machine
    if (!this.#served || !process) throw new Error('connection refused')
    const answer = await this.#served.answer(request)
    if (process.isAlive) {
      this.#parts.core.trace.add(this.name, `answers another agent: ${answer.status}`)
      if (request.url.endsWith(TILL_NOTICES) && answer.status === 200)
        this.#parts.onTillNotice?.('acknowledged', request.body ?? '')
      this.maybeDie('before it answers another agent')
    }
    return answer
  }

  maybeDie(where: string, weight = 1): void {
    if (
      this.#parts.core.crashRate === 0 ||
      !this.machine.isUp ||
      !this.#chance.happens(this.#parts.core.crashRate * weight)
    )
      return
    this.#parts.core.trace.add(this.name, `dies ${where}`)
    this.crash({ powerCut: this.#chance.happens(0.5) })
  }

  crash({ powerCut }: { powerCut: boolean }): void {
    if (!this.machine.isUp) return
    this.#parts.core.trace.add(this.name, powerCut ? 'power cut' : 'killed')
    this.disk.processEnded({ powerCut })
    this.#agent = undefined
    this.#served = undefined
    this.machine.process?.kill()
    if (powerCut) {
      this.machine.reboot()
      this.#runtime.clear()
      this.#inTouchSinceMs = undefined
    }
    this.#parts.onEnded?.()
  }

  get identity(): Identity {
    return this.#identity
  }

  get agent(): Agent | undefined {
    return this.#agent
  }

  get hasRecentCloudTime(): boolean {
    return (
      this.#inTouchSinceMs !== undefined && this.#parts.core.scheduler.nowMs - this.#inTouchSinceMs > WRITTEN_WITHIN_MS
    )
  }

  start(): void {
    const process = this.machine.begin()
    this.#parts.core.trace.add(this.name, 'starts')
    this.#parts.onStart?.(this)
    const started = startAgent({
      platform: process.platform,
      dataDir: this.disk.folder,
      identity: this.#identity,
      // The identity file is replaced as a whole, so after a crash the file has the old or the new identity.
      keepIdentity: (changed) => void (this.#identity = changed),
      secretFiles: {
        read: (file) => this.#secrets.get(file),
        write: (file, text) => void (process.isAlive && this.#secrets.set(file, text)),
      },
      config: this.#parts.config(),
      fetch: async (url, init) => {
        this.maybeDie('before it asks')
        if (url.endsWith(TILL_NOTICES)) this.#parts.onTillNotice?.('sent', init.body ?? '')
        const neighbour = this.#parts.lan.at(url)
        const way = neighbour
          ? { wire: this.#parts.lan.wire, server: neighbour }
          : { wire: this.wire, server: this.#parts.cloud }
        const answer = await request(
          { url, ...init },
          { ...way, scheduler: this.#parts.core.scheduler, signal: init.signal, by: process },
        )
        this.maybeDie('when it is answered')
        if (url.includes('/time?') && answer.status === 200) this.#timeReceivedBy = process
        return { status: answer.status, text: () => Promise.resolve(answer.text) }
      },
      openLine: async (options) => {
        if (!this.#parts.cloud.running) throw new Error('connection refused')
        return this.#parts.cloud.running.broker.open(options, process, this.wire)
      },
      address: `http://${lanHost(this.name)}`,
      log: this.#logOf(process),
      supervise: this.#parts.actuators.supervisor(this.name, process),
      watermarkFolders: [
        {
          read: (file) => this.#runtime.get(file),
          write: (file, text) => void (process.isAlive && this.#runtime.set(file, text)),
        },
      ],
      openLedgerFile: (file) => this.disk.watch(openLedgerFile(file), LEDGER),
      onFatal: () => {
        if (process.isAlive) this.crash({ powerCut: false })
      },
    })
    // The process may have died while it started.
    if (!process.isAlive) return
    this.#agent = started
    if (started.ledger.isBehindWatermark && !this.#isRestored)
      this.#parts.core.violate('fault', `${this.name} treats its ledger as restored, but it was not`)
    this.#served = serveAgent(this.name, started, this.#logOf(process))
  }

  restore(copy: string): boolean {
    const ran = this.machine.isUp
    this.crash({ powerCut: false })
    this.disk.restore(copy)
    // The copy may lack the newest keys. Removes all keys, which is the worst case.
    this.#secrets.clear()
    this.#isRestored = true
    this.#inTouchSinceMs = undefined
    return ran
  }

  replace(next: Identity, documents: readonly string[]): void {
    this.crash({ powerCut: false })
    const file = join(this.disk.folder, LEDGER)
    const { process } = this.machine
    if (!process) throw new Error(`${this.name} has never run`)
    adoptLedger(file, this.#identity, next)
    for (const suffix of ['', '-wal', '-shm']) rmSync(join(this.disk.folder, ITEMS + suffix), { force: true })
    storeFirstDocuments(file, next, documents, process.platform)
    this.#identity = next
    this.#inTouchSinceMs = undefined
    this.#parts.onReplaced?.()
  }

  async stop(): Promise<void> {
    const current = this.#agent
    const { process } = this.machine
    if (!current || !process?.isAlive) return
    this.#parts.core.trace.add(this.name, 'stops')
    try {
      await this.#served?.close()
      await current.stop()
    } catch (error) {
      // Like `untag edge`, the process ends even if the orderly stop fails.
      if (process.isAlive) this.crash({ powerCut: false })
      throw error
    }
    if (!process.isAlive) return
    this.#agent = undefined
    this.#served = undefined
    this.disk.processEnded({ powerCut: false })
    process.kill()
    this.#parts.onEnded?.()
  }

  #logOf(process: Process): Log {
    const line = (level: string) => (fields: Record<string, unknown>, message: string) => {
      if (!process.isAlive) return
      this.#parts.core.trace.add(
        this.name,
        `${level}: ${message} ${typeof fields['what'] === 'string' ? fields['what'] : ''}`,
      )
      const { err } = fields as { err?: { name?: string; stack?: string } }
      if (level === 'error' && !err?.name?.startsWith('Ledger'))
        this.#parts.core.violate('fault', `${this.name}: ${message}: ${err?.stack ?? JSON.stringify(fields)}`)
    }
    return { info: () => undefined, warn: line('warn'), error: line('error') }
  }
}
