import { parseEpc } from '../../policy/gs1/epc.ts'
import type { UnitFacts } from '../../policy/receipts/receipt-claims.ts'
import type { ItemEntry, ItemsClaims, ItemsHead } from '../../policy/documents/item-documents.ts'
import { comparableIdentifier, type ItemIdentifierInput, type ItemIdentifiers } from '../../policy/item-identifiers.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import type { Log } from '../log.ts'
import type { ItemFile, ItemProgress, KnownProduct, StoredRow } from './item-file.ts'
import { itemTable, packItem, unpackItem, type ItemLabel, type KnownItem } from './item-table.ts'
import { ItemWriter } from './item-writer.ts'
import { Pictures } from './pictures.ts'
import { MAY_BE_SOLD, namesIn, NO_TILL_TAGS, withReport, type TillTag, type TillTags } from './till-tags.ts'
import { isDeepStrictEqual } from 'node:util'

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

/** The identifiers with these keys. */
export function identifiersOf(keys: Iterable<string>): ItemIdentifierInput[] {
  return [...namesOf(keys)].map(({ kind, name }) => ({ [kind]: name }))
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

/** Products whose names a long receipt may get: to read them takes some 20 ms. */
const GTINS_LIMIT = 5_000

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
  /** Names of products by their GTIN, at a version of the items. */
  #gtinNames: { ver: number; names: ReadonlyMap<string, string> } | undefined
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

  /** True for a known tag that a till may sell. */
  readonly isUnsold = (key: string): boolean => MAY_BE_SOLD.has(this.findByKey(key)?.status ?? 'paid')

  #reportOf(key: string): TillTag | undefined {
    const report = this.#tillTags.tag(key)
    if (!report) return undefined
    const { epoch, ver } = this.#at
    const isContained = report.ver !== null && (report.epoch < epoch || (report.epoch === epoch && report.ver <= ver))
    return isContained ? undefined : report
  }

  /** All names of an item, as a till's report is stored; the name itself if the item is unknown. */
  keysOf(kind: 'epc' | 'tagUid' | 'tagId', name: string): string[] {
    return this.keysOfKey(keyOf(kind, name))
  }

  /** Like `keysOf`, with one of the keys. */
  keysOfKey(key: string): string[] {
    try {
      return [key, ...this.#writer.othersOf(key)]
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

  /**
   * Names of products by their GTIN-14, as far as the EPC of one item of each has it. For goods of a receipt that names
   * only their prices.
   */
  namesByGtin(): ReadonlyMap<string, string> {
    if (this.#gtinNames?.ver === this.#at.ver) return this.#gtinNames.names
    const names = new Map<string, string>()
    try {
      for (const { name, key } of this.#disk.productSamples(GTINS_LIMIT)) {
        const gtin = key.startsWith(LETTERS.epc) ? parseEpc(key.slice(1))?.gtin14 : undefined
        if (gtin !== undefined) names.set(gtin, name)
      }
    } catch (error) {
      this.#log.warn({ err: error }, 'the names of products could not be read')
    }
    this.#gtinNames = { ver: this.#at.ver, names }
    return names
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
    const { status, recalled, voided, price: priceCent, paying = false } = entry
    const packed = status
      ? packItem({ status, recalled, voided, priceCent, paying }, this.#labels.numberOf(labelOf(entry, page)))
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

/** Finds the item with the named tag. If the request names both EPC and UID, the EPC decides. */
export function findByTag(items: Pick<Replica, 'find'>, { epc, tagUid }: ItemIdentifiers): KnownItem | undefined {
  if (epc !== undefined) return items.find('epc', epc)
  return tagUid === undefined ? undefined : items.find('tagUid', tagUid)
}

const TAG_KINDS = ['epc', 'tagUid', 'tagId'] as const

/**
 * Finds the item that a request names, as the cloud does: an identifier without an item says nothing. Undefined if the
 * item is unknown; `several` if the identifiers name different items.
 */
export function findByIdentifiers(
  items: Pick<Replica, 'find'>,
  identifiers: ItemIdentifiers,
): KnownItem | 'several' | undefined {
  const found = TAG_KINDS.flatMap((kind) => findBy(items, identifiers, kind) ?? [])
  const [first] = found
  return found.every((item) => isDeepStrictEqual(item, first)) ? first : 'several'
}

/** The identifier that names another item than the identifiers before it. Undefined if all name one item. */
export function contradicting(
  items: Pick<Replica, 'find'>,
  identifiers: ItemIdentifiers,
): (typeof TAG_KINDS)[number] | undefined {
  const [first, ...others] = TAG_KINDS.flatMap((kind) => {
    const item = findBy(items, identifiers, kind)
    return item ? [{ kind, item }] : []
  })
  return others.find(({ item }) => !isDeepStrictEqual(item, first?.item))?.kind
}

function findBy(items: Pick<Replica, 'find'>, identifiers: ItemIdentifiers, kind: (typeof TAG_KINDS)[number]) {
  const name = identifiers[kind]
  return name === undefined ? undefined : items.find(kind, name)
}
