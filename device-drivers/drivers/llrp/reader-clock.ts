import type { Clock } from '../../../policy/platform.ts'

/** When something happened by a reader's clock: since 1970 or since its start, µs. */
export interface ReaderStamp {
  readonly utcUs?: number | undefined
  readonly uptimeUs?: number | undefined
}

/** Puts a reader's stamps onto the agent's elapsed clock. */
export interface ReaderClock {
  /** The stamp of something that has happened just now: the greeting of a new connection. */
  set(stamp: ReaderStamp): void
  /** When that was, ms on the agent's elapsed clock, never later than now; now when there is no stamp. */
  seenAt(stamp: ReaderStamp): number
}

/**
 * When stamps show that the reader's clock is behind. What is replayed after a network failure comes ever less late, far faster
 * than these bounds, and what waits in a reader ever later; what a wrong clock stamps stays late by the same. Readers that send
 * in batches tell of some reads later than of others: only the freshest of each window count.
 */
interface DriftRule {
  /** A window lasts so long at least from its first read on, ms. */
  readonly windowMs: number
  /** So many windows in a row whose least lateness is the same, within so many ms. */
  readonly windows: number
  readonly withinMs: number
  /** Or one in which all are late by the same, within so many ms. */
  readonly allWithinMs: number
}
const RULES: readonly DriftRule[] = [
  { windowMs: 750, windows: 4, withinMs: 100, allWithinMs: 0 },
  { windowMs: 10_000, windows: 2, withinMs: 500, allWithinMs: 1_000 },
]
/** Not worth a correction. */
const SMALL_MS = 50
/** A window has so many reads at least. */
const FEWEST_IN_WINDOW = 5

interface DriftWatch {
  readonly rule: DriftRule
  /** When its first read came. */
  from: number
  count: number
  least: number
  most: number
  /** The least lateness in each of the windows before. */
  leasts: readonly number[]
}

interface Scale {
  /** What makes reader's ms the agent's elapsed ms. */
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

/** By how much the reader's clock is behind, as this stamp shows, ms; 0: it does not show. */
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
 * A reader's clock may be wrong by hours, be set while it runs, and drift by seconds a day. Right is what never
 * lets a stamp lie in the future, so a stamp that would shows that the reader's clock went forward, or that the greeting
 * was slow. One that went back, or is slow, shows in stamps that stay late by the same, which reads that were held back
 * never do.
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
