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

/** For so long, and so many, all stamps must be late by the same before the reader's clock is taken to be behind. */
const WINDOW_MS = 10_000
/** What is replayed after a network failure comes ever less late; what a wrong clock stamps is late by the same. */
const SAME_WITHIN_MS = 1_000
/** Not worth a correction. */
const SMALL_MS = 50
const FEWEST_IN_WINDOW = 5

interface Scale {
  /** What makes reader's ms the agent's elapsed ms. */
  offsetMs: number
  from: number
  count: number
  least: number
  most: number
}

/**
 * A reader's clock may be wrong by hours, be set while it runs, and drift by seconds a day. Right is what never
 * lets a stamp lie in the future, so a stamp that would shows that the reader's clock went forward, or that the greeting
 * was slow. One that went back, or is slow, shows in stamps that for 10 s are all late by the same, which reads that were
 * held back never are.
 */
export function readerClock(clock: Clock): ReaderClock {
  const scales = new Map<keyof ReaderStamp, Scale>()

  const begin = (offsetMs: number): Scale => ({ offsetMs, from: clock.elapsed(), count: 0, least: Infinity, most: -Infinity })

  function watch(scale: Scale, lateMs: number, now: number): void {
    scale.count++
    scale.least = Math.min(scale.least, lateMs)
    scale.most = Math.max(scale.most, lateMs)
    if (now - scale.from < WINDOW_MS || scale.count < FEWEST_IN_WINDOW) return
    const isBehind = scale.least > SMALL_MS && scale.most - scale.least < SAME_WITHIN_MS
    Object.assign(scale, begin(scale.offsetMs + (isBehind ? scale.least : 0)))
  }

  const named = ({ utcUs, uptimeUs }: ReaderStamp): { name: keyof ReaderStamp; ms: number } | null => {
    if (utcUs !== undefined) return { name: 'utcUs', ms: utcUs / 1_000 }
    return uptimeUs === undefined ? null : { name: 'uptimeUs', ms: uptimeUs / 1_000 }
  }

  return {
    set(stamp) {
      const given = named(stamp)
      if (given) scales.set(given.name, begin(clock.elapsed() - given.ms))
    },
    seenAt(stamp) {
      const now = clock.elapsed()
      const given = named(stamp)
      if (!given) return now
      let scale = scales.get(given.name)
      if (!scale) {
        scale = begin(now - given.ms)
        scales.set(given.name, scale)
      }
      const lateMs = now - (given.ms + scale.offsetMs)
      if (lateMs < 0) scale.offsetMs += lateMs
      watch(scale, Math.max(0, lateMs), now)
      return now - Math.max(0, lateMs)
    },
  }
}
