import type { Database as Connection } from 'better-sqlite3'
import type { RightClass } from '../../../policy/vocabulary.ts'
import { comparableIdentifier, type ItemIdentifierInput } from '../../../policy/item-identifiers.ts'
import { RECEIPT_LIFE } from '../../../policy/receipts/receipt-token.ts'
import type { ClaimRequest } from './claim-request.ts'

/**
 * Redemptions with an unknown outcome. Each of them blocks its right until staff act on site. After the cloud has
 * acknowledged the redemption, a later token of the cloud may use the right too. Call all methods inside a transaction
 * of `commit.ts`.
 */
export interface UnresolvedRedemptions {
  /** Adds a redemption. `seq`: its journal row; null if another agent reported the redemption. */
  add(redemptionId: string, seq: number | null): void
  /** The cloud acknowledged all rows up to `seq` at `atS`, s by the clock of the cloud. */
  noteAcknowledged(seq: number, atS: number): void
  isResolvedFor(redemptionId: string, by: Resolver): boolean
  /** Drops acknowledgements with a time after `toS`. */
  rewindTo(toS: number): void
  /** Deletes entries whose redemption was pruned. */
  prune(): void
}

/** The request that tries to use the right again. */
export interface Resolver {
  operator: boolean
  /** Issue time of the presented token, s by the clock of the cloud. */
  issuedS?: number | undefined
  /**
   * Last row that the cloud had acknowledged when this agent requested the token. Undefined if the agent did not
   * request the token.
   */
  reportedSeq?: number | undefined
}

/** Allowed clock difference between processes of the cloud, s. */
const CLOCKS_DIFFER_S = 1

/** Opens the unresolved redemptions of this ledger. */
export function openUnresolvedRedemptions(db: Connection): UnresolvedRedemptions {
  const add = db.prepare('INSERT OR IGNORE INTO unknown_use (redemption_id, seq) VALUES (?, ?)')
  const find = db.prepare<[string], { seq: number | null; told_s: number | null }>(
    'SELECT seq, told_s FROM unknown_use WHERE redemption_id = ?',
  )
  const markAcknowledged = db.prepare('UPDATE unknown_use SET told_s = ? WHERE seq <= ? AND told_s IS NULL')
  const deletePruned = db.prepare(
    'DELETE FROM unknown_use WHERE redemption_id NOT IN (SELECT redemption_id FROM claim UNION SELECT redemption_id FROM used_right UNION SELECT redemption_id FROM home_grant)',
  )
  return {
    add: (redemptionId, seq) => void add.run(redemptionId, seq),
    noteAcknowledged: (seq, atS) => void markAcknowledged.run(atS, seq),
    isResolvedFor(redemptionId, { operator, issuedS = 0, reportedSeq = -1 }) {
      const use = find.get(redemptionId)
      if (!use) return false
      if (operator) return true
      const { seq, told_s: toldS } = use
      if (seq === null || toldS === null) return false
      // The cloud may return an older token again, so the token must be newer than the acknowledgement. Times are whole
      // seconds: the same second suffices only if the agent requested the token after the acknowledgement.
      return seq <= reportedSeq ? issuedS >= toldS : issuedS > toldS + CLOCKS_DIFFER_S
    },
    rewindTo: (toS) => void db.prepare('UPDATE unknown_use SET told_s = NULL WHERE told_s > ?').run(toS),
    prune: () => void deletePruned.run(),
  }
}

/** Sentinel redemption id for redemptions that the cloud reported, and prefix of the ids for leases. */
const REPORTED_BY_CLOUD = ''
const LEASE_PREFIX = 'lease '

/** One right of a receipt. */
export interface ReceiptRight {
  readonly cti: string
  readonly rightClass: RightClass
  readonly ordinal: number
}

/**
 * Used rights of receipts, one row per use. A use is a redemption of a token at this agent, a delegation by this
 * receipt home, or a use that the cloud reported.
 */
export class RedeemedRights {
  readonly #select
  readonly #insert
  readonly #delete
  readonly #deleteOne

  constructor(db: Connection) {
    this.#select = db.prepare<[string, string, number], { until_s: number; redemption_id: string }>(
      'SELECT until_s, redemption_id FROM used_right WHERE cti = ? AND right_class = ? AND ordinal = ?',
    )
    this.#insert = db.prepare(
      'INSERT INTO used_right (cti, right_class, ordinal, until_s, redemption_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT (cti, right_class, ordinal, redemption_id) DO UPDATE SET until_s = MAX(until_s, excluded.until_s)',
    )
    this.#deleteOne = db.prepare(
      'DELETE FROM used_right WHERE cti = ? AND right_class = ? AND ordinal = ? AND redemption_id = ?',
    )
    this.#delete = db.prepare('DELETE FROM used_right WHERE redemption_id = ?')
  }

  add({ cti, rightClass, ordinal }: ReceiptRight, untilS: number, redemptionId: string): void {
    this.#insert.run(cti, rightClass, ordinal, untilS, redemptionId)
  }

  /** `lease`: nonce of the token that leases the right; absent for a right that was used. */
  addElsewhere(right: ReceiptRight, untilS: number, lease: string | undefined): void {
    this.add(right, untilS, lease === undefined ? REPORTED_BY_CLOUD : LEASE_PREFIX + lease)
  }

  endLease({ cti, rightClass, ordinal }: ReceiptRight, lease: string): void {
    this.#deleteOne.run(cti, rightClass, ordinal, LEASE_PREFIX + lease)
  }

  /** Frees the rights that this redemption used. */
  remove(redemptionId: string): void {
    this.#delete.run(redemptionId)
  }

  isRedeemedElsewhere(right: ReceiptRight, nowMs: number): boolean {
    return this.#rowsOf(right).some((use) => isReported(use.redemption_id) && use.until_s * 1_000 > nowMs)
  }

  /**
   * Returns the ids of the redemptions in this ledger that used the right. `nowMs`: leaves out uses that have expired by
   * then.
   */
  redemptionsOf(right: ReceiptRight, nowMs = 0): string[] {
    return this.#rowsOf(right).flatMap(({ redemption_id: id, until_s: untilS }) =>
      isReported(id) || untilS * 1_000 <= nowMs ? [] : [id],
    )
  }

  #rowsOf({ cti, rightClass, ordinal }: ReceiptRight): { until_s: number; redemption_id: string }[] {
    return this.#select.all(cti, rightClass, ordinal)
  }
}

