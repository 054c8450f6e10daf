import { deadline, pause, retryDelays } from '../policy/platform.ts'
import type { Platform } from '../policy/platform.ts'
import { result } from './drivers/device.ts'
import type { CommandResult, DeviceCommand, DeviceEvent, DeviceIdentity, ProtectionDevice } from './drivers/device.ts'

/**
 * States of a device:
 *
 * - absent: the link cannot be opened; the driver retries
 * - opening: the driver opens the link for the first time in this attempt
 * - identifying: the link is open; the driver identifies the device and restores its outputs
 * - ready: commands are accepted
 * - degraded: the device was lost, or the driver could not identify it; the agent reconnects after a delay
 * - stopped: the agent has closed the device
 */
export type DeviceState = 'absent' | 'opening' | 'identifying' | 'ready' | 'degraded' | 'stopped'

export interface DeviceStatus {
  readonly deviceId: string
  readonly driver: string
  readonly state: DeviceState
  /** Wall clock when the state began, ms since 1970. */
  readonly since: number
  /** Text for a person: the reason for the state, or the description of the device when the device is ready. */
  readonly detail: string
  /** Result of the last identification. It stays available while the device is disconnected. */
  readonly identity?: DeviceIdentity
}

/** One device. The supervisor reconnects it until `stop` is called. */
export interface DeviceConnection {
  readonly status: DeviceStatus
  execute(command: DeviceCommand, signal: AbortSignal): Promise<CommandResult>
  restart(): void
  stop(): Promise<void>
}

export interface ConnectionOptions {
  readonly deviceId: string
  readonly driver: string
  readonly device: ProtectionDevice
  readonly platform: Platform
  /** Must not throw. */
  onState(status: DeviceStatus): void
  /** Must not throw. */
  onEvent(event: DeviceEvent): void
}

const FIRST_RETRY_MS = 250
const LONGEST_RETRY_MS = 15_000
const IDENTIFY_WITHIN_MS = 5_000
/** If the device was `ready` for longer than this time, ms, the retry delay starts again at `FIRST_RETRY_MS`. */
const STEADY_AFTER_MS = 15_000

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Starts to connect in the background, and returns at once. */
export function maintainConnection(options: ConnectionOptions): DeviceConnection {
  const { device, platform } = options
  const { clock, timers } = platform
  const stopping = new AbortController()
  const ids = { deviceId: options.deviceId, driver: options.driver }
  let status: DeviceStatus = { ...ids, state: 'absent', since: clock.wall(), detail: 'not tried yet' }
  let abortAttempt = () => {}
  let readyAt: number | null = null
  let stopped: Promise<void> | null = null

  function enter(state: DeviceState, detail: string, identity = status.identity): void {
    if (stopping.signal.aborted && state !== 'stopped') return
    if (status.state === state && status.detail === detail) return
    const since = status.state === state ? status.since : clock.wall()
    status = { ...ids, state, since, detail, ...(identity ? { identity } : {}) }
    options.onState(status)
  }

  /** Connects once and resolves when the connection ends. */
  async function runConnection(signal: AbortSignal): Promise<void> {
    enter('opening', 'opening the link')
    await device.connect(signal, (detail) => enter('absent', detail))
    enter('identifying', 'identifying the device')
    const limit = deadline(timers, IDENTIFY_WITHIN_MS, signal)
    const identity = await device.identify(limit.signal).finally(limit.done)
    enter('ready', identity.description, identity)
    readyAt = clock.elapsed()
    const interrupted = new Promise<string>((resolve) => {
      signal.addEventListener('abort', () => resolve(text(signal.reason)), { once: true })
    })
    enter('degraded', await Promise.race([device.untilLost(), interrupted]))
  }

  async function reconnectForever(): Promise<void> {
    const newDelays = () => retryDelays(platform.random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
    let delays = newDelays()
    while (!stopping.signal.aborted) {
      const attempt = new AbortController()
      abortAttempt = () => attempt.abort(new Error('restarted by command'))
      readyAt = null
      await runConnection(attempt.signal).catch((error: unknown) => enter('degraded', text(error)))
      if (readyAt !== null && clock.elapsed() - readyAt > STEADY_AFTER_MS) delays = newDelays()
      await pause(timers, delays.next().value, attempt.signal).catch(() => {})
    }
  }

  async function passEvents(): Promise<void> {
    for await (const event of device.events) options.onEvent(event)
  }

  async function stop(): Promise<void> {
    stopping.abort()
    await device.close()
    abortAttempt()
    enter('stopped', 'stopped')
  }

  void reconnectForever()
  void passEvents()
  return {
    get status() {
      return status
    },
    async execute(command, signal) {
      // The driver accepts signals and emergency commands in any state but `stopped`. After a reconnect the driver
      // writes the resulting outputs.
      if (status.state === 'ready' || (command.kind !== 'release' && status.state !== 'stopped'))
        return device.execute(command, signal)
      return result('failed', false, 'not_ready', `${status.state}: ${status.detail}`)
    },
    restart: () => abortAttempt(),
    stop() {
      stopped ??= stop()
      return stopped
    },
  }
}
