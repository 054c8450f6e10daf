import type { Clock } from '../../../policy/platform.ts'
import {
  resumeAfterBoot,
  applyHomeTime,
  applySignedTime,
  startTrustedClock,
  trustedNow,
  type ClockTrust,
  type SignedTime,
  type SignedTimeVerdict,
  type TrustedClockState,
} from '../../../policy/trusted-clock.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/**
 * The agent's trusted clock. Its sources are signed times, the receipt home and the clock of the machine. The ledger
 * stores the state of the clock. The answer to a time request may set the clock back to the high-water mark. Only in a
 * new time epoch may the answer also lower this mark.
 */
export interface AgentClock {
  /** Trusted time, whole ms, and its source. */
  now(): { nowMs: number; trust: ClockTrust }
  /** Time epoch of the last signed time; -1 before the first. */
  readonly epoch: number
  /** Applies a signed time and stores it, at most once a minute if it says nothing new. If the disk is full, throws and ignores the time. */
  offer(time: SignedTime): SignedTimeVerdict
  /** Applies the time of the receipt home, ms, if there is no better source. */
  offerHome(ms: number): void
}

/**
 * Returns the time for the validation of tokens and receipts, s. Without trusted time, the returned time is only a
 * lower bound.
 */
export function validationTime(clock: Pick<AgentClock, 'now'>): { now: number; nowIsLowerBound: boolean } {
  const { nowMs, trust } = clock.now()
  return { now: nowMs / 1_000, nowIsLowerBound: trust === 'none' }
}

/** Returns trusted time, s. Undefined without trusted time; then versions alone decide which document is newer. */
export function nowSeconds(clock: Pick<AgentClock, 'now'>): number | undefined {
  const { nowMs, trust } = clock.now()
  return trust === 'none' ? undefined : nowMs / 1_000
}

const CLOCK_STATE = 'clock'

/** The stored high-water mark may be this old, ms. Each signed time would else be a commit: seven a minute when idle. */
const STEP_MS = 60_000
/** Largest difference between this clock and a signed time that need not be corrected, ms. */
const DRIFT_MS = 250

/** True if the offered state says no more than the known one: almost the same time, almost the same mark. */
function isSmallStep(known: TrustedClockState, offered: TrustedClockState, clock: Clock): boolean {
  const isSameKind =
    offered.epoch === known.epoch &&
    offered.bootId === known.bootId &&
    offered.trust === known.trust &&
    !offered.unconfirmed &&
    !known.unconfirmed
  const isNear = Math.abs(trustedNow(offered, clock).nowMs - trustedNow(known, clock).nowMs) <= DRIFT_MS
  return isSameKind && isNear && offered.highWaterMs - known.highWaterMs < STEP_MS
}

const parse = (text: string) => JSON.parse(text) as TrustedClockState

/** Opens the trusted clock (ADR trusted-time) with its state in this ledger. */
export function openAgentClock({ metadata, commits }: Pick<Ledger, 'metadata' | 'commits'>, clock: Clock): AgentClock {
  const textAtOpen = metadata.getCached(CLOCK_STATE)
  const stateAtOpen = textAtOpen === undefined ? undefined : resumeAfterBoot(parse(textAtOpen), clock)
  let [text, state] = [textAtOpen, stateAtOpen]

  /** Reads only committed state, so a rolled back transaction sets no time. */
  function current(): TrustedClockState | undefined {
    const stored = metadata.getCached(CLOCK_STATE)
    if (stored !== text)
      [text, state] = [stored, stored === textAtOpen || stored === undefined ? stateAtOpen : parse(stored)]
    return state
  }

  return {
    now() {
      const known = current()
      // Before the first signed time there is no trusted time.
      const { nowMs, trust } = known ? trustedNow(known, clock) : { nowMs: clock.wall(), trust: 'none' as const }
      return { nowMs: Math.floor(nowMs), trust }
    },
    get epoch() {
      return current()?.epoch ?? -1
    },
    offer(time) {
      const known = current()
      const offered = known
        ? applySignedTime(known, clock, time)
        : { state: startTrustedClock(time, clock), verdict: 'accepted' as const }
      if (offered.state !== known && !(known && isSmallStep(known, offered.state, clock)))
        commits.now(() => metadata.set(CLOCK_STATE, JSON.stringify(offered.state)))
      return offered.verdict
    },
    offerHome(ms) {
      const known = current()
      const offered = known && applyHomeTime(known, clock, ms)
      if (offered && offered !== known) commits.now(() => metadata.set(CLOCK_STATE, JSON.stringify(offered)))
    },
  }
}
