import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import type { ExchangeAnswer } from './exchange.ts'

/**
 * Keeps a reader, which sends tags by itself, in its reading mode. Such readers stop without notice, for example after a power
 * failure. While they read they send something all the time, at least "no tag". If the reader is quiet, the agent
 * stops it, waits for its answer, and starts it again.
 */
export interface ContinuousReading {
  /** Call it when the reader sent something. */
  noteActivity(): void
  /** Stops reading, for a command. False if the reader does not answer. */
  suspend(): Promise<boolean>
  /** Ends a `suspend`. */
  resume(): Promise<void>
}

export interface ContinuousReadingOptions {
  readonly platform: Platform
  /** Quiet time after which the reader is restarted, ms. */
  readonly quietMs: number
  /** True if the reader reads already; else reading starts with the first `resume`. */
  readonly isReading?: boolean
  /** Ends the reading. */
  readonly over: AbortSignal
  stop(): Promise<ExchangeAnswer<unknown>>
  /**
   * Starts reading. Check `isWanted` again before the last of several commands: a `suspend` may have come in between.
   */
  start(isWanted: () => boolean): Promise<unknown>
  /** Called when the reader did not answer three stops in a row. */
  onUnresponsive(detail: string): void
}

const CHECK_EVERY_MS = 250
const MAX_MISSED = 3

/** Starts to watch the reader. */
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
    // If a `suspend` comes during this start, its stop is sent afterwards.
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
