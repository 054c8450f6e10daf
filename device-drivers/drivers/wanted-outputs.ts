import type { Cancel, Platform } from '../../policy/platform.ts'
import { LONGEST_SIGNAL_S, result } from './device.ts'
import type { CommandResult, Signal } from './device.ts'

/** What became of writing one output. */
export type WriteAnswer =
  | { readonly kind: 'answered' }
  | { readonly kind: 'refused'; readonly detail: string }
  /** No answer. `handed`: the device may have received it. */
  | { readonly kind: 'lost'; readonly handed: boolean; readonly detail: string }

/**
 * What the outputs of one device shall be, over all connections. The releasing output is wanted off
 * except within a pulse; a signal is wanted on until its time is over. Whoever connects writes it
 * down to the board, and later looks whether it is still so.
 */
export interface WantedOutputs {
  /** Switches a signal on for some seconds, or off. */
  signal(signal: Signal, seconds: number): Promise<CommandResult>
  /** Every output with what it shall be now. */
  wanted(): Map<number, boolean>
  /** Grows with every change of `wanted`. */
  readonly version: number
  /** Marks the releasing output as wanted on, until the returned function is called. */
  pulse(): Cancel
  /** Everything off from now on. */
  allOff(): void
}

export interface OutputOptions {
  /** The releasing output, where the device has one. */
  readonly release: number | undefined
  readonly signals: ReadonlyMap<Signal, number>
  /** What an output is called in the settings, such as `output` or `gpo`. */
  readonly setting: string
  readonly platform: Platform
  /** Writes to the device when there is one. Never rejects. */
  write(output: number, on: boolean): Promise<WriteAnswer>
}

/** Outputs that are written again until the board has them. */
export function wantedOutputs({ release, signals, setting, platform, write }: OutputOptions): WantedOutputs {
  const timers = new Map<Signal, Cancel>()
  let pulses = 0
  let version = 0

  function set(signal: Signal, seconds: number, output: number): void {
    timers.get(signal)?.()
    timers.delete(signal)
    version++
    if (seconds === 0) return
    const over = () => {
      timers.delete(signal)
      version++
      void write(output, false)
    }
    timers.set(signal, platform.timers.after(seconds * 1_000, over))
  }

  return {
    async signal(signal, seconds) {
      const output = signals.get(signal)
      if (output === undefined) {
        return result(
          'failed',
          false,
          'not_supported',
          `no ${signal} is configured; add "${signal}": { "${setting}": … }`,
        )
      }
      if (!(seconds >= 0 && seconds <= LONGEST_SIGNAL_S)) {
        return result('failed', false, 'not_supported', `a signal lasts 0 to ${LONGEST_SIGNAL_S} seconds`)
      }
      set(signal, seconds, output)
      const answer = await write(output, seconds > 0)
      if (answer.kind === 'answered') return result('confirmed', true, 'acknowledged')
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
    wanted() {
      const all = new Map(release === undefined ? [] : [[release, pulses > 0]])
      for (const [signal, output] of signals) all.set(output, timers.has(signal))
      return all
    },
    get version() {
      return version
    },
    pulse() {
      pulses++
      version++
      let done = false
      return () => {
        if (done) return
        done = true
        pulses--
        version++
      }
    },
    allOff() {
      for (const cancel of timers.values()) cancel()
      timers.clear()
      version++
    },
  }
}
