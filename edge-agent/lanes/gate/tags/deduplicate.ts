import type { TagName } from '../../../../device-drivers/kit/device.ts'
import type { KnownItem } from '../../../items/item-table.ts'
import type { Replica } from '../../../items/replica.ts'

/** Name of a tag at a gate, in memory and in the item file: the EPC, or U and the UID. No EPC starts with U. */
export function gateTagOf(tag: TagName): string {
  return 'epc' in tag ? tag.epc : `U${tag.tagUid}`
}

/** Converts a name from `gateTagOf` into the tag. */
export function tagNameOf(gateTag: string): TagName {
  return gateTag.startsWith('U') ? { tagUid: gateTag.slice(1) } : { epc: gateTag }
}

/** The item with this tag. */
export function itemOf(items: Pick<Replica, 'find'>, gateTag: string): KnownItem | undefined {
  return gateTag.startsWith('U') ? items.find('tagUid', gateTag.slice(1)) : items.find('epc', gateTag)
}

/** Side of the gate where a tag was read. `none`: the reader cannot locate tags. */
export type Zone = 'inside' | 'outside' | 'none'

/** Time in which a tag counts once per zone, ms. */
const WINDOW_MS = 250
/** Maximum tags in one window. With more tags, the filter may pass a repeated read. */
const LIMIT = 20_000

/**
 * Filters repeated reads: within 250 ms, a tag is new only once per zone. Stores only the reads of the current and the
 * previous window.
 */
export interface Deduplicator {
  isNew(tag: string, zone: Zone, atMs: number): boolean
  readonly size: number
}

/** Creates the filter of one gate. */
export function deduplicator(): Deduplicator {
  let current = new Map<string, { atMs: number; zone: Zone }>()
  let previous = new Map<string, { atMs: number; zone: Zone }>()
  let sinceMs = Number.NEGATIVE_INFINITY

  function rotate(atMs: number): void {
    if (atMs - sinceMs < WINDOW_MS && current.size < LIMIT) return
    previous = atMs - sinceMs < 2 * WINDOW_MS ? current : new Map()
    current = new Map()
    sinceMs = atMs
  }

  return {
    isNew(tag, zone, atMs) {
      rotate(atMs)
      const last = current.get(tag) ?? previous.get(tag)
      if (last?.zone === zone && atMs - last.atMs < WINDOW_MS) return false
      current.set(tag, { atMs, zone })
      return true
    },
    get size() {
      return current.size + previous.size
    },
  }
}
