import { isDeepStrictEqual } from 'node:util'
import { deadline, pause, retryDelays } from '../policy/platform.ts'
import type { Platform } from '../policy/platform.ts'
import { DEFAULT_SET_UP_MS, result } from './kit/device.ts'
import type {
  CommandResult,
  DeviceCommand,
  DeviceEvent,
  DeviceIdentity,
  Finding,
  FindingCode,
  ProtectionDevice,
} from './kit/device.ts'

/**
 * States of a device:
 *
 * - absent: the link cannot be opened; the driver retries
 * - opening: the driver opens the link for the first time in this attempt
 * - identifying: the link is open; the driver identifies the device and restores its outputs
 * - ready: commands are accepted
 * - degraded: the device was lost, or the driver could not identify it, and the agent reconnects after a delay; or the
 *   device is connected, but a person must change something (`findings`)
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
  readonly identity?: Omit<DeviceIdentity, 'findings'>
  /** What a person must change at the connected device. Faults make it `degraded`; warnings do not. */
  readonly findings: readonly Finding[]
}

/** Whether the device answers. A device with findings answers, but must not be relied on. */
export function isConnected({ state, findings }: Pick<DeviceStatus, 'state' | 'findings'>): boolean {
  return state === 'ready' || findings.length > 0
}

interface ConnectionOptions {
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
/** If the device was `ready` for longer than this time, ms, the retry delay starts again at `FIRST_RETRY_MS`. */
const STEADY_AFTER_MS = 15_000

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** The text without control characters. Devices send names with NUL and line ends, which would break logs and pages. */
const printable = (name: string): string => name.replaceAll(/\p{Cc}+/gu, ' ').trim()

/** One device. Connects in the background, and reconnects until `stop` is called. */
export class DeviceConnection {
  readonly #options: ConnectionOptions
  readonly #stopping = new AbortController()
  #status: DeviceStatus
  /** Findings of the connected device by code; null while no device is connected. */
  #found: Map<FindingCode, Finding> | null = null
  #abortAttempt = () => {}
  #readyAt: number | null = null
  #stopped: Promise<void> | null = null

  constructor(options: ConnectionOptions) {
    this.#options = options
    const { deviceId, driver, platform } = options
    const since = platform.clock.wall()
    this.#status = { deviceId, driver, state: 'absent', since, detail: 'not tried yet', findings: [] }
    void this.#reconnectForever()
    void this.#passEvents()
  }

  get status(): DeviceStatus {
    return this.#status
  }

  async execute(command: DeviceCommand, signal: AbortSignal): Promise<CommandResult> {
    const { state, detail } = this.#status
    // The driver accepts signals and emergency commands in any state but `stopped`. After a reconnect the driver writes
    // the resulting outputs.
    if (state === 'ready' || (command.kind !== 'release' && state !== 'stopped'))
      return this.#options.device.execute(command, signal)
    return result('failed', false, 'not_ready', `${state}: ${detail}`)
  }

  restart(): void {
    this.#abortAttempt()
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stop()
    return this.#stopped
  }

  #enter(state: DeviceState, rawDetail: string, identity = this.#status.identity): void {
    const detail = printable(rawDetail)
    if (this.#stopping.signal.aborted && state !== 'stopped') return
    const now = this.#status
    const findings = [...(this.#found?.values() ?? [])]
    if (now.state === state && now.detail === detail && isDeepStrictEqual(now.findings, findings)) return
    const since = now.state === state ? now.since : this.#options.platform.clock.wall()
    const { deviceId, driver } = now
    this.#status = { deviceId, driver, state, since, detail, ...(identity ? { identity } : {}), findings }
    this.#options.onState(this.#status)
  }

  /** Enters the state of a connected device, which follows from its findings. */
  #enterConnected(identity: DeviceStatus['identity']): void {
    if (!this.#found || !identity) return
    const faults = [...this.#found.values()].filter(({ isWarning }) => !isWarning).map(({ detail }) => detail)
    if (faults.length > 0) this.#enter('degraded', faults.join('; '), identity)
    else this.#enter('ready', identity.description, identity)
  }

  /** Connects once and resolves when the connection ends. */
  async #runConnection(signal: AbortSignal): Promise<void> {
    const { device, platform } = this.#options
    this.#enter('opening', 'opening the link')
    await device.connect(signal, (detail) => this.#enter('absent', detail))
    this.#enter('identifying', 'identifying the device')
    const limit = deadline(platform.timers, device.setUpLimitMs ?? DEFAULT_SET_UP_MS, signal)
    const { findings = [], ...names } = await device.identify(limit.signal).finally(limit.done)
    const identity = {
      description: printable(names.description),
      ...(names.firmwareVersion !== undefined && { firmwareVersion: printable(names.firmwareVersion) }),
      ...(names.serialNumber !== undefined && { serialNumber: printable(names.serialNumber) }),
    }
    this.#found = new Map(findings.map((finding) => [finding.code, finding]))
    this.#enterConnected(identity)
    this.#readyAt = platform.clock.elapsed()
    const interrupted = new Promise<string>((resolve) => {
      signal.addEventListener('abort', () => resolve(text(signal.reason)), { once: true })
    })
    const reason = await Promise.race([device.untilLost(), interrupted])
    this.#found = null
    this.#enter('degraded', reason)
  }

  async #reconnectForever(): Promise<void> {
    const { clock, random, timers } = this.#options.platform
    const newDelays = () => retryDelays(random, FIRST_RETRY_MS, LONGEST_RETRY_MS)
    let delays = newDelays()
    while (!this.#stopping.signal.aborted) {
      const attempt = new AbortController()
      this.#abortAttempt = () => attempt.abort(new Error('restarted by command'))
      this.#readyAt = null
      await this.#runConnection(attempt.signal).catch((error: unknown) => this.#enter('degraded', text(error)))
      if (this.#readyAt !== null && clock.elapsed() - this.#readyAt > STEADY_AFTER_MS) delays = newDelays()
      await pause(timers, delays.next().value, attempt.signal).catch(() => {})
    }
  }

  async #passEvents(): Promise<void> {
    for await (const event of this.#options.device.events) {
      if (event.type === 'finding') this.#found?.set(event.finding.code, event.finding)
      if (event.type === 'finding_over') this.#found?.delete(event.code)
      if (event.type === 'finding' || event.type === 'finding_over') this.#enterConnected(this.#status.identity)
      this.#options.onEvent(event)
    }
  }

  async #stop(): Promise<void> {
    this.#stopping.abort()
    await this.#options.device.close()
    this.#abortAttempt()
    this.#found = null
    this.#enter('stopped', 'stopped')
  }
}
