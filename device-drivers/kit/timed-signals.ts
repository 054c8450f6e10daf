import type { Clock } from '../../policy/platform.ts'
import { LONGEST_SIGNAL_S, result } from './device.ts'
import type { CommandResult, Signal } from './device.ts'
import type { SwitchAnswer } from './release.ts'
import { SILENCED, writeResult } from './write-answer.ts'

/**
 * Signals of a device that has its own timer and ends them by itself. After a reconnect the driver writes the remaining
 * time again.
 */
export interface TimedSignals {
  signal(signal: Signal, seconds: number): Promise<CommandResult>
  /** Remaining time of each signal, ms; 0 for off. */
  due(): Map<Signal, number>
  /** Keeps the siren off, or allows it again. */
  silence(silent: boolean): Promise<CommandResult>
  /** Ends all signals without a write to the device. */
  allOff(): void
}

function switchResult(answer: SwitchAnswer): CommandResult {
  return writeResult(answer.kind === 'done' ? { kind: 'answered' } : answer, 'while its time lasts')
}

/** Makes the signals. `write` starts a signal for some ms, or ends it with 0. */
export function timedSignals(
  clock: Clock,
  signals: ReadonlySet<Signal>,
  write: (signal: Signal, ms: number) => Promise<SwitchAnswer>,
): TimedSignals {
  const until = new Map<Signal, number>()
  let isSilent = false

  return {
    async signal(signal, seconds) {
      if (!signals.has(signal)) {
        return result('failed', false, 'not_supported', `no ${signal} is configured; add "${signal}" to the settings`)
      }
      if (!(seconds >= 0 && seconds <= LONGEST_SIGNAL_S)) {
        return result('failed', false, 'not_supported', `a signal lasts 0 to ${LONGEST_SIGNAL_S} seconds`)
      }
      if (isSilent && signal === 'siren' && seconds > 0) return SILENCED
      until.set(signal, clock.elapsed() + seconds * 1_000)
      return switchResult(await write(signal, seconds * 1_000))
    },
    async silence(silent) {
      isSilent = silent
      const isSounding = (until.get('siren') ?? 0) > clock.elapsed()
      if (!silent || !isSounding) return result('confirmed', false, 'acknowledged')
      until.delete('siren')
      return switchResult(await write('siren', 0))
    },
    due: () => new Map([...signals].map((signal) => [signal, Math.max(0, (until.get(signal) ?? 0) - clock.elapsed())])),
    allOff: () => until.clear(),
  }
}
