import { join } from 'node:path'
import type { KeyFiles } from '../../../../cloud/platform/authority/key-files.ts'
import { createCloud, type Cloud } from '../../../../cloud/cloud.ts'
import type { Log } from '../../../../cloud/platform/foundation/log.ts'
import type { CloudConfig } from '../../../../cloud/platform/foundation/config.ts'
import type { OutgoingHttp } from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import { openConnection, openSqlite } from '../../../../cloud/platform/persistence/sqlite.ts'
import { markRestored } from '../../../../cloud/service/mark-restored.ts'
import { simBroker, type SimBroker } from '../virtual/broker.ts'
import type { Core } from '../virtual/core.ts'
import { newDisk, type Disk, type DiskWatcher } from '../virtual/disk.ts'
import type { HttpServer, SimResponse, SimRequest } from '../virtual/http.ts'
import { machine, type Machine, type Process } from '../virtual/machine.ts'
import type { Chance } from '../virtual/chance.ts'

/** The real cloud with real SQLite on a simulated machine, without sockets. */
export interface CloudNode extends HttpServer {
  readonly machine: Machine
  readonly disk: Disk
  /** The running cloud; undefined while it is down or starts. */
  readonly running: { cloud: Cloud; database: Database; broker: SimBroker; process: Process } | undefined
  start(): Promise<void>
  /** Ends the process at once. A power cut also reboots the machine. */
  crash(how: { powerCut: boolean }): void
  /** Generation after the last restore; 1 if the cloud was never restored. */
  readonly generation: number
  /** Stops the cloud and replaces its disk by this copy (`untag restore`). */
  restore(copy: string): void
  /** Stops the cloud as SIGTERM does. */
  stop(): Promise<void>
}

export interface CloudNodeParts {
  core: Core
  keyFiles: KeyFiles
  outgoing: OutgoingHttp
  /** Folder with the initial files. */
  template?: string
  onCommit?: DiskWatcher['afterCommit']
  onDiskFault?(): void
  onAnswer?(request: SimRequest, answer: SimResponse): void
  /** Called after the process has ended, so that the simulation can restart it. */
  onEnded?(): void
}

export const CLOUD_ORIGIN = 'http://cloud.sim'
export const CLOUD_DATABASE = 'cloud.db'

const CONFIG: CloudConfig = {
  baseUrl: `${CLOUD_ORIGIN}/api/v1`,
  mqttUrl: 'mqtt://cloud.sim:1883',
  rateLimit: 0,
  publishableRateLimit: 0,
  checkAnswers: true,
  allowPrivateTargets: true,
  trustedProxies: [],
}

/** Creates a machine with the files of the cloud. The cloud does not run yet. */
export function cloudNode(parts: CloudNodeParts): CloudNode {
  return new SimulatedCloud(parts)
}

class SimulatedCloud implements CloudNode {
  readonly #core: CloudNodeParts['core']
  readonly #keyFiles: CloudNodeParts['keyFiles']
  readonly #outgoing: CloudNodeParts['outgoing']
  readonly #onCommit: CloudNodeParts['onCommit']
  readonly #onDiskFault: CloudNodeParts['onDiskFault']
  readonly #onAnswer: CloudNodeParts['onAnswer']
  readonly #onEnded: CloudNodeParts['onEnded']
  readonly #chance: Chance
  #running: CloudNode['running']
  /** True if the disk is a restored copy and the restore is not recorded in the database yet. */
  #isRestored = false
  #generation = 1
  readonly disk: Disk
  readonly machine: Machine

