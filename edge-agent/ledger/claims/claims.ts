import type { Database as Connection } from 'better-sqlite3'
import { RECEIPT_LIFE } from '../../../policy/receipts/receipt-token.ts'
import type { Outcome, RightClass } from '../../../policy/vocabulary.ts'
import type { Marks } from '../file/metadata.ts'
import { ClaimLimits } from './claim-limits.ts'
import type { Claimed, ClaimRequest } from './claim-request.ts'
import { FreeRights, type FreeRight } from './free-rights.ts'
import { TokenRights } from './token-rights.ts'
import { openUnknownUses, type UnknownUses } from './unresolved-redemptions.ts'
import { UsedRights } from './redeemed-rights.ts'

/**
 *   claimed ──▶ commanded
 *      └────────────┴──▶ confirmed    the right is used up
 *                   ├──▶ failed       a right of a receipt is free again: once more for the shopper, then for staff
 *                   └──▶ unknown      a right of a receipt is free again for staff, or once the cloud has answered for it
 *
 * A token's step is used up by any claim. `commanded` is only a note: no decision depends on it.
 *
 * What stops a second release of a unit at this agent:
 *   - free-rights.ts says which rights are free, and `claim` inserts them, in one transaction. Requests at the same time take turns.
 *   - The transaction is on disk before the device gets its command (../file/commit.ts, `synchronous=FULL`).
 *   - used-rights.ts ties a token to the receipt of the same unit, so that each uses up the other.
 *   - After a power cut ../recovery.ts turns open claims into `unknown`; no command is sent a second time.
 *   - Several agents of a store ask one of them, the receipt home (../../peers/home.ts). In the cloud see rights/rights.ts.
 */

export interface OpenClaim {
  redemption_id: string
  nonce: string
  device_id: string
}

/** Claims in this ledger's tables. */
export class Claims {
  readonly unknown: UnknownUses
  readonly #db: Connection
  readonly #marks: Marks
  readonly #used: UsedRights
  readonly #free: FreeRights
  readonly #tokens: TokenRights
  readonly #limits: ClaimLimits
  readonly #insert
  readonly #setState
  readonly #steps
  readonly #denied
  readonly #deny

