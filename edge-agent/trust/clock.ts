import type { Clock } from '../../policy/platform.ts'
import { afterBoot, offerSignedTime, startTrustedClock, trustedNow, type ClockTrust, type SignedTime, type SignedTimeVerdict, type TrustedClockState } from '../../policy/trusted-clock.ts'
import type { Ledger } from '../ledger/ledger.ts'

/** The agent's trusted clock, kept in the ledger. */
export interface AgentClock {
  /** Trusted now, whole ms, and what that rests on. */
  now(): { nowMs: number; trust: ClockTrust }
  /** Takes a signed time into account and writes it down. */
  offer(time: SignedTime): SignedTimeVerdict
}

const MARK = 'clock'

/** The trusted clock of contracts §4, with its marks in the ledger. */
export function openAgentClock(ledger: Ledger, clock: Clock): AgentClock {
  const stored = ledger.marks.get(MARK)
  let state = stored === undefined ? undefined : afterBoot(JSON.parse(stored) as TrustedClockState, clock)
  return {
    now() {
      // Before the first signed time there is nothing to go by: only what needs no clock works.
      const { nowMs, trust } = state ? trustedNow(state, clock) : { nowMs: clock.wall(), trust: 'none' as const }
      return { nowMs: Math.floor(nowMs), trust }
    },
    offer(time) {
      const offered = state ? offerSignedTime(state, clock, time) : { state: startTrustedClock(time, clock), verdict: 'accepted' as const }
      if (offered.state !== state) {
        state = offered.state
        ledger.commits.now(() => ledger.marks.set(MARK, JSON.stringify(state)))
      }
      return offered.verdict
    },
  }
}
