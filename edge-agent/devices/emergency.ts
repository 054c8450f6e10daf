import type { DeviceCommand } from '../../device-drivers/kit/device.ts'
import { isConnected, type DeviceStatus } from '../../device-drivers/device-connection.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import type { DeviceType, ExceptionKind } from '../../policy/vocabulary.ts'
import type { DeviceRecord } from './device-journal.ts'
import type { EmergencyInput, Wiring } from './wiring.ts'

export interface EmergencyState {
  /** Wall clock at the start of the emergency, ms. */
  sinceMs: number
  /** Devices with an active emergency input. */
  inputs: string[]
  /** Active inputs that the agent cannot read. */
  lost: string[]
  /** Devices that the agent holds open. */
  opened: string[]
  silent: boolean
}

interface EmergencyParts {
  platform: Pick<Platform, 'clock' | 'timers'>
  wiring: Pick<Wiring, 'emergencyInputs' | 'openInEmergency' | 'sirens'>
  /**
   * The device's type in the policy; undefined without a policy. An emergency never opens a detacher, a deactivator or
   * a handheld reader.
   */
  deviceTypeOf(deviceId: string): DeviceType | undefined
  /**
   * True if the policy lists the device, or the lane that it serves; also true without a policy. The input of any other
   * device is ignored, because no manager registered it.
   */
  isListed(deviceId: string): boolean
  /** Sends a command to a device and returns at once. */
  command(deviceId: string, command: DeviceCommand): void
  /** Must return at once, and store the event later. */
  record(event: DeviceRecord): void
  isOnline(): boolean
  onChange(state: EmergencyState | null): void
}

/** Time without a connection after which an input counts as unreadable, ms. */
export const UNREADABLE_AFTER_MS = 10_000

const NEVER_OPENED: ReadonlySet<DeviceType> = new Set(['self_checkout_detacher', 'pos_deactivator', 'handheld_reader'])

interface Input extends EmergencyInput {
  /** Last reported level. Undefined before the first report. */
  level: boolean | undefined
  isConnected: boolean
  /** True if the device has reported a level since it last connected. */
  isFresh: boolean
  isLost: boolean
  cancel: Cancel | undefined
}

/** State of an input before its device connects. */
const UNREAD = { level: undefined, isConnected: false, isFresh: false, isLost: false, cancel: undefined }

/**
 * An unreadable input keeps its last level. If an unreadable input is normally closed, the input counts as active, as
 * after a cut of its wire.
 */
function isActive({ level, isLost, wiring }: Input): boolean {
  return level === true || (isLost && wiring === 'normally_closed')
}

/**
 *   wired input ─▶ driver ─▶ level ─┐
 *   connection lost for 10 s ───────┴─▶ emergency? ─▶ command to each device ─▶ journal (later)
 *
 * The one exception to P2 and P6: while an emergency input is active, the agent holds the exits open without ledger,
 * cloud or policy. Only drivers can report levels; HTTP requests and broker messages cannot.
 */
export class Emergency {
  readonly #parts: EmergencyParts
  readonly #inputs: Map<string, Input>
  /** The last command to each device. */
  readonly #lastCommands = new Map<string, string>()
  #state: EmergencyState | null = null
  #isStopped = false

  constructor(parts: EmergencyParts) {
    this.#parts = parts
    this.#inputs = new Map([...parts.wiring.emergencyInputs].map(([id, wired]) => [id, { ...wired, ...UNREAD }]))
  }

  /** Null while there is no emergency. */
  get state(): EmergencyState | null {
    return this.#state
  }

  /** True while the agent holds this device open. */
  holdsOpen(deviceId: string): boolean {
    return this.#state?.opened.includes(deviceId) ?? false
  }

