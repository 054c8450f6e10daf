import type { ExceptionKind } from '../../../policy/vocabulary.ts'
import type { Database as Connection } from 'better-sqlite3'
import { genesisHash, rowHash, type JournalBody, type JournalRow } from '../../../policy/journal.ts'
import type { Metadata } from '../file/watermark.ts'
import { hash } from 'node:crypto'
import { ProtectionEvent } from '../../../policy/protection-events.ts'

/** An event within the limits of the API. */
interface FittedEvent {
  readonly event: ProtectionEvent
  /** Event for staff that lists the removed fields. */
  readonly notice?: ProtectionEvent
}

/** Maximum characters of texts for people. The agent shortens such texts without a notice. */
const TEXT_LIMITS = { reason: 60, detail: 300 } as const
const LONGEST_ID = 128
/** The latest time with a four-digit year. */
const END_OF_TIME_MS = 253_402_300_799_999

/**
 * Reduces an event to the limits of the API, because the cloud leaves a row with an invalid event unapplied and does
 * not record the event. Removes an invalid identifier as a whole, because a shortened id could be the id of another
 * thing.
 */
function fitEvent(original: ProtectionEvent, atMs: number): FittedEvent {
  const first = ProtectionEvent.safeParse(original)
  if (first.success) return { event: original }
  const event: Record<string, unknown> = { ...original }
  for (const [field, limit] of Object.entries(TEXT_LIMITS)) {
    const text = event[field]
    if (typeof text === 'string') event[field] = storable(text).slice(0, limit).toWellFormed()
  }
  const removedFields = faultsOf(event)
  if (removedFields.length === 0) return { event: event as ProtectionEvent }
  for (const field of removedFields) delete event[field]
  const id = hash('sha256', `${textOf(original.eventId)}\0${JSON.stringify(removedFields)}`, 'hex').slice(0, 26)
  const fitting = {
    type: 'protection.exception.raised',
    eventId: `evt_${id}`,
    occurredAt: new Date(Math.min(atMs, END_OF_TIME_MS)).toISOString(),
    storeId: storable(textOf(original.storeId)).slice(0, LONGEST_ID).toWellFormed() || 'unknown',
    ...event,
  } as ProtectionEvent
  return { event: fitting, notice: noticeFor(fitting, original, removedFields, `evt_w${id}`) }
}

/** A value as text. `String` throws for an object whose `toString` is no function. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function faultsOf(event: object): string[] {
  const { error } = ProtectionEvent.safeParse(event)
  const fields = (error?.issues ?? []).flatMap((issue) =>
    issue.code === 'unrecognized_keys' ? issue.keys : [String(issue.path[0])],
  )
  return [...new Set(fields)]
}

function noticeFor(
  event: ProtectionEvent,
  original: object,
  removedFields: readonly string[],
  noticeId: string,
): ProtectionEvent {
  const { type, occurredAt, storeId, deviceId, reason, eventId } = event
  const what = removedFields
    .map((field) => `${field.slice(0, 40)} (${describeValue((original as Record<string, unknown>)[field])})`)
    .join(', ')
  return {
    type: 'protection.exception.raised',
    eventId: noticeId,
    occurredAt,
    storeId,
    ...(deviceId !== undefined && { deviceId }),
    reason: 'event_incomplete' satisfies ExceptionKind,
    detail: storable(`${reason ?? type} ${eventId} was reported without ${what}`)
      .slice(0, TEXT_LIMITS.detail)
      .toWellFormed(),
  }
}

function describeValue(value: unknown): string {
  return typeof value === 'string' ? `${value.length} characters: ${value.slice(0, 40)}` : typeof value
}

function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '')
}

interface StoredJournalRow {
  readonly seq: number
  readonly hash: string
  /** JSON. */
  readonly body: string
}

