import type { Clock } from './platform.ts'

/**
 * Time that a thief cannot set: the last signed time plus the time that has passed since. Wall
 * clocks count only after a reboot, and only when they do not lie behind what was signed before.
 * The state is a plain value; who holds it writes it down.
 */
export interface TrustedClockState {
  /** The latest signed time ever accepted, ms. Never lowered but by a new time epoch. */
  readonly highWaterMs: number
  /** Root may open a new time epoch that lowers the mark. */
  readonly epoch: number
  /** Now = anchorMs + elapsed − anchorElapsedMs, within one boot. */
  readonly anchorMs: number
  readonly anchorElapsedMs: number
  readonly bootId: string
  readonly trust: ClockTrust
  /** A signed time far ahead of our own, waiting for a second one. */
  readonly unconfirmed?: { readonly signedMs: number; readonly elapsedMs: number }
}

/** signed: rests on the cloud's signature · rtc: on a real-time clock after a reboot · home: on the word of the store's home of receipts · none: on nothing. */
export type ClockTrust = 'signed' | 'rtc' | 'home' | 'none'

export interface SignedTime {
  ms: number
  epoch: number
  /** It answers a question that we asked, so it cannot be an old one: only then may it set the time back. */
  answersChallenge: boolean
}

/** A step beyond our own elapsed time that is not believed at once, ms. */
const STEP_LIMIT_MS = 10 * 60_000
/** How much later the second answer must come, ms. */
const SECOND_ANSWER_AFTER_MS = 60_000

/** What was signed so long ago may just have arrived, ms; what is older says nothing of a doubt. */
const DELIVERY_DELAY_MS = 5_000

/** The clock of an agent that has just heard its first signed time. */
export function startTrustedClock(time: SignedTime, clock: Clock): TrustedClockState {
  return anchoredAt({ highWaterMs: time.ms, epoch: time.epoch }, time.ms, 'signed', clock)
}

function anchoredAt(
  mark: { highWaterMs: number; epoch: number },
  ms: number,
  trust: ClockTrust,
  clock: Clock,
): TrustedClockState {
  return { ...mark, anchorMs: ms, anchorElapsedMs: clock.elapsed(), bootId: clock.bootId, trust }
}

/** Now, ms since 1970, and what that rests on. Whole within one boot; call `resumeAfterBoot` first in a new one. */
export function trustedNow(state: TrustedClockState, clock: Clock): { nowMs: number; trust: ClockTrust } {
  const passed = state.bootId === clock.bootId ? clock.elapsed() - state.anchorElapsedMs : 0
  const trust = state.bootId === clock.bootId && !state.unconfirmed ? state.trust : 'none'
  return { nowMs: Math.max(state.anchorMs + passed, state.highWaterMs), trust }
}

/** To be called at start: after a reboot elapsed time has begun anew, and a real-time clock counts if it is at or past the mark. */
export function resumeAfterBoot(state: TrustedClockState, clock: Clock): TrustedClockState {
  if (state.bootId === clock.bootId) return state
  const mark = { highWaterMs: state.highWaterMs, epoch: state.epoch }
  const wall = clock.wall()
  return wall >= state.highWaterMs
    ? anchoredAt(mark, wall, 'rtc', clock)
    : anchoredAt(mark, state.highWaterMs, 'none', clock)
}

/** After a reboot without a clock of its own: the time of the store's home counts as a real-time clock does, if it is at or past the mark. */
export function applyHomeTime(state: TrustedClockState, clock: Clock, ms: number): TrustedClockState {
  // What a signed time has put in doubt another one decides.
  if (state.trust !== 'none' || state.unconfirmed || ms < state.highWaterMs) return state
  return anchoredAt({ highWaterMs: state.highWaterMs, epoch: state.epoch }, ms, 'home', clock)
}

export type SignedTimeVerdict = 'accepted' | 'unconfirmed' | 'ignored'

/** Takes a signed time into account. `unconfirmed`: far ahead of our own; until a second one agrees, the clock is untrusted. */
export function applySignedTime(
  state: TrustedClockState,
  clock: Clock,
  time: SignedTime,
): { state: TrustedClockState; verdict: SignedTimeVerdict } {
  if (time.epoch > state.epoch) return beginEpoch(state, clock, time)
  if (time.epoch < state.epoch || time.ms < state.highWaterMs) return { state, verdict: 'ignored' }

  const { nowMs } = trustedNow(state, clock)
  const mark = { highWaterMs: time.ms, epoch: time.epoch }
  if (time.ms <= nowMs + STEP_LIMIT_MS) {
    // A late copy of a true document must not set us back, nor vouch for what we have instead; an answer to our own question may do both.
    if (time.answersChallenge || time.ms >= nowMs)
      return { state: anchoredAt(mark, time.ms, 'signed', clock), verdict: 'accepted' }
    const { unconfirmed } = state
    const isOld = nowMs - time.ms > DELIVERY_DELAY_MS
    return {
      state: { ...anchoredAt(mark, nowMs, state.trust, clock), ...(isOld && unconfirmed && { unconfirmed }) },
      verdict: 'accepted',
    }
  }
  const { unconfirmed } = state
  if (unconfirmed && clock.elapsed() - unconfirmed.elapsedMs >= SECOND_ANSWER_AFTER_MS) {
    const expected = unconfirmed.signedMs + clock.elapsed() - unconfirmed.elapsedMs
    if (Math.abs(time.ms - expected) <= STEP_LIMIT_MS)
      return { state: anchoredAt(mark, time.ms, 'signed', clock), verdict: 'accepted' }
  }
  const first =
    unconfirmed && Math.abs(time.ms - unconfirmed.signedMs - (clock.elapsed() - unconfirmed.elapsedMs)) <= STEP_LIMIT_MS
  return {
    state: first ? state : { ...state, unconfirmed: { signedMs: time.ms, elapsedMs: clock.elapsed() } },
    verdict: 'unconfirmed',
  }
}

/** Only the answer to our own question lowers the mark: a document of the new epoch may be an old copy, and counts where it would have in the former one. */
function beginEpoch(
  state: TrustedClockState,
  clock: Clock,
  time: SignedTime,
): { state: TrustedClockState; verdict: SignedTimeVerdict } {
  if (time.answersChallenge) return { state: startTrustedClock(time, clock), verdict: 'accepted' }
  const judged = applySignedTime(state, clock, { ...time, epoch: state.epoch })
  return judged.verdict === 'accepted' ? { ...judged, state: { ...judged.state, epoch: time.epoch } } : judged
}
