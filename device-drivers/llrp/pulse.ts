import { pause } from '../../policy/platform.ts'
import type { Cancel, Timers } from '../../policy/platform.ts'
import type { RunningCommand } from '../kit/command-queue.ts'
import { result } from '../kit/device.ts'
import type { CommandResult } from '../kit/device.ts'
import type { WriteAnswer } from '../kit/write-answer.ts'

export interface PulseOptions {
  readonly gpo: number
  readonly pulseMs: number
  readonly timers: Timers
  /** Ends the pulse early when it aborts. */
  readonly signal: AbortSignal
  write(on: boolean): Promise<WriteAnswer>
  /** True while an emergency holds the output open. Then the output stays on after the pulse. */
  isHeldOpen(): boolean
  /** Sets the desired state of the output to on, until the returned function is called. */
  onPulse(): Cancel
  onFault(detail: string): void
}

/** Maximum number of OFF writes. Unlike ON, OFF may be repeated. */
const MAX_OFF_TRIES = 3

/** Switches an output on once, and off after `pulseMs`. The outcome is known when the reader has answered the ON. */
export function startPulse(options: PulseOptions): RunningCommand {
  const { gpo, timers, signal } = options
  let report = (_known: CommandResult) => {}
  const outcome = new Promise<CommandResult>((resolve) => {
    report = resolve
  })

  async function switchOff(): Promise<void> {
    for (let tries = 0; tries < MAX_OFF_TRIES && !options.isHeldOpen(); tries++) {
      const off = await options.write(false)
      if (off.kind === 'answered') return
      if (off.kind === 'lost' || tries === MAX_OFF_TRIES - 1) {
        options.onFault(
          `output ${gpo} may still be on (${off.detail}); it is switched off again as soon as the reader is back`,
        )
        return
      }
    }
  }

  async function run(): Promise<void> {
    const done = options.onPulse()
    const on = await options.write(true)
    if (on.kind === 'answered') {
      report(result('confirmed', true, 'acknowledged'))
      await pause(timers, options.pulseMs, signal).catch(() => {})
    } else if (on.kind === 'refused') report(result('failed', true, 'refused', on.detail))
    else if (on.possiblySent) report(result('unknown', true, 'answer_lost', on.detail))
    else report(result('failed', false, 'not_ready', on.detail))
    done()
    if (on.kind !== 'lost' || on.possiblySent) await switchOff()
  }

  const finished = run().catch((error: unknown) =>
    report(result('unknown', true, 'answer_lost', `fault in the driver: ${String(error)}`)),
  )
  return { outcome, finished }
}
