import type { UnitFacts } from '../../policy/receipts/receipt-claims.ts'
import type { ItemEntry, ItemsClaims, ItemsHead } from '../../policy/documents/item-documents.ts'
import { comparableIdentifier } from '../../policy/item-identifiers.ts'
import type { Cancel, Platform, Timers } from '../../policy/platform.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import type { Log } from '../log.ts'
import type { ItemFile, ItemProgress, KnownProduct, StoredRow } from './item-file.ts'
import { itemTable, packItem, unpackItem, type ItemLabel, type KnownItem } from './item-table.ts'
import { Pictures } from './pictures.ts'
import { namesIn, NO_TILL_TAGS, withReport, type TillTags } from './till-tags.ts'

/** Maximum number of distinct labels. Items with further labels are stored without a label. */
const LABEL_LIMIT = 65_535

/** The distinct labels (category, brand and technology) of the items, numbered from 1. */
class ItemLabels {
  readonly #labels: ItemLabel[] = []
  readonly #numbers = new Map<string, number>()

  constructor(stored: readonly ItemLabel[]) {
    for (const label of stored) this.numberOf(label)
  }

  get all(): readonly ItemLabel[] {
    return this.#labels
  }

  at(number: number): ItemLabel | undefined {
    return this.#labels[number - 1]
  }

  /** Returns the number of this label. A new label gets the next number, or 0 if there are too many labels. */
  numberOf(label: ItemLabel): number {
    const key = JSON.stringify([label.category, label.brand, label.technology])
    const known = this.#numbers.get(key)
    if (known !== undefined) return known
    if (this.#labels.length >= LABEL_LIMIT) return 0
    this.#labels.push(label)
    this.#numbers.set(key, this.#labels.length)
    return this.#labels.length
  }
}

const FLUSH_MS = 50
/**
 * Delay before a new `confirmedMs` alone is written, ms. The cloud confirms the items every 15 s, and each write wears
 * an SD card. After a crash the items count as at most this much older.
 */
const CONFIRMED_MS = 60_000
/** Delay before a failed write is retried, ms. */
const RETRY_MS = 60_000
/**
 * Rows in a full commit. The last entry of a commit may exceed this number by a few rows. A commit blocks the agent for
 * about 1 ms.
 */
const ROWS_AT_ONCE = 300
/**
 * Maximum queued entries. If more entries wait, the writer writes at once, and the agent does nothing else meanwhile.
 */
const WAITING_LIMIT = 50_000

/** Rows of one item entry. One commit writes all these rows. */
interface Waiting {
  seq: number
  rows: readonly StoredRow[]
}

interface ItemWriterParts {
  disk: Pick<ItemFile, 'write' | 'clear' | 'close'>
  timers: Timers
  log: Log
  labels: ItemLabels
  /** Position of the replica in memory. */
  progress(): ItemProgress
}

/**
 * Writes the replica to its file, in batches, after the memory has changed. Each commit also stores the number of the
 * last entry in the commit. If the disk fails, the writer retries every minute. If too many entries wait for a
 * failing disk, the writer writes nothing until the agent fetches all items again.
 */
class ItemWriter {
  readonly #parts: ItemWriterParts
  #waiting: Waiting[] = []
  #timer: Cancel | undefined
  #confirmedTimer: Cancel | undefined
  /** True if the last write failed. */
  #isFailing = false
  /** True after too many entries waited for a failing disk. Then the writer writes nothing until `clear`. */
  #isGivenUp = false
  /** True while the file still contains items from before the cloud's item sequence started again. */
  #isClearDue = false
  #isProgressDirty = false

  constructor(parts: ItemWriterParts) {
    this.#parts = parts
  }

