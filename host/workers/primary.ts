import cluster, { type Worker } from 'node:cluster'
import { loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import type { Log } from '../../cloud/platform/foundation/log.ts'
import type { MetricsOfProcess } from '../../cloud/service/monitoring/metrics.ts'
import { assert } from '../../policy/assert.ts'
import { pause, type Platform } from '../../policy/platform.ts'
import { drainDelayMs } from '../cloud-broker.ts'
import { openDataFolder, type DataFolder } from '../data-folder.ts'
import { keyPlaceOf, secretFiles } from '../secret-files.ts'
import { metricsServer } from '../metrics-server.ts'
import { WrongUsage, type Values } from '../options.ts'
import { printReady } from '../output.ts'
import { reservePort, type ReservedPort } from '../http-server.ts'
import { cloudLines } from '../ready-lines.ts'
import { consoleUrlAt } from '../../cloud/platform/users/console-address.ts'
import { answersHealthz } from '../service/healthz.ts'
import { ownServiceManager } from '../service/service-manager.ts'
import type { CLOUD_OPTIONS } from '../settings/cloud.ts'
import { stopOnSignals } from '../shutdown.ts'
import { hasApiTls, openCloudTls } from '../tls/cloud-tls.ts'
import type { FromWorker, ReadyFields, ToWorker } from './worker.ts'

/** Deaths of workers are counted over this time, ms. */
const WINDOW_MS = 600_000
/** Maximum number of deaths in this time. */
const DEATHS_LIMIT = 20
const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 30_000

/** Decides when the primary process replaces a worker that ended by itself. */
interface Restarts {
  /** Counts a death. Returns the delay before the replacement, ms; undefined if too many workers died. */
  afterDeath(nowMs: number): number | undefined
}

/** The first dead worker is replaced at once. Each further death within ten minutes doubles the delay. */
export function restarts(): Restarts {
  let deaths: number[] = []
  return {
    afterDeath(nowMs) {
      deaths = [...deaths.filter((atMs) => atMs > nowMs - WINDOW_MS), nowMs]
      if (deaths.length > DEATHS_LIMIT) return undefined
      return deaths.length === 1 ? 0 : Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (deaths.length - 2))
    },
  }
}

/** A connection of Node.js without its stream. `fd` is negative after `close`. */
interface ConnectionHandle {
  readonly fd: number
  close(): void
}

/** From this number of recorded connections on, the closed ones are removed from the list. */
const SWEEP_AT = 64

/**
 * Closes the connections that were on their way to this worker when it died. Node.js sends each connection to the
 * worker with a message, and keeps a copy of the connection until the worker confirms. Node.js never closes the copies
 * for a dead worker, so the clients of these connections would wait for ever.
 */
function closeLostConnections(worker: Worker): void {
  const { process: child } = worker
  const send = child.send.bind(child) as (...args: unknown[]) => boolean
  let sent: ConnectionHandle[] = []
  child.send = (...args: unknown[]): boolean => {
    const [, handle] = args
    if (isConnection(handle)) {
      if (sent.length >= SWEEP_AT) sent = sent.filter(({ fd }) => fd >= 0)
      sent.push(handle)
    }
    return send(...args)
  }
  // Waits for `exit`, because Node.js emits `disconnect` only after the worker has confirmed all connections.
  worker.once('exit', () => {
    for (const handle of sent) if (handle.fd >= 0) handle.close()
    sent = []
    if (child.connected) child.disconnect()
  })
}

function isConnection(value: unknown): value is ConnectionHandle {
  return typeof value === 'object' && value !== null && 'close' in value && 'fd' in value
}

/** Maximum time for the stop of all workers, ms. */
const STOP_WITHIN_MS = 35_000

/**
 * Runs the cloud in several processes. This primary process binds the port, hands each connection to a worker and
 * replaces workers that end. It answers no request itself.
 */
