import type { Clock } from '../../../policy/platform.ts'
import { Failure } from '../foundation/failure.ts'

/**
 * Time for signatures. A wrong signed time would harm every agent, so the cloud signs nothing while wall clock and
 * elapsed time disagree (ADR 0015).
 */
export interface SigningClock {
  /** Now, ms since 1970. Throws `unavailable` while the clock is not trusted. */
  nowMs(): number
  /** Reason why the cloud signs nothing now; null while the clock is trusted. */
  untrustedReason(): string | null
  /**
   * Wall clock time, ms. While the clock is not trusted, the result is at most the last trusted time plus the elapsed
   * time. Use this time for documents that the cloud must always sign, but must not date in the future.
   */
  noLaterMs(): number
  /** Replaces the latest signed time (ms), when a new time epoch begins. */
  reset(lastSignedMs: number): void
}

const TOLERANCE_MS = 60_000
/** Time for which wall clock and elapsed time must agree after a jump, ms. */
const SETTLE_MS = 60_000

/** Creates the clock. `lastSignedMs`: latest signed time, from the database. */
export function signingClock(clock: Clock, lastSignedMs: number): SigningClock {
  let offset = clock.wall() - clock.elapsed()
  let jumpedAt: number | null = null
  let behindUntil = lastSignedMs
  /** Wall clock and elapsed time when they last agreed. */
  let agreed: { wall: number; elapsed: number } | undefined

  function untrustedReason(): string | null {
    const wall = clock.wall()
    if (wall < behindUntil)
      return `the clock shows ${new Date(wall).toISOString()}, before the last time that was signed`
    behindUntil = 0
    const drift = Math.abs(wall - clock.elapsed() - offset)
    if (drift > TOLERANCE_MS) {
      offset = wall - clock.elapsed()
      jumpedAt = clock.elapsed()
    }
    if (jumpedAt !== null && clock.elapsed() - jumpedAt < SETTLE_MS) return 'the clock has just jumped'
    jumpedAt = null
    agreed = { wall, elapsed: clock.elapsed() }
    return null
  }

  return {
    untrustedReason,
    noLaterMs() {
      const isSure = untrustedReason() === null
      const wall = clock.wall()
      return isSure || !agreed ? wall : Math.min(wall, agreed.wall + clock.elapsed() - agreed.elapsed)
    },
    reset: (ms) => void (behindUntil = ms),
    nowMs() {
      const why = untrustedReason()
      if (why)
        throw new Failure('unavailable', `nothing is signed now: ${why}`, { reason: 'clock_untrusted', retryAfter: 60 })
      return clock.wall()
    },
  }
}
