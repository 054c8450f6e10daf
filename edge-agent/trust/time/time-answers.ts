import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { keyRing, type KeyRecord, type KeyRing } from '../../../policy/documents/keys.ts'
import { compareVersions, TimeClaims, type KeySetClaims } from '../../../policy/documents/store-documents.ts'
import type { SignedTimeVerdict } from '../../../policy/trusted-clock.ts'
import { openClaims, refused, type Refusal } from '../verify/open-claims.ts'

/**
 * Answers to time requests of this agent, and the keys that verify them.
 *
 * If a hardware clock is years ahead, every key set looks expired, also the one that could verify the correct time. So the newest such set,
 * signed by the root, verifies one time answer, within its own validity.
 */
export interface TimeAnswers {
  /** Offers a newer key set that only the local clock rejects. */
  offerKeySet(keySet: KeySetClaims): void
  /** Drops the offered key set after another one was accepted. */
  clear(): void
  /** True while an offered key set waits for a time answer. */
  readonly isPending: boolean
  /** Verifies an answer. `timeEpoch` is the epoch of the key set that verified it; `current` is the epoch of `keys`. */
  open(jws: string, nonce: string, keys: KeyRing, current: number): OpenedTime
}

export type OpenedTime = { ok: true; claims: TimeClaims; timeEpoch: number } | { ok: false; refusal: Refusal }

/** A freshness may be this much newer than a time answer that crossed it, ms. */
const OVERTAKEN_MS = 60_000

/** Turns the verdict of the trusted clock into a refusal. `behindMs`: how far the answer is behind trusted time. */
export function timeRefusal(verdict: SignedTimeVerdict, behindMs: number): (Refusal & { isDoubted: true }) | undefined {
  if (verdict === 'unconfirmed')
    return { ...refused('its time is far ahead of the clock of this agent'), isDoubted: true }
  // The cloud's clock is or was wrong: its grants would already be expired here.
  if (verdict === 'ignored' && behindMs > OVERTAKEN_MS)
    return {
      ...refused(`its time is ${Math.round(behindMs / 1_000)} s before an earlier signed time`),
      isDoubted: true,
    }
  return undefined
}

/** Opens the time answers. `kept` adds the stored revocations to keys (revoked-keys.ts). */
export function timeAnswers(kept: (keys: readonly KeyRecord[]) => KeyRecord[]): TimeAnswers {
  let newer: KeySetClaims | undefined
  let isAwaited = false

  const openWith = (jws: string, nonce: string, keys: KeyRing) =>
    openClaims(jws, DOCUMENT_KINDS.time, keys, nonce, TimeClaims, undefined)

  return {
    offerKeySet(keySet) {
      if (newer && compareVersions(keySet, newer) <= 0) return
      newer = keySet
      isAwaited = true
    },
    clear() {
      newer = undefined
      isAwaited = false
    },
    get isPending() {
      return isAwaited
    },
    open(jws, nonce, keys, current) {
      const opened = openWith(jws, nonce, keys)
      const byOurs: OpenedTime = opened.ok ? { ...opened, timeEpoch: current } : opened
      // Signed with a key that was published ahead, it may still count time as only the newer set does.
      if (!newer || (opened.ok && opened.claims.timeEpoch <= current)) return byOurs
      const again = openWith(jws, nonce, keyRing(kept(newer.keys)))
      if (!again.ok) return byOurs
      const seconds = again.claims.timeMs / 1_000
      if (seconds < newer.iat || seconds >= newer.exp) return byOurs
      isAwaited = false
      return { ...again, timeEpoch: newer.timeEpoch ?? 0 }
    },
  }
}