export async function runPrimary(settings: Values<typeof CLOUD_OPTIONS>, platform: Platform, log: Log): Promise<void> {
  if (settings.databaseUrl === undefined)
    throw new WrongUsage([
      `--workers ${settings.workers} needs PostgreSQL, because only one process can use SQLite: name the database with --database-url, or start one process with --workers 1`,
    ])
  const folder = openDataFolder(settings, platform.random)
  try {
    // Creates missing keys once, before the workers read them.
    await loadKeyFiles(keyPlaceOf(settings), secretFiles, platform.random)
    // Checks the certificate once; each worker opens it again.
    const silent = { info: () => undefined, warn: () => undefined }
    const tls = openCloudTls(settings, { platform, log: silent })
    tls?.stop()
    const { host } = settings
    const port = await reservePort({ host, port: settings.port, flag: 'port' })
    const hasBroker = settings.mqttUrl === undefined
    const mqttPort = hasBroker ? await reservePort({ host, port: settings.mqttPort, flag: 'mqtt-port' }) : undefined
    const primary = new Primary({ platform, log, folder, ports: { port, mqttPort } })
    const ready = await primary.start(settings.workers)
    const metrics = await metricsServer(settings, platform, log, () => primary.collectMetrics())
    const service = ownServiceManager(platform, log, () => answersHealthz(host, port.port, hasApiTls(settings)))
    const drainMs = drainDelayMs(settings)
    const stop = async () => {
      primary.leave()
      await pause(platform.timers, drainMs)
      await metrics?.close()
      await primary.stop()
      folder.release()
    }
    stopOnSignals(service.reportStop(stop), drainMs + STOP_WITHIN_MS)
    // A closed terminal also sends SIGHUP. In a terminal, SIGHUP therefore stops the cloud; otherwise it restarts the
    // workers.
    process.on('SIGHUP', () =>
      process.stdin.isTTY ? process.kill(process.pid, 'SIGTERM') : void primary.restartEach(),
    )
    const served = { ...ready, ...metrics?.ready }
    printReady(served, cloudLines({ ...served, consoleUrl: consoleUrlAt(new URL(served.baseUrl).origin) }, settings))
    service.ready()
  } catch (error) {
    for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill('SIGKILL')
    folder.release()
    throw error
  }
}

interface PrimaryParts {
  platform: Platform
  log: Log
  folder: DataFolder
  /** The ports are reserved until the first worker can listen. */
  ports: { port: ReservedPort; mqttPort: ReservedPort | undefined }
}

/** Maximum wait for the metrics of workers, ms. Prometheus waits 10 s. */
const METRICS_WITHIN_MS = 4_000

/** One worker process. */
interface Member {
  readonly processId: string
  readonly worker: Worker
  /** Rejects if the worker ends before it serves. */
  readonly serving: Promise<ReadyFields>
  readonly ended: Promise<void>
  /** True while the primary process starts or stops the worker. A worker that ends meanwhile is not replaced. */
  isExpectedToEnd: boolean
}

class Primary {
  readonly #parts: PrimaryParts
  readonly #restarts = restarts()
  /** The serving workers, and the replacements that are being started. */
  readonly #members = new Set<Member>()
  /** Receivers of the metrics of workers, by request. */
  readonly #collecting = new Map<number, (metrics: MetricsOfProcess) => void>()
  #requests = 0
  #count = 0
  #isStopping = false
  #isRestarting = false

  constructor(parts: PrimaryParts) {
    this.#parts = parts
    cluster.schedulingPolicy = cluster.SCHED_RR
  }

