import type { Clock } from './platform.ts'

/**
 * Trusted time (ADR trusted-time): the latest signed time plus the elapsed time since. The wall clock is used only after a
 * reboot, and only if the wall clock is at or past the latest signed time. The caller stores the state.
 */
export interface TrustedClockState {
  /** High-water mark: latest accepted signed time, ms. Only a new time epoch lowers this mark. */
  readonly highWaterMs: number
  /** Time epoch. Only the root key can start a new epoch, which may lower the mark. */
  readonly epoch: number
  /** Within one boot: now = anchorMs + elapsed − anchorElapsedMs. */
  readonly anchorMs: number
  readonly anchorElapsedMs: number
  readonly bootId: string
  readonly trust: ClockTrust
  /** Signed time far ahead of this clock. A second signed time must confirm this time. */
  readonly unconfirmed?: { readonly signedMs: number; readonly elapsedMs: number }
}

/**
 * Source of the time. signed: the cloud's signature · rtc: real-time clock after a reboot · home: receipt home · none:
 * untrusted.
 */
export type ClockTrust = 'signed' | 'rtc' | 'home' | 'none'

export interface SignedTime {
  ms: number
  epoch: number
  /**
   * True for the response to this agent's challenge. Only such a response may set the time back, because this response
   * cannot be a replay.
   */
  answersChallenge: boolean
}

/** Larger steps ahead need a second signed time, ms. */
const STEP_LIMIT_MS = 10 * 60_000
/** Minimum time between the first and the second signed time, ms. */
const SECOND_ANSWER_AFTER_MS = 60_000

/** Maximum delivery time of a document, ms. An older document cannot resolve an unconfirmed time. */
const DELIVERY_DELAY_MS = 5_000

/** Starts the clock with the first signed time. */
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

/** Returns the time, ms since 1970, and its source. In a new boot, call `resumeAfterBoot` first. */
export function trustedNow(state: TrustedClockState, clock: Clock): { nowMs: number; trust: ClockTrust } {
  const passed = state.bootId === clock.bootId ? clock.elapsed() - state.anchorElapsedMs : 0
  const trust = state.bootId === clock.bootId && !state.unconfirmed ? state.trust : 'none'
  return { nowMs: Math.max(state.anchorMs + passed, state.highWaterMs), trust }
}

/**
 * Call at start. After a reboot `elapsed` starts again. The time then comes from the real-time clock, if that clock is
 * not behind the high-water mark.
 */
export function resumeAfterBoot(state: TrustedClockState, clock: Clock): TrustedClockState {
  if (state.bootId === clock.bootId) return state
  const mark = { highWaterMs: state.highWaterMs, epoch: state.epoch }
  const wall = clock.wall()
  return wall >= state.highWaterMs
    ? anchoredAt(mark, wall, 'rtc', clock)
    : anchoredAt(mark, state.highWaterMs, 'none', clock)
}

/**
 * Applies the time of the receipt home after a reboot without a usable real-time clock. Ignores a time before the mark.
 */
export function applyHomeTime(state: TrustedClockState, clock: Clock, ms: number): TrustedClockState {
  // Only a signed time can resolve an unconfirmed time.
  if (state.trust !== 'none' || state.unconfirmed || ms < state.highWaterMs) return state
  return anchoredAt({ highWaterMs: state.highWaterMs, epoch: state.epoch }, ms, 'home', clock)
}

export type SignedTimeVerdict = 'accepted' | 'unconfirmed' | 'ignored'

/**
 * Applies a signed time. `unconfirmed`: the signed time is far ahead, and the clock is untrusted until a second signed
 * time agrees.
 */
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
    // A replayed document must not set the time back, nor confirm the current time. The response to the agent's
    // challenge may do both.
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

/**
 * Only the response to a challenge lowers the high-water mark. Another document of the new epoch may be a replay, so it
 * is treated like a document of the former epoch.
 */
function beginEpoch(
  state: TrustedClockState,
  clock: Clock,
  time: SignedTime,
): { state: TrustedClockState; verdict: SignedTimeVerdict } {
  if (time.answersChallenge) return { state: startTrustedClock(time, clock), verdict: 'accepted' }
  const judged = applySignedTime(state, clock, { ...time, epoch: state.epoch })
  return judged.verdict === 'accepted' ? { ...judged, state: { ...judged.state, epoch: time.epoch } } : judged
}
