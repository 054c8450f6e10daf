import type { Cancel, Clock, Timers } from './platform.ts'

/** Writes one line of the log. */
export type WriteLogLine = (fields: Record<string, unknown>, message: string) => void

/** A log of events that clients cause, such as refused connections. */
export interface RateLimitedLog {
  /** Each `key`, such as a device id, has its own limit. Default: the message. */
  write(fields: Record<string, unknown>, message: string, key?: string): void
  /** Writes the last suppressed lines. */
  stop(): void
}

/** Maximum lines of a key per minute. */
export const LINES_PER_MINUTE = 10
const MINUTE_MS = 60_000
/** Maximum keys with their own limit. All further keys share one limit. */
const KEYS_LIMIT = 100
const OTHERS = 'others'

interface Window {
  untilMs: number
  lines: number
  suppressed: { count: number; last: [fields: Record<string, unknown>, message: string]; cancel: Cancel } | undefined
}

/**
 * Writes at most 10 lines per minute and key. At the end of the minute the log writes the last line, which may tell that
 * all is well again, with the number of suppressed lines before it (`suppressed`).
 */
export function rateLimitedLog(
  write: WriteLogLine,
  { clock, timers }: { clock: Pick<Clock, 'elapsed'>; timers: Timers },
): RateLimitedLog {
  const windows = new Map<string, Window>()

  function windowOf(key: string): Window {
    const nowMs = clock.elapsed()
    const known = windows.get(key)
    if (known && nowMs < known.untilMs) return known
    if (known) end(key)
    const fresh = { untilMs: nowMs + MINUTE_MS, lines: 0, suppressed: undefined }
    windows.set(key, fresh)
    return fresh
  }

  function end(key: string): void {
    const suppressed = windows.get(key)?.suppressed
    windows.delete(key)
    if (!suppressed) return
    suppressed.cancel()
    const { count, last } = suppressed
    write({ ...last[0], suppressed: count - 1 }, last[1])
  }

  function endExpiredWindows(): void {
    const nowMs = clock.elapsed()
    for (const [key, { untilMs }] of windows) if (nowMs >= untilMs) end(key)
  }

  return {
    write(fields, message, key = message) {
      if (windows.size >= KEYS_LIMIT) endExpiredWindows()
      const counted = windows.has(key) || windows.size < KEYS_LIMIT ? key : OTHERS
      const window = windowOf(counted)
      if (window.lines < LINES_PER_MINUTE) {
        window.lines++
        return write(fields, message)
      }
      window.suppressed ??= {
        count: 0,
        last: [fields, message],
        cancel: timers.after(window.untilMs - clock.elapsed(), () => end(counted)),
      }
      window.suppressed.count++
      window.suppressed.last = [fields, message]
    },
    stop() {
      for (const key of windows.keys()) end(key)
    },
  }
}