  constructor(db: Connection, marks: Marks) {
    this.#db = db
    this.#marks = marks
    this.unknown = openUnknownUses(db)
    this.#used = new UsedRights(db)
    this.#free = new FreeRights(db, this.#used, this.unknown)
    this.#tokens = new TokenRights(db)
    this.#limits = new ClaimLimits(db, marks)
    this.#insert = db.prepare(
      "INSERT INTO claim (nonce, right_class, ordinal, attempt, redemption_id, device_id, state, exp, at_ms) VALUES (?, ?, ?, ?, ?, ?, 'claimed', ?, ?)",
    )
    this.#setState = db.prepare(
      "UPDATE claim SET state = ? WHERE redemption_id = ? AND state IN ('claimed', 'commanded')",
    )
    this.#steps = db.prepare<[string], { n: number }>('SELECT COUNT(*) AS n FROM claim WHERE nonce = ?')
    this.#deny = db.prepare(
      'INSERT INTO denied (subject, until_s) VALUES (?, ?) ON CONFLICT (subject) DO UPDATE SET until_s = MAX(until_s, excluded.until_s)',
    )
    this.#denied = db.prepare<[string], { until_s: number }>('SELECT until_s FROM denied WHERE subject = ?')
  }

  claim(request: ClaimRequest): Claimed {
    if (this.#isPruned(request)) return { ok: false, reason: 'token_expired' }
    const free = this.#free.of(request)
    const taken = request.all ? free : free.slice(0, 1)
    // Before revocation: the agent voids a token that the cloud issued for a right which is used here already.
    if (taken.length === 0) return { ok: false, reason: 'already_redeemed' }
    if (this.#isRevoked(request)) return { ok: false, reason: 'token_revoked' }
    if (this.#limits.isReached(request)) return { ok: false, reason: 'limit_exceeded' }
    for (const right of taken) this.#write(request, right)
    this.#limits.count(request)
    return { ok: true, ordinals: taken.map(({ ordinal }) => ordinal), remaining: free.length - taken.length }
  }

  markCommanded(redemptionId: string): void {
    this.#setState.run('commanded', redemptionId)
  }

  /** Writes what became of a claim; false when it was settled already. */
  settle(redemptionId: string, outcome: Outcome): boolean {
    const isSettled = this.#setState.run(outcome, redemptionId).changes > 0
    // What failed has used nothing up: the unit may be tried again.
    if (isSettled && outcome === 'failed') this.#used.free(redemptionId)
    return isSettled
  }

  /** Claims that a crash left without outcome. */
  open(): OpenClaim[] {
    return this.#db
      .prepare<[], OpenClaim>(
        "SELECT DISTINCT redemption_id, nonce, device_id FROM claim WHERE state IN ('claimed', 'commanded')",
      )
      .all()
  }

  /** Whether the right of a receipt is free here; `mayGoOn`: uses besides that hold nobody up. */
  isFree(
    cti: string,
    rightClass: RightClass,
    ordinal: number,
    nowMs: number,
    operator: boolean,
    mayGoOn?: (redemptionId: string) => boolean,
  ): boolean {
    const right = { cti, rightClass, ordinal }
    return !this.#used.isUsedElsewhere(right, nowMs) && this.#free.isFreeHere(right, { operator }, mayGoOn)
  }

  /** Whether it is free but for what the cloud told of others: nothing here has used it, or staff may go on. */
  isFreeHere(cti: string, rightClass: RightClass, ordinal: number): boolean {
    return this.#free.isFreeHere({ cti, rightClass, ordinal }, { operator: true })
  }

  /** Steps of a token that were claimed. */
  claimedSteps(nonce: string): number {
    return this.#steps.get(nonce)?.n ?? 0
  }

  /** Stores that this token or receipt is never to be honoured, until its end. `until`: seconds since 1970. */
  deny(subject: string, until: number): void {
    this.#deny.run(subject, until)
  }

  isDenied(subject: string): boolean {
    return this.#denied.get(subject) !== undefined
  }

  /** Rights of a receipt that were used up elsewhere. */
  useElsewhere(cti: string, rightClass: RightClass, ordinals: readonly number[], until: number): void {
    for (const ordinal of ordinals) this.#used.useElsewhere({ cti, rightClass, ordinal }, until)
  }

  /** A token's steps stand for these rights of a receipt, in their order: whichever of the two is used, the other is used up with it. */
  standsFor(
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
      // It may have been claimed before this came.
      const claim = this.#free.lastClaim(nonce, rightClass, step)
      if (claim && claim.state !== 'failed')
        this.#used.use({ cti, rightClass, ordinal }, until + RECEIPT_LIFE, claim.redemption_id)
    }
  }

  /** The rights that a token stands for, as far as the cloud has told. */
  receiptOf(nonce: string): ClaimRequest['receipt'] {
    return this.#tokens.receiptOf(nonce)
  }

  get isolatedCount(): number {
    return this.#limits.isolatedCount
  }

  /** Receipts that ended at or before this are never honoured again, seconds since 1970. */
  get floor(): number {
    return Math.max(this.#floor, Number(this.#marks.get('receipt_floor') ?? 0))
  }

  /** The cloud has everything up to this row, as it said at this time (s): isolated claims up to it no longer count. */
  acknowledged(seq: number, atS?: number): void {
    if (atS !== undefined) this.unknown.told(seq, atS)
    this.#limits.acknowledged(seq)
  }

  /** Whoever acknowledged what follows on row `seq` may have been nobody: isolated claims count until the cloud says again that it has them. Call it inside a transaction. */
  doubtAcknowledged(seq: number): void {
    this.#limits.doubtAcknowledged(seq)
  }

  /** Notes which journal row holds an isolated claim. */
  countedIn(seq: number): void {
    this.#limits.countedIn(seq)
  }

  /** Forgets what has ended before this time (seconds); nothing that ends at or before it is honoured again, whatever the clock says. */
  prune(before: number): void {
    if (before <= this.#floor) return
    this.#marks.set('floor', String(before))
    this.#db.prepare("DELETE FROM claim WHERE exp <= ? AND state NOT IN ('claimed', 'commanded')").run(before)
    for (const table of ['denied', 'used_right', 'token_right'])
      this.#db.prepare(`DELETE FROM ${table} WHERE until_s <= ?`).run(before)
    this.#limits.prune(before)
    this.unknown.prune()
  }

  /** It is no later than this, s: what was forgotten by a wrong time may not be honoured again. */
  setBack(toS: number): void {
    this.#limits.setBack(toS)
    this.unknown.setBack(toS)
    if (this.#floor <= toS) return
    // Uses and denials of receipts that live are among what was forgotten. Tokens of before count no more anyway.
    this.#marks.set('receipt_floor', String(toS + RECEIPT_LIFE))
    this.#marks.set('floor', String(toS))
  }

  /** Tokens that ended at or before this are never honoured again, s. */
  get #floor(): number {
    return Number(this.#marks.get('floor') ?? 0)
  }

  #isPruned({ exp, source }: ClaimRequest): boolean {
    return exp <= (source === 'receipt' ? this.floor : this.#floor)
  }

  #isRevoked({ nonce, receipt }: ClaimRequest): boolean {
    return this.isDenied(nonce) || (receipt !== undefined && this.isDenied(receipt.cti))
  }

  #write(request: ClaimRequest, { ordinal: step, attempt }: FreeRight): void {
    const { nonce, rightClass, redemptionId, deviceId, exp, nowMs, receipt } = request
    this.#insert.run(nonce, rightClass, step, attempt, redemptionId, deviceId, exp, nowMs)
    const ordinal = receipt?.ordinals[step]
    // The receipt is older than the token, so it ends at most one receipt life after the token.
    if (receipt && ordinal !== undefined)
      this.#used.use({ cti: receipt.cti, rightClass, ordinal }, exp + RECEIPT_LIFE, redemptionId)
  }
}