  /**
   * Starts to wait for the inputs. If no emergency input is configured, sends the first commands at once: drivers
   * switch no output before the first command.
   */
  start(): void {
    for (const input of this.#inputs.values()) this.#updateInput(input)
    if (this.#inputs.size === 0) this.refresh()
  }

  /** Includes a device that was added to the wiring after the start. */
  add(deviceId: string): void {
    const wired = this.#parts.wiring.emergencyInputs.get(deviceId)
    if (!wired) return this.refresh()
    const input: Input = { ...wired, ...UNREAD }
    this.#inputs.set(deviceId, input)
    this.#updateInput(input)
  }

  /** Sends a device its command again, because a new connection of it has received none. */
  repeat(deviceId: string): void {
    this.#lastCommands.delete(deviceId)
    this.refresh()
  }

  /** Handles the level of a wired input. Ignores devices without an emergency input in the configuration. */
  onLevel(deviceId: string, on: boolean): void {
    const input = this.#inputs.get(deviceId)
    if (!input) return
    input.level = on
    input.isFresh = true
    this.#updateInput(input)
  }

  /** Handles a change of a device's connection. */
  onState(status: Pick<DeviceStatus, 'deviceId' | 'state' | 'findings'>): void {
    const input = this.#inputs.get(status.deviceId)
    if (!input || input.isConnected === isConnected(status)) return
    input.isConnected = isConnected(status)
    if (!input.isConnected) input.isFresh = false
    this.#updateInput(input)
  }

  /**
   * Sends the devices the commands that the inputs demand. Also call it after a policy change, which may change device
   * types.
   */
  refresh(): void {
    const { wiring, isListed } = this.#parts
    if (this.#isStopped) return
    const inputs = [...this.#inputs].filter(([deviceId]) => isListed(deviceId))
    const active = inputs.filter(([, input]) => isActive(input))
    const isUndecided = inputs.some(([, { level, isLost }]) => level === undefined && !isLost)
    // If no input is active, sends no command until every input has been read or counts as unreadable. Until then,
    // drivers leave the outputs as they are, because the agent may have held devices open before its restart.
    if (active.length === 0 && isUndecided) return
    const silent = active.some(([, { silenceSirens }]) => silenceSirens)
    const opened = active.length > 0 ? wiring.openInEmergency.filter((deviceId) => this.#mayOpen(deviceId)) : []
    for (const deviceId of new Set([...opened, ...wiring.openInEmergency, ...wiring.sirens]))
      this.#commandDevice(deviceId, opened.includes(deviceId), silent)
    this.#setState(active, opened, silent)
  }

  stop(): void {
    this.#isStopped = true
    for (const input of this.#inputs.values()) input.cancel?.()
  }

  #updateInput(input: Input): void {
    const { platform } = this.#parts
    if (input.isConnected && input.isFresh) {
      input.cancel?.()
      input.cancel = undefined
      input.isLost = false
    } else {
      input.cancel ??= platform.timers.after(UNREADABLE_AFTER_MS, () => {
        input.isLost = true
        this.refresh()
      })
    }
    this.refresh()
  }

  #mayOpen(deviceId: string): boolean {
    const type = this.#parts.deviceTypeOf(deviceId)
    return type === undefined || !NEVER_OPENED.has(type)
  }

  #commandDevice(deviceId: string, open: boolean, silent: boolean): void {
    const { wiring, command } = this.#parts
    const key = `${open} ${silent}`
    // Drivers that open an output in an emergency wait for a first command. Sirens do not wait for a first command.
    const isWaiting = wiring.openInEmergency.includes(deviceId)
    const before = this.#lastCommands.get(deviceId) ?? (isWaiting ? undefined : 'false false')
    if (before === key) return
    this.#lastCommands.set(deviceId, key)
    command(deviceId, { kind: 'emergency', open, silent })
  }

  #setState(active: readonly (readonly [string, Input])[], opened: string[], silent: boolean): void {
    const before = this.#state
    const state = active.length === 0 ? null : this.#stateFor(active, opened, silent)
    this.#state = state
    if (JSON.stringify(before) === JSON.stringify(state)) return
    if (!before && state) this.#record(state, 'emergency_started')
    if (before && !state) this.#record(before, 'emergency_ended')
    this.#parts.onChange(state)
  }

  #stateFor(active: readonly (readonly [string, Input])[], opened: string[], silent: boolean): EmergencyState {
    return {
      sinceMs: this.#state?.sinceMs ?? this.#parts.platform.clock.wall(),
      inputs: active.map(([deviceId]) => deviceId),
      lost: active.flatMap(([deviceId, { isLost }]) => (isLost ? [deviceId] : [])),
      opened,
      silent,
    }
  }

  #record({ inputs, lost, opened }: EmergencyState, reason: ExceptionKind): void {
    const { record, isOnline } = this.#parts
    const why = lost.length > 0 ? `no connection to ${lost.join(', ')}` : `input of ${inputs.join(', ')}`
    for (const deviceId of new Set([...opened, ...inputs])) {
      const what = opened.includes(deviceId) ? 'this device opens' : 'this device has the input'
      record({
        type: 'protection.exception.raised',
        deviceId,
        reason,
        detail: `${why}; ${what}`.slice(0, 300),
        offline: !isOnline(),
      })
    }
  }
}
