import type { CommandResult, DeviceCommand } from '../../device-drivers/drivers/device.ts'
import type { Platform } from '../../policy/platform.ts'

/**
 *   release ─▶ may move once ─▶ the input rises ─▶ as it should
 *                                 └ once more, or with no release ─▶ unexpected_release
 *
 * Holds what the confirming inputs show against what was commanded. Whoever pulls a second tag off while the
 * lock is open, or opens it without the agent, is told of; so is an actuator that does not move.
 */
export interface ReleaseWatch {
  /** `execute`, with an eye on releases. */
  execute: Execute
  /** A watched input of a device changed. */
  onInput(deviceId: string, input: number, on: boolean): void
  /** Releases for which nothing has moved yet, of all devices. */
  readonly pending: number
}

export type Execute = (deviceId: string, command: DeviceCommand, signal: AbortSignal) => Promise<CommandResult>
export type ReleaseTrouble = 'unexpected_release' | 'release_jammed'

export interface ReleaseWatchParts {
  platform: Platform
  execute: Execute
  confirmInputOf(deviceId: string): number | undefined
  onTrouble(deviceId: string, trouble: ReleaseTrouble, detail: string): void
}

/** A movement may show so long after the outcome is known, ms. */
const LATE_MS = 2_000
/** A contact that falls and rises again within has bounced, ms. */
const BOUNCE_MS = 100

interface Seen {
  /** Until when each release that nothing has moved for yet may still move something, ms; Infinity: it runs. */
  owed: { untilMs: number }[]
  fellMs: number
}

/** Knows of no release yet. */
export function watchReleases({ platform, execute, confirmInputOf, onTrouble }: ReleaseWatchParts): ReleaseWatch {
  const { clock } = platform
  const devices = new Map<string, Seen>()

  function seenAt(deviceId: string): Seen {
    const known = devices.get(deviceId)
    if (known) return known
    const seen: Seen = { owed: [], fellMs: -BOUNCE_MS - 1 }
    devices.set(deviceId, seen)
    return seen
  }

  const owedAt = ({ owed }: Seen) => owed.filter(({ untilMs }) => untilMs >= clock.elapsed())

  return {
    get pending() {
      return [...devices.values()].reduce((sum, { owed }) => sum + owed.length, 0)
    },
    async execute(deviceId, command, signal) {
      if (command.kind !== 'release' || confirmInputOf(deviceId) === undefined)
        return execute(deviceId, command, signal)
      const seen = seenAt(deviceId)
      const due = { untilMs: Number.POSITIVE_INFINITY }
      // A contact that never moves must not let them pile up.
      seen.owed = [...owedAt(seen), due]
      const told = await execute(deviceId, command, signal)
      due.untilMs = told.commanded ? clock.elapsed() + LATE_MS : -1
      const isJam = told.detail.startsWith('input_stuck') || told.detail.startsWith('no_confirmation')
      if (isJam) onTrouble(deviceId, 'release_jammed', told.detail)
      return told
    },
    onInput(deviceId, input, on) {
      if (input !== confirmInputOf(deviceId)) return
      const seen = seenAt(deviceId)
      const nowMs = clock.elapsed()
      if (!on) {
        seen.fellMs = nowMs
        return
      }
      if (nowMs - seen.fellMs <= BOUNCE_MS) return
      seen.owed = owedAt(seen)
      if (seen.owed.shift()) return
      onTrouble(deviceId, 'unexpected_release', `input ${input} shows a release that nobody commanded`)
    },
  }
}
