import type { Database as Connection } from 'better-sqlite3'
import { PASS } from '../../../policy/receipts/receipt-claims.ts'
import { RECEIPT_LIFE } from '../../../policy/receipts/receipt-token.ts'
import type { ItemIdentifierInput } from '../../../policy/item-identifiers.ts'
import type { Outcome, RightClass } from '../../../policy/vocabulary.ts'
import type { Metadata } from '../file/watermark.ts'
import { ClaimLimits, type ClaimResult, type ClaimRequest } from './claim-request.ts'
import { TagRights, openUnresolvedRedemptions, type UnresolvedRedemptions, RedeemedRights } from './redeemed-rights.ts'
import {
  FreeRights,
  TokenRights,
  UnitTags,
  unitOf,
  type FreeRight,
  type GoodsOfRequest,
  type ReceiptUnit,
} from './free-rights.ts'

/** A claim without an outcome. */
interface UnsettledClaim {
  redemption_id: string
  nonce: string
  device_id: string
}

/** Rights of a receipt that the cloud reports. `until`: end of the report, s since 1970. */
interface ReportedRights {
  readonly cti: string
  readonly rightClass: RightClass
  readonly ordinals: readonly number[]
  readonly until: number
}

/** Units of a receipt that a recall stops. `until`: end of the report, s since 1970. */
interface RecalledUnits extends Omit<ReportedRights, 'rightClass'> {
  /** The recall has ended. */
  readonly ended?: true | undefined
}

/** When and where a right of a receipt was used. `atMs`: trusted time. */
interface ReceiptUse {
  readonly atMs: number
  readonly deviceId: string
}

/** Name of a unit in the table of denials. */
const unitName = (cti: string, ordinal: number) => `${cti}/${ordinal}`

/**
 *   claimed ─┬─▶ confirmed    the right is used up
 *            ├─▶ failed       the right is free again: one more attempt for the shopper, then staff
 *            └─▶ unknown      the right is blocked until staff act, or until the cloud issues a later token
 *
 * The claims in this ledger's tables. These states are for rights of receipts. A claim of a token's step uses that step
 * for ever, even after `failed`. Whether the device got its command is not stored: after a power cut this would prove
 * nothing about the device, so an open claim then counts as `unknown`.
 *
 * What prevents a second release of a unit at this agent:
 *   - `claim` checks with `FreeRights` that a right is free and inserts the claim, in one transaction. Transactions
 *     run one at a time.
 *   - The transaction is on disk before the device gets its command (../file/commit.ts, `synchronous=FULL`).
 *   - `claim` binds a token to the receipt of the same unit. A redemption by token also uses the receipt's
 *     right, and after a redemption by receipt the token is refused.
 *   - After a power cut startup/stored.ts turns open claims into `unknown`; no command is sent a second time.
 *   - The agents of a store request rights from one agent, the receipt home (../../peers/home.ts).
 *
 * The counterpart in the cloud is cloud/protection/rights/rights.ts.
 */
export class Claims {
  readonly unresolved: UnresolvedRedemptions
  readonly #db: Connection
  readonly #metadata: Metadata
  readonly #redeemed: RedeemedRights
  readonly #free: FreeRights
  readonly #tokens: TokenRights
  readonly #tags: TagRights
  readonly #unitTags: UnitTags
  readonly #limits: ClaimLimits
  readonly #insert
  readonly #setState
  readonly #steps
  readonly #lastUse
  readonly #denialOf
  readonly #denialsIn
  readonly #deny
  readonly #allow

