import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'
import type { ExchangeAnswer } from './exchange.ts'

/**
 * Keeps a reader in continuous mode, in which the reader sends tags without requests. A reader leaves this mode without
 * notice, for example after a power failure. In this mode the reader always sends something, at least "no tag". If the
 * reader is quiet, the agent sends a stop command, waits for the answer, and starts the reader again.
 */
export interface ContinuousReading {
  /** Call this function when the reader has sent data. */
  noteActivity(): void
  /** Stops reading, so that a command can be sent. Resolves with true if the reader confirms the stop. */
  suspend(): Promise<boolean>
  /** Ends one `suspend`. Reading restarts when `resume` was called as often as `suspend`. */
  resume(): Promise<void>
}

export interface ContinuousReadingOptions {
  readonly platform: Platform
  /** Time without data after which reading is restarted, ms. */
  readonly quietMs: number
  /** True if the reader already sends tags; otherwise reading starts with the first `resume`. */
  readonly isReading?: boolean
  /** Ends the reading. */
  readonly over: AbortSignal
  stop(): Promise<ExchangeAnswer<unknown>>
  /**
   * Starts reading. If the start needs several commands, call `isWanted` before the last one, because a `suspend` may
   * have been called meanwhile.
   */
  start(isWanted: () => boolean): Promise<unknown>
  /** Called when three stop commands in a row had no answer. */
  onUnresponsive(detail: string): void
}

const CHECK_EVERY_MS = 250
const MAX_MISSED = 3

/** Starts the watch that keeps a reader in continuous mode. */
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
    // A `suspend` during this start sends its stop command after the start command.
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
