import type { Database as Connection } from 'better-sqlite3'
import { genesisHash, rowHash, type JournalBody, type JournalRow } from '../../../policy/journal.ts'
import type { Metadata } from '../file/metadata.ts'
import { fitEvent } from './fit-event.ts'
import { JournalRows } from './journal-rows.ts'
import { rowReferences, type RowReferences } from './row-references.ts'

/**
 * The numbered rows of a ledger. The hash of a row covers the hash of the previous row, its own number and its body.
 *
 * The agent sends each row until the cloud acknowledges it, and deletes the row some days later. If the cloud lacks
 * acknowledged rows, `rewindTo` or `resendAll` marks them as unacknowledged again.
 */

export class Journal {
  readonly #rows: JournalRows
  readonly #metadata: Metadata
  readonly #references: RowReferences
  readonly #ledgerId: string
  #genesis: string
  #head: { seq: number; hash: string }
  #acked: number

  constructor(db: Connection, metadata: Metadata, ledgerId: string, generation: number) {
    this.#rows = new JournalRows(db)
    this.#metadata = metadata
    this.#references = rowReferences(db)
    this.#ledgerId = ledgerId
    this.#genesis = genesisHash(ledgerId, generation)
    this.#head = this.#readHead()
    this.#acked = this.#readAcked()
  }

  /**
   * Adds a row and returns its number. If the event of the row exceeds the limits of the API, a second row informs
   * staff. Call it inside a transaction.
   */
  append(body: JournalBody): number {
    return this.#append(body, JSON.stringify(body))
  }

  /** Reads the state from disk again, after a transaction was rolled back. */
  reload(): void {
    this.#head = this.#readHead()
    this.#acked = this.#readAcked()
  }

  get head(): { seq: number; hash: string } {
    return this.#head
  }

  /** Returns the hash of a row, or undefined if the ledger does not have the row. */
  hashAt(seq: number): string | undefined {
    return seq === 0 ? this.#genesis : this.#rows.at(seq)?.hash
  }

  /** Number of the last row that the cloud acknowledged. */
  get acked(): number {
    return this.#acked
  }

  get waiting(): number {
    return this.#head.seq - this.#acked
  }

  /**
   * Marks all rows up to `seq` as acknowledged. Returns false if `hash` belongs to another chain. Call it inside a
   * transaction.
   */
  acknowledge(seq: number, hash: string): boolean {
    if (!this.acknowledgeInMemory(seq, hash)) return false
    this.#storeAcked()
    return true
  }

  /**
   * Like `acknowledge`, but changes only the memory. After a crash the agent sends these rows again, and the cloud
   * ignores duplicates.
   */
  acknowledgeInMemory(seq: number, hash: string): boolean {
    if (seq > this.#head.seq || this.hashAt(seq) !== hash) return false
    this.#acked = Math.max(this.#acked, seq)
    return true
  }

  /** Returns rows after number `from`, oldest first. `after`: hash of the row before the first returned row. */
  unsent(limit: number, from = this.#acked): { after: string; rows: JournalRow[] } {
    const rows = this.#rows
      .after(from, limit)
      .map((row) => ({ seq: row.seq, hash: row.hash, body: JSON.parse(row.body) as JournalBody }))
    return { after: this.hashAt(from) ?? this.#genesis, rows }
  }

  /** Starts a new generation: unacknowledged rows get new numbers and hashes. Call it inside a transaction. */
  restart(generation: number): void {
    const [rows, before] = [this.#rows.after(this.#acked, -1), this.#acked]
    this.#rows.clear()
    this.#genesis = genesisHash(this.#ledgerId, generation)
    this.#head = { seq: 0, hash: this.#genesis }
    this.#setAcked(0)
    this.#metadata.set('generation', String(generation))
    for (const { body } of rows) this.#append(JSON.parse(body) as JournalBody, body)
    this.#references.renumber(before, this.#head.seq)
  }

  /**
   * Marks all stored rows as unacknowledged. If earlier rows were pruned, the oldest stored row stays acknowledged,
   * because the next batch contains the hash of that row. Returns the number of the first row to send. Call it inside a
   * transaction.
   */
  resendAll(): number {
    this.#setAcked(Math.min(this.#acked, this.#lowestAck()))
    this.#references.resetAcknowledged(this.#acked)
    return this.#acked + 1
  }

  /**
   * Sets the last acknowledged row back to `seq`. Returns false if `hash` belongs to another chain, or if needed rows
   * were pruned. Call it inside a transaction.
   */
  rewindTo(seq: number, hash: string): boolean {
    if (seq >= this.#acked || this.hashAt(seq) !== hash || seq < this.#lowestAck()) return false
    this.#setAcked(seq)
    this.#references.unacknowledge(seq)
    return true
  }

  /** Deletes acknowledged rows from before this time. Call it inside a transaction. */
  prune(beforeMs: number): void {
    this.#storeAcked()
    // The last acknowledged row stays, because the next batch contains its hash.
    this.#rows.delete(this.#acked, beforeMs)
  }

  /** `text`: the JSON of `body` as it is stored. */
  #append(body: JournalBody, text: string): number {
    const { atMs } = body
    const fitting = body.event && fitEvent(body.event, atMs)
    if (!fitting || fitting.event === body.event) return this.#put(text, atMs)
    const seq = this.#put(JSON.stringify({ ...body, event: fitting.event }), atMs)
    if (fitting.notice) this.#put(JSON.stringify({ atMs, event: fitting.notice }), atMs)
    return seq
  }

  #put(text: string, atMs: number): number {
    const seq = this.#head.seq + 1
    const hash = rowHash(this.#head.hash, seq, text)
    this.#rows.insert({ seq, hash, body: text }, atMs)
    this.#head = { seq, hash }
    return seq
  }

  #readHead(): { seq: number; hash: string } {
    return this.#rows.last() ?? { seq: 0, hash: this.#genesis }
  }

  #readAcked(): number {
    return Number(this.#metadata.get('acked') ?? 0)
  }

  #setAcked(seq: number): void {
    this.#acked = seq
    this.#metadata.set('acked', String(seq))
  }

  #storeAcked(): void {
    if (this.#readAcked() < this.#acked) this.#setAcked(this.#acked)
  }

  /**
   * Lowest value for `acked`. The next batch contains the hash of row `acked`, so that row must be stored. If `acked`
   * is 0, no row is needed.
   */
  #lowestAck(): number {
    const first = this.#rows.oldest()
    return first === 1 ? 0 : first
  }
}
