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
import { keyCompromise, type KeyCompromise } from './revocation/key-compromise.ts'
import { openDenials, type Denials } from './revocation/denials.ts'
import { revokedKeys, type RevokedKeys } from './revocation/revoked-keys.ts'
import { nowSeconds, type AgentClock } from './time/clock.ts'
import { openCloudContact, type CloudContact } from './time/cloud-contact.ts'
import { timeRefusal, timeAnswers, type TimeAnswers } from './time/time-answers.ts'
import { timeEpochs, type TimeEpochs } from './time/time-epochs.ts'
import { tokenVersions, type IssuedVersions, type TokenVersions } from './time/token-versions.ts'
import { openClaims, refused, claimedType, type Acceptance } from './verify/open-claims.ts'

/**
 *   root ──▶ key set ──▶ policy · fresh · deny · items · time          a document ─ accept ─▶ taken, known or refused
 *
 * What the agent believes. A document replaces another only when it is signed, for this store and
 * newer; one already accepted is kept, and its age drives the stages (ADR 0016).
 *
 * `verify/` opens documents, `time/` keeps the trusted clock, `revocation/` keeps denials, revoked keys and doubts about this ledger.
 */

/** Opens what was trusted before the restart; nothing in the ledger is trusted unverified. Without `items` none are asked for. */
export function openTrust(identity: Identity, ledger: Ledger, clock: AgentClock, items?: Replica): Trust {
  return new Trust(identity, ledger, clock, items)
}

export class Trust {
  readonly #storeId: string
  readonly #clock: AgentClock
  readonly #items: Replica | undefined
  /** When the cloud was last heard and last confirmed the policy held here: that age drives the stages. */
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

  constructor(identity: Identity, ledger: Ledger, clock: AgentClock, items: Replica | undefined) {
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

  /** The keys that tokens, receipts and documents are checked with. */
  get keys(): KeyRing {
    return this.#keySet.keys
  }

  /** The accepted policy, or undefined before the first. */
  get policy(): PolicyClaims | undefined {
    return this.#policy.claims
  }

  /** What the agent has, as `fetchSignedDocuments` is told. */
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

  /** Signed key sets that revoke what the present one has forgotten: for the cloud to be reminded by. */
  get revocationReminders(): readonly string[] {
    return this.#revoked.reminders
  }

  /** Looks at a document from anywhere and takes it when it is good. */
  accept(jws: string): Acceptance {
    const take = this.#acceptors.get(claimedType(jws))
    return take ? take(jws) : refused('not a document for agents')
  }

  /** Takes the signed answer to our own question for the time. */
  acceptTime(jws: string, nonce: string): Acceptance {
    const opened = this.#answers.open(jws, nonce, this.keys, this.#times.current)
    if (!opened.ok) return opened.refusal
    const { timeMs: ms, timeEpoch: epoch } = opened.claims
    // The key set that opens its epoch is on its way.
    if (epoch > opened.timeEpoch) return KNOWN
    const verdict = this.#times.offer({ ms, epoch, answersChallenge: true })
    return timeRefusal(verdict, this.#clock.now().nowMs - ms) ?? { taken: true, kind: 'time' }
  }

  /** This agent is the home since lately, and has not heard yet what was used of a receipt that ends then (seconds). */
  isImporting(receiptExp: number): boolean {
    const move = this.policy?.homeMove
    return move !== undefined && this.#denials.seq < move.denySeq && receiptExp - RECEIPT_LIFE < move.atS
  }

  /** How old what is known is. */
  stage(): PolicyStage {
    const { nowMs } = this.#clock.now()
    const { keysEndS } = this
    // Whose keys may have been revoked long ago is believed no longer than the root has said.
    if (keysEndS !== undefined && nowMs >= keysEndS * 1_000) return 'expired'
    const stage = policyStage((nowMs - this.#contact.policyConfirmedMs) / 1_000)
    return stage === 'fresh' && this.isOutdated ? 'stale' : stage
  }

  /** A genuine token or receipt says under which versions it was issued. */
  noteIssuedVersions(issued: IssuedVersions): void {
    this.#tokenVersions.note(issued)
  }

  /** Denials that the cloud names and that do not come: to be reported. */
  get missingDenials(): string | undefined {
    return this.#denials.missingDetail
  }

  /** Whether that is known from tokens and not from the cloud itself, or is denials that do not come: something keeps it away. Until it comes, what is here counts as old. */
  get isOutdated(): boolean {
    const have = { policy: this.#policy.head?.ver, keys: this.#keySet.head?.ver }
    return this.missingDenials !== undefined || this.#tokenVersions.areNewer(have, this.lastContactMs)
  }

  /** When the key set ends, seconds since 1970; undefined before the first. */
  get keysEndS(): number | undefined {
    return this.#keySet.claims?.exp
  }

  /** When the cloud was last heard, trusted ms; 0: never. */
  get lastContactMs(): number {
    return this.#contact.lastContactMs
  }

  /** Whether the time should be asked for at once: the clock may be what keeps documents out, or counts in an epoch that is over. */
  get needsSignedTime(): boolean {
    return this.#times.isBehind || this.#answers.isPending
  }

  /** The newest denial by which a token or a receipt was taken back: a refund may wait until the cloud knows that it is here. */
  get lastRevocationSeq(): number {
    return this.#denials.lastRevocationSeq
  }

  /** Whether a newer document than the ones here is known to exist. */
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
    const verdict = this.#items.take(opened.claims)
    this.#fresh.checkItems()
    if (verdict === 'taken') return { taken: true, kind: 'items' }
    return verdict === 'rollback' ? refused(`items of epoch ${opened.claims.epoch} are over`) : KNOWN
  }
}
