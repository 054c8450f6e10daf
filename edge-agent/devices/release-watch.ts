import type { CommandResult, DeviceCommand, DoorState } from '../../device-drivers/kit/device.ts'
import type { Platform } from '../../policy/platform.ts'
import type { DeviceRecord } from './device-journal.ts'

/**
 * Stores the sensor state of each door behind a lock. Records an exception if a door is forced or stays open too long.
 */
export interface Doors {
  onDoor(deviceId: string, state: DoorState): void
  /** Undefined until a door sensor of the device has reported. */
  stateOf(deviceId: string): DoorState | undefined
}

export type DoorAlarm = 'door_forced' | 'door_left_open'

interface DoorsParts {
  record(event: DeviceRecord): void
  isOnline(): boolean
  /** Shows an alarm on the pages. */
  onAlarm(deviceId: string, alarm: DoorAlarm): void
  onChange(): void
}

const ALARMS: Partial<Record<DoorState, { reason: DoorAlarm; detail: string }>> = {
  forced: { reason: 'door_forced', detail: 'the door was opened without a release' },
  left_open: { reason: 'door_left_open', detail: 'the door was not shut in time' },
}

/** Creates the record of the door states. All states are unknown at first. */
export function openDoors({ record, isOnline, onAlarm, onChange }: DoorsParts): Doors {
  const states = new Map<string, DoorState>()
  return {
    onDoor(deviceId, state) {
      states.set(deviceId, state)
      const alarm = ALARMS[state]
      if (alarm) {
        record({
          type: 'protection.exception.raised',
          deviceId,
          protectionAction: 'unlock_fixture',
          offline: !isOnline(),
          ...alarm,
        })
        onAlarm(deviceId, alarm.reason)
      }
      onChange()
    },
    stateOf: (deviceId) => states.get(deviceId),
  }
}

/**
 * Compares confirm inputs with commands. Each release allows one movement. Reports a movement without a command, a
 * second movement after one command, and an actuator that does not move.
 */
export interface ReleaseWatch {
  /** Executes a command, and expects one movement for each release. */
  execute: Execute
  /** Call it when an input of a device has changed. */
  onInput(deviceId: string, input: number, on: boolean): void
  /** Number of releases that wait for a movement, at all devices. */
  readonly pending: number
}

export type Execute = (deviceId: string, command: DeviceCommand, signal: AbortSignal) => Promise<CommandResult>
export type ReleaseAnomaly = 'unexpected_release' | 'release_jammed'

interface ReleaseWatchParts {
  platform: Platform
  execute: Execute
  confirmInputOf(deviceId: string): number | undefined
  onAnomaly(deviceId: string, anomaly: ReleaseAnomaly, detail: string): void
}

/** Time after the outcome of a release in which its movement may still follow, ms. */
const MOVEMENT_TIMEOUT_MS = 2_000
/** Maximum time between fall and rise of a contact that bounces, ms. */
const BOUNCE_MS = 100

interface DeviceWatch {
  /** Releases that may still cause a movement. `untilMs` is Infinity while the command runs. */
  expected: { untilMs: number }[]
  fellMs: number
}

/** Makes a watch without releases. */
export function watchReleases({ platform, execute, confirmInputOf, onAnomaly }: ReleaseWatchParts): ReleaseWatch {
  const { clock } = platform
  const devices = new Map<string, DeviceWatch>()

  function watchOf(deviceId: string): DeviceWatch {
    const known = devices.get(deviceId)
    if (known) return known
    const watch: DeviceWatch = { expected: [], fellMs: -BOUNCE_MS - 1 }
    devices.set(deviceId, watch)
    return watch
  }

  const stillExpected = ({ expected }: DeviceWatch) => expected.filter(({ untilMs }) => untilMs >= clock.elapsed())

  return {
    get pending() {
      return [...devices.values()].reduce((sum, { expected }) => sum + expected.length, 0)
    },
    async execute(deviceId, command, signal) {
      if (command.kind !== 'release' || confirmInputOf(deviceId) === undefined)
        return execute(deviceId, command, signal)
      const watch = watchOf(deviceId)
      const movement = { untilMs: Number.POSITIVE_INFINITY }
      // Drops expired releases. Otherwise the list would grow if the contact never moved.
      watch.expected = [...stillExpected(watch), movement]
      const outcome = await execute(deviceId, command, signal)
      movement.untilMs = outcome.commanded ? clock.elapsed() + MOVEMENT_TIMEOUT_MS : -1
      const isJam = outcome.detail.startsWith('input_stuck') || outcome.detail.startsWith('no_confirmation')
      if (isJam) onAnomaly(deviceId, 'release_jammed', outcome.detail)
      return outcome
    },
    onInput(deviceId, input, on) {
      if (input !== confirmInputOf(deviceId)) return
      const watch = watchOf(deviceId)
      const nowMs = clock.elapsed()
      if (!on) {
        watch.fellMs = nowMs
        return
      }
      if (nowMs - watch.fellMs <= BOUNCE_MS) return
      watch.expected = stillExpected(watch)
      if (watch.expected.shift()) return
      onAnomaly(deviceId, 'unexpected_release', `input ${input} shows a release without a command`)
    },
  }
}
