import type { Database as Connection } from 'better-sqlite3'

export interface StoredJournalRow {
  readonly seq: number
  readonly hash: string
  /** JSON. */
  readonly body: string
}

/** The journal's table. */
export class JournalRows {
  readonly #db: Connection
  readonly #insert
  readonly #last
  readonly #one
  readonly #after
  readonly #delete
  readonly #afterGap

  constructor(db: Connection) {
    this.#db = db
    this.#insert = db.prepare('INSERT INTO journal (seq, hash, body, at_ms) VALUES (?, ?, ?, ?)')
    this.#last = db.prepare<[], Omit<StoredJournalRow, 'body'>>(
      'SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1',
    )
    this.#one = db.prepare<[number], StoredJournalRow>('SELECT seq, hash, body FROM journal WHERE seq = ?')
    this.#after = db.prepare<[number, number], StoredJournalRow>(
      'SELECT seq, hash, body FROM journal WHERE seq > ? ORDER BY seq LIMIT ?',
    )
    this.#delete = db.prepare('DELETE FROM journal WHERE seq < ? AND at_ms < ?')
    // Pruning deletes rows by time. If a wrong clock put the times out of order, the numbers may have gaps.
    this.#afterGap = db.prepare<[], { seq: number | null }>(
      'SELECT MAX(seq) AS seq FROM journal AS j WHERE NOT EXISTS (SELECT 1 FROM journal AS p WHERE p.seq = j.seq - 1)',
    )
  }

  insert({ seq, hash, body }: StoredJournalRow, atMs: number): void {
    this.#insert.run(seq, hash, body, atMs)
  }

  last(): { seq: number; hash: string } | undefined {
    return this.#last.get()
  }

  at(seq: number): StoredJournalRow | undefined {
    return this.#one.get(seq)
  }

  /** Returns rows after this number, oldest first. With limit -1, returns all these rows. */
  after(seq: number, limit: number): StoredJournalRow[] {
    return this.#after.all(seq, limit)
  }

  /** Number of the first row after the last gap. All rows after this row are stored. */
  oldest(): number {
    return this.#afterGap.get()?.seq ?? 1
  }

  /** Deletes rows whose number is below `belowSeq` and whose time is before `beforeMs`. */
  delete(belowSeq: number, beforeMs: number): void {
    this.#delete.run(belowSeq, beforeMs)
  }

  clear(): void {
    this.#db.prepare('DELETE FROM journal').run()
  }
}
