import type { RateLimitedLog } from '../../policy/rate-limited-log.ts'
import type { Clock } from '../../policy/platform.ts'
import { peerRateLimit } from '../peers/peer-rate-limit.ts'

/** Allowed requests of one address with an invalid signature. */
const REFUSED = { perSecond: 5, burst: 50 }

/** Limits addresses that sent peer requests that were not genuine. */
export interface RefusedCallers {
  /** Seconds that this address must wait; 0 if it need not. */
  waitSeconds(from: string): number
  /** Counts a request of this address that was not genuine. */
  refuse(from: string, why: string): void
}

/** Logs each refusal at the rate of `log`. */
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
