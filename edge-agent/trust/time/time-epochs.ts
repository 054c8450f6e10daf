import type { SignedTime, SignedTimeVerdict } from '../../../policy/trusted-clock.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { AgentClock } from './clock.ts'
import type { CloudContact } from './cloud-contact.ts'

/**
 * The time epoch of this agent. A thief of a freshness key can sign a future time, and the high-water mark of the clock
 * does not decrease within an epoch. So the key set that revokes this freshness key begins a new epoch. In a new epoch,
 * the answer to a time request may lower the high-water mark. Only the root key signs key sets. See ADR 0015.
 */
export interface TimeEpochs {
  /** Time epoch of the key set in use. */
  readonly current: number
  /** Sets the epoch of a new key set. */
  follow(epoch: number): void
  /** True until the clock has a signed time of the current epoch. */
  readonly isBehind: boolean
  /**
   * Passes a signed time to the clock. If a time of a new epoch sets the clock back, corrects the times that the ledger
   * stores.
   */
  offer(time: SignedTime): SignedTimeVerdict
}

/** Allowed difference between clocks, ms. */
const GUARD_MS = 60_000

/** Creates the epochs. The epoch is 0 before the first key set. */
export function timeEpochs(
  ledger: Pick<Ledger, 'commits' | 'claims' | 'cloudGeneration'>,
  clock: AgentClock,
  contact: CloudContact,
): TimeEpochs {
  const { commits, claims, cloudGeneration } = ledger
  let current = 0

  /** Corrects stored values that came from the wrong time. */
  function setBack(toMs: number): void {
    const toS = Math.floor(toMs / 1_000)
    cloudGeneration.dropTokensBefore(toS)
    claims.rewindTo(toS)
    contact.rewindTo(toMs)
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
