import type { RateLimitedLog } from '../../policy/rate-limited-log.ts'
import type { Clock } from '../../policy/platform.ts'
import { peerRateLimit } from '../peers/peer-rate-limit.ts'

/** Rate limit for requests with an invalid signature or secret, per address. */
export const REFUSED = { perSecond: 5, burst: 50 }

/** Limits the requests of addresses that send peer requests with invalid signatures. */
export interface RefusedCallers {
  /** Time before the next request of this address, s; 0 if the address may send one now. */
  waitSeconds(from: string): number
  /** Counts a request of this address with an invalid signature. */
  refuse(from: string, why: string): void
}

/** Makes the limits. Logs refusals with the rate limit of `log`. */
export function refusedCallers(clock: Pick<Clock, 'elapsed'>, log: Pick<RateLimitedLog, 'write'>): RefusedCallers {
  const refused = peerRateLimit(clock, REFUSED)
  const note = (from: string, why: string) => log.write({ from, why }, 'a request between agents was refused')
  return {
    waitSeconds(from) {
      const seconds = refused.wait(from)
      if (seconds > 0) note(from, 'too many requests that are not genuine')
      return seconds
    },
    refuse(from, why) {
      refused.take(from)
      note(from, why)
    },
  }
}
