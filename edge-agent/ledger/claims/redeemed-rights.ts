import type { Database as Connection } from 'better-sqlite3'
import type { RightClass } from '../../../policy/vocabulary.ts'

/** Sentinel redemption id for redemptions that the cloud reported. */
const REPORTED_BY_CLOUD = ''

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

  constructor(db: Connection) {
    this.#select = db.prepare<[string, string, number], { until_s: number; redemption_id: string }>(
      'SELECT until_s, redemption_id FROM used_right WHERE cti = ? AND right_class = ? AND ordinal = ?',
    )
    this.#insert = db.prepare(
      'INSERT INTO used_right (cti, right_class, ordinal, until_s, redemption_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT (cti, right_class, ordinal, redemption_id) DO UPDATE SET until_s = MAX(until_s, excluded.until_s)',
    )
    this.#delete = db.prepare('DELETE FROM used_right WHERE redemption_id = ?')
  }

  add({ cti, rightClass, ordinal }: ReceiptRight, untilS: number, redemptionId: string): void {
    this.#insert.run(cti, rightClass, ordinal, untilS, redemptionId)
  }

  addElsewhere(right: ReceiptRight, untilS: number): void {
    this.add(right, untilS, REPORTED_BY_CLOUD)
  }

  /** Frees the rights that this redemption used. */
  remove(redemptionId: string): void {
    this.#delete.run(redemptionId)
  }

  isRedeemedElsewhere(right: ReceiptRight, nowMs: number): boolean {
    return this.#rowsOf(right).some((use) => use.redemption_id === REPORTED_BY_CLOUD && use.until_s * 1_000 > nowMs)
  }

  /** Returns the ids of the redemptions in this ledger that used the right. */
  redemptionsOf(right: ReceiptRight): string[] {
    return this.#rowsOf(right).flatMap(({ redemption_id: id }) => (id === REPORTED_BY_CLOUD ? [] : [id]))
  }

  #rowsOf({ cti, rightClass, ordinal }: ReceiptRight): { until_s: number; redemption_id: string }[] {
    return this.#select.all(cti, rightClass, ordinal)
  }
}
