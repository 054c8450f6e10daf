import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { claimedKeyId } from '../../policy/documents/signed-document.ts'
import { contentHash, PolicyClaims, KeySetClaims } from '../../policy/documents/store-documents.ts'
import type { Identity } from '../identity/identity.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { judgeVersion, type DocumentHead } from './judge-version.ts'
import type { TrustedKeySet } from './trusted-key-set.ts'
import { nowSeconds, type AgentClock } from './time/clock.ts'
import { openClaims, openStoredClaims, withRetiredKeys, type Acceptance, rootRing } from './verify/open-claims.ts'
import { keyRing } from '../../policy/documents/keys.ts'
import type { Metadata } from '../ledger/file/watermark.ts'

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
