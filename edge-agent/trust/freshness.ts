import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { claimedKeyId } from '../../policy/documents/signed-document.ts'
import {
  compareVersions,
  FreshClaims,
  type DocumentVersion,
  type KeySetClaims,
} from '../../policy/documents/store-documents.ts'
import type { Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { KNOWN, type DocumentHead } from './judge-version.ts'
import type { TrustedKeySet } from './trusted-key-set.ts'
import type { TrustedPolicy } from './trusted-policy.ts'
import type { Denials } from './revocation/denials.ts'
import { revokes } from './revocation/revoked-keys.ts'
import type { CloudContact } from './time/cloud-contact.ts'
import type { TimeEpochs } from './time/time-answers.ts'
import { openClaims, refused, type Acceptance, type Refusal } from './verify/open-claims.ts'

/** The documents of this agent that a freshness is compared with. */
interface LocalVersions {
  head(kind: 'keys' | 'policy'): DocumentHead | undefined
  /** Signing time of the document in use, s. Undefined if there is none. */
  signedS(kind: 'keys' | 'policy'): number | undefined
  /** Lowest cloud generation that this agent accepts. */
  readonly lowestGeneration: number
  /** Time epoch of the key set in use. */
  readonly timeEpoch: number
}

/** Maximum time for which two requests to the cloud overlap, s. */
const CONCURRENT_S = 5

/**
 * Returns a refusal if the freshness contradicts the held documents: an older version, different content of the same
 * version, or an unknown time epoch. `outdated`: the agent holds a document that is newer than the freshness. `keys
 * pending`: the freshness needs a newer key set.
 */
function freshnessConflict(
  fresh: FreshClaims,
  local: LocalVersions,
): Refusal | 'outdated' | 'keys pending' | undefined {
  const { lowestGeneration: generation } = local
  // The generation is too low if a cloud from before the restore still runs, or if two clouds were restored from one
  // backup.
  if (fresh.cloudGeneration < generation)
    return refused(
      `the freshness is from before the restore of the cloud (generation ${fresh.cloudGeneration}, not ${generation})`,
    )
  for (const kind of ['keys', 'policy'] as const) {
    const [have, named] = [local.head(kind), fresh[kind]]
    if (!have) continue
    const order = compareVersions(named, have)
    const signedS = local.signedS(kind)
    // The cloud signed the freshness before the held document, or at about the same time. So the older version is no
    // rollback.
    if (order < 0 && signedS !== undefined && fresh.timeMs / 1_000 < signedS + CONCURRENT_S) return 'outdated'
    // Only a restored cloud may name older versions; the generation of a restored cloud is higher.
    if (order < 0 && fresh.cloudGeneration <= generation)
      return refused(`the freshness names ${kind} ${named.epoch}.${named.ver}, older than ${have.epoch}.${have.ver}`)
    if (order === 0 && named.hash !== have.hash)
      return refused(`the freshness names different content of ${kind} ${named.epoch}.${named.ver}`)
  }
  return timeEpochConflict(fresh, local)
}

/**
 * Compares time epochs. The agent accepts a later epoch only after a key set has begun it: a thief of a freshness key
 * cannot sign key sets.
 */
function timeEpochConflict(
  { timeEpoch, keys }: FreshClaims,
  { timeEpoch: current, head }: LocalVersions,
): Refusal | 'outdated' | 'keys pending' | undefined {
  if (timeEpoch === current) return undefined
  if (timeEpoch < current) return 'outdated'
  const have = head('keys')
  return have && compareVersions(keys, have) <= 0
    ? refused(`the freshness has time epoch ${timeEpoch}, which no key set of the root opened`)
    : 'keys pending'
}

interface FreshnessParts {
  storeId: string
  ledger: Pick<Ledger, 'commits' | 'cloudGeneration'>
  keySet: TrustedKeySet
  policy: TrustedPolicy
  denials: Denials
  items: Replica | undefined
  times: TimeEpochs
  contact: CloudContact
}

/**
 * The newest freshness: which document versions the cloud had at which time. The freshness sets the trusted clock, and
 * shows whether this agent lacks a newer document. A freshness that names the held policy confirms this policy.
 */
export class Freshness {
  readonly #parts: FreshnessParts
  #claims: FreshClaims | undefined
  /** Id of the key that signed the freshness. */
  #key: string | undefined
  /** Newer key set that a rejected freshness named. */
  #pendingKeySet: DocumentVersion | undefined

  constructor(parts: FreshnessParts) {
    this.#parts = parts
  }

  accept(jws: string): Acceptance {
    const { storeId, ledger, keySet, items } = this.#parts
    // The freshness may correct a slow clock. So this check omits the times of the freshness, and the trusted clock
    // validates them later.
    const opened = openClaims(jws, DOCUMENT_KINDS.fresh, keySet.keys, storeId, FreshClaims, undefined)
    if (!opened.ok) return opened.refusal
    const { claims: fresh } = opened
    const have = this.#claims
    // Two freshness documents with the same time may name different item versions.
    if (have?.timeMs === fresh.timeMs) items?.compareHead(fresh.items, fresh.timeMs)
    if (have && fresh.timeEpoch === have.timeEpoch && fresh.timeMs <= have.timeMs) return KNOWN
    const conflict = this.#conflict(fresh)
    if (conflict === 'keys pending') this.#pendingKeySet = fresh.keys
    if (conflict !== undefined) return typeof conflict === 'string' ? KNOWN : conflict
    // All changes share one commit, and so one flush to disk.
    return ledger.commits.now(() => this.#apply(fresh, claimedKeyId(jws, DOCUMENT_KINDS.fresh)))
  }

  /**
   * The key set that the freshness names. Undefined if key set `claims` revokes the key of the freshness: a thief of
   * that key must not block the key set.
   */
  keysNamedFor(claims: KeySetClaims): DocumentHead | undefined {
    return revokes(claims.keys, this.#key) ? undefined : this.#claims?.keys
  }

  /** The policy that the freshness names. */
  get policyNamed(): DocumentHead | undefined {
    return this.#claims?.policy
  }

  /** Discards this freshness if the new key set revokes the key that signed it. */
  followKeySet(): void {
    if (this.#claims && this.#parts.keySet.isRevoked(this.#key)) this.#claims = undefined
  }

  /** Confirms the held policy if this freshness names that policy. */
  confirmPolicy(): void {
    const { policy, contact } = this.#parts
    const fresh = this.#claims
    if (fresh && fresh.policy.hash === policy.hash && fresh.timeMs > contact.policyConfirmedMs)
      contact.notePolicyConfirmed(fresh.timeMs)
  }

  /** Compares the items with the newest item version. Call it after a page of items was applied. */
  checkItems(): void {
    if (this.#claims) this.#parts.items?.compareHead(this.#claims.items, this.#claims.timeMs)
  }

  /** True if the freshness names a document that is newer than the held document. */
  get isAhead(): boolean {
    const { keySet, policy, denials, items } = this.#parts
    const [keys, have] = [keySet.head, policy.head]
    if (this.#pendingKeySet && compareVersions(this.#pendingKeySet, keys ?? { epoch: -1, ver: 0 }) > 0) return true
    const fresh = this.#claims
    if (!fresh) return false
    return (
      !keys ||
      !have ||
      !policy.claims ||
      compareVersions(fresh.keys, keys) > 0 ||
      compareVersions(fresh.policy, have) > 0 ||
      fresh.deny.ver > denials.seq ||
      items?.isBehind === true
    )
  }

  #conflict(fresh: FreshClaims): ReturnType<typeof freshnessConflict> {
    const { keySet, policy, ledger, times } = this.#parts
    const of = { keys: keySet, policy }
    return freshnessConflict(fresh, {
      head: (kind) => of[kind].head,
      signedS: (kind) => of[kind].claims?.iat,
      lowestGeneration: ledger.cloudGeneration.lowest,
      timeEpoch: times.current,
    })
  }

  #apply(fresh: FreshClaims, key: string | undefined): Acceptance {
    const { times, items, denials, contact, ledger } = this.#parts
    const verdict = times.offer({ ms: fresh.timeMs, epoch: fresh.timeEpoch, answersChallenge: false })
    if (verdict === 'ignored') return KNOWN
    if (verdict === 'unconfirmed') return refused('its time is far ahead of the clock of this agent')
    this.#claims = fresh
    this.#key = key
    items?.compareHead(fresh.items, fresh.timeMs)
    denials.noteHead(fresh.deny.ver)
    contact.noteContact(fresh.timeMs)
    ledger.cloudGeneration.note(fresh.cloudGeneration, fresh.timeMs)
    this.confirmPolicy()
    return { taken: true, kind: 'fresh' }
  }
}
