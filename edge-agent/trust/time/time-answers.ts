import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { keyRing, type KeyRecord, type KeyRing } from '../../../policy/documents/keys.ts'
import { compareVersions, TimeClaims, type KeySetClaims } from '../../../policy/documents/store-documents.ts'
import type { SignedTimeVerdict, SignedTime } from '../../../policy/trusted-clock.ts'
import { openClaims, refused, type Refusal } from '../verify/open-claims.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { AgentClock } from './clock.ts'
import type { CloudContact } from './cloud-contact.ts'

/**
 * The time epoch of this agent. A thief of a freshness key can sign a future time, and the high-water mark of the clock
 * does not decrease within an epoch. So the key set that revokes this freshness key begins a new epoch. In a new epoch,
 * the answer to a time request may lower the high-water mark. Only the root key signs key sets. See ADR trusted-time.
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

/**
 * Verifies the cloud's answers to time requests of this agent.
 *
 * If the hardware clock is years ahead, the agent rejects each new key set as expired, and then no key set can verify
 * the correct time. Therefore the newest rejected key set may verify a time answer. The root key must have signed the
 * set, and the time in the answer must be within the validity of the set.
 */
export interface TimeAnswers {
  /** Offers a newer key set that the agent rejected only because of its own clock. */
  offerKeySet(keySet: KeySetClaims): void
  /** Discards the offered key set. Call it after another key set was accepted. */
  clear(): void
  /** True while the agent should request the time because of an offered key set. */
  readonly isPending: boolean
  /**
   * Verifies an answer. `current`: time epoch of `keys`. The result has the epoch of the key set that verified the
   * answer.
   */
  open(jws: string, nonce: string, keys: KeyRing, current: number): OpenedTime
}

type OpenedTime = { ok: true; claims: TimeClaims; timeEpoch: number } | { ok: false; refusal: Refusal }

/**
 * A freshness may overtake a time answer on the network. Then the time answer may be older by at most this time, ms.
 */
const OVERTAKEN_MS = 60_000

/**
 * Returns the refusal for a verdict of the trusted clock, if any. `behindMs`: trusted time minus the time in the
 * answer.
 */
export function timeRefusal(
  verdict: SignedTimeVerdict,
  behindMs: number,
): (Refusal & { needsConfirmation: true }) | undefined {
  if (verdict === 'unconfirmed')
    return { ...refused('its time is far ahead of the clock of this agent'), needsConfirmation: true }
  // If the answer is more than OVERTAKEN_MS before an earlier signed time, the cloud's clock is slow now, or was fast
  // then. If the agent kept its later time, it would reject new tokens of the cloud as expired. So the agent needs a
  // confirmation.
  if (verdict === 'ignored' && behindMs > OVERTAKEN_MS)
    return {
      ...refused(`its time is ${Math.round(behindMs / 1_000)} s before an earlier signed time`),
      needsConfirmation: true,
    }
  return undefined
}

/** Creates the verifier. `withRevocations` marks revoked keys (revoked-keys.ts). */
export function timeAnswers(withRevocations: (keys: readonly KeyRecord[]) => KeyRecord[]): TimeAnswers {
  let newer: KeySetClaims | undefined
  let isPending = false

  const openWith = (jws: string, nonce: string, keys: KeyRing) =>
    openClaims(jws, DOCUMENT_KINDS.time, keys, nonce, TimeClaims, undefined)

  return {
    offerKeySet(keySet) {
      if (newer && compareVersions(keySet, newer) <= 0) return
      newer = keySet
      isPending = true
    },
    clear() {
      newer = undefined
      isPending = false
    },
    get isPending() {
      return isPending
    },
    open(jws, nonce, keys, current) {
      const opened = openWith(jws, nonce, keys)
      const byCurrentKeys: OpenedTime = opened.ok ? { ...opened, timeEpoch: current } : opened
      // The answer may contain a later epoch although a key of the current key set signed it. Only the offered key set
      // can prove that epoch.
      if (!newer || (opened.ok && opened.claims.timeEpoch <= current)) return byCurrentKeys
      const again = openWith(jws, nonce, keyRing(withRevocations(newer.keys)))
      if (!again.ok) return byCurrentKeys
      const seconds = again.claims.timeMs / 1_000
      if (seconds < newer.iat || seconds >= newer.exp) return byCurrentKeys
      isPending = false
      return { ...again, timeEpoch: newer.timeEpoch ?? 0 }
    },
  }
}
