import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { keyRing, type KeyRing, type VerificationKey } from '../../policy/documents/keys.ts'
import { contentHash, KeySetClaims } from '../../policy/documents/store-documents.ts'
import type { Identity } from '../identity/identity.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { judgeVersion, type DocumentHead } from './judge-version.ts'
import type { KeyCompromise, RevokedKeys } from './revocation/revoked-keys.ts'
import { nowSeconds, type AgentClock } from './time/clock.ts'
import type { TimeAnswers } from './time/time-answers.ts'
import { openClaims, openStoredClaims, type Acceptance, rootRing } from './verify/open-claims.ts'

interface KeySetParts {
  identity: Identity
  ledger: Pick<Ledger, 'metadata' | 'commits'>
  clock: AgentClock
  revoked: RevokedKeys
  timeAnswers: TimeAnswers
  compromise: KeyCompromise
}

/**
 * The key set in use. The root key must have signed the key set. If only the local clock rejects a newer key set, the
 * agent holds that set in memory, to verify the next signed time.
 */
export class TrustedKeySet {
  readonly #parts: KeySetParts
  readonly #root: KeyRing
  #keys: KeyRing = new Map<string, VerificationKey>()
  #claims: KeySetClaims | undefined

  /** Opens the stored key set. */
  constructor(parts: KeySetParts) {
    this.#parts = parts
    this.#root = rootRing(parts.identity)
    const { metadata } = parts.ledger
    const stored = metadata.document('keys')
    const claims = stored && this.#openStored(stored.jws)
    if (claims) this.#use(claims)
  }

  /** The keys of this key set. A key that was ever revoked stays revoked. */
  get keys(): KeyRing {
    return this.#keys
  }

  get claims(): KeySetClaims | undefined {
    return this.#claims
  }

  get head(): DocumentHead | undefined {
    return this.#parts.ledger.metadata.head('keys')
  }

  /** Time epoch of this key set; 0 before the first key set. */
  get timeEpoch(): number {
    return this.#claims?.timeEpoch ?? 0
  }

  isRevoked(kid: string | undefined): boolean {
    return kid !== undefined && this.#keys.get(kid)?.state === 'revoked'
  }

  /** Verifies a key set and stores it if it is newer. `namedFor`: see `Freshness.keysNamedFor`. */
  accept(jws: string, namedFor: (claims: KeySetClaims) => DocumentHead | undefined): Acceptance {
    const { identity, clock, timeAnswers } = this.#parts
    const opened = openClaims(jws, DOCUMENT_KINDS.keys, this.#root, identity.tenant, KeySetClaims, nowSeconds(clock))
    if (!opened.ok) {
      this.#offerForTime(jws, namedFor)
      return opened.refusal
    }
    const { claims } = opened
    const known = judgeVersion('keys', claims, this.head, namedFor(claims))
    if (known) return known
    this.#store(jws, claims)
    this.#use(claims)
    timeAnswers.clear()
    return { taken: true, kind: 'keys' }
  }

  #use(claims: KeySetClaims): void {
    this.#claims = claims
    this.#keys = keyRing(this.#parts.revoked.withRevocations(claims.keys))
  }

  /** Stores the key set and its revocations in one transaction, so that a crash cannot separate them. */
  #store(jws: string, claims: KeySetClaims): void {
    const { ledger, compromise, revoked } = this.#parts
    const former = ledger.metadata.document('keys')
    const before = former && this.#openStored(former.jws)
    ledger.commits.now(() => {
      ledger.metadata.setDocument('keys', { epoch: claims.epoch, ver: claims.ver, hash: contentHash(claims), jws })
      compromise.onRevoked(revoked.replaceKeySet(claims, former && before && { ...before, jws: former.jws }))
    })
  }

  /**
   * If a newer key set fails the check of its times, passes the newer key set to `timeAnswers`. The newer key set can
   * then verify the next signed time. Does nothing if the clock has a signed time of the same or a later epoch.
   */
  #offerForTime(jws: string, namedFor: (claims: KeySetClaims) => DocumentHead | undefined): void {
    const { clock, timeAnswers } = this.#parts
    const claims = this.#openStored(jws)
    if (!claims || (clock.now().trust === 'signed' && (claims.timeEpoch ?? 0) <= clock.epoch)) return
    if (!judgeVersion('keys', claims, this.head, namedFor(claims))) timeAnswers.offerKeySet(claims)
  }

  #openStored(jws: string): KeySetClaims | undefined {
    return openStoredClaims(jws, DOCUMENT_KINDS.keys, this.#root, this.#parts.identity.tenant, KeySetClaims)
  }
}
