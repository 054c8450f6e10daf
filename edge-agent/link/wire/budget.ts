import type { Clock } from '../../../policy/platform.ts'

/** How much may be spent: so much at once, and so much a second from then on. */
export interface Budget {
  /** False when there is not enough left; then nothing is taken. */
  spend(cost?: number): boolean
}

/** A full budget of `most`, refilled by `perSecond`. */
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
