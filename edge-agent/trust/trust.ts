import { ItemsClaims } from '../../policy/documents/item-documents.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import type { KeyRing } from '../../policy/documents/keys.ts'
import {
  DenyClaims,
  type PolicyClaims,
  compareVersions,
  FreshClaims,
  type DocumentVersion,
  type KeySetClaims,
} from '../../policy/documents/store-documents.ts'
import { RECEIPT_LIFE } from '../../policy/receipts/receipt-token.ts'
import { policyStage, type PolicyStage } from '../../policy/store-policy.ts'
import type { Identity } from '../identity/identity.ts'
import type { Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { KNOWN, type DocumentHead, TrustedKeySet, TrustedPolicy } from './trusted-documents.ts'
import { keyCompromise, type KeyCompromise, revokedKeys, type RevokedKeys, revokes } from './revocation/revoked-keys.ts'
import { openDenials, type Denials } from './revocation/denials.ts'
import { nowSeconds, type AgentClock } from './time/clock.ts'
import { openCloudContact, type CloudContact } from './time/cloud-contact.ts'
import { timeRefusal, timeAnswers, type TimeAnswers, timeEpochs, type TimeEpochs } from './time/time-answers.ts'
import { tokenVersions, type IssuedVersions, type TokenVersions } from './time/token-versions.ts'
import { openClaims, refused, claimedType, type Acceptance, type Refusal } from './verify/open-claims.ts'
import { claimedKeyId } from '../../policy/documents/signed-document.ts'

/**
 *   root ─ signs ─▶ key set ─ has the keys of ─▶ policy, freshness, deny list, items, time
 *
 * The signed documents that the agent accepts. A document replaces the held document only if it is newer, is for this
 * store or tenant, and has a valid signature. The agent uses an accepted document until a newer document replaces it,
 * or until its key is revoked. The age of the last freshness that confirmed the policy sets the policy stage (ADR
 * trusted-time).
 *
 * `verify/` verifies documents, and `time/` has the trusted clock. `revocation/` has denials, revoked keys and the
 * reasons for an untrusted ledger.
 */

/** Opens the stored documents and verifies each again. Without `items` the agent requests no items. */
export class Trust {
  readonly #storeId: string
  readonly #clock: AgentClock
  readonly #items: Replica | undefined
  /** Last contact with the cloud, which sets the policy stage. */
  readonly #contact: CloudContact
  readonly #times: TimeEpochs
  readonly #revoked: RevokedKeys
  readonly #answers: TimeAnswers
  readonly #denials: Denials
  readonly #tokenVersions: TokenVersions
  readonly #compromise: KeyCompromise
  readonly #keySet: TrustedKeySet
  readonly #policy: TrustedPolicy
  readonly #fresh: Freshness
  /** The function that accepts documents of each `typ`. */
  readonly #acceptors = new Map<string, (jws: string) => Acceptance>([
    [DOCUMENT_KINDS.keys.typ, (jws) => this.#acceptKeys(jws)],
    [DOCUMENT_KINDS.policy.typ, (jws) => this.#acceptPolicy(jws)],
    [DOCUMENT_KINDS.fresh.typ, (jws) => this.#fresh.accept(jws)],
    [DOCUMENT_KINDS.deny.typ, (jws) => this.#acceptDeny(jws)],
    [DOCUMENT_KINDS.items.typ, (jws) => this.#acceptItems(jws)],
  ])

  constructor(identity: Identity, ledger: Ledger, clock: AgentClock, items?: Replica) {
    this.#storeId = identity.storeId
    this.#clock = clock
    this.#items = items
    this.#contact = openCloudContact(ledger)
    this.#times = timeEpochs(ledger, clock, this.#contact)
    this.#revoked = revokedKeys(ledger.metadata)
    this.#answers = timeAnswers((keys) => this.#revoked.withRevocations(keys))
    this.#denials = openDenials(ledger, identity.agentId, clock)
    this.#tokenVersions = tokenVersions(clock)
    this.#compromise = keyCompromise({ ledger, denials: this.#denials, tokenVersions: this.#tokenVersions, items })
    const [revoked, compromise] = [this.#revoked, this.#compromise]
    this.#keySet = new TrustedKeySet({ identity, ledger, clock, revoked, timeAnswers: this.#answers, compromise })
    this.#times.follow(this.#keySet.timeEpoch)
    const [keySet, denials, times, contact] = [this.#keySet, this.#denials, this.#times, this.#contact]
    const policy = new TrustedPolicy({ identity, ledger, clock, keySet })
    this.#policy = policy
    this.#fresh = new Freshness({ storeId: this.#storeId, ledger, keySet, policy, denials, items, times, contact })
    this.#compromise.discardItems()
  }

  /** The keys that verify tokens, receipts and documents. */
  get keys(): KeyRing {
    return this.#keySet.keys
  }

  /** The accepted policy. Undefined before the first policy. */
  get policy(): PolicyClaims | undefined {
    return this.#policy.claims
  }

  /** Versions of the documents that the agent holds, in the form of `fetchSignedDocuments`. */
  heldVersions(): {
    keys?: [number, number]
    policy?: [number, number]
    deny?: [number, number]
    items?: [number, number]
  } {
    const [keys, policy] = [this.#keySet.head, this.#policy.head]
    return {
      ...(keys && { keys: [keys.epoch, keys.ver] }),
      ...(policy && { policy: [policy.epoch, policy.ver] }),
      deny: [0, this.#denials.seq],
      ...(this.#items && { items: this.#items.position() }),
    }
  }

  /**
   * Signed key sets with revocations that the current key set lacks. The agent sends these key sets to a restored
   * cloud.
   */
  get revocationReminders(): readonly string[] {
    return this.#revoked.reminders
  }

  /** Verifies a document from any source, and accepts it if it is newer. */
  accept(jws: string): Acceptance {
    const accept = this.#acceptors.get(claimedType(jws))
    return accept ? accept(jws) : refused('not a document for agents')
  }

  /** Accepts the signed answer to a time request with this nonce. */
  acceptTime(jws: string, nonce: string): Acceptance {
    const opened = this.#answers.open(jws, nonce, this.keys, this.#times.current)
    if (!opened.ok) return opened.refusal
    const { timeMs: ms, timeEpoch: epoch } = opened.claims
    // The agent does not have the key set of that epoch yet.
    if (epoch > opened.timeEpoch) return KNOWN
    const verdict = this.#times.offer({ ms, epoch, answersChallenge: true })
    return timeRefusal(verdict, this.#clock.now().nowMs - ms) ?? { taken: true, kind: 'time' }
  }

  /**
   * True if this agent became the receipt home after this receipt was issued, and does not know all earlier uses yet.
   * `receiptExp` in s.
   */
  isImporting(receiptExp: number): boolean {
    const move = this.policy?.homeMove
    return move !== undefined && this.#denials.seq < move.denySeq && receiptExp - RECEIPT_LIFE < move.atS
  }

  /** Returns the policy stage. The stage depends on the time since the last confirmation of the policy. */
  stage(): PolicyStage {
    const { nowMs } = this.#clock.now()
    const { keysEndS } = this
    // After the expiry of the key set, the agent may lack revocations.
    if (keysEndS !== undefined && nowMs >= keysEndS * 1_000) return 'expired'
    const stage = policyStage((nowMs - this.#contact.policyConfirmedMs) / 1_000)
    return stage === 'fresh' && this.isOutdated ? 'stale' : stage
  }

  /** Stores the document versions that a verified token or receipt names. */
  noteIssuedVersions(issued: IssuedVersions): void {
    this.#tokenVersions.note(issued)
  }

  /**
   * Describes the denials that the freshness names but that the agent has lacked for over a minute. Undefined if there
   * are none.
   */
  get missingDenials(): string | undefined {
    return this.#denials.missingDetail
  }

  /**
   * True if tokens name newer documents, or denials are missing. An attacker may withhold documents, so the stage is
   * then `stale`.
   */
  get isOutdated(): boolean {
    const have = { policy: this.#policy.head?.ver, keys: this.#keySet.head?.ver }
    return this.missingDenials !== undefined || this.#tokenVersions.areNewer(have, this.lastContactMs)
  }

  /** Expiry of the key set, s since 1970. Undefined before the first key set. */
  get keysEndS(): number | undefined {
    return this.#keySet.claims?.exp
  }

  /** Last contact with the cloud, trusted ms; 0: never. */
  get lastContactMs(): number {
    return this.#contact.lastContactMs
  }

  /** True if a signed time is needed now: the clock has an earlier epoch, or the clock rejected a newer key set. */
  get needsSignedTime(): boolean {
    return this.#times.isBehind || this.#answers.isPending
  }

  /**
   * Number of a deny list entry (see `Denials.lastRevocationSeq`). A refund may wait until the agent confirms that it
   * has applied this entry.
   */
  get lastRevocationSeq(): number {
    return this.#denials.lastRevocationSeq
  }

  /** True if the agent lacks a document that the cloud has. */
  get isBehind(): boolean {
    return this.isOutdated || this.#fresh.isAhead
  }

  #acceptKeys(jws: string): Acceptance {
    const verdict = this.#keySet.accept(jws, (claims) => this.#fresh.keysNamedFor(claims))
    if (!verdict.taken) return verdict
    this.#times.follow(this.#keySet.timeEpoch)
    this.#fresh.followKeySet()
    this.#policy.followKeySet()
    this.#compromise.discardItems()
    return verdict
  }

  #acceptPolicy(jws: string): Acceptance {
    const verdict = this.#policy.accept(jws, this.#fresh.policyNamed)
    if (verdict.taken) this.#fresh.confirmPolicy()
    return verdict
  }

  #acceptDeny(jws: string): Acceptance {
    const now = nowSeconds(this.#clock)
    const opened = openClaims(jws, DOCUMENT_KINDS.deny, this.keys, this.#storeId, DenyClaims, now)
    if (!opened.ok) return opened.refusal
    return this.#denials.apply(opened.claims) ? { taken: true, kind: 'deny' } : KNOWN
  }

  #acceptItems(jws: string): Acceptance {
    if (!this.#items) return KNOWN
    const now = nowSeconds(this.#clock)
    const opened = openClaims(jws, DOCUMENT_KINDS.items, this.keys, this.#storeId, ItemsClaims, now)
    if (!opened.ok) return opened.refusal
    const verdict = this.#items.applyPage(opened.claims)
    this.#fresh.checkItems()
    if (verdict === 'taken') return { taken: true, kind: 'items' }
    return verdict === 'rollback' ? refused(`items of epoch ${opened.claims.epoch} are out of date`) : KNOWN
  }
}

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
class Freshness {
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
