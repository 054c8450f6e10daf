import { hash } from 'node:crypto'
import type { Database as Connection } from 'better-sqlite3'
import {
  NOTICE_CHARACTERS,
  NOTICE_TAGS_LIMIT,
  type SoldCode,
  type SoldPiece,
} from '../../policy/documents/till-notice.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import { nextRank } from './tag-rank.ts'
import { TillPieces } from './till-pieces.ts'

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
  /** Tags that came back with it, and their status before (`BackPiece`): JSON. */
  readonly returned: string
  /** JSON of the answer to the till. */
  readonly answer: string
  /** Goods that have not come back, by line: JSON. */
  readonly remaining: string
  readonly valueCent: number
  /** Hour in which it counts against the limits (`hourOfSale`); 0 if it does not count, because it is not paid. */
  readonly hour: number
  /** Trusted time, ms. */
  readonly storedMs: number
  /** Journal row. */
  readonly seq: number
}

/** A stored return. */
export interface StoredReturn {
  readonly returnKey: string
  readonly content: string
  readonly answer: string
  /** Key of the sale for which it waits, or of its code (`codeKey`), and the return as JSON; null: it does not wait. */
  readonly saleKey: string | null
  readonly request: string | null
  readonly storedMs: number
  readonly seq: number
}

const SALE =
  'sale_key AS saleKey, till_id AS tillId, state, version, content, tags, returned, answer, remaining, value_cent AS valueCent, hour, stored_ms AS storedMs, seq'

const RETURN = 'return_key AS returnKey, content, answer, sale_key AS saleKey, request, stored_ms AS storedMs, seq'

/** What is known of a tag, as agents announce it. */
export interface TagNotice {
  /**
   * Key of the tag (`Replica.keysOf`), or the identity of a sale behind `S`, of a sale that is void or came back whole
   * behind `R`, or of a return behind `Q`. `O`: see `noteRecorder`.
   */
  readonly name: string
  readonly status: ItemStatus
  readonly rank: number
  readonly epoch: number
  readonly ver: number | null
  /** The sale that made the tag paid, or whose end made it alarm. Of a sale or return itself (`S`, `Q`): its content. */
  readonly sale: string | null
}

interface StoredTag extends TagNotice {
  readonly sender: string
  readonly storedMs: number
  /** Journal row; 0: reported to another agent. */
  readonly seq: number
  readonly change: number
  /** What the items of this agent contained, of `epoch`, when it took the report; 0 for reports of others. */
  readonly seen: number
}

const TAG =
  'name, status, rank, sender, stored_ms AS storedMs, COALESCE(epoch, 0) AS epoch, ver, seq, change, sale, seen'

/** Most names of the tags of a sale: 2,000 tags, by three kinds. A lying agent may announce more. */
export const SALE_NAMES_LIMIT = 6_000

const CODE = 'code, sale, exp, risk_class AS riskClass, goods'

type Test = (name: string) => boolean

/** Tags of which one transaction notes that the items contain them. */
const TAGS_AT_ONCE = 5_000
/** Statuses that a till gives goods that came back. */
const CAME_BACK = ['returned', 'cancelled', 'sellable'] as const satisfies readonly ItemStatus[]
/** The condition of the partial index: SQLite uses it only if the query repeats it. */
const IS_BACK = `status IN (${CAME_BACK.map((status) => `'${status}'`).join(', ')})`

/**
 * Sales, voids and returns that tills reported to this agent, and what they say about tags (ADR till-sales). All changes
 * run inside a transaction of the ledger, with their journal row.
 */
