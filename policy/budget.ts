import type { Clock } from './platform.ts'

/** Rate limit: a burst of `most`, then `perSecond`. */
export interface Budget {
  /** Returns false, and spends nothing, if less than `cost` is left. */
  spend(cost?: number): boolean
}

/** Creates a full budget of `most`. Each second adds `perSecond`, up to `most`. */
export function budget(clock: Pick<Clock, 'elapsed'>, most: number, perSecond: number): Budget {
  let left = most
  let atMs = clock.elapsed()
  return {
    spend(cost = 1) {
      const nowMs = clock.elapsed()
      left = Math.min(most, left + ((nowMs - atMs) / 1_000) * perSecond)
      atMs = nowMs
      if (left < cost) return false
      left -= cost
      return true
    },
  }
}
