import type { ItemEntry, ItemsClaims, ItemsHead } from '../../policy/documents/item-documents.ts'
import type { Cancel, Platform } from '../../policy/platform.ts'
import type { Log } from '../log.ts'
import type { ItemFile, ItemMark, StoredRow } from './database.ts'
import { itemTable, packItem, unpackItem, type ItemLabel, type KnownItem } from './item-table.ts'

/**
 *   items+jwt ─ in order? ─▶ memory (at once) ─▶ disk (in batches, with the number they reach)
 *                  └ a gap: known to be behind, the rest is fetched
 *
 * The store's items as this agent knows them. Pages are taken in the order of their numbers, whatever gets
 * lost, doubled or out of order on the way; what was not on the disk at a crash is fetched again.
 */
export interface Replica {
  find(kind: 'epc' | 'tagUid' | 'tagId', name: string): KnownItem | undefined
  /** Takes a page whose signature was checked. */
  take(page: ItemsClaims): ItemsVerdict
  /** Hears where the sequence ends, at this trusted time. */
  hearHead(head: ItemsHead, atMs: number): void
  /** [epoch, number] for `fetchSignedDocuments`; 0 to begin anew. */
  have(): [number, number]
  /** Whether there is more than is known here. */
  readonly isBehind: boolean
  /** Trusted time at which it was last known to be complete, ms; 0: never. */
  readonly confirmedMs: number
  readonly size: number
  /** Calls back whenever something has changed, with the entries that say so; returns how to stop that. */
  onChange(listener: ItemListener): Cancel
  /** Neither the items nor their numbers can be believed: all are fetched anew. */
  beginAnew(): void
  /** Puts on the disk what waits, and lets go of it. */
  close(): void
}

export type ItemListener = (entries: readonly ItemEntry[]) => void

/** `rollback`: the page is of a sequence that was left behind. */
export type ItemsVerdict = 'taken' | 'known' | 'gap' | 'rollback'

export interface ReplicaParts {
  disk: ItemFile
  platform: Pick<Platform, 'timers'>
  log: Log
}

/** Items that were not known to be complete for so long may have been paid since, s (contracts §4). */
export const STALE_SECONDS = 90

const FLUSH_MS = 50
/** What the disk has not taken is tried again after, ms. */
const RETRY_MS = 60_000
/** Rows of one commit: about a millisecond, in which no tag is looked up. */
const ROWS_AT_ONCE = 300
/** So many wait for the disk at most; beyond, it is waited for. */
const WAITING_LIMIT = 50_000
/** Items with a label beyond this count have an unknown one. */
const LABEL_LIMIT = 65_535
const LETTERS = { epc: 'E', tagUid: 'U', tagId: 'T' } as const
const KINDS = ['epc', 'tagUid', 'tagId'] as const

/** Rows of one entry: they reach the disk together. */
interface Waiting {
  seq: number
  rows: StoredRow[]
}