  constructor({ core, keyFiles, outgoing, template, onCommit, onDiskFault, onAnswer, onEnded }: CloudNodeParts) {
    this.#core = core
    this.#keyFiles = keyFiles
    this.#outgoing = outgoing
    this.#onCommit = onCommit
    this.#onDiskFault = onDiskFault
    this.#onAnswer = onAnswer
    this.#onEnded = onEnded
    this.#chance = this.#core.chance.fork('cloud node')
    this.machine = machine('cloud', this.#core)
    const watcher: DiskWatcher = {
      beforeCommit: () => this.#maybeDie('before a commit'),
      afterCommit: (connection) => {
        this.#onCommit?.(connection)
        this.#maybeDie('after a commit')
      },
      onFault: () => this.#onDiskFault?.(),
      isAlive: () => this.machine.isUp,
    }
    this.disk = newDisk(join(this.#core.folder, 'cloud'), [CLOUD_DATABASE], watcher, template)
  }

  crash({ powerCut }: { powerCut: boolean }): void {
    if (!this.machine.isUp) return
    this.#core.trace.add('cloud', powerCut ? 'power cut' : 'killed')
    this.disk.processEnded({ powerCut })
    this.#running = undefined
    this.machine.process?.kill()
    if (powerCut) this.machine.reboot()
    this.#onEnded?.()
  }

  async start(): Promise<void> {
    const process = this.machine.begin()
    const log = this.#logOf(process)
    this.#core.trace.add('cloud', 'starts')
    const onFailure = () => {
      if (process.isAlive) this.crash({ powerCut: false })
    }
    const database = await openSqlite(join(this.disk.folder, CLOUD_DATABASE), onFailure, (file, options) =>
      this.disk.watch(openConnection(file, options), CLOUD_DATABASE),
    )
    if (this.#isRestored) {
      // An operator sets the clock before a restore, because the time of the restore is part of the generation.
      this.machine.correctClock()
      const restored = await database.write((db) => markRestored(db, this.#keyFiles, process.platform))
      if (!process.isAlive) return
      this.#isRestored = false
      ;({ generation: this.#generation } = restored)
      this.#core.trace.add('cloud', `was restored, and continues as generation ${this.#generation}`)
    }
    if (!process.isAlive) return
    const images = { put: () => Promise.resolve(), get: () => Promise.resolve(undefined) }
    const cloud = await createCloud({
      config: CONFIG,
      platform: process.platform,
      log,
      database,
      keyFiles: this.#keyFiles,
      images,
      outgoing: this.#outgoingOf(process),
    })
    if (!process.isAlive) return
    const broker = simBroker(cloud.messages.hooks, process, { ...this.#core, onThrow: this.#onThrow })
    cloud.attachBroker(broker)
    this.#running = { cloud, database, broker, process }
    this.#core.trace.add('cloud', 'is up')
  }

  get running(): { cloud: Cloud; database: Database; broker: SimBroker; process: Process } | undefined {
    return this.#running
  }

  get process(): Process | undefined {
    return this.#running?.process
  }

  async answer(request: SimRequest): Promise<SimResponse> {
    this.#maybeDie('when a request arrives')
    const { cloud, process } = this.#running ?? {}
    if (!cloud || !process) throw new Error('the cloud is down')
    const { url, body, ...init } = request
    const response = await cloud.app.request(url, { ...init, ...(body !== undefined && { body }) })
    const answer = { status: response.status, text: await response.text() }
    if (process.isAlive) {
      this.#onAnswer?.(request, answer)
      this.#maybeDie('before it answers')
    }
    return answer
  }

  get generation(): number {
    return this.#generation
  }

  restore(copy: string): void {
    this.crash({ powerCut: false })
    this.disk.restore(copy)
    this.#isRestored = true
  }

  async stop(): Promise<void> {
    const current = this.#running
    if (!current) return
    this.#core.trace.add('cloud', 'stops')
    try {
      await current.cloud.stop()
      await current.broker.close()
      if (!current.process.isAlive) return
      await current.database.close()
    } catch (error) {
      // Like `untag cloud`, the process ends even if the orderly stop fails.
      if (current.process.isAlive) this.crash({ powerCut: false })
      throw error
    }
    this.#running = undefined
    this.disk.processEnded({ powerCut: false })
    current.process.kill()
    this.#onEnded?.()
  }

  #maybeDie(where: string): void {
    if (this.#core.crashRate === 0 || !this.machine.isUp || !this.#chance.happens(this.#core.crashRate)) return
    this.#core.trace.add('cloud', `dies ${where}`)
    this.crash({ powerCut: this.#chance.happens(0.5) })
  }

  #logOf(process: Process): Log {
    const line = (level: string) => (fields: Record<string, unknown>, message: string) => {
      if (!process.isAlive) return
      this.#core.trace.add('cloud', `${level}: ${message}`)
      // If a simulated disk fault caused an error in the log, the error is expected. Every other logged error is a
      // violation.
      const { err } = fields as { err?: { name?: string; code?: string; stack?: string } }
      const isDisk =
        err?.name === 'StorageFailure' || err?.code === 'SQLITE_FULL' || err?.code?.startsWith('SQLITE_IOERR')
      if (level === 'error' && !isDisk)
        this.#core.violate('fault', `cloud: ${message}: ${err?.stack ?? JSON.stringify(fields)}`)
    }
    return { info: () => undefined, warn: line('warn'), error: line('error') }
  }

  /** Drops outgoing requests of a dead process. */
  #outgoingOf(process: Process): OutgoingHttp {
    return {
      send: (request, signal) =>
        process.isAlive ? this.#outgoing.send(request, signal) : new Promise(() => undefined),
    }
  }

  readonly #onThrow = (agentId: string, by: Process, error: unknown): void => {
    if (by.isAlive)
      this.#core.violate(
        'fault',
        `a message from the broker would end the process of ${agentId}: ${(error as Error).stack}`,
      )
  }
}
