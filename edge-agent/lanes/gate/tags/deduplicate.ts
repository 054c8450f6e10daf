/** Where at the gate a tag was seen. `none`: the gate cannot tell. */
export type Zone = 'inside' | 'outside' | 'none'

/** One tag is looked at once in this time and zone, ms. */
const WINDOW_MS = 250
/** Tags remembered in one window; beyond, a tag is looked at once more than needed. */
const LIMIT = 20_000

/**
 * Lets a tag through when it was not let through in the same zone within the last 250 ms. Two windows of
 * memory take turns, so what is remembered never outlives 500 ms.
 */
export interface Deduplicator {
  isNew(tag: string, zone: Zone, atMs: number): boolean
  readonly size: number
}

/** A memory of its own for each gate. */
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
