import type { SignedTime, SignedTimeVerdict } from '../../../policy/trusted-clock.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { AgentClock } from './clock.ts'
import type { CloudContact } from './cloud-contact.ts'

/**
 *   a freshness key is revoked ─▶ key set with a new time epoch (signed by the root) ─▶ the answer to our question ─▶ the clock begins anew
 *
 * Whoever had the key may have told any time, and trusted time never falls. Only a new epoch lowers it, which only the root opens; times of
 * another one are not judged.
 */
export interface TimeEpochs {
  /** The key set in use counts time in this epoch. */
  readonly current: number
  follow(epoch: number): void
  /** The clock is in a former one still. */
  readonly isBehind: boolean
  /** Takes a time of the current epoch, or of a newer key set's that is known for it. */
  offer(time: SignedTime): SignedTimeVerdict
}

/** Clocks may differ by so much anyway, ms. */
const GUARD_MS = 60_000

/** Begins with the epoch that no key set names. */
export function timeEpochs(
  ledger: Pick<Ledger, 'commits' | 'claims' | 'cloudGeneration'>,
  clock: AgentClock,
  heard: CloudContact,
): TimeEpochs {
  const { commits, claims, cloudGeneration } = ledger
  let current = 0

  /** What was given, forgotten or heard by the wrong time. */
  function setBack(toMs: number): void {
    const toS = Math.floor(toMs / 1_000)
    cloudGeneration.dropTokensBefore(toS)
    claims.rewindTo(toS)
    heard.rewindTo(toMs)
  }

  return {
    get current() {
      return current
    },
    follow: (epoch) => void (current = epoch),
    get isBehind() {
      return clock.epoch < current
    },
    offer: (time) =>
      commits.now(() => {
        const [before, isNew] = [clock.now().nowMs, time.epoch > clock.epoch]
        const verdict = clock.offer(time)
        const { nowMs } = clock.now()
        if (verdict === 'accepted' && isNew && (before - nowMs > GUARD_MS || claims.floor * 1_000 > nowMs))
          setBack(nowMs)
        return verdict
      }),
  }
}