/** The journal's table. */
class JournalRows {
  readonly #db: Connection
  readonly #insert
  readonly #last
  readonly #one
  readonly #after
  readonly #delete
  readonly #afterGap
  readonly #size
  readonly #alarms

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
    // The texts are the beginning of what `JSON.stringify` makes of these values, and no text inside a value contains them.
    this.#alarms = db.prepare<[number], StoredJournalRow>(
      `SELECT seq, hash, body FROM journal WHERE at_ms >= ? AND
       (INSTR(body, '"reason":"gate_alarm"') > 0 OR INSTR(body, '"kind":"alarm_handled"') > 0) ORDER BY seq`,
    )
    this.#size = db.prepare<[number, number], { bytes: number }>(
      'SELECT COALESCE(SUM(OCTET_LENGTH(body)), 0) AS bytes FROM journal WHERE seq > ? AND seq <= ?',
    )
  }

  /** Rows about gate alarms from this time on, oldest first. */
  alarms(sinceMs: number): StoredJournalRow[] {
    return this.#alarms.all(sinceMs)
  }

  /** Bytes of the rows after `from` up to `to`. */
  size(from: number, to: number): number {
    return this.#size.get(from, to)?.bytes ?? 0
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

/**
 * Corrects the row numbers in other tables, after the journal has renumbered its rows or voided acknowledgements. Runs
 * inside the journal's transaction.
 */
interface RowReferences {
  /**
   * Call it when the rows after `acked` have new numbers, the last of which is `head`. The cloud has all earlier rows.
   */
  renumber(acked: number, head: number): void
  /**
   * Voids all acknowledgements. The agent sends again only rows after `acked`, so it discards references to earlier
   * rows.
   */
  resetAcknowledged(acked: number): void
  /** Voids the acknowledgements of rows after `acked`. */
  unacknowledge(acked: number): void
}

/** Opens the references in this ledger's tables. */
function rowReferences(db: Connection): RowReferences {
  return {
    renumber(acked, head) {
      // References to renumbered rows get the last new number. The acknowledgement of that row never comes before the
      // acknowledgement of the referenced row.
      db.prepare("UPDATE mark SET value = ? WHERE name = 'isolated_seq'").run(String(head))
      db.prepare('UPDATE unknown_use SET seq = CASE WHEN seq <= ? THEN 0 ELSE ? END WHERE seq IS NOT NULL').run(
        acked,
        head,
      )
      for (const table of ['sale', 'till_return', 'till_tag', 'till_piece'])
        db.prepare(`UPDATE ${table} SET seq = CASE WHEN seq <= ? THEN 0 ELSE ? END`).run(acked, head)
    },
    resetAcknowledged(acked) {
      db.prepare("UPDATE till_tag SET epoch = NULL, ver = NULL WHERE seq > ? AND sender = ''").run(acked)
      db.prepare('UPDATE unknown_use SET told_s = NULL, seq = CASE WHEN seq > ? THEN seq END').run(acked)
    },
    unacknowledge(acked) {
      db.prepare('UPDATE unknown_use SET told_s = NULL WHERE seq > ?').run(acked)
      db.prepare('UPDATE till_tag SET epoch = NULL, ver = NULL WHERE seq > ?').run(acked)
    },
  }
}

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
  /** Bytes of the rows after `from` up to `to`. */
  #size: { from: number; to: number; bytes: number } | undefined

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
    if (this.#size && this.#size.to > this.#head.seq) this.#size = undefined
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

  /** Rows about alarms of this agent's gates from this time on, oldest first: the alarms, and what operators did. */
  alarmsSince(sinceMs: number): readonly { readonly seq: number; readonly body: JournalBody }[] {
    return this.#rows.alarms(sinceMs).map(({ seq, body }) => ({ seq, body: JSON.parse(body) as JournalBody }))
  }

  get waiting(): number {
    return this.#head.seq - this.#acked
  }

  /** Bytes of the rows that wait. Reads only rows that came or were acknowledged since the last call. */
  get waitingBytes(): number {
    const [from, to] = [this.#acked, this.#head.seq]
    const known = this.#size
    const bytes =
      known && known.from <= from && from <= known.to && known.to <= to
        ? known.bytes - this.#rows.size(known.from, from) + this.#rows.size(known.to, to)
        : this.#rows.size(from, to)
    this.#size = { from, to, bytes }
    return bytes
  }

  /**
   * Marks all rows up to `seq` as acknowledged, in memory. Returns false if `hash` belongs to another chain. The next row
   * stores the mark, too, or `storeAcked`. After a crash before that, the agent sends these rows again, and the cloud
   * ignores duplicates.
   */
  acknowledge(seq: number, hash: string): boolean {
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
    this.#size = undefined
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
    this.storeAcked()
    // The number of bytes continues from the last acknowledged row.
    if (this.#size) void this.waitingBytes
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
    this.storeAcked()
    this.#head = { seq, hash }
    return seq
  }

  #readHead(): { seq: number; hash: string } {
    return this.#rows.last() ?? { seq: 0, hash: this.#genesis }
  }

  #readAcked(): number {
    return Number(this.#metadata.getCached('acked') ?? 0)
  }

  #setAcked(seq: number): void {
    this.#acked = seq
    this.#metadata.set('acked', String(seq))
  }

  /** Number of acknowledged rows that the disk does not know as such. */
  get unstoredAcks(): number {
    return Math.max(0, this.#acked - this.#readAcked())
  }

  /** Stores the number of the last acknowledged row. Call it inside a transaction. */
  storeAcked(): void {
    if (this.unstoredAcks > 0) this.#setAcked(this.#acked)
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
