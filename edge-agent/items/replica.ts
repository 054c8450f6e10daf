import type { ItemEntry, ItemsClaims, ItemsHead } from '../../policy/documents/item-documents.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import type { Log } from '../log.ts'
import type { ItemFile, ItemProgress, StoredRow } from './item-file.ts'
import { ItemLabels } from './item-labels.ts'
import { itemTable, packItem, unpackItem, type ItemLabel, type KnownItem } from './item-table.ts'
import { ItemWriter } from './item-writer.ts'

/**
 *   items+jwt ─ in order? ─▶ memory (at once) ─▶ disk (in batches, with the number they reach)
 *                  └ a gap: known to be behind, the rest is fetched
 *
 * The agent's copy of the store's items. Applies pages in the order of their numbers; pages may be lost, doubled or out of order. After a
 * crash the agent fetches all pages again that were not on the disk.
 */

export type ItemListener = (entries: readonly ItemEntry[]) => void

/** `rollback`: the page belongs to an earlier epoch. */
export type ItemsVerdict = 'taken' | 'known' | 'gap' | 'rollback'

export interface ReplicaParts {
  disk: ItemFile
  platform: Pick<Platform, 'timers'>
  log: Log
}

/** An item is stale if the replica was last complete this long ago, s: a shopper may have paid since (ADR 0021). */
export const STALE_SECONDS = 90

const LETTERS = { epc: 'E', tagUid: 'U', tagId: 'T' } as const
const KINDS = ['epc', 'tagUid', 'tagId'] as const

/** Opens the replica with the items on the disk. */
export function openReplica(parts: ReplicaParts): Replica {
  return new Replica(parts)
}

export class Replica {
  readonly #table = itemTable()
  readonly #labels: ItemLabels
  readonly #writer: ItemWriter
  readonly #listeners = new Set<ItemListener>()
  /** How far the items in memory have come. */
  #at: ItemProgress
  /** The highest position that any signed document named. */
  #head: { epoch: number; ver: number }
  /** If set, the agent needs a new first page with at least this floor. */
  #restartFloor: number | undefined

  constructor({ disk, platform: { timers }, log }: ReplicaParts) {
    const stored = disk.read()
    this.#at = stored.progress ?? { epoch: 0, ver: 0, base: 0, confirmedMs: 0 }
    this.#head = { epoch: this.#at.epoch, ver: this.#at.ver }
    this.#labels = new ItemLabels(stored.labels)
    for (const { name, info, label } of stored.rows()) this.#table.set(name, { info, label })
    this.#writer = new ItemWriter({ disk, timers, log, labels: this.#labels, progress: () => this.#at })
  }

  find(kind: 'epc' | 'tagUid' | 'tagId', name: string): KnownItem | undefined {
    const packed = this.#table.get(LETTERS[kind] + name)
    return packed && unpackItem(packed, this.#labels.at(packed.label))
  }

  /** Applies a page. The caller has verified its signature. */
  take(page: ItemsClaims): ItemsVerdict {
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

  /** Receives the end of the sequence, at this trusted time. */
  compareHead(head: ItemsHead, atMs: number): void {
    this.#noteHead(head)
    const { epoch, ver, confirmedMs } = this.#at
    if (head.epoch === epoch && this.#isBelow(head.floor)) this.#restartFrom(head.floor)
    if (this.#restartFloor !== undefined || head.epoch !== epoch || head.ver !== ver || atMs <= confirmedMs) return
    this.#at = { ...this.#at, confirmedMs: atMs }
    this.#writer.noteConfirmed()
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

  /** Discards all items and their numbers, because they are not trusted. The agent fetches all again. */
  reset(): void {
    this.#head = { epoch: 0, ver: 0 }
    this.#begin({ epoch: 0, floor: 0 })
    for (const listener of this.#listeners) listener([])
  }

  /** Writes waiting changes to the disk and drops them from memory. */
  close(): void {
    this.#writer.close()
  }

  /** Returns the reason not to apply the page, or undefined if it is the next one. A page that begins a sequence empties the table. */
  #judge(page: ItemsClaims): Exclude<ItemsVerdict, 'taken'> | undefined {
    if (page.epoch < this.#at.epoch) return 'rollback'
    this.#noteHead(page)
    // Pages that arrived meanwhile may have raised the number past the floor. The removals below the floor are missing all the same.
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
    // The page is older than the floor of the first page. It may contain names that were removed since, and no later page removes them.
    return page.floor < base && ver < base ? 'gap' : undefined
  }

  #begin({ epoch, floor }: Pick<ItemsClaims, 'epoch' | 'floor'>): void {
    this.#table.clear()
    this.#at = { epoch, ver: 0, base: floor, confirmedMs: 0 }
    this.#restartFloor = undefined
    this.#writer.clear()
  }

  #apply(entry: ItemEntry, page: ItemsClaims): void {
    const { status, price: priceCent, paying = false } = entry
    const packed = status
      ? packItem({ status, priceCent, paying }, this.#labels.numberOf(labelOf(entry, page)))
      : { info: 0, label: 0 }
    const rows: StoredRow[] = []
    for (const kind of KINDS) {
      const given = entry[kind]
      if (given === undefined) continue
      const name = LETTERS[kind] + given
      if (packed.info === 0) this.#table.delete(name)
      else this.#table.set(name, packed)
      rows.push({ name, ...packed })
    }
    this.#writer.add(entry.seq, rows)
  }

  #noteHead({ epoch, ver }: { epoch: number; ver: number }): void {
    if (epoch > this.#head.epoch || (epoch === this.#head.epoch && ver > this.#head.ver)) this.#head = { epoch, ver }
  }

  /** True if removals below this floor are missing: pages no longer contain them, so the agent must fetch all items. */
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