  constructor(db: Connection, metadata: Metadata) {
    this.#db = db
    this.#metadata = metadata
    this.unresolved = openUnresolvedRedemptions(db)
    this.#redeemed = new RedeemedRights(db)
    this.#unitTags = new UnitTags(db)
    this.#free = new FreeRights(db, this.#redeemed, this.unresolved, this.#unitTags)
    this.#tokens = new TokenRights(db)
    this.#tags = new TagRights(db, this.#redeemed, this.unresolved)
    this.#limits = new ClaimLimits(db, metadata)
    this.#insert = db.prepare(
      "INSERT INTO claim (nonce, right_class, ordinal, attempt, redemption_id, device_id, state, exp, at_ms) VALUES (?, ?, ?, ?, ?, ?, 'claimed', ?, ?)",
    )
    this.#setState = db.prepare("UPDATE claim SET state = ? WHERE redemption_id = ? AND state = 'claimed'")
    this.#steps = db.prepare<[string], { n: number }>('SELECT COUNT(*) AS n FROM claim WHERE nonce = ?')
    this.#lastUse = db.prepare<[{ cti: string; rightClass: RightClass }], ReceiptUse>(
      `SELECT at_ms AS atMs, device_id AS deviceId FROM claim WHERE state <> 'failed' AND right_class = @rightClass
       AND (nonce = @cti OR redemption_id IN (SELECT redemption_id FROM used_right WHERE cti = @cti AND right_class = @rightClass))
       ORDER BY at_ms DESC LIMIT 1`,
    )
    this.#deny = db.prepare(
      'INSERT INTO denied (subject, until_s) VALUES (?, ?) ON CONFLICT (subject) DO UPDATE SET until_s = MAX(until_s, excluded.until_s)',
    )
    this.#allow = db.prepare('DELETE FROM denied WHERE subject = ?')
    this.#denialOf = db.prepare<[string], { until_s: number }>('SELECT until_s FROM denied WHERE subject = ?')
    this.#denialsIn = db.prepare<[string, string], { subject: string }>(
      'SELECT subject FROM denied WHERE subject > ? AND subject < ?',
    )
  }

  claim(request: ClaimRequest): ClaimResult {
    if (this.#isPruned(request)) return { ok: false, reason: 'token_expired' }
    const mayUse = this.isTagFree(request) && !this.#hasLeftForOther(request)
    const free = mayUse ? this.#free.freeFor(request) : []
    const taken = request.all ? free : free.slice(0, 1)
    // This check comes before the revocation check. After `already_redeemed` the caller voids the token, and a repeated
    // request must get `already_redeemed` again.
    if (taken.length === 0) return { ok: false, reason: 'already_redeemed' }
    if (this.#isRevoked(request)) return { ok: false, reason: 'token_revoked' }
    if (this.#limits.isReached(request)) return { ok: false, reason: 'limit_exceeded' }
    for (const right of taken) {
      this.#insertClaim(request, right)
      const unit = unitOf(request, right.ordinal)
      const epc = request.tag?.epc
      if (unit && unit.ordinal !== PASS && epc !== undefined) this.#unitTags.note(unit, epc, request.exp + RECEIPT_LIFE)
    }
    this.#tags.add(request)
    this.#limits.count(request)
    return { ok: true, ordinals: taken.map(({ ordinal }) => ordinal), remaining: free.length - taken.length }
  }

  /** Stores the outcome of a claim. Returns false if the claim already has an outcome. */
  settle(redemptionId: string, outcome: Outcome): boolean {
    const isSettled = this.#setState.run(outcome, redemptionId).changes > 0
    // A failed redemption uses no right, so the unit may be tried again.
    if (isSettled && outcome === 'failed') this.#redeemed.remove(redemptionId)
    return isSettled
  }

  /** The claims that a crash left without an outcome. */
  unsettled(): UnsettledClaim[] {
    return this.#db
      .prepare<[], UnsettledClaim>("SELECT DISTINCT redemption_id, nonce, device_id FROM claim WHERE state = 'claimed'")
      .all()
  }

  /** True if the right is free. `isIgnored` returns true for a redemption that does not block the right. */
  isFree(
    cti: string,
    rightClass: RightClass,
    ordinal: number,
    nowMs: number,
    operator: boolean,
    isIgnored?: (redemptionId: string) => boolean,
  ): boolean {
    const right = { cti, rightClass, ordinal }
    return !this.#redeemed.isRedeemedElsewhere(right, nowMs) && this.#free.isFreeHere(right, { operator }, isIgnored)
  }

  /** Those of `ordinals` that are free (`isFree`). A receipt may have thousands of units. */
  freeOf(cti: string, rightClass: RightClass, ordinals: readonly number[], nowMs: number, operator: boolean): number[] {
    const named = this.#free.namedOf(cti, rightClass)
    return ordinals.filter((n) => !named.has(n) || this.isFree(cti, rightClass, n, nowMs, operator))
  }

  /** True if the tag has left for another unit of this receipt: it uses no second exit. */
  #hasLeftForOther({ rightClass, source, nonce, receipt, tag }: ClaimRequest): boolean {
    const cti = source === 'receipt' ? nonce : receipt?.cti
    return rightClass === 'exit' && cti !== undefined && tag?.epc !== undefined && this.hasLeft(cti, tag.epc)
  }

  /** True if a tag has left for a unit of this receipt. */
  hasLeft(cti: string, epc: string): boolean {
    return this.#unitTags.unitsOf(cti).some((unit) => unit.epc === epc && !this.isFreeHere(cti, 'exit', unit.ordinal))
  }

  /**
   * True if a unit of a receipt was used for other goods than those with this tag, or with `unlessLeft`, if its goods have
   * left: each unit is for one tag.
   */
  isOfOther(cti: string, ordinal: number, goods: GoodsOfRequest): boolean {
    return this.#free.isOfOther({ cti, ordinal }, goods)
  }

  /** Notes that a tag has left for a unit of a receipt, which is then for no other tag. `exp`: expiry of the receipt, s. */
  noteLeft(unit: ReceiptUnit, epc: string, exp: number): void {
    this.#unitTags.noteLeft(unit, epc, exp + RECEIPT_LIFE)
  }

  /** Units of a receipt that were used for a named tag. */
  tagsOf(cti: string): { ordinal: number; epc: string }[] {
    return this.#unitTags.unitsOf(cti)
  }

  /** The last unit of a receipt that was used for this tag. `until`: as the claim of the unit. */
  unitOfTag(epc: string): (ReceiptUnit & { until: number }) | undefined {
    return this.#unitTags.unitOf(epc)
  }

  /** True if no redemption in this ledger blocks the right for staff. Ignores uses that the cloud reported. */
  isFreeHere(cti: string, rightClass: RightClass, ordinal: number): boolean {
    return this.#free.isFreeHere({ cti, rightClass, ordinal }, { operator: true })
  }

  /** True if no earlier release of the named tag at this agent blocks the request. */
  isTagFree(
    request: Pick<ClaimRequest, 'tag' | 'source' | 'rightClass' | 'nowMs' | 'operatorId' | 'issuedS' | 'reportedSeq'>,
  ): boolean {
    const { operatorId, issuedS, reportedSeq } = request
    return this.#tags.isFree(request, { operator: operatorId !== undefined, issuedS, reportedSeq })
  }

  /** Forgets the releases of tags whose goods came back. Call it inside a transaction. */
  forgetTags(tags: readonly ItemIdentifierInput[]): void {
    this.#tags.forget(tags)
  }

  /** True if the ledger knows no release of a named tag. */
  get hasNoTags(): boolean {
    return this.#tags.isEmpty
  }

  /** Number of claimed steps of a token. */
  claimedSteps(nonce: string): number {
    return this.#steps.get(nonce)?.n ?? 0
  }

  /** The last use of a receipt at this agent. Undefined if there was none, or if it was pruned. */
  lastUseOf(cti: string, rightClass: RightClass): ReceiptUse | undefined {
    return this.#lastUse.get({ cti, rightClass })
  }

  /** Denies a token or receipt. The ledger may delete the denial after `until`, s since 1970. */
  deny(subject: string, until: number): void {
    this.#deny.run(subject, until)
  }

  isDenied(subject: string): boolean {
    return this.#denialOf.get(subject) !== undefined
  }

  /** Stores that a recall stops these units of a receipt. `ended`: no recall stops them any more. */
  recall({ cti, ordinals, until, ended }: RecalledUnits): void {
    for (const ordinal of ordinals) {
      const unit = unitName(cti, ordinal)
      if (ended) this.#allow.run(unit)
      else this.deny(unit, until)
    }
  }

  /** True if a recall stops this unit of a receipt. */
  isRecalled(cti: string, ordinal: number): boolean {
    return this.isDenied(unitName(cti, ordinal))
  }

  /** Numbers of the rights of a receipt that a recall stops: of its units, and `PASS` if all of them are stopped. */
  recalledOf(cti: string): number[] {
    // `0` is the character after `/`.
    const units = this.#denialsIn.all(`${cti}/`, `${cti}0`)
    return units.map(({ subject }) => Number(subject.slice(cti.length + 1)))
  }

  /**
   * Stores the report of the cloud that another agent or device used these rights of a receipt, or leases them with the
   * token `lease`.
   */
  redeemElsewhere({ cti, rightClass, ordinals, until }: ReportedRights, lease?: string): void {
    for (const ordinal of ordinals) this.#redeemed.addElsewhere({ cti, rightClass, ordinal }, until, lease)
  }

  /** Stores the report of the cloud that the lease of these rights has ended without a use. */
  endLease(lease: string, { cti, rightClass, ordinals }: ReportedRights): void {
    for (const ordinal of ordinals) this.#redeemed.endLease({ cti, rightClass, ordinal }, lease)
  }

  /**
   * Binds the steps of a token to rights of a receipt, in order. A redemption of a step also uses the receipt's right.
   */
  bindToken(
    nonce: string,
    {
      cti,
      rightClass,
      ordinals,
      until,
    }: { cti: string; rightClass: RightClass; ordinals: readonly number[]; until: number },
  ): void {
    for (const [step, ordinal] of ordinals.entries()) {
      this.#tokens.bind(nonce, step, { cti, ordinal }, until)
      // The step may have been claimed before the cloud reported the binding.
      const claim = this.#free.lastClaim(nonce, rightClass, step)
      if (claim && claim.state !== 'failed')
        this.#redeemed.add({ cti, rightClass, ordinal }, until + RECEIPT_LIFE, claim.redemption_id)
    }
  }

  /** Receipt rights that the token is bound to. Undefined if the cloud has not reported any. */
  receiptRightsOf(nonce: string): ClaimRequest['receipt'] {
    return this.#tokens.receiptOf(nonce)
  }

  /** Number of receipts that were honoured while isolated and that the cloud has not acknowledged yet. */
  get isolatedCount(): number {
    return this.#limits.isolatedCount
  }

  /** True if `isolatedCount` contains this receipt. */
  isHonoured(cti: string): boolean {
    return this.#limits.isCounted(cti)
  }

  /** The agent honours no receipt that expired at or before this time, s since 1970. */
  get floor(): number {
    return Math.max(this.#floor, Number(this.#metadata.get('receipt_floor') ?? 0))
  }

  /**
   * The cloud has acknowledged all rows up to `seq` at `atS`, s. If row `seq` or an earlier row contains the last
   * isolated claim, isolated claims no longer count.
   */
  noteAcknowledged(seq: number, atS?: number): void {
    if (atS !== undefined) this.unresolved.noteAcknowledged(seq, atS)
    this.#limits.noteAcknowledged(seq)
  }

  /**
   * The acknowledgements of rows after `seq` are void. If one of these rows contains the last isolated claim, isolated
   * claims count again. Call it inside a transaction.
   */
  resetAcknowledged(seq: number): void {
    this.#limits.resetAcknowledged(seq)
  }

  /** Stores the number of the journal row of the last isolated claim. */
  noteIsolatedRow(seq: number): void {
    this.#limits.noteRow(seq)
  }

  /**
   * Deletes entries that expired at or before this time, s. From then on the agent honours no token or receipt with
   * such an expiry.
   */
  prune(before: number): void {
    if (before <= this.#floor) return
    this.#metadata.set('floor', String(before))
    this.#db.prepare("DELETE FROM claim WHERE exp <= ? AND state <> 'claimed'").run(before)
    for (const table of ['denied', 'used_right', 'token_right', 'unit_tag'])
      this.#db.prepare(`DELETE FROM ${table} WHERE until_s <= ?`).run(before)
    this.#limits.prune(before)
    this.unresolved.prune()
  }

  /**
   * Call it when trusted time was set back to `toS`, s. Receipts whose ledger entries were pruned too early stay
   * unusable.
   */
  rewindTo(toS: number): void {
    this.#limits.rewindTo(toS)
    this.unresolved.rewindTo(toS)
    if (this.#floor <= toS) return
    // Pruning also deleted redemptions and denials of receipts that are still valid. The agent honours no such receipt.
    this.#metadata.set('receipt_floor', String(toS + RECEIPT_LIFE))
    this.#metadata.set('floor', String(toS))
  }

  /** The agent honours no token that expired at or before this time, s. */
  get #floor(): number {
    return Number(this.#metadata.get('floor') ?? 0)
  }

  #isPruned({ exp, source }: ClaimRequest): boolean {
    return exp <= (source === 'receipt' ? this.floor : this.#floor)
  }

  #isRevoked({ nonce, receipt }: ClaimRequest): boolean {
    return this.isDenied(nonce) || (receipt !== undefined && this.isDenied(receipt.cti))
  }

  #insertClaim(request: ClaimRequest, { ordinal: step, attempt }: FreeRight): void {
    const { nonce, rightClass, redemptionId, deviceId, exp, nowMs, receipt } = request
    this.#insert.run(nonce, rightClass, step, attempt, redemptionId, deviceId, exp, nowMs)
    const ordinal = receipt?.ordinals[step]
    // The receipt was issued before the token, so the receipt expires at most RECEIPT_LIFE after the token.
    if (receipt && ordinal !== undefined)
      this.#redeemed.add({ cti: receipt.cti, rightClass, ordinal }, exp + RECEIPT_LIFE, redemptionId)
  }
}
