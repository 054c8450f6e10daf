import type { SignedTime, SignedTimeVerdict } from '../../../policy/trusted-clock.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { AgentClock } from './clock.ts'
import type { CloudContact } from './cloud-contact.ts'

/**
 *   a freshness key is revoked ─▶ key set with a new time epoch (signed by the root) ─▶ the answer to our question ─▶ the clock restarts
 *
 * A thief of a freshness key can sign a future time, and trusted time never decreases. Only a new epoch lowers it, and only the root
 * opens an epoch. See ADR 0015.
 */
export interface TimeEpochs {
  /** The key set in use counts time in this epoch. */
  readonly current: number
  follow(epoch: number): void
  /** True while the clock still uses an earlier epoch. */
  readonly isBehind: boolean
  /** Offers a signed time to the clock. */
  offer(time: SignedTime): SignedTimeVerdict
}

/** Allowed difference between clocks, ms. */
const GUARD_MS = 60_000

/** Starts with epoch 0, before the first key set. */
export function timeEpochs(
  ledger: Pick<Ledger, 'commits' | 'claims' | 'cloudGeneration'>,
  clock: AgentClock,
  heard: CloudContact,
): TimeEpochs {
  const { commits, claims, cloudGeneration } = ledger
  let current = 0

  /** Corrects everything that used the wrong time. */
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
