import type { Database as Connection } from 'better-sqlite3'
import { genesisHash, rowHash, type JournalBody, type JournalRow } from '../../../policy/journal.ts'
import { fittingEvent } from './fitting-event.ts'
import { rowNumbers } from './row-numbers.ts'

/** The numbered, chained rows of a ledger; every one is told to the cloud until it says that it has it. */
export interface Journal {
  /** Adds a row, and one more for people when its event does not fit; answers its number. Call it inside a transaction. */
  append(body: JournalBody): number
  /** As it is on disk, after a transaction was undone. */
  reload(): void
  readonly head: { seq: number; hash: string }
  /** The hash of a row; undefined when it is no longer here. */
  hashAt(seq: number): string | undefined
  /** Everything up to this number is safe in the cloud. */
  readonly acked: number
  /** Takes an acknowledgement for everything up to `seq`; false when it names another chain. Call it inside a transaction. */
  acknowledge(seq: number, hash: string): boolean
  /** The same without writing it down: whoever forgets that tells some rows again, which the cloud knows to be the same. */
  hear(seq: number, hash: string): boolean
  /** Rows after number `from`, or after the acknowledged ones, oldest first, and the hash before the first. */
  unsent(limit: number, from?: number): { after: string; rows: JournalRow[] }
  readonly waiting: number
  /** Goes on as another generation: what the cloud has not acknowledged is chained anew. Call it inside a transaction. */
  restart(generation: number): void
  /** The cloud has everything up to `seq` alone, whoever acknowledged more; false when it names another chain, or what follows is no longer here. Call it inside a transaction. */
  goBack(seq: number, hash: string): boolean
  /** Nothing counts as acknowledged any more; answers from which row on everything is told again. Call it inside a transaction. */
  tellAgain(): number
  /** Forgets acknowledged rows from before this time. Call it inside a transaction. */
  prune(beforeMs: number): void
}

interface Row {
  seq: number
  hash: string
  body: string
}

/** The hash-chained journal of this ledger. */
export function openJournal(db: Connection, ledgerId: string, generation: number): Journal {
  let genesis = genesisHash(ledgerId, generation)
  const numbers = rowNumbers(db)
  const insert = db.prepare('INSERT INTO journal (seq, hash, body, at_ms) VALUES (?, ?, ?, ?)')
  const last = db.prepare<[], Row>('SELECT seq, hash, body FROM journal ORDER BY seq DESC LIMIT 1')
  const one = db.prepare<[number], Row>('SELECT seq, hash, body FROM journal WHERE seq = ?')
  const after = db.prepare<[number, number], Row>(
    'SELECT seq, hash, body FROM journal WHERE seq > ? ORDER BY seq LIMIT ?',
  )
  const readMark = db.prepare<[string], { value: string }>('SELECT value FROM mark WHERE name = ?')
  const writeMark = db.prepare(
    'INSERT INTO mark (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
  )
  const forget = db.prepare('DELETE FROM journal WHERE seq < ? AND at_ms < ?')
  // Rows are forgotten by their own times, which a clock that was wrong may have left in another order.
  const afterHole = db.prepare<[], { seq: number | null }>(
    'SELECT MAX(seq) AS seq FROM journal AS j WHERE NOT EXISTS (SELECT 1 FROM journal AS p WHERE p.seq = j.seq - 1)',
  )

  let head = readHead()
  const readAcked = () => Number(readMark.get('acked')?.value ?? 0)
  let acked = readAcked()

  function readHead(): { seq: number; hash: string } {
    const row = last.get()
    return row ? { seq: row.seq, hash: row.hash } : { seq: 0, hash: genesis }
  }

  function hashOf(seq: number): string | undefined {
    return seq === 0 ? genesis : one.get(seq)?.hash
  }

  function hear(seq: number, hash: string): boolean {
    if (seq > head.seq || hashOf(seq) !== hash) return false
    acked = Math.max(acked, seq)
    return true
  }

  function keepAcked(): void {
    if (readAcked() < acked) writeMark.run('acked', String(acked))
  }

  function put(text: string, atMs: number): number {
    const seq = head.seq + 1
    const hash = rowHash(head.hash, seq, text)
    insert.run(seq, hash, text, atMs)
    head = { seq, hash }
    return seq
  }

  /** `text`: the body as it is written, where that is known. */
  function append(body: JournalBody, text?: string): number {
    const { atMs } = body
    const fitting = body.event && fittingEvent(body.event, atMs)
    if (!fitting || fitting.event === body.event) return put(text ?? JSON.stringify(body), atMs)
    const seq = put(JSON.stringify({ ...body, event: fitting.event }), atMs)
    if (fitting.word) put(JSON.stringify({ atMs, event: fitting.word }), atMs)
    return seq
  }

  /** The oldest row from which on none is missing; the next chains on to it. */
  const oldest = () => afterHole.get()?.seq ?? 1

  function setAcked(seq: number): void {
    acked = seq
    writeMark.run('acked', String(seq))
  }

  return {
    append: (body) => append(body),
    reload() {
      head = readHead()
      acked = readAcked()
    },
    get head() {
      return head
    },
    hashAt: hashOf,
    get acked() {
      return acked
    },
    acknowledge(seq, hash) {
      if (!hear(seq, hash)) return false
      keepAcked()
      return true
    },
    hear,
    unsent(limit, from = acked) {
      const rows = after
        .all(from, limit)
        .map((row) => ({ seq: row.seq, hash: row.hash, body: JSON.parse(row.body) as JournalBody }))
      return { after: hashOf(from) ?? genesis, rows }
    },
    get waiting() {
      return head.seq - acked
    },
    restart(next) {
      const [rows, before] = [after.all(acked, -1), acked]
      db.prepare('DELETE FROM journal').run()
      genesis = genesisHash(ledgerId, next)
      head = { seq: 0, hash: genesis }
      acked = 0
      writeMark.run('acked', '0')
      writeMark.run('generation', String(next))
      for (const { body } of rows) append(JSON.parse(body) as JournalBody, body)
      numbers.renumbered(before, head.seq)
    },
    tellAgain() {
      const first = oldest()
      // Only the first of all chains on to nothing: the oldest of others is what the next chains on to.
      setAcked(Math.min(acked, first === 1 ? 0 : first))
      numbers.toldAgain(acked)
      return acked + 1
    },
    goBack(seq, hash) {
      const first = oldest()
      if (seq >= acked || hashOf(seq) !== hash || seq < (first === 1 ? 0 : first)) return false
      setAcked(seq)
      numbers.untold(seq)
      return true
    },
    prune(beforeMs) {
      keepAcked()
      // The last acknowledged row stays: the next batch chains on to it.
      forget.run(acked, beforeMs)
    },
  }
}
