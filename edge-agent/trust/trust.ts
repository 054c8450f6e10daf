import { ItemsClaims } from '../../policy/documents/item-documents.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import type { KeyRing } from '../../policy/documents/keys.ts'
import { DenyClaims, type PolicyClaims } from '../../policy/documents/store-documents.ts'
import { RECEIPT_LIFE } from '../../policy/receipts/receipt-token.ts'
import { policyStage, type PolicyStage } from '../../policy/store-policy.ts'
import type { Identity } from '../identity/identity.ts'
import type { Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { Freshness } from './freshness.ts'
import { KNOWN } from './judge-version.ts'
import { TrustedKeySet } from './trusted-key-set.ts'
import { TrustedPolicy } from './trusted-policy.ts'
import { keyCompromise, type KeyCompromise, revokedKeys, type RevokedKeys } from './revocation/revoked-keys.ts'
import { openDenials, type Denials } from './revocation/denials.ts'
import { nowSeconds, type AgentClock } from './time/clock.ts'
import { openCloudContact, type CloudContact } from './time/cloud-contact.ts'
import { timeRefusal, timeAnswers, type TimeAnswers, timeEpochs, type TimeEpochs } from './time/time-answers.ts'
import { tokenVersions, type IssuedVersions, type TokenVersions } from './time/token-versions.ts'
import { openClaims, refused, claimedType, type Acceptance } from './verify/open-claims.ts'

/**
 *   root ─ signs ─▶ key set ─ has the keys of ─▶ policy, freshness, deny list, items, time
 *
 * The signed documents that the agent accepts. A document replaces the held document only if it is newer, is for this
 * store or tenant, and has a valid signature. The agent uses an accepted document until a newer document replaces it,
 * or until its key is revoked. The age of the last freshness that confirmed the policy sets the policy stage (ADR
 * 0016).
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
