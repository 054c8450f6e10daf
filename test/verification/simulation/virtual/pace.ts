import type { Chance } from './chance.ts'

/**
 * Speed of a run. A brisk run puts visits and faults into one minute. A slow run takes long enough for tokens to
 * expire, for webhooks to be retried, and for the cloud to stop waiting for agents.
 */
export interface Pace {
  readonly name: 'brisk' | 'slow'
  readonly visitors: number
  /** Time until the last visitor arrives, ms. */
  readonly arrivalWithinMs: number
  /** Longest pause of a person between two actions, ms. */
  readonly longestPauseMs: number
  /** Time after which a visit must end, ms. */
  readonly longestVisitMs: number
  /** Mean time between two faults, ms. */
  readonly faultEveryMs: number
  /** Longest duration of a fault, ms. */
  readonly faultLastsMs: number
}

const MINUTE_MS = 60_000

/** Draws the pace from the seed. Liveness runs have more visitors and more time. */
export function drawPace(chance: Chance, liveness: boolean): Pace {
  if (chance.happens(liveness ? 0.5 : 0.85)) {
    return {
      name: 'brisk',
      visitors: chance.between(1, liveness ? 5 : 3),
      arrivalWithinMs: chance.one([1_000, 5_000, 20_000]),
      longestPauseMs: chance.one([100, 500, 2_000]),
      longestVisitMs: MINUTE_MS,
      faultEveryMs: chance.one([400, 1_500, 5_000]),
      faultLastsMs: chance.one([3_000, 15_000, 30_000]),
    }
  }
  return {
    name: 'slow',
    visitors: chance.between(1, liveness ? 8 : 5),
    arrivalWithinMs: chance.between(1, liveness ? 15 : 3) * MINUTE_MS,
    longestPauseMs: chance.one([500, 5_000, 20_000]),
    longestVisitMs: 8 * MINUTE_MS,
    faultEveryMs: chance.one([2_000, 15_000, 60_000]),
    faultLastsMs: 3 * MINUTE_MS,
  }
}
