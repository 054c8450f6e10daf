import type { Clock } from '../../policy/platform.ts'
import { Failure } from '../foundation/failure.ts'

/**
 * The time that is put under signatures. A cloud that signs a wrong time poisons every agent, so it
 * signs nothing while its wall clock and the time that has really passed disagree.
 */
export interface SigningClock {
  /** Now, ms since 1970. Throws `unavailable` while the clock is in doubt. */
  nowMs(): number
  /** Why nothing is signed at the moment, or null. */
  untrustedReason(): string | null
  /** Now by the wall clock, but while that has just jumped ahead the time that has passed: for what is signed whatever the clock says, and must not be of the future. */
  noLaterMs(): number
  /** What was signed before this (ms) counts no more. */
  reset(lastSignedMs: number): void
}

const TOLERANCE_MS = 60_000
/** After a jump the clocks must agree for this long before the new time is believed. */
const SETTLE_MS = 60_000

/** `lastSignedMs`: the latest time that was ever signed (kept in the database). */
export function signingClock(clock: Clock, lastSignedMs: number): SigningClock {
  let offset = clock.wall() - clock.elapsed()
  let jumpedAt: number | null = null
  let behindUntil = lastSignedMs
  /** What both clocks said when they last agreed. */
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