  add(seq: number, rows: readonly StoredRow[]): void {
    if (!this.#isGivenUp) this.#waiting.push({ seq, rows })
  }

  /** Writes the added rows soon, or at once if too many rows wait. */
  schedule(): void {
    while (this.#waiting.length > WAITING_LIMIT) if (!this.#flushSome()) this.#stopWriting()
    this.#flushLater()
  }

  /**
   * Call it after `confirmedMs` has changed. Writes the progress with the next rows, or within a minute; at once if the
   * replica was never complete before.
   */
  noteConfirmed(isFirst: boolean): void {
    this.#isProgressDirty = true
    if (isFirst) return this.#flushLater()
    this.#confirmedTimer ??= this.#parts.timers.after(CONFIRMED_MS, () => {
      this.#confirmedTimer = undefined
      if (this.#isProgressDirty) this.#flushLater()
    })
  }

  /** Deletes all items from the file, because a new sequence starts. */
  clear(): void {
    this.#waiting = []
    this.#isGivenUp = false
    this.#isClearDue = true
    if (!this.#clearDisk()) this.#flushLater()
  }

  close(): void {
    this.#timer?.()
    this.#confirmedTimer?.()
    const isDue = () => !this.#isGivenUp && (this.#waiting.length > 0 || this.#isProgressDirty || this.#isClearDue)
    while (isDue() && this.#flushSome());
    this.#parts.disk.close()
  }

  #flushLater(): void {
    if (this.#isGivenUp) return
    this.#timer ??= this.#parts.timers.after(this.#isFailing ? RETRY_MS : FLUSH_MS, () => {
      this.#timer = undefined
      if (this.#isGivenUp) return
      this.#flushSome()
      if (this.#waiting.length > 0 || this.#isFailing) this.#flushLater()
    })
  }

  /**
   * Writes the oldest queued entries, and the number of the last of these entries, in one commit. Returns false if
   * the write failed.
   */
  #flushSome(): boolean {
    if (!this.#clearDisk()) return false
    const { disk, labels, progress } = this.#parts
    const count = this.#countAtOnce()
    const entries = this.#waiting.slice(0, count)
    const mark = progress()
    const ver = count === this.#waiting.length ? mark.ver : (entries.at(-1)?.seq ?? mark.ver)
    const rows = entries.flatMap((entry) => entry.rows)
    if (!this.#persisting(() => disk.write(rows, { ...mark, ver }, labels.all))) return false
    this.#waiting = this.#waiting.slice(count)
    this.#isProgressDirty = false
    return true
  }

  /** Number of queued entries for the next commit. */
  #countAtOnce(): number {
    let count = 0
    for (let rows = 0; count < this.#waiting.length && rows < ROWS_AT_ONCE; count++)
      rows += this.#waiting[count]?.rows.length ?? 0
    return count
  }

  /**
   * Deletes the items of the former sequence, if the file still contains them. Returns false if the deletion failed.
   */
  #clearDisk(): boolean {
    if (!this.#isClearDue) return true
    const { disk, progress } = this.#parts
    if (this.#persisting(() => disk.clear({ ...progress(), ver: 0 }))) this.#isClearDue = false
    return !this.#isClearDue
  }

  /**
   * Runs a write. Returns false if the write failed. Gates then use the items in memory, and the file keeps its
   * older, valid content.
   */
  #persisting(work: () => void): boolean {
    const { log } = this.#parts
    try {
      work()
    } catch (error) {
      if (!this.#isFailing)
        log.warn({ err: error }, 'items cannot be written to the disk: the agent retries every minute')
      this.#isFailing = true
      return false
    }
    if (this.#isFailing) log.info({ waiting: this.#waiting.length }, 'items are written to the disk again')
    this.#isFailing = false
    return true
  }

  #stopWriting(): void {
    this.#isGivenUp = true
    this.#waiting = []
    this.#parts.log.error({}, 'items are no longer written to the disk: the agent fetches them again after a restart')
  }
}

type ItemListener = (entries: readonly ItemEntry[]) => void

/** `rollback`: the page belongs to an earlier epoch. */
type ItemsVerdict = 'taken' | 'known' | 'gap' | 'rollback'

/** Keys of the names of an entry. */
export function keysOfEntry(entry: Pick<ItemEntry, 'epc' | 'tagUid' | 'tagId'>): string[] {
  return KINDS.flatMap((kind) => (entry[kind] === undefined ? [] : keyOf(kind, entry[kind])))
}

function* namesOf(keys: Iterable<string>): Iterable<{ kind: (typeof KINDS)[number]; name: string }> {
  for (const key of keys) {
    const kind = KINDS.find((each) => LETTERS[each] === key[0])
    if (kind) yield { kind, name: key.slice(1) }
  }
}

interface ReplicaParts {
  disk: ItemFile
  /** Default: none. */
  tillTags?: TillTags
  platform: Pick<Platform, 'timers'>
  log: Log
}

/** Age of the replica above which item statuses are stale, s. In this time a shopper may have paid (ADR gates). */
export const STALE_SECONDS = 90

const LETTERS = { epc: 'E', tagUid: 'U', tagId: 'T' } as const
const KINDS = ['epc', 'tagUid', 'tagId'] as const

/** Key of an item in memory and on the disk. */
const keyOf = (kind: keyof typeof LETTERS, name: string) => LETTERS[kind] + comparableIdentifier(kind, name)

/**
 * The agent's copy of the store's items. The replica applies pages (`items+jwt`) in the order of their numbers. Pages
 * may be lost, repeated or out of order; after a gap the agent fetches the missing pages. A page changes the memory at
 * once and the disk later. After a crash the agent fetches again the pages that are not on the disk.
 */
export class Replica {
  readonly pictures: Pictures
  readonly #table = itemTable()
  readonly #disk: ItemFile
  readonly #tillTags: TillTags
  readonly #log: Log
  readonly #labels: ItemLabels
  readonly #writer: ItemWriter
  readonly #listeners = new Set<ItemListener>()
  /** Position of the items in memory. */
  #at: ItemProgress
  /** The highest position that any signed document named. */
  #head: { epoch: number; ver: number }
  /** If set, the agent must fetch all items again. The floor of the first page must be at least this number. */
  #restartFloor: number | undefined

  constructor({ disk, tillTags = NO_TILL_TAGS, platform: { timers }, log }: ReplicaParts) {
    this.#disk = disk
    this.#tillTags = tillTags
    this.#log = log
    this.pictures = new Pictures({ file: disk.pictures, log })
    const stored = disk.read()
    this.#at = stored.progress ?? { epoch: 0, ver: 0, base: 0, confirmedMs: 0 }
    this.#head = { epoch: this.#at.epoch, ver: this.#at.ver }
    this.#labels = new ItemLabels(stored.labels)
    for (const { name, info, label } of stored.rows()) this.#table.set(name, { info, label })
    this.#writer = new ItemWriter({ disk, timers, log, labels: this.#labels, progress: () => this.#at })
  }

  /** Finds an item. What a till reported of its tag counts until the items contain it. */
  find(kind: 'epc' | 'tagUid' | 'tagId', name: string): KnownItem | undefined {
    return this.findByKey(keyOf(kind, name))
  }

  /** Like `find`, with a key. */
  findByKey(key: string): KnownItem | undefined {
    const packed = this.#table.get(key)
    const item = packed && unpackItem(packed, this.#labels.at(packed.label))
    const reported = item && this.#reportOf(key)
    return item && reported ? withReport(item, reported) : item
  }

  #reportOf(key: string): ItemStatus | undefined {
    const report = this.#tillTags.tag(key)
    if (!report) return undefined
    const { epoch, ver } = this.#at
    const isContained = report.ver !== null && (report.epoch < epoch || (report.epoch === epoch && report.ver <= ver))
    return isContained ? undefined : report.status
  }

  /** All names of an item, as a till's report is stored; the name itself if the item is unknown. */
  keysOf(kind: 'epc' | 'tagUid' | 'tagId', name: string): string[] {
    return this.keysOfKey(keyOf(kind, name))
  }

  /** Like `keysOf`, with one of the keys. */
  keysOfKey(key: string): string[] {
    try {
      return [key, ...this.#disk.othersOf(key)]
    } catch (error) {
      this.#log.warn({ err: error }, 'the other names of an item could not be read')
      return [key]
    }
  }

  /** Names of the items in one of these statuses, with their kind. Undefined if there are too many (till-tags.ts). */
  namesIn(statuses: ReadonlySet<ItemStatus>): { kind: (typeof KINDS)[number]; name: string }[] | undefined {
    const names = namesIn(this.#table, this.#tillTags, statuses)
    return names && [...namesOf(names)]
  }

  /** Name of an item's product, for people. Only the disk has it; undefined if it is unknown, or not there yet. */
  productOf(kind: 'epc' | 'tagUid' | 'tagId', name: string): string | undefined {
    try {
      return this.#disk.productOf(keyOf(kind, name))
    } catch (error) {
      this.#log.warn({ err: error }, 'the name of a product could not be read')
      return undefined
    }
  }

  /** The only product with these facts. Undefined if there are none or several. */
  onlyProductOf(facts: UnitFacts): KnownProduct | undefined {
    try {
      return this.#disk.onlyProductOf(facts)
    } catch (error) {
      this.#log.warn({ err: error }, 'the name of a product could not be read')
      return undefined
    }
  }

  /** Hash of the small picture of an item's product. Undefined if the agent does not have the picture. */
  pictureOf(kind: 'epc' | 'tagUid' | 'tagId', name: string): string | undefined {
    try {
      return this.#disk.pictureOf(keyOf(kind, name))
    } catch (error) {
      this.#log.warn({ err: error }, 'the picture of a product could not be read')
      return undefined
    }
  }

  /** Applies a page. The caller has verified the signature of the page. */
  applyPage(page: ItemsClaims): ItemsVerdict {
    const verdict = this.#judge(page)
    if (verdict !== undefined) return verdict
    const { ver, base } = this.#at
    const entries = page.entries.filter(({ seq }) => seq > ver)
    for (const entry of entries) this.#apply(entry, page)
    const newBase = ver === 0 && page.after === 0 ? Math.max(base, page.floor) : base
    this.#at = { ...this.#at, ver: page.ver, base: newBase }
    this.#writer.schedule()
    for (const listener of this.#listeners) listener(entries)
    return 'taken'
  }

  /**
   * Compares the replica with the head of the sequence. If the positions are equal, the replica is complete at `atMs`,
   * trusted time.
   */
  compareHead(head: ItemsHead, atMs: number): void {
    this.#noteHead(head)
    const { epoch, ver, confirmedMs } = this.#at
    if (head.epoch === epoch && this.#isBelow(head.floor)) this.#restartFrom(head.floor)
    if (this.#restartFloor !== undefined || head.epoch !== epoch || head.ver !== ver || atMs <= confirmedMs) return
    this.#at = { ...this.#at, confirmedMs: atMs }
    this.#writer.noteConfirmed(confirmedMs === 0)
  }

  /** [epoch, number] for `fetchSignedDocuments`; number 0 requests all items. */
  position(): [number, number] {
    const { epoch, ver } = this.#at
    return this.#restartFloor !== undefined ? [epoch, 0] : [epoch, ver]
  }

  /** True if the cloud has newer items. */
  get isBehind(): boolean {
    const { epoch, ver } = this.#at
    return this.#restartFloor !== undefined || this.#head.epoch > epoch || this.#head.ver > ver
  }

  /** Trusted time at which the replica was last complete, ms; 0: never. */
  get confirmedMs(): number {
    return this.#at.confirmedMs
  }

  get size(): number {
    return this.#table.size
  }

  /** Calls the listener after each change, with the changed entries. Returns a function that unsubscribes. */
  onChange(listener: ItemListener): Cancel {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Tells the listeners that tills reported tags, whose statuses `find` then returns. */
  reportsChanged(): void {
    for (const listener of this.#listeners) listener([])
  }

  /** Discards all items and their numbers, because they are not trusted. The agent then fetches all items. */
  reset(): void {
    this.#head = { epoch: 0, ver: 0 }
    this.#begin({ epoch: 0, floor: 0 })
    for (const listener of this.#listeners) listener([])
  }

  /** Writes queued changes and closes the file. */
  close(): void {
    this.#writer.close()
  }

  /**
   * Returns why the page cannot be applied now, or undefined if it can. Empties the table before the first page of a
   * sequence.
   */
  #judge(page: ItemsClaims): Exclude<ItemsVerdict, 'taken'> | undefined {
    if (page.epoch < this.#at.epoch) return 'rollback'
    this.#noteHead(page)
    // Meanwhile other pages may have raised `ver` above the floor, so that `#isBelow` returns false. The replica still
    // lacks the removals below the floor, so `isAwaited` also empties the table.
    const isAwaited = this.#restartFloor !== undefined && page.after === 0 && page.floor >= this.#restartFloor
    if (page.epoch > this.#at.epoch || this.#isBelow(page.floor) || isAwaited) {
      if (page.after !== 0) {
        this.#restartFrom(page.floor)
        return 'gap'
      }
      this.#begin(page)
    }
    const { ver, base } = this.#at
    if (page.ver <= ver) return 'known'
    if (page.after > ver) return 'gap'
    // If the floor of this page is below the floor of the first page, the agent must not apply the page. The page may
    // contain items that were removed later, and no further page would remove these items.
    return page.floor < base && ver < base ? 'gap' : undefined
  }

  #begin({ epoch, floor }: Pick<ItemsClaims, 'epoch' | 'floor'>): void {
    this.#table.clear()
    this.#at = { epoch, ver: 0, base: floor, confirmedMs: 0 }
    this.#restartFloor = undefined
    this.#writer.clear()
  }

  #apply(entry: ItemEntry, page: ItemsClaims): void {
    const { status, recalled, price: priceCent, paying = false } = entry
    const packed = status
      ? packItem({ status, recalled, priceCent, paying }, this.#labels.numberOf(labelOf(entry, page)))
      : { info: 0, label: 0 }
    const product = entry.name === undefined ? undefined : page.names?.[entry.name]
    const picture = entry.picture === undefined ? undefined : page.pictures?.[entry.picture]
    const rows: StoredRow[] = []
    for (const kind of KINDS) {
      const identifier = entry[kind]
      if (identifier === undefined) continue
      const name = keyOf(kind, identifier)
      if (packed.info === 0) this.#table.delete(name)
      else this.#table.set(name, packed)
      rows.push({ name, ...packed, product, picture })
    }
    if (rows.length > 1)
      for (const row of rows)
        Object.assign(row, { others: rows.flatMap(({ name }) => (name === row.name ? [] : name)) })
    this.#writer.add(entry.seq, rows)
  }

  #noteHead({ epoch, ver }: { epoch: number; ver: number }): void {
    if (epoch > this.#head.epoch || (epoch === this.#head.epoch && ver > this.#head.ver)) this.#head = { epoch, ver }
  }

  /**
   * True if the replica lacks removals below this floor. Pages no longer contain these removals, so the agent must
   * fetch all items.
   */
  #isBelow(floor: number): boolean {
    const { ver, base } = this.#at
    return ver > 0 && floor > ver && floor > base
  }

  #restartFrom(floor: number): void {
    this.#restartFloor = Math.max(this.#restartFloor ?? 0, floor)
  }
}

function labelOf({ category, brand, technology }: ItemEntry, { categories, brands }: ItemsClaims): ItemLabel {
  return {
    category: (category !== undefined && categories[category]) || '',
    brand: (brand !== undefined && brands[brand]) || '',
    ...(technology !== undefined && { technology }),
  }
}