function isReported(redemptionId: string): boolean {
  return redemptionId === REPORTED_BY_CLOUD || redemptionId.startsWith(LEASE_PREFIX)
}

/**
 * Releases of tags at this agent in the last 24 hours, by the names that the requests gave. An operator releases a paid
 * tag without a receipt, and a token may belong to a receipt that the agent cannot link to it yet. So the agent does not
 * always know that two requests are about one unit, but both name its tag. These rows keep them from releasing it
 * twice. They are rows of used_right with the tag in the place of the receipt. The ordinal shows who released the tag.
 */
const BY_STAFF = 0
const BY_AUTHORIZATION = 1

/** Allowed difference between the clocks of the cloud and of this agent, ms. */
const CLOCKS_DIFFER_MS = 1_000

const KINDS = ['epc', 'tagUid', 'tagId'] as const

type TagRequest = Pick<ClaimRequest, 'tag' | 'source' | 'rightClass' | 'nowMs'>

/** The releases of tags in this ledger's tables. */
export class TagRights {
  readonly #redeemed: RedeemedRights
  readonly #unresolved: UnresolvedRedemptions
  readonly #stateOf
  readonly #forget
  readonly #any

  constructor(db: Connection, redeemed: RedeemedRights, unresolved: UnresolvedRedemptions) {
    this.#redeemed = redeemed
    this.#unresolved = unresolved
    this.#stateOf = db.prepare<[string], { state: string; at_ms: number }>(
      'SELECT state, at_ms FROM claim WHERE redemption_id = ? LIMIT 1',
    )
    this.#forget = db.prepare('DELETE FROM used_right WHERE cti = ?')
    this.#any = db.prepare("SELECT cti FROM used_right WHERE cti > 'tag:' AND cti < 'tag;' LIMIT 1")
  }

  /**
   * True if no earlier release of the tag blocks this request. A release blocks staff, receipts and tokens. Of tokens,
   * a release by staff blocks those that the cloud issued before it knew the release, and a release by receipt or token
   * those that are older than the release. After an unknown outcome an operator may try again. With a token, staff may
   * open a fixture again.
   */
  isFree({ tag, source, rightClass, nowMs }: TagRequest, by: Resolver): boolean {
    if (rightClass === 'open' && source === 'token' && by.operator) return true
    const isNewer = (id: string) => source === 'token' && this.#isOlder(id, by)
    return keysOf(tag).every((cti) => {
      const releasesBy = (ordinal: number) => this.#redeemed.redemptionsOf({ cti, rightClass, ordinal }, nowMs)
      const blocking = [...releasesBy(BY_STAFF), ...releasesBy(BY_AUTHORIZATION).filter((id) => !isNewer(id))]
      return blocking.every((id) => this.#isResolved(id, source, by))
    })
  }

  add({ tag, source, rightClass, nowMs, redemptionId }: TagRequest & Pick<ClaimRequest, 'redemptionId'>): void {
    const ordinal = source === 'item' ? BY_STAFF : BY_AUTHORIZATION
    const untilS = Math.ceil(nowMs / 1_000) + RECEIPT_LIFE
    for (const cti of keysOf(tag)) this.#redeemed.add({ cti, rightClass, ordinal }, untilS, redemptionId)
  }

  /** Forgets the releases of tags whose goods came back. */
  forget(tags: readonly ItemIdentifierInput[]): void {
    for (const key of tags.flatMap(keysOf)) this.#forget.run(key)
  }

  get isEmpty(): boolean {
    return this.#any.get() === undefined
  }

  /** True if the redemption is older than the token. */
  #isOlder(redemptionId: string, { issuedS = 0 }: Resolver): boolean {
    const claim = this.#stateOf.get(redemptionId)
    return claim !== undefined && claim.at_ms + CLOCKS_DIFFER_MS < issuedS * 1_000
  }

  #isResolved(redemptionId: string, source: ClaimRequest['source'], by: Resolver): boolean {
    if (by.operator && this.#stateOf.get(redemptionId)?.state === 'unknown') return true
    return source === 'token' && this.#unresolved.isResolvedFor(redemptionId, { ...by, operator: false })
  }
}

function keysOf(tag: ItemIdentifierInput = {}): string[] {
  return KINDS.flatMap((kind) => {
    const name = tag[kind]
    return name === undefined ? [] : [`tag:${kind}:${comparableIdentifier(kind, name)}`]
  })
}
