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
 * The store's items as this agent knows them. Pages are taken in the order of their numbers, whatever gets
 * lost, doubled or out of order on the way; what was not on the disk at a crash is fetched again.
 */

export type ItemListener = (entries: readonly ItemEntry[]) => void

/** `rollback`: the page is of a sequence that was left behind. */
export type ItemsVerdict = 'taken' | 'known' | 'gap' | 'rollback'

export interface ReplicaParts {
  disk: ItemFile
  platform: Pick<Platform, 'timers'>
  log: Log
}

/** Items that were not known to be complete for so long may have been paid since, s (ADR 0021). */
export const STALE_SECONDS = 90

const LETTERS = { epc: 'E', tagUid: 'U', tagId: 'T' } as const
const KINDS = ['epc', 'tagUid', 'tagId'] as const

/** Opens the replica with what is on the disk. */
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
  /** The end of the sequence as far as anybody has said. */
  #head: { epoch: number; ver: number }
  /** Set: we must begin anew, with a beginning that is at least as young as this floor. */
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

  /** Takes a page whose signature was checked. */
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

  /** Hears where the sequence ends, at this trusted time. */
  compareHead(head: ItemsHead, atMs: number): void {
    this.#noteHead(head)
    const { epoch, ver, confirmedMs } = this.#at
    if (head.epoch === epoch && this.#isBelow(head.floor)) this.#restartFrom(head.floor)
    if (this.#restartFloor !== undefined || head.epoch !== epoch || head.ver !== ver || atMs <= confirmedMs) return
    this.#at = { ...this.#at, confirmedMs: atMs }
    this.#writer.noteConfirmed()
  }

  /** [epoch, number] for `fetchSignedDocuments`; 0 to begin anew. */
  position(): [number, number] {
    const { epoch, ver } = this.#at
    return this.#restartFloor !== undefined ? [epoch, 0] : [epoch, ver]
  }

  /** Whether there is more than is known here. */
  get isBehind(): boolean {
    const { epoch, ver } = this.#at
    return this.#restartFloor !== undefined || this.#head.epoch > epoch || this.#head.ver > ver
  }

  /** Trusted time at which it was last known to be complete, ms; 0: never. */
  get confirmedMs(): number {
    return this.#at.confirmedMs
  }

  get size(): number {
    return this.#table.size
  }

  /** Calls back whenever something has changed, with the entries that say so; returns how to stop that. */
  onChange(listener: ItemListener): Cancel {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Neither the items nor their numbers can be believed: all are fetched anew. */
  reset(): void {
    this.#head = { epoch: 0, ver: 0 }
    this.#begin({ epoch: 0, floor: 0 })
    for (const listener of this.#listeners) listener([])
  }

  /** Puts on the disk what waits, and lets go of it. */
  close(): void {
    this.#writer.close()
  }

  /** Returns the reason not to apply the page, or undefined if it is the next one. A page that begins a sequence empties the table. */
  #judge(page: ItemsClaims): Exclude<ItemsVerdict, 'taken'> | undefined {
    if (page.epoch < this.#at.epoch) return 'rollback'
    this.#noteHead(page)
    // Pages that were on their way may have brought us past the floor meanwhile: what was missed stays missed.
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
    // Made before the floor that we began with: names in it may have been given up since, of which nobody tells any more.
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

  /** Names that were given up below the floor are told no more: whoever does not know of them begins anew. */
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
