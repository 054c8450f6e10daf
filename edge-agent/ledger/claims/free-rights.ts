import type { Database as Connection } from 'better-sqlite3'
import type { RightClass } from '../../../policy/vocabulary.ts'
import type { ClaimRequest } from './claim-request.ts'
import type { Resolver, UnresolvedRedemptions } from './unresolved-redemptions.ts'
import type { ReceiptRight, RedeemedRights } from './redeemed-rights.ts'

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

/** Decides which rights may be claimed now. */
export class FreeRights {
  readonly #redeemed: RedeemedRights
  readonly #unresolved: UnresolvedRedemptions
  readonly #latest

  constructor(db: Connection, redeemed: RedeemedRights, unresolved: UnresolvedRedemptions) {
    this.#redeemed = redeemed
    this.#unresolved = unresolved
    this.#latest = db.prepare<[string, string, number], ClaimRow>(
      'SELECT redemption_id, attempt, state FROM claim WHERE nonce = ? AND right_class = ? AND ordinal = ? ORDER BY attempt DESC LIMIT 1',
    )
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
      const attempt = this.#freeAttempt(nonce, rightClass, ordinal, by, isReceipt)
      return attempt === undefined || !this.#receiptAllows(request, by, ordinal) ? [] : [{ ordinal, attempt }]
    })
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
