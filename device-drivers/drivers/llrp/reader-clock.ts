import type { Clock } from '../../../policy/platform.ts'

/** A timestamp of a reader: since 1970 or since its start, µs. */
export interface ReaderStamp {
  readonly utcUs?: number | undefined
  readonly uptimeUs?: number | undefined
}

/** Converts a reader's timestamps to the agent's elapsed clock. */
export interface ReaderClock {
  /** Sets the offset, by the timestamp of an event that happened now, such as the accepted connection. */
  set(stamp: ReaderStamp): void
  /** Time of the timestamp, ms on the agent's elapsed clock, never in the future. Without a timestamp: now. */
  seenAt(stamp: ReaderStamp): number
}

/**
 * Decides when late timestamps prove that the reader's clock is behind. Then all timestamps are late by the same time.
 * The lateness of replayed reads shrinks, and that of reads that wait in the reader grows, both beyond these bounds.
 * Only the freshest read of each window counts, because some readers send in batches.
 */
interface DriftRule {
  /** Minimum duration of a window, from its first read, ms. */
  readonly windowMs: number
  /** Number of consecutive windows whose minimum lateness must agree within `withinMs`. */
  readonly windows: number
  readonly withinMs: number
  /** Or one window in which all lateness agrees within this time, ms. */
  readonly allWithinMs: number
}
const RULES: readonly DriftRule[] = [
  { windowMs: 750, windows: 4, withinMs: 100, allWithinMs: 0 },
  { windowMs: 10_000, windows: 2, withinMs: 500, allWithinMs: 1_000 },
]
/** Smaller offsets are not corrected, ms. */
const SMALL_MS = 50
/** Minimum reads in a window. */
const FEWEST_IN_WINDOW = 5

interface DriftWatch {
  readonly rule: DriftRule
  /** Time of its first read, ms. */
  from: number
  count: number
  least: number
  most: number
  /** Minimum lateness of the previous windows, ms. */
  leasts: readonly number[]
}

interface Scale {
  /** Offset from the reader's clock to the agent's elapsed clock, ms. */
  offsetMs: number
  watches: readonly DriftWatch[]
}

const beginWatch = (rule: DriftRule, leasts: readonly number[] = []): DriftWatch => ({
  rule,
  from: 0,
  count: 0,
  least: Infinity,
  most: -Infinity,
  leasts,
})

/** How far the reader's clock is behind according to this timestamp, ms; 0 if it proves nothing. */
function behindMs(watch: DriftWatch, lateMs: number, now: number): number {
  const { windowMs, windows, withinMs, allWithinMs } = watch.rule
  if (watch.count++ === 0) watch.from = now
  watch.least = Math.min(watch.least, lateMs)
  watch.most = Math.max(watch.most, lateMs)
  if (now - watch.from < windowMs || watch.count < FEWEST_IN_WINDOW) return 0
  const { least, most } = watch
  const leasts = [...watch.leasts, least].slice(-windows)
  Object.assign(watch, beginWatch(watch.rule, leasts))
  const smallest = Math.min(...leasts)
  const isSteady = leasts.length === windows && Math.max(...leasts) - smallest < withinMs
  const behind = isSteady ? smallest : most - least < allWithinMs ? least : 0
  return behind > SMALL_MS ? behind : 0
}

/**
 * Makes the clock. A reader's clock may be wrong by hours, be set while it runs, and drift by seconds a day. If a
 * timestamp would lie in the future, the reader's clock went forward. If timestamps stay late by the same time, the
 * clock went back.
 */
export function readerClock(clock: Clock): ReaderClock {
  const scales = new Map<keyof ReaderStamp, Scale>()

  const begin = (offsetMs: number): Scale => ({ offsetMs, watches: RULES.map((rule) => beginWatch(rule)) })

  function watch(scale: Scale, lateMs: number, now: number): void {
    const behind = Math.max(...scale.watches.map((each) => behindMs(each, lateMs, now)))
    if (behind > 0) Object.assign(scale, begin(scale.offsetMs + behind))
  }

  const scaleOf = ({ utcUs, uptimeUs }: ReaderStamp): { name: keyof ReaderStamp; ms: number } | null => {
    if (utcUs !== undefined) return { name: 'utcUs', ms: utcUs / 1_000 }
    return uptimeUs === undefined ? null : { name: 'uptimeUs', ms: uptimeUs / 1_000 }
  }

  return {
    set(stamp) {
      const stamped = scaleOf(stamp)
      if (stamped) scales.set(stamped.name, begin(clock.elapsed() - stamped.ms))
    },
    seenAt(stamp) {
      const now = clock.elapsed()
      const stamped = scaleOf(stamp)
      if (!stamped) return now
      let scale = scales.get(stamped.name)
      if (!scale) {
        scale = begin(now - stamped.ms)
        scales.set(stamped.name, scale)
      }
      const lateMs = now - (stamped.ms + scale.offsetMs)
      if (lateMs < 0) scale.offsetMs += lateMs
      watch(scale, Math.max(0, lateMs), now)
      return Math.min(now, stamped.ms + scale.offsetMs)
    },
  }
}
