import type { Platform } from '../../policy/platform.ts'

/** Pause before a failed backup is repeated, ms. */
const RETRY_MS = 15 * 60_000

/** What a schedule of backups needs. */
export interface ScheduleParts {
  readonly everyMs: number
  readonly clock: Pick<Platform['clock'], 'wall'>
  readonly timers: Platform['timers']
  /** Time of the newest backup, ms; undefined if there is none. */
  newest(): number | undefined
  backUp(): Promise<void>
  onFailure(error: unknown, retryMs: number): void
}

/**
 * Makes a backup each time `everyMs` have passed since the newest one, also if this process was not running meanwhile.
 * Returns a function that ends the schedule, and waits for a backup that is in progress.
 */
export function startSchedule(parts: ScheduleParts): () => Promise<void> {
  const { everyMs, clock, timers, newest, backUp, onFailure } = parts
  let isStopping = false
  let running = Promise.resolve()
  let cancel = timers.after(untilDue(), () => void (running = run()))

  /** A clock that was set back delays a backup by at most one period. */
  function untilDue(): number {
    const last = newest()
    return last === undefined ? 0 : Math.min(everyMs, Math.max(0, last + everyMs - clock.wall()))
  }

  async function run(): Promise<void> {
    let pauseMs = everyMs
    try {
      await backUp()
      pauseMs = untilDue()
    } catch (error) {
      pauseMs = Math.min(RETRY_MS, everyMs)
      onFailure(error, pauseMs)
    }
    if (!isStopping) cancel = timers.after(pauseMs, () => void (running = run()))
  }

  return () => {
    isStopping = true
    cancel()
    return running
  }
}
