import {
  compareVersions,
  contentHash,
  type DocumentVersion,
  KeySetClaims,
  PolicyClaims,
} from '../../policy/documents/store-documents.ts'
import {
  refused,
  type Acceptance,
  openClaims,
  openStoredClaims,
  rootRing,
  withRetiredKeys,
} from './verify/open-claims.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { keyRing, type KeyRing, type VerificationKey } from '../../policy/documents/keys.ts'
import type { Identity } from '../identity/identity.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { KeyCompromise, RevokedKeys } from './revocation/revoked-keys.ts'
import { nowSeconds, type AgentClock } from './time/clock.ts'
import type { TimeAnswers } from './time/time-answers.ts'
import { claimedKeyId } from '../../policy/documents/signed-document.ts'
import type { Metadata } from '../ledger/file/watermark.ts'

/** A version with the hash of its content. */
export type DocumentHead = DocumentVersion & { hash: string }

/** Result for a document that the agent already has. */
export const KNOWN = { taken: false, why: 'known' } as const

/**
 * Returns undefined if the version is newer than `have`, the held version. Returns `known` for the held version with
 * the same content. Otherwise returns a refusal. `named`: the version that the freshness names.
 */
function judgeVersion(
  kind: 'keys' | 'policy',
  claims: DocumentVersion & { iat: number; exp: number },
  have: DocumentHead | undefined,
  named: DocumentHead | undefined,
): Extract<Acceptance, { taken: false }> | undefined {
  const hash = contentHash(claims)
  // The freshness contains the hash of each version. So the agent rejects the same version with other content, such
  // as from a restored cloud.
  if (named && compareVersions(claims, named) === 0 && hash !== named.hash)
    return refused(`${kind} ${claims.epoch}.${claims.ver} is not the version that the freshness names`)
  if (!have) return undefined
  const order = compareVersions(claims, have)
  if (order > 0) return undefined
  if (order < 0)
    return {
      ...refused(`${kind} ${claims.epoch}.${claims.ver} is older than ${have.epoch}.${have.ver}`),
      isOlderThan: kind,
    }
  return hash === have.hash ? KNOWN : refused(`${kind} ${claims.ver} has different content than the held one`)
}

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

/**
 * Returns the last accepted policy, for command line tools that run in their own process. Undefined before the first
 * policy, or if the signature of the policy is invalid. Decisions use `Trust`, which also checks revoked keys.
 */
export function storedPolicy(
  identity: Pick<Identity, 'rootX' | 'tenant' | 'storeId'>,
  metadata: Pick<Metadata, 'document'>,
): PolicyClaims | undefined {
  const { tenant, storeId } = identity
  const root = rootRing(identity)
  const keys = openStoredClaims(metadata.document('keys')?.jws ?? '', DOCUMENT_KINDS.keys, root, tenant, KeySetClaims)
  if (!keys) return undefined
  const ring = withRetiredKeys(keyRing(keys.keys))
  return openStoredClaims(metadata.document('policy')?.jws ?? '', DOCUMENT_KINDS.policy, ring, storeId, PolicyClaims)
}

interface PolicyParts {
  identity: Identity
  ledger: Pick<Ledger, 'metadata' | 'commits'>
  clock: AgentClock
  keySet: TrustedKeySet
}

/**
 * The policy in use. The policy stays valid when its key retires. If its key is revoked, the agent discards the policy.
 */
export class TrustedPolicy {
  readonly #parts: PolicyParts
  #claims: PolicyClaims | undefined
  #hash: string | undefined
  /**
   * True if the key of the stored policy was revoked. A thief of the key may have chosen the content and version of the
   * policy, so the agent ignores both.
   */
  #isDropped = false

  /** Opens the stored policy. */
  constructor(parts: PolicyParts) {
    this.#parts = parts
    const { identity, ledger, keySet } = parts
    this.followKeySet()
    const stored = ledger.metadata.document('policy')
    const ring = withRetiredKeys(keySet.keys)
    this.#use(stored && openStoredClaims(stored.jws, DOCUMENT_KINDS.policy, ring, identity.storeId, PolicyClaims))
  }

  get claims(): PolicyClaims | undefined {
    return this.#claims
  }

  get hash(): string | undefined {
    return this.#hash
  }

  get head(): DocumentHead | undefined {
    return this.#isDropped ? undefined : this.#parts.ledger.metadata.head('policy')
  }

  /** Discards the policy if the new key set revokes its key. Call it after each change of the key set. */
  followKeySet(): void {
    this.#isDropped = this.#parts.keySet.isRevoked(this.#storedKey)
    if (this.#isDropped) this.#claims = this.#hash = undefined
  }

  /** Verifies a policy and stores it if it is newer. `named`: the policy that the freshness names. */
  accept(jws: string, named: DocumentHead | undefined): Acceptance {
    const { identity, clock, keySet } = this.#parts
    const now = nowSeconds(clock)
    const opened = openClaims(jws, DOCUMENT_KINDS.policy, keySet.keys, identity.storeId, PolicyClaims, now)
    if (!opened.ok) return opened.refusal
    const known = judgeVersion('policy', opened.claims, this.head, named)
    if (known?.why === 'refused') return known
    // If the policy is the held policy, but signed with another key, stores the new copy: the former key may retire.
    if (known && claimedKeyId(jws, DOCUMENT_KINDS.policy) !== this.#storedKey) this.#store(jws, opened.claims)
    // `#claims` is undefined if the key of the stored policy is missing in the key set or was revoked. The agent then
    // uses the new copy.
    if (known && this.#claims) return known
    this.#replace(jws, opened.claims)
    return { taken: true, kind: 'policy' }
  }

  #replace(jws: string, claims: PolicyClaims): void {
    this.#store(jws, claims)
    this.#isDropped = false
    this.#use(claims)
  }

  #use(claims: PolicyClaims | undefined): void {
    if (!claims) return
    this.#claims = claims
    this.#hash = contentHash(claims)
  }

  #store(jws: string, claims: PolicyClaims): void {
    const { metadata, commits } = this.#parts.ledger
    const document = { epoch: claims.epoch, ver: claims.ver, hash: contentHash(claims), jws }
    commits.now(() => metadata.setDocument('policy', document))
  }

  /** Id of the key that the stored policy names. The signature of the policy is not verified here. */
  get #storedKey(): string | undefined {
    return claimedKeyId(this.#parts.ledger.metadata.document('policy')?.jws ?? '', DOCUMENT_KINDS.policy)
  }
}
