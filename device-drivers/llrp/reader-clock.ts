import type { Clock } from '../../policy/platform.ts'

/** A timestamp of a reader: time since 1970 or since the reader's start, µs. */
export interface ReaderStamp {
  readonly utcUs?: number | undefined
  readonly uptimeUs?: number | undefined
}

/** Converts a reader's timestamps to the agent's elapsed clock. */
export interface ReaderClock {
  /** Calculates the offset from the timestamp of an event that happens now, such as the accepted connection. */
  set(stamp: ReaderStamp): void
  /**
   * Compares the offset with the reader's present time, which an answer contains. If the offset is wrong, calculates it
   * again, so that the reads of the next person are not taken for old ones.
   */
  check(now: ReaderStamp): void
  /** Time of the timestamp, ms on the agent's elapsed clock, never in the future. Without a timestamp: now. */
  seenAt(stamp: ReaderStamp): number
}

/**
 * Rule that decides from the lateness of reads (arrival minus timestamp) whether the reader's clock is behind. If that
 * clock is behind, all reads are late by the same time. Other causes change the lateness by more than these bounds.
 * While a reader replays old reads, the lateness shrinks. While reads wait in the reader, the lateness grows. Some
 * readers send in batches, so the rule compares only the least late read of each window.
 */
interface DriftRule {
  /** Minimum duration of a window, from its first read, ms. */
  readonly windowMs: number
  /** Number of consecutive windows whose minimum lateness must agree within `withinMs`. */
  readonly windows: number
  readonly withinMs: number
  /** One window is enough if the lateness of all its reads agrees within this time, ms. */
  readonly allWithinMs: number
}
const RULES: readonly DriftRule[] = [
  { windowMs: 750, windows: 4, withinMs: 100, allWithinMs: 0 },
  { windowMs: 10_000, windows: 2, withinMs: 500, allWithinMs: 1_000 },
]
/** Smallest offset that is corrected, ms. */
const SMALL_MS = 50
/** Difference from the reader's present time that `check` corrects, ms. Answers are late, and some name whole seconds. */
const WRONG_MS = 1_500
/** Minimum reads in a window. */
const FEWEST_IN_WINDOW = 5

interface DriftWatch {
  readonly rule: DriftRule
  /** Time of the first read of this window, ms. */
  from: number
  count: number
  least: number
  most: number
  /** Minimum lateness of the previous windows, ms. */
  leastLateness: readonly number[]
}

interface Scale {
  /** Offset from the reader's clock to the agent's elapsed clock, ms. */
  offsetMs: number
  watches: readonly DriftWatch[]
}

const beginWatch = (rule: DriftRule, leastLateness: readonly number[] = []): DriftWatch => ({
  rule,
  from: 0,
  count: 0,
  least: Infinity,
  most: -Infinity,
  leastLateness,
})

/**
 * Adds the lateness of one read to the watch. Returns how far the reader's clock is behind, ms. Returns 0 if the
 * timestamps do not prove that the clock is behind.
 */
function behindMs(watch: DriftWatch, lateMs: number, now: number): number {
  const { windowMs, windows, withinMs, allWithinMs } = watch.rule
  if (watch.count++ === 0) watch.from = now
  watch.least = Math.min(watch.least, lateMs)
  watch.most = Math.max(watch.most, lateMs)
  if (now - watch.from < windowMs || watch.count < FEWEST_IN_WINDOW) return 0
  const { least, most } = watch
  const leastLateness = [...watch.leastLateness, least].slice(-windows)
  Object.assign(watch, beginWatch(watch.rule, leastLateness))
  const smallest = Math.min(...leastLateness)
  const isSteady = leastLateness.length === windows && Math.max(...leastLateness) - smallest < withinMs
  const behind = isSteady ? smallest : most - least < allWithinMs ? least : 0
  return behind > SMALL_MS ? behind : 0
}

/**
 * Makes the clock. A reader's clock may be wrong by hours, may be set while it runs, and may drift by seconds a day. A
 * timestamp in the future shows that the reader's clock went forward. Timestamps that stay late by the same time show
 * that the reader's clock went back.
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
    check(stamp) {
      const stamped = scaleOf(stamp)
      const scale = stamped && scales.get(stamped.name)
      if (!stamped || !scale) return
      const offsetMs = clock.elapsed() - stamped.ms
      if (Math.abs(offsetMs - scale.offsetMs) > WRONG_MS) scales.set(stamped.name, begin(offsetMs))
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