  /** Starts the workers. Resolves when all workers serve. The first worker creates what is missing in the database. */
  async start(workers: number): Promise<ReadyFields> {
    const first = await this.#launch()
    const others = await Promise.all(Array.from({ length: workers - 1 }, () => this.#launch()))
    for (const { member } of [first, ...others]) member.isExpectedToEnd = false
    return first.ready
  }

  /** Tells load balancers over /readyz that this machine will stop. */
  leave(): void {
    this.#isStopping = true
    for (const { worker } of this.#members) tell(worker, { kind: 'leave' })
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await Promise.all([...this.#members].map((member) => this.#end(member)))
  }

  /** Replaces each worker in turn. Each worker ends when its replacement serves, so no request fails. */
  async restartEach(): Promise<void> {
    const { log } = this.#parts
    if (this.#isRestarting || this.#isStopping) return
    this.#isRestarting = true
    const replaced = [...this.#members]
    log.warn({ workers: replaced.length }, 'the workers are restarted one after the other')
    try {
      for (const member of replaced) {
        if (this.#isStopping || !this.#members.has(member)) continue
        const next = await this.#launch()
        next.member.isExpectedToEnd = false
        await this.#end(member)
      }
      log.warn({ workers: replaced.length }, 'the workers were restarted')
    } catch (error) {
      log.error({ err: error }, 'the restart was stopped, because a new worker does not serve: the others go on')
    } finally {
      this.#isRestarting = false
    }
  }

  /** The metrics of all workers that answer in time. */
  async collectMetrics(): Promise<MetricsOfProcess[]> {
    const { platform } = this.#parts
    const workers = [...this.#members].map(({ worker }) => worker)
    const request = ++this.#requests
    const answers: MetricsOfProcess[] = []
    await new Promise<void>((resolve) => {
      const cancel = platform.timers.after(METRICS_WITHIN_MS, resolve)
      this.#collecting.set(request, (metrics) => {
        if (answers.push(metrics) < workers.length) return
        cancel()
        resolve()
      })
      for (const worker of workers) tell(worker, { kind: 'metrics', request })
    })
    this.#collecting.delete(request)
    return answers
  }

  async #launch(): Promise<{ member: Member; ready: ReadyFields }> {
    const member = this.#fork()
    const ready = await member.serving
    return { member, ready }
  }

  #fork(): Member {
    const { folder, log } = this.#parts
    const worker = cluster.fork()
    closeLostConnections(worker)
    const processId = `${folder.run}.${++this.#count}`
    const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
    const serving = new Promise<ReadyFields>((resolve, reject) => {
      worker.on('message', (message: FromWorker) => {
        if (message.kind === 'online') void this.#welcome(worker, processId)
        else if (message.kind === 'serving') resolve(message.ready)
        else if (message.kind === 'metrics') this.#collecting.get(message.request)?.(message.metrics)
        else for (const other of this.#members) if (other.worker !== worker) tell(other.worker, message)
      })
      worker.once('exit', () => reject(new Error('a worker did not start: its error is above')))
    })
    serving.catch(() => undefined)
    const member: Member = { processId, worker, serving, ended, isExpectedToEnd: true }
    this.#members.add(member)
    // A message could not be sent, because the worker has just died. Its `exit` event follows.
    worker.on('error', () => undefined)
    worker.once('exit', (code, signal) => {
      this.#members.delete(member)
      for (const other of this.#members) tell(other.worker, { kind: 'ended', processId })
      if (member.isExpectedToEnd || this.#isStopping) return
      log.error({ pid: worker.process.pid, exitCode: code, signal }, 'a worker ended by itself and is replaced')
      this.#replace()
    })
    return member
  }

  async #welcome(worker: Worker, processId: string): Promise<void> {
    const { folder, ports } = this.#parts
    await Promise.all([ports.port.release(), ports.mqttPort?.release()])
    const { formerRun } = folder
    tell(worker, { kind: 'start', processId, port: ports.port.port, mqttPort: ports.mqttPort?.port ?? 0, formerRun })
  }

  #replace(): void {
    const { platform, log } = this.#parts
    const delayMs = this.#restarts.afterDeath(platform.clock.elapsed())
    if (delayMs === undefined) {
      log.error({}, 'too many workers ended, so the cloud ends: see their errors above')
      void this.stop().finally(() => process.exit(1))
      return
    }
    platform.timers.after(delayMs, () => {
      if (this.#isStopping) return
      const member = this.#fork()
      member.isExpectedToEnd = false
      member.serving.then(
        () => log.warn({ pid: member.worker.process.pid }, 'a new worker serves'),
        () => undefined,
      )
    })
  }

  #end(member: Member): Promise<void> {
    member.isExpectedToEnd = true
    member.worker.process.kill('SIGTERM')
    return member.ended
  }
}

function tell(worker: Worker, message: ToWorker): void {
  assert(message.kind !== 'start' || message.port > 0, 'the port is reserved')
  // A worker that is ending may have closed its channel.
  if (worker.isConnected()) worker.send(message, () => undefined)
}
