import type { Database as Connection } from 'better-sqlite3'
import { NOTICE_TAGS_LIMIT, type SoldPiece } from '../../policy/documents/till-notice.ts'

const PIECE = 'sale, product, tag, count, exp'
/** Time for which uses and ends of pieces are known, s: as long as reports about tags (housekeeping.ts). */
const KNOWN_SECONDS = 14 * 24 * 3_600
/** Maximum sales that one decision compares. */
const SALES_LIMIT = 100
/** Maximum tags that passed for one sale. */
const TAGS_LIMIT = 2_000

/** A sale with pieces of a product for which no tag has passed, as far as the ledger knows. */
interface FreePieces {
  readonly sale: string
  readonly left: number
}

/**
 * Pieces that tills sold without naming their tags, the tags that passed for them, and the sales whose pieces ended
 * (`SoldPiece`). Rows are only added, so the order in which agents announce them does not matter.
 */
export class TillPieces {
  readonly #next: () => number
  readonly #save
  readonly #free
  readonly #tags
  readonly #uses
  readonly #usesOf
  readonly #changes
  readonly #prune

  /** `next`: number of the next change that this agent announces. */
  constructor(db: Connection, next: () => number) {
    this.#next = next
    this.#save = db.prepare(
      // The agent that announced it may not be named any more.
      "INSERT INTO till_piece (sale, product, tag, count, exp, sender, change, seq) VALUES (@sale, @product, @tag, @count, @exp, @sender, @change, @seq) ON CONFLICT (sale, product, tag) DO UPDATE SET sender = '', change = excluded.change WHERE excluded.sender = '' AND excluded.count > 0 AND till_piece.sender <> ''",
    )
    // A use counts whoever announced it. The pieces of an agent that the policy no longer names do not. Sales that are
    // over are left out before the limit, so that a till cannot hide the pieces of others behind its void sales.
    this.#free = db.prepare<[string, number, string, string], FreePieces>(
      `SELECT sale, left FROM (
         SELECT sale, exp, count + COALESCE((SELECT SUM(count) FROM till_piece AS used
           WHERE used.sale = sold.sale AND used.product = sold.product AND used.count < 0), 0) AS left
         FROM till_piece AS sold
         WHERE product = ? AND count > 0 AND exp > ? AND sender IN (SELECT value FROM json_each(?))
           AND NOT EXISTS (SELECT 1 FROM till_piece AS ended WHERE ended.sale = sold.sale AND ended.product = '')
           AND NOT EXISTS (SELECT 1 FROM denied WHERE denied.subject = sold.sale)
           AND NOT EXISTS (SELECT 1 FROM sale AS known
             WHERE known.sale_key = sold.sale AND known.till_id IN (SELECT value FROM json_each(?))))
       WHERE left > 0 ORDER BY exp LIMIT ${SALES_LIMIT}`,
    )
    this.#tags = db.prepare<[string], { tag: string }>(
      `SELECT tag FROM till_piece WHERE sale = ? AND count < 0 LIMIT ${TAGS_LIMIT}`,
    )
    this.#uses = db.prepare<[number, number], { n: number }>(
      "SELECT COUNT(*) AS n FROM till_piece WHERE sender = '' AND count < 0 AND change > ? AND seq > ?",
    )
    this.#usesOf = db.prepare<[string], { count: number; seq: number | null }>(
      'SELECT COUNT(*) AS count, MAX(seq) AS seq FROM till_piece WHERE sale = ? AND count < 0',
    )
    this.#changes = db.prepare<[number, number], SoldPiece & { change: number }>(
      `SELECT ${PIECE}, change FROM till_piece WHERE sender = '' AND change > ? ORDER BY change LIMIT ?`,
    )
    this.#prune = db.prepare('DELETE FROM till_piece WHERE exp <= ?')
  }

  /** Stores the pieces of a product that a till sold here. */
  sold(sale: string, product: string, count: number, expS: number): void {
    this.#add({ sale, product, tag: '', count, exp: expS }, 0)
  }

  /** Stores that a tag passed a gate of this agent for a piece. `seq`: journal row. */
  use(sale: string, product: string, tag: string, nowS: number, seq: number): void {
    this.#add({ sale, product, tag, count: -1, exp: nowS + KNOWN_SECONDS }, seq)
  }

  /** Ends the pieces of a sale: goods came back, and agents do not know which. */
  end(sale: string, nowS: number): void {
    this.#add({ sale, product: '', tag: '', count: 0, exp: nowS + KNOWN_SECONDS }, 0)
  }

  #add(piece: SoldPiece, seq: number): void {
    this.#save.run({ ...piece, sender: '', change: this.#next(), seq })
  }

  /** Stores what another agent announced. `passSeconds`: how long pieces may pass by the policy of this agent. */
  receive(pieces: readonly SoldPiece[], sender: string, nowS: number, passSeconds: number): void {
    for (const piece of pieces) {
      const exp = piece.count > 0 ? Math.min(piece.exp, nowS + passSeconds) : nowS + KNOWN_SECONDS
      if (exp > nowS) this.#save.run({ ...piece, exp, sender, change: 0, seq: 0 })
    }
  }

  /**
   * Sales of these agents with pieces of a product that are left, the one that expires first at the front: not those that
   * are void or revoked, nor those of these tills that were recorded here.
   */
  free(product: string, nowS: number, agents: readonly string[], revokedTills: readonly string[] = []): FreePieces[] {
    return this.#free.all(product, nowS, JSON.stringify(['', ...agents]), JSON.stringify(revokedTills))
  }

  /** Keys of tags that passed for pieces of a sale, wherever they passed. */
  tagsOf(sale: string): string[] {
    return this.#tags.all(sale).map(({ tag }) => tag)
  }

  /** Number of uses here after change `change`, whose journal rows come after `seq`. */
  usesAfter(change: number, seq: number): number {
    return this.#uses.get(change, seq)?.n ?? 0
  }

  /** Number of tags that passed for a sale, wherever, and the last journal row about one that passed here; 0: none. */
  usesOf(sale: string): { count: number; seq: number } {
    const { count = 0, seq = 0 } = this.#usesOf.get(sale) ?? {}
    return { count, seq: seq ?? 0 }
  }

  /** Changes of this agent after number `after`, as many as a notice holds. */
  changesAfter(after: number): (SoldPiece & { change: number })[] {
    return this.#changes.all(after, NOTICE_TAGS_LIMIT)
  }

  /** Deletes what has expired. */
  prune(nowS: number): void {
    this.#prune.run(nowS)
  }
}
