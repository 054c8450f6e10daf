import type { Database as Connection } from 'better-sqlite3'
import type { RightClass } from '../../../policy/vocabulary.ts'

/** In the place of a redemption id: what the cloud told of others. */
const BY_OTHERS = ''

/** One right of a receipt. */
export interface ReceiptRight {
  readonly cti: string
  readonly rightClass: RightClass
  readonly ordinal: number
}

/** Used rights of receipts. Each use has its own row: by a token here, by a grant to another agent, or elsewhere as the cloud reports it. */
export class UsedRights {
  readonly #uses
  readonly #use
  readonly #free

  constructor(db: Connection) {
    this.#uses = db.prepare<[string, string, number], { until_s: number; redemption_id: string }>(
      'SELECT until_s, redemption_id FROM used_right WHERE cti = ? AND right_class = ? AND ordinal = ?',
    )
    this.#use = db.prepare(
      'INSERT INTO used_right (cti, right_class, ordinal, until_s, redemption_id) VALUES (?, ?, ?, ?, ?) ON CONFLICT (cti, right_class, ordinal, redemption_id) DO UPDATE SET until_s = MAX(until_s, excluded.until_s)',
    )
    this.#free = db.prepare('DELETE FROM used_right WHERE redemption_id = ?')
  }

  use({ cti, rightClass, ordinal }: ReceiptRight, untilS: number, redemptionId: string): void {
    this.#use.run(cti, rightClass, ordinal, untilS, redemptionId)
  }

  useElsewhere(right: ReceiptRight, untilS: number): void {
    this.use(right, untilS, BY_OTHERS)
  }

  /** Frees the rights that this redemption used. */
  free(redemptionId: string): void {
    this.#free.run(redemptionId)
  }

  isUsedElsewhere(right: ReceiptRight, nowMs: number): boolean {
    return this.#usesOf(right).some((use) => use.redemption_id === BY_OTHERS && use.until_s * 1_000 > nowMs)
  }

  /** The redemptions that have used it here. */
  redemptionsOf(right: ReceiptRight): string[] {
    return this.#usesOf(right).flatMap(({ redemption_id: id }) => (id === BY_OTHERS ? [] : [id]))
  }

  #usesOf({ cti, rightClass, ordinal }: ReceiptRight): { until_s: number; redemption_id: string }[] {
    return this.#uses.all(cti, rightClass, ordinal)
  }
}
