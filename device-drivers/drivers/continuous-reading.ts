import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import type { ExchangeAnswer } from './exchange.ts'

/**
 * Keeps a reader reading that tells its tags by itself. Such readers end without saying so, and forget
 * that they read when their power fails; but while they read they say something all the time, "no tag"
 * or a sign of life too. So whenever one is quiet it is stopped, which it answers, and started again.
 */
export interface ContinuousReading {
  /** The reader said something. */
  noteActivity(): void
  /** Stops reading, for a command. False when the reader does not answer. */
  suspend(): Promise<boolean>
  /** Ends a `hold`. */
  resume(): Promise<void>
}

export interface ContinuousReadingOptions {
  readonly platform: Platform
  /** Without a word for so long it is stopped and started, ms. */
  readonly quietMs: number
  /** It was started already; else reading begins with the first `go`. */
  readonly isReading?: boolean
  /** Ends the reading. */
  readonly over: AbortSignal
  stop(): Promise<ExchangeAnswer<unknown>>
  /** `isWanted`: asked again before what makes it read, when that is not the first command: a `hold` may have come in between. */
  start(isWanted: () => boolean): Promise<unknown>
  /** The reader did not answer three stops in a row. */
  onUnresponsive(detail: string): void
}

const CHECK_EVERY_MS = 250
const MAX_MISSED = 3

/** Starts to watch. */
export function startContinuousReading({
  platform,
  quietMs,
  isReading = false,
  over,
  stop,
  start,
  onUnresponsive,
}: ContinuousReadingOptions): ContinuousReading {
  const { clock, timers } = platform
  let suspensions = isReading ? 0 : 1
  let lastActivityMs = clock.elapsed()
  let missed = 0

  async function stopNow(): Promise<boolean> {
    const answer = await stop()
    if (answer.kind !== 'lost') {
      missed = 0
      return answer.kind === 'answered'
    }
    if (++missed === MAX_MISSED && !over.aborted) onUnresponsive(`${MAX_MISSED} times in a row: ${answer.detail}`)
    return false
  }

  const isWanted = () => suspensions === 0 && !over.aborted

  async function startNow(): Promise<void> {
    lastActivityMs = clock.elapsed()
    // A hold that came meanwhile sends its stop behind this.
    if (isWanted()) await start(isWanted)
  }

  async function watch(): Promise<void> {
    while (!over.aborted) {
      await pause(timers, CHECK_EVERY_MS, over).catch(() => {})
      if (over.aborted || suspensions > 0 || clock.elapsed() - lastActivityMs < quietMs) continue
      if (await stopNow()) await startNow()
    }
  }

  void watch()
  return {
    noteActivity: () => void (lastActivityMs = clock.elapsed()),
    suspend() {
      suspensions++
      return stopNow()
    },
    resume() {
      suspensions--
      return startNow()
    },
  }
}