/** Opens the replica with what is on the disk. */
export function openReplica({ disk, platform, log }: ReplicaParts): Replica {
  const table = itemTable()
  const labels: ItemLabel[] = []
  const numbers = new Map<string, number>()
  const listeners = new Set<ItemListener>()
  let waiting: Waiting[] = []
  let timer: Cancel | undefined
  /** The last write did not succeed. */
  let isFailing = false
  /** Too much waited for the disk: nothing is written any more. */
  let isGivenUp = false
  /** What is on the disk is of a sequence that was left behind. */
  let isClearDue = false
  let isMarkDirty = false

  const stored = disk.read()
  let { epoch, ver, base, confirmedMs } = stored.mark ?? { epoch: 0, ver: 0, base: 0, confirmedMs: 0 }
  for (const label of stored.labels) addLabel(label)
  for (const { name, info, label } of stored.rows()) table.set(name, { info, label })

  /** The end of the sequence as far as anybody has said. */
  let head = { epoch, ver }
  /** Set: we must begin anew, with a beginning that is at least as young as this floor. */
  let restartFloor: number | undefined

  /** The label's number, from 1; 0 when there are too many. */
  function addLabel(label: ItemLabel): number {
    const key = JSON.stringify([label.category, label.brand, label.technology])
    const known = numbers.get(key)
    if (known !== undefined) return known
    if (labels.length >= LABEL_LIMIT) return 0
    labels.push(label)
    numbers.set(key, labels.length)
    return labels.length
  }

  /** Whether it is done. What is on the disk stays true as of its own number; the gate goes on by what is in memory. */
  function persisting(work: () => void): boolean {
    try {
      work()
    } catch (error) {
      if (!isFailing) log.warn({ err: error }, 'items cannot be written to the disk: it is tried again every minute')
      isFailing = true
      return false
    }
    if (isFailing) log.info({ waiting: waiting.length }, 'items are written to the disk again')
    isFailing = false
    return true
  }

  /** Writes the oldest that wait, with the number they reach. Whether that worked. */
  function flushSome(): boolean {
    if (isClearDue && !persisting(() => disk.clear(mark(0)))) return false
    isClearDue = false
    const entries: Waiting[] = []
    for (let rows = 0; entries.length < waiting.length && rows < ROWS_AT_ONCE;) {
      const next = waiting[entries.length]
      if (!next) break
      entries.push(next)
      rows += next.rows.length
    }
    const reached = entries.length === waiting.length ? ver : (entries.at(-1)?.seq ?? ver)
    if (
      !persisting(() =>
        disk.write(
          entries.flatMap((entry) => entry.rows),
          mark(reached),
          labels,
        ),
      )
    )
      return false
    waiting = waiting.slice(entries.length)
    isMarkDirty = false
    return true
  }

  function giveUp(): void {
    isGivenUp = true
    waiting = []
    log.error({}, 'items are no longer written to the disk: after a restart they are fetched again')
  }

  function mark(reached: number): ItemMark {
    return { epoch, ver: reached, base, confirmedMs }
  }

  function flushLater(): void {
    if (isGivenUp) return
    timer ??= platform.timers.after(isFailing ? RETRY_MS : FLUSH_MS, () => {
      timer = undefined
      if (isGivenUp) return
      flushSome()
      if (waiting.length > 0 || isFailing) flushLater()
    })
  }

  function begin(page: Pick<ItemsClaims, 'epoch' | 'floor'>): void {
    table.clear()
    waiting = []
    ;({ epoch, floor: base } = page)
    ver = 0
    confirmedMs = 0
    restartFloor = undefined
    isGivenUp = false
    isClearDue = true
    if (persisting(() => disk.clear(mark(0)))) isClearDue = false
    else flushLater()
  }

  function apply(entry: ItemEntry, page: ItemsClaims): void {
    const { status, price: priceCent, paying = false } = entry
    const packed = status
      ? packItem({ status, priceCent, paying }, addLabel(labelOf(entry, page)))
      : { info: 0, label: 0 }
    const rows: StoredRow[] = []
    for (const kind of KINDS) {
      const given = entry[kind]
      if (given === undefined) continue
      const name = LETTERS[kind] + given
      if (packed.info === 0) table.delete(name)
      else table.set(name, packed)
      rows.push({ name, ...packed })
    }
    if (!isGivenUp) waiting.push({ seq: entry.seq, rows })
  }

  function noteHead(seen: { epoch: number; ver: number }): void {
    if (seen.epoch > head.epoch || (seen.epoch === head.epoch && seen.ver > head.ver))
      head = { epoch: seen.epoch, ver: seen.ver }
  }

  /** Names that were given up below the floor are told no more: whoever does not know of them begins anew. */
  function isBelow(floor: number): boolean {
    return ver > 0 && floor > ver && floor > base
  }

  function isBehind(): boolean {
    return restartFloor !== undefined || head.epoch > epoch || head.ver > ver
  }

  return {
    find(kind, name) {
      const packed = table.get(LETTERS[kind] + name)
      return packed && unpackItem(packed, labels[packed.label - 1])
    },
    take(page) {
      if (page.epoch < epoch) return 'rollback'
      noteHead(page)
      // Pages that were on their way may have brought us past the floor meanwhile: what was missed stays missed.
      const isAwaited = restartFloor !== undefined && page.after === 0 && page.floor >= restartFloor
      if (page.epoch > epoch || isBelow(page.floor) || isAwaited) {
        if (page.after !== 0) {
          restartFloor = Math.max(restartFloor ?? 0, page.floor)
          return 'gap'
        }
        begin(page)
      }
      if (page.ver <= ver) return 'known'
      if (page.after > ver) return 'gap'
      // Made before the floor that we began with: names in it may have been given up since, of which nobody tells any more.
      if (page.floor < base && ver < base) return 'gap'
      if (ver === 0) base = Math.max(base, page.after === 0 ? page.floor : base)
      const entries = page.entries.filter(({ seq }) => seq > ver)
      for (const entry of entries) apply(entry, page)
      ver = page.ver
      while (waiting.length > WAITING_LIMIT) if (!flushSome()) giveUp()
      flushLater()
      for (const listener of listeners) listener(entries)
      return 'taken'
    },
    hearHead(told, atMs) {
      noteHead(told)
      if (told.epoch === epoch && isBelow(told.floor)) restartFloor = Math.max(restartFloor ?? 0, told.floor)
      if (restartFloor !== undefined || told.epoch !== epoch || told.ver !== ver || atMs <= confirmedMs) return
      confirmedMs = atMs
      isMarkDirty = true
      flushLater()
    },
    have: () => (restartFloor !== undefined ? [epoch, 0] : [epoch, ver]),
    get isBehind() {
      return isBehind()
    },
    get confirmedMs() {
      return confirmedMs
    },
    get size() {
      return table.size
    },
    onChange(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    beginAnew() {
      head = { epoch: 0, ver: 0 }
      begin({ epoch: 0, floor: 0 })
      for (const listener of listeners) listener([])
    },
    close() {
      timer?.()
      while (!isGivenUp && (waiting.length > 0 || isMarkDirty || isClearDue) && flushSome());
      disk.close()
    },
  }
}

function labelOf({ category, brand, technology }: ItemEntry, { categories, brands }: ItemsClaims): ItemLabel {
  return {
    category: (category !== undefined && categories[category]) || '',
    brand: (brand !== undefined && brands[brand]) || '',
    ...(technology !== undefined && { technology }),
  }
}
