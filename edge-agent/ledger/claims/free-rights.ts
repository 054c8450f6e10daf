import type { Database as Connection } from 'better-sqlite3'
import { PASS } from '../../../policy/receipts/receipt-claims.ts'
import type { RightClass } from '../../../policy/vocabulary.ts'
import type { ClaimRequest } from './claim-request.ts'
import type { ReceiptRight, RedeemedRights, Resolver, UnresolvedRedemptions } from './redeemed-rights.ts'

/** Number of failed attempts after which only staff may try again. */
const ATTEMPTS_LIMIT = 2

interface ClaimRow {
  redemption_id: string
  attempt: number
  state: string
}

/** A right that may be claimed now. */
export interface FreeRight {
  ordinal: number
  attempt: number
}

/** The rights of one class of a receipt. */
type ReceiptRights = Omit<ReceiptRight, 'ordinal'>

/** What a request tells of its goods. */
export interface GoodsOfRequest {
  readonly rightClass: RightClass
  readonly epc: string | undefined
  /** True: not a unit whose goods have left. */
  readonly unlessLeft: boolean
  /** True if who granted the request knew the uses that the cloud reported. */
  readonly knowsReported?: boolean
  readonly nowMs: number
}

/** Decides which rights may be claimed now. */
export class FreeRights {
  readonly #redeemed: RedeemedRights
  readonly #unresolved: UnresolvedRedemptions
  readonly #tags: UnitTags
  readonly #latest
  readonly #named

