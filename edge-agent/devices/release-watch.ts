import type { CommandResult, DeviceCommand } from '../../device-drivers/kit/device.ts'
import type { Platform } from '../../policy/platform.ts'

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

export interface ReleaseWatchParts {
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
