import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import type { ExchangeAnswer } from './exchange.ts'

/**
 * Keeps a reader reading that tells its tags by itself. Such readers end without saying so, and forget
 * that they read when their power fails; but while they read they say something all the time, "no tag"
 * or a sign of life too. So whenever one is quiet it is stopped, which it answers, and started again.
 */
export interface KeptReading {
  /** The reader said something. */
  heard(): void
  /** Stops reading, for a command. False when the reader does not answer. */
  hold(): Promise<boolean>
  /** Ends a `hold`. */
  go(): Promise<void>
}

export interface KeepReadingOptions {
  readonly platform: Platform
  /** Without a word for so long it is stopped and started, ms. */
  readonly quietMs: number
  /** It was started already; else reading begins with the first `go`. */
  readonly reads?: boolean
  /** Ends the reading. */
  readonly over: AbortSignal
  stop(): Promise<ExchangeAnswer<unknown>>
  /** `isWanted`: asked again before what makes it read, when that is not the first command: a `hold` may have come in between. */
  start(isWanted: () => boolean): Promise<unknown>
  /** The reader did not answer three stops in a row. */
  onSilent(detail: string): void
}

const LOOK_EVERY_MS = 250
const MOST_MISSED = 3

/** Starts to watch. */
export function keepReading({
  platform,
  quietMs,
  reads = false,
  over,
  stop,
  start,
  onSilent,
}: KeepReadingOptions): KeptReading {
  const { clock, timers } = platform
  let holds = reads ? 0 : 1
  let heardMs = clock.elapsed()
  let missed = 0

  async function stopNow(): Promise<boolean> {
    const answer = await stop()
    if (answer.kind !== 'lost') {
      missed = 0
      return answer.kind === 'answered'
    }
    if (++missed === MOST_MISSED && !over.aborted) onSilent(`${MOST_MISSED} times in a row: ${answer.detail}`)
    return false
  }

  const isWanted = () => holds === 0 && !over.aborted

  async function startNow(): Promise<void> {
    heardMs = clock.elapsed()
    // A hold that came meanwhile sends its stop behind this.
    if (isWanted()) await start(isWanted)
  }

  async function watch(): Promise<void> {
    while (!over.aborted) {
      await pause(timers, LOOK_EVERY_MS, over).catch(() => {})
      if (over.aborted || holds > 0 || clock.elapsed() - heardMs < quietMs) continue
      if (await stopNow()) await startNow()
    }
  }

  void watch()
  return {
    heard: () => void (heardMs = clock.elapsed()),
    hold() {
      holds++
      return stopNow()
    },
    go() {
      holds--
      return startNow()
    },
  }
}
