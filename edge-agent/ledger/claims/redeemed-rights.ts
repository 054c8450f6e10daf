import type { Database as Connection } from 'better-sqlite3'
import type { RightClass } from '../../../policy/vocabulary.ts'

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
