import { execFile } from 'node:child_process'
import type { Log } from '../../cloud/platform/foundation/log.ts'
import type { Platform } from '../../policy/platform.ts'

/** Maximum run time of `systemd-notify`, ms. It waits until systemd has read the message. */
const SEND_WITHIN_MS = 10_000
/** Pings per watchdog period. With four, two lost pings in a row restart nothing. */
const PINGS_PER_PERIOD = 4
/** Shortest pause between pings, ms. */
const SHORTEST_PAUSE_MS = 250

/** Reports the state of this process to the service manager that started it, such as systemd. */
interface ServiceManager {
  /** Reports that the process is ready. Then sends watchdog pings while the process is alive. */
  ready(): void
  /** Returns a function that reports the stop, ends the pings and calls `stop`. */
  reportStop(stop: () => Promise<void>): () => Promise<void>
}

/** What a service manager needs of the process. */
interface ServiceParts {
  /** `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` of systemd. Without a socket, nothing is sent. */
  env: NodeJS.ProcessEnv
  pid: number
  timers: Platform['timers']
  warn: Log['warn']
  /** Sends the assignments, such as `READY=1`. Rejects if the manager did not receive them. */
  send(assignments: readonly string[]): Promise<void>
  /**
   * True if the process does its work. This function need not check the event loop: a blocked event loop would not call
   * the function.
   */
  isAlive(): Promise<boolean>
}

/** A service manager that follows the protocol of systemd's `sd_notify`. */
export function serviceManager(parts: ServiceParts): ServiceManager {
  const { env, timers, warn, send, isAlive } = parts
  if (!env['NOTIFY_SOCKET']) return { ready: () => undefined, reportStop: (stop) => stop }
  const pauseMs = pingPause(parts)
  let isStopping = false
  let hasFailed = false

  /** A message that cannot be sent never ends the process. */
  async function report(assignments: readonly string[]): Promise<void> {
    try {
      await send(assignments)
      hasFailed = false
    } catch (error) {
      if (!hasFailed) warn({ err: error, assignments }, 'systemd was not notified: check that systemd-notify works')
      hasFailed = true
    }
  }

  async function ping(): Promise<void> {
    const alive = await isAlive().catch(() => false)
    if (isStopping) return
    // READY=1 in each ping replaces a first message that was lost. A running service ignores it.
    if (alive) await report(['READY=1', 'WATCHDOG=1'])
    else warn({}, 'this process does not answer /healthz: systemd restarts it if this continues')
    pingLater()
  }

  function pingLater(): void {
    if (pauseMs !== undefined && !isStopping) timers.after(pauseMs, () => void ping())
  }

  return {
    ready: () => void report(['READY=1']).then(pingLater),
    reportStop: (stop) => () => {
      isStopping = true
      void report(['STOPPING=1'])
      return stop()
    },
  }
}

/** Pause between pings, ms. Undefined if the manager expects no pings from this process. */
function pingPause({ env, pid }: ServiceParts): number | undefined {
  const { WATCHDOG_USEC: period, WATCHDOG_PID: watched } = env
  if (period === undefined || !/^[1-9]\d{0,14}$/.test(period)) return undefined
  if (watched !== undefined && watched !== '' && watched !== String(pid)) return undefined
  return Math.max(SHORTEST_PAUSE_MS, Number(period) / 1_000 / PINGS_PER_PERIOD)
}

/** The service manager of this process. Node.js cannot send datagrams to a Unix socket, so `systemd-notify` does it. */
export function ownServiceManager(
  { timers }: Pick<Platform, 'timers'>,
  { warn }: Pick<Log, 'warn'>,
  isAlive: () => Promise<boolean> = () => Promise.resolve(true),
): ServiceManager {
  return serviceManager({ env: process.env, pid: process.pid, timers, warn, send: systemdNotify, isAlive })
}

function systemdNotify(assignments: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile('systemd-notify', assignments, { timeout: SEND_WITHIN_MS, killSignal: 'SIGKILL' }, (error) =>
      error ? reject(error) : resolve(),
    )
  })
}
