import type { DeviceCommand } from '../../device-drivers/drivers/device.ts'
import type { DeviceStatus } from '../../device-drivers/keep-device.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import type { DeviceType } from '../../policy/vocabulary.ts'
import type { DeviceRecord } from './device-journal.ts'
import type { EmergencyInputOf, Wiring } from './wiring.ts'

/**
 *   wired input ─▶ driver ─▶ level ─┐
 *   connection lost for 10 s ───────┴─▶ emergency? ─▶ command to each device ─▶ journal (later)
 *
 * The one exception to P2 and P6: while an emergency input is active, the agent holds the ways out open without the
 * ledger, the cloud or the policy. Only drivers report levels; no request and no message does.
 */
export interface Emergency {
  /** The level of a wired input. Ignored for a device without an emergency input in the configuration. */
  onLevel(deviceId: string, on: boolean): void
  /** The connection of a device changed. */
  onState(status: Pick<DeviceStatus, 'deviceId' | 'state'>): void
  /** Starts to wait for the inputs; without one, releases every output from waiting. */
  start(): void
  /** Compares again which devices must be open: the policy changed. */
  refresh(): void
  /** True while the agent holds this device open. */
  holdsOpen(deviceId: string): boolean
  /** Null while there is no emergency. */
  readonly state: EmergencyState | null
  stop(): void
}

export interface EmergencyState {
  /** Wall clock when it began, ms. */
  sinceMs: number
  /** Devices whose emergency input is active. */
  inputs: string[]
  /** Inputs that count as active because the agent cannot read them. */
  lost: string[]
  /** Devices that the agent holds open. */
  opened: string[]
  silent: boolean
}

export interface EmergencyParts {
  platform: Pick<Platform, 'clock' | 'timers'>
  wiring: Pick<Wiring, 'emergencyInputs' | 'openInEmergency' | 'sirens'>
  /** As the policy names it, if the agent has one: a detacher never moves. */
  deviceTypeOf(deviceId: string): DeviceType | undefined
  /** Passes a command on and returns at once. */
  command(deviceId: string, command: DeviceCommand): void
  /** Writes an event down later; must not wait. */
  record(event: DeviceRecord): void
  isOnline(): boolean
  onChange(state: EmergencyState | null): void
}

/** A connection may be lost for so long before its input counts as unreadable, ms. */
export const UNREADABLE_AFTER_MS = 10_000

const NEVER_OPENED: ReadonlySet<DeviceType> = new Set(['self_checkout_detacher', 'pos_deactivator', 'handheld_reader'])

interface Input extends EmergencyInputOf {
  /** The last level; undefined before the first. */
  level: boolean | undefined
  isConnected: boolean
  /** A level arrived on the present connection. */
  isFresh: boolean
  isLost: boolean
  cancel: Cancel | undefined
}

/** A lost input keeps its last level, and one that is wired normally closed counts as active, like a cut wire. */
function isActive({ level, isLost, wiring }: Input): boolean {
  return level === true || (isLost && wiring === 'normally_closed')
}

/** Watches the emergency inputs of this agent's devices. */
export function openEmergency(parts: EmergencyParts): Emergency {
  const { platform, wiring } = parts
  const inputs = new Map<string, Input>(
    [...wiring.emergencyInputs].map(([deviceId, emergency]) => [
      deviceId,
      { ...emergency, level: undefined, isConnected: false, isFresh: false, isLost: false, cancel: undefined },
    ]),
  )
  /** What each device was told last. */
  const told = new Map<string, string>()
  let state: EmergencyState | null = null
  let isStopped = false

  function waitFor(input: Input): void {
    input.cancel ??= platform.timers.after(UNREADABLE_AFTER_MS, () => {
      input.isLost = true
      apply()
    })
  }

  function settle(input: Input): void {
    if (input.isConnected && input.isFresh) {
      input.cancel?.()
      input.cancel = undefined
      input.isLost = false
    } else waitFor(input)
    apply()
  }

  const mayOpen = (deviceId: string): boolean => {
    const type = parts.deviceTypeOf(deviceId)
    return type === undefined || !NEVER_OPENED.has(type)
  }

  function tell(deviceId: string, open: boolean, silent: boolean): void {
    const key = `${open} ${silent}`
    // A device that never opens and may sound needs no word of it.
    const before = told.get(deviceId) ?? (wiring.openInEmergency.includes(deviceId) ? undefined : 'false false')
    if (before === key) return
    told.set(deviceId, key)
    parts.command(deviceId, { kind: 'emergency', open, silent })
  }

  /** The one place that opens, closes and silences. */
  function apply(): void {
    if (isStopped) return
    const active = [...inputs].filter(([, input]) => isActive(input))
    const isUndecided = [...inputs.values()].some(({ level, isLost }) => level === undefined && !isLost)
    // Until every input was read once, drivers leave outputs as they are: the last agent may have held them open.
    if (active.length === 0 && isUndecided) return
    const silent = active.some(([, { silenceSirens }]) => silenceSirens)
    const opened = active.length > 0 ? wiring.openInEmergency.filter(mayOpen) : []
    for (const deviceId of new Set([...opened, ...wiring.openInEmergency, ...wiring.sirens]))
      tell(deviceId, opened.includes(deviceId), silent)
    note(active, opened, silent)
  }

  function note(active: [string, Input][], opened: string[], silent: boolean): void {
    const before = state
    state =
      active.length === 0
        ? null
        : {
            sinceMs: before?.sinceMs ?? platform.clock.wall(),
            inputs: active.map(([deviceId]) => deviceId),
            lost: active.flatMap(([deviceId, { isLost }]) => (isLost ? [deviceId] : [])),
            opened,
            silent,
          }
    if (JSON.stringify(before) === JSON.stringify(state)) return
    if (!before && state) record(state, 'emergency_started')
    if (before && !state) record(before, 'emergency_ended')
    parts.onChange(state)
  }

  function record({ inputs: sources, lost, opened }: EmergencyState, reason: string): void {
    const why = lost.length > 0 ? `no connection to ${lost.join(', ')}` : `input of ${sources.join(', ')}`
    for (const deviceId of new Set([...opened, ...sources]))
      parts.record({
        type: 'protection.exception.raised',
        deviceId,
        reason,
        detail: `${why}; ${opened.includes(deviceId) ? 'this device opens' : 'this device has the input'}`.slice(
          0,
          300,
        ),
        offline: !parts.isOnline(),
      })
  }

  return {
    onLevel(deviceId, on) {
      const input = inputs.get(deviceId)
      if (!input) return
      input.level = on
      input.isFresh = true
      settle(input)
    },
    onState({ deviceId, state: now }) {
      const input = inputs.get(deviceId)
      if (!input || input.isConnected === (now === 'ready')) return
      input.isConnected = now === 'ready'
      if (!input.isConnected) input.isFresh = false
      settle(input)
    },
    start() {
      for (const input of inputs.values()) settle(input)
      if (inputs.size === 0) apply()
    },
    refresh: apply,
    holdsOpen: (deviceId) => state?.opened.includes(deviceId) ?? false,
    get state() {
      return state
    },
    stop() {
      isStopped = true
      for (const input of inputs.values()) input.cancel?.()
    },
  }
}
