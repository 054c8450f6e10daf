import type { Database as Connection } from 'better-sqlite3'
import type { ItemStatus } from '../../policy/vocabulary.ts'

/** A stored sale. */
export interface StoredSale {
  readonly saleKey: string
  /** Empty if the till sends none. */
  readonly tillId: string
  readonly state: 'open' | 'paid' | 'void'
  readonly version: number
  /** Hash of its content; empty for a void that came before its sale. */
  readonly content: string
  /** Names of its tags that became paid, by line: JSON. */
  readonly tags: string
  /** JSON of the answer to the till. */
  readonly answer: string
  readonly valueCent: number
  /** Trusted time, ms. */
  readonly storedMs: number
  /** Journal row. */
  readonly seq: number
}

export interface StoredReturn {
  readonly returnKey: string
  readonly content: string
  readonly answer: string
  readonly storedMs: number
  readonly seq: number
}

const SALE =
  'sale_key AS saleKey, till_id AS tillId, state, version, content, tags, answer, value_cent AS valueCent, stored_ms AS storedMs, seq'

/** Statuses that a till gives goods that came back. */
const CAME_BACK = ['returned', 'cancelled', 'sellable'] as const satisfies readonly ItemStatus[]

/**
 * Sales, voids and returns that tills reported to this agent, and what they say about tags (ADR till-sales). All changes
 * run inside a transaction of the ledger, with their journal row.
 */
export class TillReports {
  readonly #sale
  readonly #saveSale
  readonly #hour
  readonly #open
  readonly #return
  readonly #saveReturn
  readonly #tag
  readonly #tagsIn
  readonly #saveTag
  readonly #acknowledge
  readonly #prune

  constructor(db: Connection) {
    this.#sale = db.prepare<[string], StoredSale>(`SELECT ${SALE} FROM sale WHERE sale_key = ?`)
    this.#saveSale = db.prepare(
      `INSERT INTO sale (sale_key, till_id, state, version, content, tags, answer, value_cent, stored_ms, seq)
       VALUES (@saleKey, @tillId, @state, @version, @content, @tags, @answer, @valueCent, @storedMs, @seq)
       ON CONFLICT (sale_key) DO UPDATE SET state = excluded.state, version = excluded.version, content = excluded.content,
         tags = excluded.tags, answer = excluded.answer, value_cent = excluded.value_cent, stored_ms = excluded.stored_ms, seq = excluded.seq`,
    )
    this.#hour = db.prepare<[string, number], { sales: number; valueCent: number }>(
      "SELECT COUNT(*) AS sales, COALESCE(SUM(value_cent), 0) AS valueCent FROM sale WHERE till_id = ? AND stored_ms >= ? AND state <> 'open'",
    )
    this.#open = db.prepare<[string, number], { n: number }>(
      "SELECT COUNT(*) AS n FROM sale WHERE till_id = ? AND stored_ms > ? AND state = 'open'",
    )
    this.#return = db.prepare<[string], StoredReturn>(
      'SELECT return_key AS returnKey, content, answer, stored_ms AS storedMs, seq FROM till_return WHERE return_key = ?',
    )
    this.#saveReturn = db.prepare(
      'INSERT INTO till_return (return_key, content, answer, stored_ms, seq) VALUES (@returnKey, @content, @answer, @storedMs, @seq)',
    )
    this.#tag = db.prepare<[string], { status: ItemStatus; epoch: number; ver: number | null }>(
      'SELECT status, COALESCE(epoch, 0) AS epoch, ver FROM till_tag WHERE name = ?',
    )
    this.#tagsIn = db.prepare<[string], { name: string }>('SELECT name FROM till_tag WHERE status = ?')
    this.#saveTag = db.prepare(
      'INSERT INTO till_tag (name, status, stored_ms, seq) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET status = excluded.status, stored_ms = excluded.stored_ms, seq = excluded.seq, epoch = NULL, ver = NULL',
    )
    this.#acknowledge = db.prepare('UPDATE till_tag SET epoch = ?, ver = ? WHERE ver IS NULL AND seq <= ?')
    this.#prune = [
      'DELETE FROM till_tag WHERE stored_ms < ? AND ver IS NOT NULL',
      'DELETE FROM sale WHERE stored_ms < ? AND seq <= ?',
      'DELETE FROM till_return WHERE stored_ms < ? AND seq <= ?',
    ].map((sql) => db.prepare(sql))
  }

  sale(saleKey: string): StoredSale | undefined {
    return this.#sale.get(saleKey)
  }

  saveSale(sale: StoredSale): void {
    this.#saveSale.run(sale)
  }

  /** What a till sold since `sinceMs`. */
  soldSince(tillId: string, sinceMs: number): { sales: number; valueCent: number } {
    return this.#hour.get(tillId, sinceMs) ?? { sales: 0, valueCent: 0 }
  }

  /** Number of open sales of a till that were stored after `sinceMs`. */
  openSince(tillId: string, sinceMs: number): number {
    return this.#open.get(tillId, sinceMs)?.n ?? 0
  }

  return(returnKey: string): StoredReturn | undefined {
    return this.#return.get(returnKey)
  }

  saveReturn(row: StoredReturn): void {
    this.#saveReturn.run(row)
  }

  tag(key: string): { status: ItemStatus; epoch: number; ver: number | null } | undefined {
    return this.#tag.get(key)
  }

  in(statuses: ReadonlySet<ItemStatus>): string[] {
    return CAME_BACK.flatMap((status) => (statuses.has(status) ? this.#tagsIn.all(status).map(({ name }) => name) : []))
  }

  saveTag(key: string, status: ItemStatus, storedMs: number, seq: number): void {
    this.#saveTag.run(key, status, storedMs, seq)
  }

  /** Notes that the items contain the rows up to `seq` from this position on. */
  acknowledge(seq: number, [epoch, ver]: readonly [number, number]): void {
    this.#acknowledge.run(epoch, ver, seq)
  }

  /** Deletes acknowledged reports: those of tags from before `tagsMs`, and others from before `salesMs`. */
  prune(tagsMs: number, salesMs: number, acked: number): void {
    const [tags, sales, returns] = this.#prune
    tags?.run(tagsMs)
    sales?.run(salesMs, acked)
    returns?.run(salesMs, acked)
  }
}
