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
 *   signed times, time of the receipt home, clock of the machine ─▶ trusted time ─▶ stored in the ledger: it never goes back
 *
 * The agent's trusted clock. The ledger stores its state.
 */
export interface AgentClock {
  /** Trusted time, whole ms, and its source. */
  now(): { nowMs: number; trust: ClockTrust }
  /** The epoch of the last signed time; before the first, below all. */
  readonly epoch: number
  /** Applies a signed time and stores it. Throws if the disk is full; the time is then ignored. */
  offer(time: SignedTime): SignedTimeVerdict
  /** Applies the time of the receipt home, ms, if there is no better source. */
  offerHome(ms: number): void
}

/** Time for the validation of tokens and receipts, s. `isAtLeast`: there is no trusted time, only a lower bound. */
export function validationTime(clock: Pick<AgentClock, 'now'>): { now: number; nowIsLowerBound: boolean } {
  const { nowMs, trust } = clock.now()
  return { now: nowMs / 1_000, nowIsLowerBound: trust === 'none' }
}

/** Trusted time, s. Undefined if there is none; then only versions show which document is newer. */
export function nowSeconds(clock: Pick<AgentClock, 'now'>): number | undefined {
  const { nowMs, trust } = clock.now()
  return trust === 'none' ? undefined : nowMs / 1_000
}

const CLOCK_STATE = 'clock'

const parse = (text: string) => JSON.parse(text) as TrustedClockState

/** The trusted clock of ADR 0015, with its marks in the ledger. */
export function openAgentClock({ metadata, commits }: Pick<Ledger, 'metadata' | 'commits'>, clock: Clock): AgentClock {
  const found = metadata.getCached(CLOCK_STATE)
  const atOpen = found === undefined ? undefined : resumeAfterBoot(parse(found), clock)
  let [text, state] = [found, atOpen]

  /** Reads only committed state, so a rolled back transaction sets no time. */
  function current(): TrustedClockState | undefined {
    const kept = metadata.getCached(CLOCK_STATE)
    if (kept !== text) [text, state] = [kept, kept === found || kept === undefined ? atOpen : parse(kept)]
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
      if (offered.state !== known) commits.now(() => metadata.set(CLOCK_STATE, JSON.stringify(offered.state)))
      return offered.verdict
    },
    offerHome(ms) {
      const known = current()
      const offered = known && applyHomeTime(known, clock, ms)
      if (offered && offered !== known) commits.now(() => metadata.set(CLOCK_STATE, JSON.stringify(offered)))
    },
  }
}
