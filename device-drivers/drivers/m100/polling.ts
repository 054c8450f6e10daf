import { pause } from '../../../policy/platform.ts'
import type { Platform } from '../../../policy/platform.ts'
import { M100, m100Command, pollMany } from '../../protocols/m100/messages.ts'
import type { AskM100 } from './ask.ts'

/**
 * Keeps the reader polling. It polls so many times and then ends without saying so, and it forgets
 * everything when its power fails; but while it polls it says something all the time, "no tag" too.
 * So whenever it is quiet it is stopped, which it answers, and started again.
 */
export interface Polling {
  /** The reader said something. */
  heard(): void
  /** Stops the polls, for a command to a tag. False when the reader does not answer. */
  hold(): Promise<boolean>
  /** Ends a `hold`. */
  go(): Promise<void>
}

export interface PollingOptions {
  readonly ask: AskM100
  readonly platform: Platform
  /** Ends the polling. */
  readonly over: AbortSignal
  /** The reader did not answer three times in a row. */
  onSilent(detail: string): void
}

const MOST_TIMES = 65_535
const LOOK_EVERY_MS = 250
/** A full round of polls without a tag takes some 10 ms. */
const QUIET_MS = 500
const MOST_MISSED = 3

/** Starts to watch; the polls begin with the first `go`. */
export function keepPolling({ ask, platform, over, onSilent }: PollingOptions): Polling {
  const { clock, timers } = platform
  let holds = 1
  let heardMs = clock.elapsed()
  let missed = 0

  async function stop(): Promise<boolean> {
    const answer = await ask(m100Command(M100.stop))
    if (answer.kind === 'answered') missed = 0
    else if (answer.kind === 'lost' && ++missed === MOST_MISSED && !over.aborted) onSilent(`${MOST_MISSED} times in a row: ${answer.detail}`)
    return answer.kind === 'answered'
  }

  async function start(): Promise<void> {
    heardMs = clock.elapsed()
    // A hold that came meanwhile sends its stop behind this.
    if (holds === 0 && !over.aborted) await ask(pollMany(MOST_TIMES))
  }

  async function watch(): Promise<void> {
    while (!over.aborted) {
      await pause(timers, LOOK_EVERY_MS, over).catch(() => {})
      if (over.aborted || holds > 0 || clock.elapsed() - heardMs < QUIET_MS) continue
      if (await stop()) await start()
    }
  }

  void watch()
  return {
    heard: () => void (heardMs = clock.elapsed()),
    hold() {
      holds++
      return stop()
    },
    go() {
      holds--
      return start()
    },
  }
}
