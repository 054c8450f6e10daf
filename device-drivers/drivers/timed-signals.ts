import type { Clock } from '../../policy/platform.ts'
import { LONGEST_SIGNAL_S, result } from './device.ts'
import type { CommandResult, Signal } from './device.ts'
import type { SwitchAnswer } from './release.ts'

/** Sounds and lights on a device that ends them by itself; what is still due is written again after a reconnect. */
export interface TimedSignals {
  signal(signal: Signal, seconds: number): Promise<CommandResult>
  /** What each signal shall do now: ms that are left, 0 for off. */
  due(): Map<Signal, number>
  /** Nothing is due any more. */
  allOff(): void
}

/** `write` starts a signal for so many ms, or ends it with 0. */
export function timedSignals(
  clock: Clock,
  signals: ReadonlySet<Signal>,
  write: (signal: Signal, ms: number) => Promise<SwitchAnswer>,
): TimedSignals {
  const until = new Map<Signal, number>()

  return {
    async signal(signal, seconds) {
      if (!signals.has(signal)) {
        return result('failed', false, 'not_supported', `no ${signal} is configured; add "${signal}" to the settings`)
      }
      if (!(seconds >= 0 && seconds <= LONGEST_SIGNAL_S)) {
        return result('failed', false, 'not_supported', `a signal lasts 0 to ${LONGEST_SIGNAL_S} seconds`)
      }
      until.set(signal, clock.elapsed() + seconds * 1_000)
      const answer = await write(signal, seconds * 1_000)
      if (answer.kind === 'done') return result('confirmed', true, 'acknowledged')
      if (answer.kind === 'refused') return result('failed', true, 'refused', answer.detail)
      if (answer.handed)
        return result('unknown', true, 'answer_lost', `${answer.detail}; it is written again while its time lasts`)
      return result(
        'failed',
        false,
        'not_ready',
        `${answer.detail}; it is written as soon as the device is back while its time lasts`,
      )
    },
    due: () => new Map([...signals].map((signal) => [signal, Math.max(0, (until.get(signal) ?? 0) - clock.elapsed())])),
    allOff: () => until.clear(),
  }
}
