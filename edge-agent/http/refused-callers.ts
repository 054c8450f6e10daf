import type { RateLimitedLog } from '../../policy/rate-limited-log.ts'
import type { Clock } from '../../policy/platform.ts'
import { peerRateLimit } from '../peers/peer-rate-limit.ts'

/** Requests of one address that turned out not to be genuine. */
const REFUSED = { perSecond: 5, burst: 50 }

/** Limits addresses whose requests between agents were not genuine. */
export interface RefusedCallers {
  /** Seconds that this address must wait. 0: its request is handled. */
  waitSeconds(from: string): number
  /** A request of this address was not genuine. */
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
