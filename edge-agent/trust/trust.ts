import { ItemsClaims } from '../../policy/documents/item-documents.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { keyId, keyRing, type KeyRing, type VerificationKey } from '../../policy/documents/keys.ts'
import { claimedKeyId } from '../../policy/documents/signed-document.ts'
import {
  compareVersions,
  contentHash,
  DenyClaims,
  FreshClaims,
  KeySetClaims,
  PolicyClaims,
  type DocumentVersion,
} from '../../policy/documents/store-documents.ts'
import { RECEIPT_LIFE } from '../../policy/receipts/receipt-token.ts'
import { policyStage, type PolicyStage } from '../../policy/store-policy.ts'
import type { Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { afterTheft } from './revocation/after-theft.ts'
import type { AgentClock } from './time/clock.ts'
import { contradiction } from './contradiction.ts'
import type { Identity } from '../identity/identity.ts'
import { openDenials } from './revocation/denials.ts'
import { openHeard } from './time/heard.ts'
import { openAs, openStored, refused, stillVerifying, typOf, type Acceptance } from './verify/open-as.ts'
import { revokedKeys, takesBack } from './revocation/revoked-keys.ts'
import { doubtAbout, timeAnswers } from './time/time-answers.ts'
import { timeEpochs } from './time/time-epochs.ts'
import { toldVersions, type IssuedUnder } from './time/told-versions.ts'

/**
 *   root ──▶ key set ──▶ policy · fresh · deny · items
 *
 * What the agent believes. A document replaces another only when it is signed, for this store and
 * newer; one already accepted is kept, and its age drives the stages (contracts §3, §4).
 */
export interface Trust {
  /** The keys that tokens, receipts and documents are checked with. */
  readonly keys: KeyRing
  /** The accepted policy, or undefined before the first. */
  readonly policy: PolicyClaims | undefined
  /** What the agent has, as `fetchSignedDocuments` is told. */
  have(): { keys?: [number, number]; policy?: [number, number]; deny?: [number, number]; items?: [number, number] }
  /** Signed key sets that revoke what the present one has forgotten: for the cloud to be reminded by. */
  readonly forgottenRevocations: readonly string[]
  /** Looks at a document from anywhere and takes it when it is good. */
  accept(jws: string): Acceptance
  /** Takes the signed answer to our own question for the time. */
  acceptTime(jws: string, nonce: string): Acceptance
  /** This agent is the home since lately, and has not heard yet what was used of a receipt that ends then (seconds). */
  isImporting(receiptExp: number): boolean
  /** How old what is known is. */
  stage(): PolicyStage
  /** When the cloud was last heard, trusted ms; 0: never. */
  readonly lastContactMs: number
  /** When the key set ends, seconds since 1970; undefined before the first. */
  readonly keysEndS: number | undefined
  /** Whether the time should be asked for at once: the clock may be what keeps documents out, or counts in an epoch that is over. */
  readonly isTimeAwaited: boolean
  /** Whether a newer document than the ones here is known to exist. */
  readonly isBehind: boolean
  /** Whether that is known from tokens and not from the cloud itself, or is denials that do not come: something keeps it away. Until it comes, what is here counts as old. */
  readonly isOvertaken: boolean
  /** Denials that the cloud names and that do not come: to be reported. */
  readonly heldBack: string | undefined
  /** A genuine token or receipt says under which versions it was issued. */
  hearIssued(issued: IssuedUnder): void
  /** The newest denial by which a token or a receipt was taken back: a refund may wait until the cloud knows that it is here. */
  readonly takenBackSeq: number
}

const KNOWN = { taken: false, why: 'known' } as const

/** Opens what was trusted before the restart; nothing in the ledger is trusted unverified. Without `items` none are asked for. */
export function openTrust(identity: Identity, ledger: Ledger, clock: AgentClock, items?: Replica): Trust {
  const { marks, commits, cloudGeneration } = ledger
  const root = keyRing([
    { kid: keyId(identity.rootX), alg: 'EdDSA', x: identity.rootX, use: 'root', iss: 'root', state: 'active' },
  ])
  let keys: KeyRing = new Map<string, VerificationKey>()
  let policy: PolicyClaims | undefined
  let policyHash: string | undefined
  /** The newest freshness that named the policy we have: its time drives the stages. */
  const heard = openHeard(ledger)
  const times = timeEpochs(ledger, clock, heard)
  let heads: FreshClaims | undefined
  const revoked = revokedKeys(marks)
  const answers = timeAnswers(revoked.kept)
  const denials = openDenials(ledger, identity.agentId, clock)
  const told = toldVersions(clock)
  const theft = afterTheft({ ledger, denials, told, items })
  let keySet: KeySetClaims | undefined
  let headsKey: string | undefined
  /** A key set that a freshness was ahead of. */
  let keysToCome: DocumentVersion | undefined
  /** The stored policy is of a key that was revoked: neither what it says nor its version counts, for whoever stole the key may have given any. */
  let isPolicyDropped = false

  const stored = (kind: 'keys' | 'policy') => marks.document(kind)
  const storedHead = (kind: 'keys' | 'policy') => (kind === 'policy' && isPolicyDropped ? undefined : marks.head(kind))
  const signedS = (kind: 'keys' | 'policy') => (kind === 'keys' ? keySet : policy)?.iat
  const storedKeys = stored('keys')
  const storedPolicy = stored('policy')
  if (storedKeys) useKeys(openStored(storedKeys.jws, DOCUMENT_KINDS.keys, root, identity.tenant, KeySetClaims))
  if (storedPolicy)
    usePolicy(openStored(storedPolicy.jws, DOCUMENT_KINDS.policy, stillVerifying(keys), identity.storeId, PolicyClaims))
  theft.forgetItems()

  function useKeys(claims: KeySetClaims | undefined): void {
    if (!claims) return
    keySet = claims
    times.follow(claims.timeEpoch ?? 0)
    keys = keyRing(revoked.kept(claims.keys))
    // What was signed with a key that is now known to be stolen is not believed a moment longer.
    if (heads && isRevoked(headsKey)) heads = undefined
    isPolicyDropped = isRevoked(claimedKeyId(stored('policy')?.jws ?? '', DOCUMENT_KINDS.policy))
    if (isPolicyDropped) policy = policyHash = undefined
  }

  function isRevoked(kid: string | undefined): boolean {
    return kid !== undefined && keys.get(kid)?.state === 'revoked'
  }

  function usePolicy(claims: PolicyClaims | undefined): void {
    if (!claims) return
    policy = claims
    policyHash = contentHash(claims)
  }

  /** Seconds; undefined while our clock rests on nothing: then versions alone say what is newer. */
  function nowSeconds(): number | undefined {
    const { nowMs, trust } = clock.now()
    return trust === 'none' ? undefined : nowMs / 1_000
  }

  /** A newer version is taken; the same with the same content is known; everything else is refused. */
  function isNewer(
    kind: 'keys' | 'policy',
    claims: { epoch: number; ver: number; iat: number; exp: number; keys?: KeySetClaims['keys'] },
  ): Acceptance | undefined {
    // Whoever has a stolen key may name what is not: it has no say about the set that takes it back.
    const named = claims.keys && takesBack(claims.keys, headsKey) ? undefined : heads?.[kind]
    // Pieces of different states of the cloud do not go together: the freshness says which content a version has.
    if (named && compareVersions(claims, named) === 0 && contentHash(claims) !== named.hash)
      return refused(`${kind} ${claims.epoch}.${claims.ver} is not the one that the freshness names`)
    const have = storedHead(kind)
    if (!have) return undefined
    const order = compareVersions(claims, have)
    if (order > 0) return undefined
    if (order < 0) return refused(`${kind} ${claims.epoch}.${claims.ver} is older than ${have.epoch}.${have.ver}`)
    return contentHash(claims) === have.hash ? KNOWN : refused(`${kind} ${claims.ver} says something else than before`)
  }

  function store(
    kind: 'keys' | 'policy',
    jws: string,
    claims: { epoch: number; ver: number; iat: number; exp: number },
  ): void {
    commits.now(() => marks.setDocument(kind, { epoch: claims.epoch, ver: claims.ver, hash: contentHash(claims), jws }))
  }

  function acceptKeys(jws: string): Acceptance {
    const opened = openAs(jws, DOCUMENT_KINDS.keys, root, identity.tenant, KeySetClaims, nowSeconds())
    if (!opened.ok) {
      keepForTime(jws)
      return opened.refusal
    }
    const known = isNewer('keys', opened.claims)
    if (known) return known
    const former = stored('keys')
    const before = former && openStored(former.jws, DOCUMENT_KINDS.keys, root, identity.tenant, KeySetClaims)
    // Together: with the one and not the other a key set would be known, and what it revokes believed until the next start.
    commits.now(() => {
      store('keys', jws, opened.claims)
      theft.take(revoked.follow(opened.claims, former && before && { ...before, jws: former.jws }))
    })
    useKeys(opened.claims)
    answers.forget()
    theft.forgetItems()
    return { taken: true, kind: 'keys' }
  }

  /** A clock that rests on no signature, or on a key that the set takes back, may be what is wrong, and not the key set that it speaks against. */
  function keepForTime(jws: string): void {
    const claims = openStored(jws, DOCUMENT_KINDS.keys, root, identity.tenant, KeySetClaims)
    if (!claims || (clock.now().trust === 'signed' && (claims.timeEpoch ?? 0) <= clock.epoch)) return
    if (!isNewer('keys', claims)) answers.keep(claims)
  }

  function acceptPolicy(jws: string): Acceptance {
    const opened = openAs(jws, DOCUMENT_KINDS.policy, keys, identity.storeId, PolicyClaims, nowSeconds())
    if (!opened.ok) return opened.refusal
    const known = isNewer('policy', opened.claims)
    if (known && !known.taken && known.why === 'refused') return known
    if (known) keepSignature(jws, opened.claims)
    // What is here was signed with a key that the key set names no more.
    if (known && policy) return known
    store('policy', jws, opened.claims)
    isPolicyDropped = false
    usePolicy(opened.claims)
    confirm()
    return { taken: true, kind: 'policy' }
  }

  /** The same policy signed with another key: the former may retire. */
  function keepSignature(jws: string, claims: PolicyClaims): void {
    const before = stored('policy')?.jws ?? ''
    if (claimedKeyId(jws, DOCUMENT_KINDS.policy) !== claimedKeyId(before, DOCUMENT_KINDS.policy))
      store('policy', jws, claims)
  }

  function acceptFresh(jws: string): Acceptance {
    // Its own time may be what sets a clock right that is behind, so its times are judged by that clock's rules alone.
    const opened = openAs(jws, DOCUMENT_KINDS.fresh, keys, identity.storeId, FreshClaims, undefined)
    if (!opened.ok) return opened.refusal
    const { claims: fresh } = opened
    // Two of one millisecond may still differ in the items.
    if (heads?.timeMs === fresh.timeMs) items?.hearHead(fresh.items, fresh.timeMs)
    if (heads && fresh.timeEpoch === heads.timeEpoch && fresh.timeMs <= heads.timeMs) return KNOWN
    const wrong = contradiction(fresh, {
      head: storedHead,
      signedS,
      lowestGeneration: cloudGeneration.lowest,
      timeEpoch: times.current,
    })
    if (wrong === 'keys on their way') keysToCome = fresh.keys
    if (wrong !== undefined) return typeof wrong === 'string' ? KNOWN : wrong
    // The disk is flushed once for all that follows.
    return commits.now(() => takeFresh(fresh, claimedKeyId(jws, DOCUMENT_KINDS.fresh)))
  }

  function takeFresh(fresh: FreshClaims, key: string | undefined): Acceptance {
    const verdict = times.offer({ ms: fresh.timeMs, epoch: fresh.timeEpoch, answersChallenge: false })
    if (verdict === 'ignored') return KNOWN
    if (verdict === 'doubted') return refused('its time lies far ahead of ours')
    heads = fresh
    headsKey = key
    items?.hearHead(fresh.items, fresh.timeMs)
    denials.hearHead(fresh.deny.ver)
    heard.contact(fresh.timeMs)
    cloudGeneration.hear(fresh.cloudGeneration, fresh.timeMs)
    confirm()
    return { taken: true, kind: 'fresh' }
  }

  /** The freshness names the policy that we have: it is as young as that. */
  function confirm(): void {
    if (heads && heads.policy.hash === policyHash && heads.timeMs > heard.confirmedMs) heard.confirm(heads.timeMs)
  }

  function acceptDeny(jws: string): Acceptance {
    const opened = openAs(jws, DOCUMENT_KINDS.deny, keys, identity.storeId, DenyClaims, nowSeconds())
    if (!opened.ok) return opened.refusal
    return denials.take(opened.claims) ? { taken: true, kind: 'deny' } : KNOWN
  }

  function acceptItems(jws: string): Acceptance {
    if (!items) return KNOWN
    const opened = openAs(jws, DOCUMENT_KINDS.items, keys, identity.storeId, ItemsClaims, nowSeconds())
    if (!opened.ok) return opened.refusal
    const verdict = items.take(opened.claims)
    // The page may be what was missing when the freshness was heard.
    if (heads) items.hearHead(heads.items, heads.timeMs)
    if (verdict === 'taken') return { taken: true, kind: 'items' }
    return verdict === 'rollback' ? refused(`items of epoch ${opened.claims.epoch} are over`) : KNOWN
  }

  const isOvertaken = () =>
    denials.heldBack !== undefined ||
    told.areNewer({ policy: storedHead('policy')?.ver, keys: storedHead('keys')?.ver }, heard.lastContactMs)

  const byTyp: Record<string, (jws: string) => Acceptance> = {
    [DOCUMENT_KINDS.keys.typ]: acceptKeys,
    [DOCUMENT_KINDS.policy.typ]: acceptPolicy,
    [DOCUMENT_KINDS.fresh.typ]: acceptFresh,
    [DOCUMENT_KINDS.deny.typ]: acceptDeny,
    [DOCUMENT_KINDS.items.typ]: acceptItems,
  }

  return {
    get keys() {
      return keys
    },
    get policy() {
      return policy
    },
    have() {
      const [k, p] = [storedHead('keys'), storedHead('policy')]
      return {
        ...(k && { keys: [k.epoch, k.ver] }),
        ...(p && { policy: [p.epoch, p.ver] }),
        deny: [0, denials.seq],
        ...(items && { items: items.have() }),
      }
    },
    get forgottenRevocations() {
      return revoked.forgotten
    },
    accept(jws) {
      const take = Object.hasOwn(byTyp, typOf(jws)) ? byTyp[typOf(jws)] : undefined
      return take ? take(jws) : refused('not a document for agents')
    },
    acceptTime(jws, nonce) {
      const opened = answers.open(jws, nonce, keys, times.current)
      if (!opened.ok) return opened.refusal
      // The key set that opens its epoch is on its way.
      if (opened.claims.timeEpoch > opened.timeEpoch) return KNOWN
      const verdict = times.offer({ ms: opened.claims.timeMs, epoch: opened.claims.timeEpoch, answersChallenge: true })
      return doubtAbout(verdict, clock.now().nowMs - opened.claims.timeMs) ?? { taken: true, kind: 'time' }
    },
    isImporting(receiptExp) {
      const move = policy?.homeMove
      return move !== undefined && denials.seq < move.denySeq && receiptExp - RECEIPT_LIFE < move.atS
    },
    stage() {
      const { nowMs } = clock.now()
      // Whose keys may have been revoked long ago is believed no longer than the root has said.
      if (keySet && nowMs >= keySet.exp * 1_000) return 'expired'
      const stage = policyStage((nowMs - heard.confirmedMs) / 1_000)
      return stage === 'fresh' && isOvertaken() ? 'stale' : stage
    },
    hearIssued: told.hear,
    get heldBack() {
      return denials.heldBack
    },
    get isOvertaken() {
      return isOvertaken()
    },
    get keysEndS() {
      return keySet?.exp
    },
    get lastContactMs() {
      return heard.lastContactMs
    },
    get isTimeAwaited() {
      return times.isAwaited || answers.isAwaited
    },
    get takenBackSeq() {
      return denials.takenBackSeq
    },
    get isBehind() {
      if (isOvertaken()) return true
      if (keysToCome && compareVersions(keysToCome, storedHead('keys') ?? { epoch: -1, ver: 0 }) > 0) return true
      if (!heads) return false
      const [k, p] = [storedHead('keys'), storedHead('policy')]
      return (
        !k ||
        !p ||
        !policy ||
        compareVersions(heads.keys, k) > 0 ||
        compareVersions(heads.policy, p) > 0 ||
        heads.deny.ver > denials.seq ||
        items?.isBehind === true
      )
    },
  }
}