export class TillReports {
  readonly pieces: TillPieces
  readonly #sale
  readonly #saveSale
  readonly #hour
  readonly #open
  readonly #return
  readonly #waiting
  readonly #saveReturn
  readonly #tag
  readonly #changes
  readonly #lastChange
  readonly #contain
  readonly #lacking
  #change: number | undefined
  #position: () => readonly [number, number] = () => [0, 0]
  /** Numbers never fall, although other agents' reports replace numbered rows. */
  #highest = 0
  readonly #tagsIn
  readonly #ofSale
  readonly #supersede
  readonly #anySold
  readonly #containEnd
  readonly #saveTag
  readonly #codes
  readonly #codeChanges
  readonly #saveCode
  readonly #notices
  readonly #acknowledge
  readonly #prune

  constructor(db: Connection) {
    this.pieces = new TillPieces(db, () => this.#next())
    this.#sale = db.prepare<[string], StoredSale>(`SELECT ${SALE} FROM sale WHERE sale_key = ?`)
    this.#saveSale = db.prepare(
      `INSERT INTO sale (sale_key, till_id, state, version, content, tags, returned, answer, remaining, value_cent, hour, stored_ms, seq)
       VALUES (@saleKey, @tillId, @state, @version, @content, @tags, @returned, @answer, @remaining, @valueCent, @hour, @storedMs, @seq)
       ON CONFLICT (sale_key) DO UPDATE SET state = excluded.state, version = excluded.version, content = excluded.content,
         tags = excluded.tags, returned = excluded.returned, answer = excluded.answer, remaining = excluded.remaining, value_cent = excluded.value_cent, hour = excluded.hour, stored_ms = excluded.stored_ms, seq = excluded.seq`,
    )
    this.#hour = db.prepare<[string, number], { sales: number; valueCent: number }>(
      'SELECT COUNT(*) AS sales, COALESCE(SUM(value_cent), 0) AS valueCent FROM sale WHERE till_id = ? AND hour = ?',
    )
    this.#open = db.prepare<[string, number], { n: number }>(
      "SELECT COUNT(*) AS n FROM sale WHERE till_id = ? AND stored_ms > ? AND state = 'open'",
    )
    this.#return = db.prepare<[string], StoredReturn>(`SELECT ${RETURN} FROM till_return WHERE return_key = ?`)
    this.#waiting = db.prepare<[string], StoredReturn>(
      `SELECT ${RETURN} FROM till_return WHERE sale_key = ? ORDER BY seq`,
    )
    this.#saveReturn = db.prepare(
      `INSERT INTO till_return (return_key, content, answer, sale_key, request, stored_ms, seq)
       VALUES (@returnKey, @content, @answer, @saleKey, @request, @storedMs, @seq)`,
    )
    this.#tag = db.prepare<[string], StoredTag>(`SELECT ${TAG} FROM till_tag WHERE name = ?`)
    this.#changes = db.prepare<[number, number], StoredTag>(
      `SELECT ${TAG} FROM till_tag WHERE sender = '' AND change > ? ORDER BY change LIMIT ?`,
    )
    this.#lastChange = db.prepare<[], { change: number }>(
      `SELECT MAX(${['till_tag', 'till_code', 'till_piece'].map((table) => `(SELECT COALESCE(MAX(change), 0) FROM ${table})`).join()}) AS change`,
    )
    this.#codes = db.prepare<[string, number], SoldCode & { sender: string }>(
      `SELECT ${CODE}, sender FROM till_code WHERE code = ? AND exp > ? LIMIT 20`,
    )
    this.#codeChanges = db.prepare<[number, number], SoldCode & { change: number }>(
      `SELECT ${CODE}, change FROM till_code WHERE sender = '' AND change > ? ORDER BY change LIMIT ?`,
    )
    this.#saveCode = db.prepare(
      "INSERT INTO till_code (code, sale, exp, risk_class, goods, sender, change, notice) VALUES (@code, @sale, @exp, @riskClass, @goods, @sender, @change, @notice) ON CONFLICT (code, sale) DO UPDATE SET sender = '', change = excluded.change WHERE excluded.sender = '' AND till_code.sender <> ''",
    )
    this.#notices = noticeStatements(db)
    this.#lacking = db.prepare<[number]>('SELECT 1 FROM till_tag WHERE ver IS NULL AND seq <= ? LIMIT 1')
    this.#contain = db.prepare(
      "UPDATE till_tag SET epoch = @epoch, ver = @ver WHERE name = @name AND status = @status AND ver IS NULL AND (sender <> '' OR seq <= @acked)",
    )
    this.#supersede = db.prepare(
      'UPDATE till_tag SET sale = NULL WHERE name = @name AND status <> @status AND sale IS NOT NULL AND ver IS NOT NULL AND (epoch < @epoch OR (epoch = @epoch AND ver < @ver))',
    )
    this.#anySold = db.prepare<[], object>('SELECT 1 FROM till_tag WHERE sale IS NOT NULL LIMIT 1')
    this.#containEnd = db.prepare(
      `UPDATE till_tag SET epoch = @epoch, ver = @ver WHERE name IN (SELECT name FROM till_tag
         WHERE sale = @saleKey AND status <> 'paid' AND sender = @sender AND ver IS NULL LIMIT ${SALE_NAMES_LIMIT})`,
    )
    // Literals, because SQLite would not use the partial index with parameters.
    this.#tagsIn = new Map(
      CAME_BACK.map((status) => [
        status,
        db.prepare<[number, number], { name: string }>(
          `SELECT name FROM till_tag WHERE status = '${status}' AND ${IS_BACK} AND stored_ms > ? LIMIT ?`,
        ),
      ]),
    )
    this.#ofSale = db.prepare<[string], StoredTag>(
      `SELECT ${TAG} FROM till_tag WHERE sale = ? LIMIT ${SALE_NAMES_LIMIT}`,
    )
    this.#saveTag = db.prepare(
      `INSERT INTO till_tag (name, status, rank, sender, stored_ms, seq, epoch, ver, change, sale, seen)
       VALUES (@name, @status, @rank, @sender, @storedMs, @seq, @epoch, @ver, @change, @sale, @seen)
       ON CONFLICT (name) DO UPDATE SET status = excluded.status, rank = excluded.rank, sender = excluded.sender, stored_ms = excluded.stored_ms,
         seq = excluded.seq, epoch = excluded.epoch, ver = excluded.ver, change = excluded.change, sale = excluded.sale, seen = excluded.seen`,
    )
    this.#acknowledge = acknowledgeStatement(db)
    this.#prune = [
      'DELETE FROM till_tag WHERE stored_ms < ? AND ver IS NOT NULL',
      'DELETE FROM sale WHERE stored_ms < ? AND seq <= ?',
      'DELETE FROM till_return WHERE stored_ms < ? AND seq <= ?',
      'DELETE FROM till_code WHERE exp < ?',
    ].map((sql) => db.prepare(sql))
  }

  /** `position`: what the items of this agent contain (`Replica.position`). */
  knowItems(position: () => readonly [number, number]): void {
    this.#position = position
  }

  sale(saleKey: string): StoredSale | undefined {
    return this.#sale.get(saleKey)
  }

  saveSale(sale: StoredSale): void {
    this.#saveSale.run(sale)
  }

  /** What a till sold in this hour (`hourOfSale`). */
  soldIn(tillId: string, hour: number): { sales: number; valueCent: number } {
    return this.#hour.get(tillId, hour) ?? { sales: 0, valueCent: 0 }
  }

  /** Number of open sales of a till that were stored after `sinceMs`. */
  openSince(tillId: string, sinceMs: number): number {
    return this.#open.get(tillId, sinceMs)?.n ?? 0
  }

  return(returnKey: string): StoredReturn | undefined {
    return this.#return.get(returnKey)
  }

  /** Returns that came before this sale, the oldest first. */
  waitingReturns(saleKey: string): StoredReturn[] {
    return this.#waiting.all(saleKey)
  }

  saveReturn(row: StoredReturn): void {
    this.#saveReturn.run(row)
  }

  tag(key: string): StoredTag | undefined {
    return this.#tag.get(key)
  }

  /** Names of tags that a till gave one of these statuses after `sinceMs`, at most `limit`. `paid` is not among them. */
  in(statuses: ReadonlySet<ItemStatus>, sinceMs: number, limit: number): string[] {
    const names: string[] = []
    for (const [status, query] of this.#tagsIn)
      if (statuses.has(status)) for (const { name } of query.all(sinceMs, limit - names.length)) names.push(name)
    return names
  }

  /**
   * Stores what a till reported here of a tag. `sale`: the one that made it paid. `step`: `UNSEEN_STEP` for a return of
   * goods that are not sold here.
   */
  saveTag(name: string, status: ItemStatus, storedMs: number, seq: number, sale: string | null = null, step = 1): void {
    const rank = nextRank(this.tag(name)?.rank, storedMs, step)
    const change = this.#next()
    const [epoch, seen] = this.#position()
    this.#saveTag.run({ name, status, rank, sender: '', storedMs, seq, epoch, ver: null, change, sale, seen })
  }

  /** What is known of the tags of a sale, as long as no other sale sold them again. */
  ofSale(saleKey: string): StoredTag[] {
    return this.#ofSale.all(saleKey)
  }

  #paidRows(saleKey: string): StoredTag[] {
    return this.#ofSale.all(saleKey).filter(({ status }) => status === 'paid')
  }

  /** Names of the tags that are paid by this sale, wherever it was reported. */
  paidBy(saleKey: string): string[] {
    return this.#paidRows(saleKey).map(({ name }) => name)
  }

  /**
   * The tags of a sale that an agent reported as void, or as returned whole, get its status, in whatever order the
   * reports of the two agents come. `isUnsold`: true for a tag that does not count as sold, by the items: nothing is to
   * end, and its next sale has the next rank. Returns their names, and how many rows it changed.
   */
  endSale(saleKey: string, isTrusted: Test, isUnsold: Test): { names: string[]; count: number } {
    const end = this.tag(`R${saleKey}`)
    if (!end || (end.sender !== '' && !isTrusted(end.sender))) return { names: [], count: 0 }
    const { status, sender, storedMs, seq, epoch, ver } = end
    const paid = this.#paidRows(saleKey).filter(({ name }) => !isUnsold(name))
    const ended = { status, sender, storedMs, seq, epoch, ver, sale: saleKey, seen: 0 }
    for (const { name, rank } of paid) {
      const change = sender === '' ? this.#next() : 0
      this.#saveTag.run({ ...ended, name, rank: nextRank(rank, storedMs), change })
    }
    // Where the items contain the end of the sale, they contain that of its tags, also if a void followed the return.
    const contained = ver === null ? 0 : this.#containEnd.run({ saleKey, sender, epoch, ver }).changes
    return { names: paid.map(({ name }) => name), count: paid.length + contained }
  }

  /**
   * Stores what another agent announced, if it is newer than what is known: the higher rank counts, and of equal ranks
   * the status at which gates alarm. What an agent announced that is not `isTrusted` any more is unknown. What this agent
   * surely knew from its items when it took its own report is older than that report, which then gets a higher rank,
   * for the agents that heard of both. Returns whether the announcement was stored.
   */
  receiveTag(
    { name, status, rank, epoch, ver, sale }: TagNotice,
    sender: string,
    storedMs: number,
    isTrusted: (sender: string) => boolean,
  ): boolean {
    const stored = this.tag(name)
    const known = stored && (stored.sender === '' || isTrusted(stored.sender)) ? stored : undefined
    const isSame = known?.rank === rank && known.status === status
    // At the same place the order is open: an acknowledged report that changes no item gets the place of the one before.
    if (known && known.sender === '' && ver !== null && known.epoch === epoch && ver < known.seen) {
      const isOutranked = rank > known.rank || (rank === known.rank && !isSame)
      if (isOutranked) this.#saveTag.run({ ...known, rank: nextRank(rank, known.storedMs), change: this.#next() })
      return false
    }
    if (known && (known.rank > rank || (known.rank === rank && !isSame && status === 'paid'))) return false
    if (isSame && (ver === null || known.ver !== null)) return false
    // `seq` 0: no row of this journal. The index of changes leaves it out, so it is not announced again.
    this.#saveTag.run({ name, status, rank, sender, storedMs, seq: 0, epoch, ver, change: 0, sale, seen: 0 })
    return true
  }

  /**
   * Notes that another agent recorded a sale of this agent, too. The one with the lower id releases its goods without a
   * receipt, because each right counts once, and the receipt home is not asked about them.
   */
  noteRecorder(saleKey: string, sender: string, agentId: string, storedMs: number): void {
    if (sender === '' || sender >= agentId) return
    const place = { epoch: 0, ver: 0, change: 0, seq: 0, seen: 0 }
    this.#saveTag.run({ name: `O${saleKey}`, status: 'paid', rank: 1, sender, storedMs, sale: null, ...place })
  }

  /** The agent whose pads release the goods of a sale of this agent, if it is another one (`noteRecorder`). */
  recorderOf(saleKey: string): string | undefined {
    return this.tag(`O${saleKey}`)?.sender
  }

  /** Stores a code that a till printed on a sale reported here. */
  saveCode(code: SoldCode): void {
    this.#saveCode.run({ ...code, sender: '', change: this.#next(), notice: null })
  }

  /** Stores codes of sales that another agent announced. `notice`: its text, if this agent keeps it to forward it. */
  receiveCodes(codes: readonly SoldCode[], sender: string, notice?: string): void {
    const key = notice === undefined ? null : hash('sha256', notice, 'hex')
    const isNew = codes.map((code) => this.#saveCode.run({ ...code, sender, change: 0, notice: key }).changes > 0)
    if (isNew.includes(true) && key !== null)
      this.#notices.save.run(key, notice, Math.max(...codes.map(({ exp }) => exp)))
  }

  /** The notice with which another agent announced this sale; undefined if this agent does not keep it. */
  noticeOf({ code, sale }: Pick<SoldCode, 'code' | 'sale'>): string | undefined {
    return this.#notices.find.get(code, sale)?.text
  }

  /** Sales that printed this code and whose receipt is valid after `nowS`, with the agent that announced them. */
  salesWithCode(code: string, nowS: number): (SoldCode & { sender: string })[] {
    return this.#codes.all(code, nowS)
  }

  /**
   * Changes of this agent after number `after`, the oldest first, as many as a notice holds. `last`: number of the last
   * one; undefined if there are none. Each change has a number of its own.
   */
  changesAfter(after: number): {
    tags: TagNotice[]
    codes: SoldCode[]
    pieces: SoldPiece[]
    last: number | undefined
  } {
    const changes = [
      ...this.#changes.all(after, NOTICE_TAGS_LIMIT).map(({ name, status, rank, epoch, ver, sale, change }) => ({
        change,
        tag: { name, status, rank, epoch, ver, sale },
      })),
      ...this.#codeChanges.all(after, NOTICE_TAGS_LIMIT).map(({ code, sale, exp, riskClass, goods, change }) => ({
        change,
        code: { code, sale, exp, riskClass, goods },
      })),
      ...this.pieces.changesAfter(after).map(({ change, ...piece }) => ({ change, piece })),
    ].sort((a, b) => a.change - b.change)
    const notice: ReturnType<TillReports['changesAfter']> = { tags: [], codes: [], pieces: [], last: undefined }
    let characters = 0
    for (const each of changes.slice(0, NOTICE_TAGS_LIMIT)) {
      characters += JSON.stringify(each).length
      if (notice.last !== undefined && characters > NOTICE_CHARACTERS) return notice
      notice.last = each.change
      if ('tag' in each) notice.tags.push(each.tag)
      else if ('code' in each) notice.codes.push(each.code)
      else notice.pieces.push(each.piece)
    }
    return notice
  }

  /** Number of the last change of this agent. */
  get lastChange(): number {
    this.#change ??= Math.max(this.#highest, this.#lastChange.get()?.change ?? 0)
    return this.#change
  }

  /**
   * Notes that the items contain the rows up to `seq`, and not those that are `unapplied`, from this position on, for
   * some thousand tags. Returns true if there may be more.
   */
  acknowledge(seq: number, [epoch, ver]: readonly [number, number], unapplied: readonly number[] = []): boolean {
    const { changes } = this.#acknowledge.run({
      epoch,
      ver,
      seq,
      unapplied: JSON.stringify(unapplied),
      before: this.lastChange,
      limit: TAGS_AT_ONCE,
    })
    if (changes > 0) this.#change = this.#highest = this.lastChange + changes
    return changes === TAGS_AT_ONCE
  }

  /**
   * Notes that the items contain from this position on what another agent announced of this tag, or what the rows up to
   * `acked` report: the cloud has those.
   */
  contain(name: string, status: ItemStatus, [epoch, ver]: readonly [number, number], acked: number): void {
    this.#contain.run({ epoch, ver, name, status, acked })
  }

  /**
   * Notes that a tag belongs to its sale no more, because the items have this other status since they contained what
   * was reported: it came back, and was perhaps sold again, without this agent.
   */
  supersede(name: string, status: ItemStatus, [epoch, ver]: readonly [number, number]): void {
    this.#supersede.run({ epoch, ver, name, status })
  }

  /** True if tags belong to a sale. */
  get hasSold(): boolean {
    return this.#anySold.get() !== undefined
  }

  /** True if the items lack tags that other agents announced, or of the rows up to `acked`. */
  lacks(acked: number): boolean {
    return this.#lacking.get(acked) !== undefined
  }

  /** Reads the state from disk again, after a transaction was rolled back. */
  reload(): void {
    this.#change = undefined
  }

  #next(): number {
    this.#change = this.#highest = this.lastChange + 1
    return this.#change
  }

  /**
   * Deletes acknowledged reports: those of tags from before `tagsMs`, and others from before `salesMs`; and notices whose
   * codes have expired.
   */
  prune(tagsMs: number, salesMs: number, acked: number, nowMs: number): void {
    const [tags, sales, returns, codes] = this.#prune
    tags?.run(tagsMs)
    sales?.run(salesMs, acked)
    returns?.run(salesMs, acked)
    codes?.run(Math.floor(tagsMs / 1_000))
    this.#notices.prune.run(Math.floor(nowMs / 1_000))
    this.pieces.prune(Math.floor(nowMs / 1_000))
  }
}

/** Notices of other agents, which this agent as the receipt home forwards. */
function noticeStatements(db: Connection) {
  return {
    find: db.prepare<[string, string], { text: string }>(
      'SELECT text FROM till_notice JOIN till_code ON notice = hash WHERE code = ? AND sale = ?',
    ),
    save: db.prepare('INSERT INTO till_notice (hash, text, exp) VALUES (?, ?, ?) ON CONFLICT DO NOTHING'),
    prune: db.prepare('DELETE FROM till_notice WHERE exp < ?'),
  }
}

/** Each tag is a change of its own, so that notices can name them in portions. */
function acknowledgeStatement(db: Connection) {
  return db.prepare(
    `UPDATE till_tag SET seen = CASE WHEN epoch = @epoch THEN seen ELSE 0 END, epoch = @epoch, ver = @ver, change = @before + acked.place
       FROM (SELECT name AS tag, ROW_NUMBER() OVER () AS place FROM
              (SELECT name FROM till_tag WHERE ver IS NULL AND seq BETWEEN 1 AND @seq AND sender = ''
                 AND seq NOT IN (SELECT value FROM json_each(@unapplied)) ORDER BY seq LIMIT @limit)) AS acked
       WHERE till_tag.name = acked.tag`,
  )
}