  constructor(db: Connection, redeemed: RedeemedRights, unresolved: UnresolvedRedemptions, tags: UnitTags) {
    this.#redeemed = redeemed
    this.#unresolved = unresolved
    this.#tags = tags
    this.#latest = db.prepare<[string, string, number], ClaimRow>(
      'SELECT redemption_id, attempt, state FROM claim WHERE nonce = ? AND right_class = ? AND ordinal = ? ORDER BY attempt DESC LIMIT 1',
    )
    this.#named = db.prepare<[ReceiptRights], { ordinal: number }>(
      `SELECT ordinal FROM claim WHERE nonce = @cti AND right_class = @rightClass
       UNION SELECT ordinal FROM used_right WHERE cti = @cti AND right_class = @rightClass`,
    )
  }

  /** Rights of a receipt of which the ledger knows a claim or use: all others are free. */
  namedOf(cti: string, rightClass: RightClass): ReadonlySet<number> {
    return new Set(this.#named.all({ cti, rightClass }).map(({ ordinal }) => ordinal))
  }

  /** Returns the last claim of a token's step or a receipt's right. */
  lastClaim(nonce: string, rightClass: RightClass, ordinal: number): ClaimRow | undefined {
    return this.#latest.get(nonce, rightClass, ordinal)
  }

  /** Returns the rights that this request may use now, in the order of its candidates. */
  freeFor(request: ClaimRequest): FreeRight[] {
    const { nonce, rightClass, nowMs, operatorId, issuedS, reportedSeq } = request
    const by: Resolver = { operator: operatorId !== undefined, issuedS, reportedSeq }
    const isReceipt = request.source === 'receipt'
    return request.candidates.flatMap((ordinal) => {
      const right = { cti: nonce, rightClass, ordinal }
      if (isReceipt && (this.#redeemed.isRedeemedElsewhere(right, nowMs) || !this.isFreeHere(right, by))) return []
      if (this.#isOfOther(request, ordinal)) return []
      const attempt = this.#freeAttempt(nonce, rightClass, ordinal, by, isReceipt)
      return attempt === undefined || !this.#receiptAllows(request, by, ordinal) ? [] : [{ ordinal, attempt }]
    })
  }

  /** True if the unit of this right or step was used for other goods than those of the request. */
  #isOfOther(request: ClaimRequest, n: number): boolean {
    const unit = unitOf(request, n)
    const { rightClass, tag, source, unlessLeft = false, nowMs } = request
    if (!unit) return false
    // The cloud named the tag, and it knows the exits that it reported.
    const knowsReported = source === 'token' && tag?.epc !== undefined
    return this.isOfOther(unit, { rightClass, epc: tag?.epc, unlessLeft, knowsReported, nowMs })
  }

  /** True if a unit was used for other goods than those with this tag (`Claims.isOfOther`). */
  isOfOther(unit: ReceiptUnit, { rightClass, epc, unlessLeft, knowsReported, nowMs }: GoodsOfRequest): boolean {
    if (rightClass === 'open' || unit.ordinal === PASS) return false
    const exit = { ...unit, rightClass: 'exit' } as const
    const isFree = (right: ReceiptRight) => this.isFreeHere(right, { operator: false })
    const known = this.#tags.tagOf(unit)
    if (known !== undefined && epc !== undefined)
      return known.epc !== epc && (known.hasLeft || !(isFree(exit) && isFree({ ...unit, rightClass: 'release' })))
    if (rightClass !== 'release' || !unlessLeft) return false
    return (
      known?.hasLeft === true ||
      !isFree(exit) ||
      (knowsReported !== true && this.#redeemed.isRedeemedElsewhere(exit, nowMs))
    )
  }

  /** Returns the attempt number for the next claim of the right. Undefined if the right may not be claimed. */
  #freeAttempt(
    nonce: string,
    rightClass: RightClass,
    ordinal: number,
    by: Resolver,
    isReceipt: boolean,
  ): number | undefined {
    const row = this.lastClaim(nonce, rightClass, ordinal)
    if (!row) return 0
    return isReceipt && this.#mayTryAgain(row, by) ? row.attempt + 1 : undefined
  }

  /** True if a right of a receipt may be claimed again after this claim. */
  #mayTryAgain({ state, attempt, redemption_id: redemptionId }: ClaimRow, by: Resolver): boolean {
    if (state === 'failed') return by.operator || attempt + 1 < ATTEMPTS_LIMIT
    return state === 'unknown' && this.#unresolved.isResolvedFor(redemptionId, by)
  }

  /** True if no redemption in this ledger blocks the right: none by token, delegation or receipt. */
  isFreeHere(right: ReceiptRight, by: Resolver, isIgnored: (redemptionId: string) => boolean = () => false): boolean {
    const isUsed = this.#redeemed
      .redemptionsOf(right)
      .some((id) => !this.#unresolved.isResolvedFor(id, by) && !isIgnored(id))
    return !isUsed && this.#freeAttempt(right.cti, right.rightClass, right.ordinal, by, true) !== undefined
  }

  /**
   * Returns false if this agent has already used the receipt right of the token's step. Ignores redemptions that the
   * cloud reported, because the cloud knew these redemptions when it issued the token.
   */
  #receiptAllows({ receipt, rightClass }: ClaimRequest, by: Resolver, step: number): boolean {
    const ordinal = receipt?.ordinals[step]
    return !receipt || ordinal === undefined || this.isFreeHere({ cti: receipt.cti, rightClass, ordinal }, by)
  }
}

/** A unit of a receipt. */
export interface ReceiptUnit {
  readonly cti: string
  readonly ordinal: number
}

/** The tags for which units of receipts were used, as the requests named them. */
export class UnitTags {
  readonly #note
  readonly #noteLeft
  readonly #tagOf
  readonly #unitsOf
  readonly #unitOf

  constructor(db: Connection) {
    this.#note = db.prepare(
      'INSERT INTO unit_tag (cti, ordinal, epc, until_s) VALUES (?, ?, ?, ?) ON CONFLICT (cti, ordinal) DO UPDATE SET epc = excluded.epc, until_s = MAX(until_s, excluded.until_s)',
    )
    // The first tag that left for a unit stays the one.
    this.#noteLeft = db.prepare(
      'INSERT INTO unit_tag (cti, ordinal, epc, until_s, has_left) VALUES (?, ?, ?, ?, 1) ON CONFLICT (cti, ordinal) DO UPDATE SET epc = CASE has_left WHEN 1 THEN epc ELSE excluded.epc END, has_left = 1',
    )
    this.#tagOf = db.prepare<[string, number], { epc: string; has_left: number }>(
      'SELECT epc, has_left FROM unit_tag WHERE cti = ? AND ordinal = ?',
    )
    this.#unitsOf = db.prepare<[string], { ordinal: number; epc: string }>(
      'SELECT ordinal, epc FROM unit_tag WHERE cti = ?',
    )
    this.#unitOf = db.prepare<[string], ReceiptUnit & { until: number }>(
      'SELECT cti, ordinal, until_s AS until FROM unit_tag WHERE epc = ? ORDER BY until_s DESC LIMIT 1',
    )
  }

  note({ cti, ordinal }: ReceiptUnit, epc: string, untilS: number): void {
    this.#note.run(cti, ordinal, epc, untilS)
  }

  noteLeft({ cti, ordinal }: ReceiptUnit, epc: string, untilS: number): void {
    this.#noteLeft.run(cti, ordinal, epc, untilS)
  }

  tagOf({ cti, ordinal }: ReceiptUnit): { epc: string; hasLeft: boolean } | undefined {
    const row = this.#tagOf.get(cti, ordinal)
    return row && { epc: row.epc, hasLeft: row.has_left === 1 }
  }

  unitsOf(cti: string): { ordinal: number; epc: string }[] {
    return this.#unitsOf.all(cti)
  }

  unitOf(epc: string): (ReceiptUnit & { until: number }) | undefined {
    return this.#unitOf.get(epc)
  }
}

/** The unit of a receipt whose right a request uses as its `n`th. */
export function unitOf({ source, nonce, receipt }: ClaimRequest, n: number): ReceiptUnit | undefined {
  if (source === 'receipt') return { cti: nonce, ordinal: n }
  const ordinal = receipt?.ordinals[n]
  return receipt && ordinal !== undefined ? { cti: receipt.cti, ordinal } : undefined
}

/** Receipt rights that the steps of a token use, as the cloud reports them. */
export class TokenRights {
  readonly #bind
  readonly #boundTo

  constructor(db: Connection) {
    this.#bind = db.prepare(
      'INSERT INTO token_right (nonce, step, cti, ordinal, until_s) VALUES (?, ?, ?, ?, ?) ON CONFLICT (nonce, step) DO NOTHING',
    )
    this.#boundTo = db.prepare<[string], { cti: string; ordinal: number }>(
      'SELECT cti, ordinal FROM token_right WHERE nonce = ? ORDER BY step',
    )
  }

  bind(nonce: string, step: number, right: { cti: string; ordinal: number }, untilS: number): void {
    this.#bind.run(nonce, step, right.cti, right.ordinal, untilS)
  }

  receiptOf(nonce: string): { cti: string; ordinals: number[] } | undefined {
    const rows = this.#boundTo.all(nonce)
    const [first] = rows
    return first && { cti: first.cti, ordinals: rows.map(({ ordinal }) => ordinal) }
  }
}
