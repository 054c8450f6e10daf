import type { Zone } from './deduplicate.ts'

/**
 * Paid tags that left one gate. The gate reports a tag 30 s after its last read, if that read was not inside. Until
 * then the shopper may still present a receipt, and that receipt needs the exit right.
 */
export interface Departures {
  /** Adds a tag that left. */
  left(tag: string, atMs: number): void
  /** Call it for every read. Ignores tags that have not left. */
  seen(tag: string, zone: Zone, atMs: number): void
  /** Drops tags whose exit right a receipt used. */
  drop(isUsedUp: (tag: string) => boolean): void
  /**
   * Removes the tags without a read for 30 s. Of these, returns the tags whose last read was not inside, with the time
   * of leaving.
   */
  removeGone(atMs: number): { tag: string; leftMs: number }[]
}

/** Time without a read after which a tag is gone, ms. Receipts cover tags for the same time (receipt-pass.ts). */
const GONE_MS = 30_000
/** Maximum tags that wait for these 30 s. The gate does not report further tags. */
const LIMIT = 2_000

/** Starts without tags. */
export function departures(): Departures {
  const waiting = new Map<string, { leftMs: number; lastMs: number; isInside: boolean }>()
  return {
    left(tag, atMs) {
      if (waiting.size < LIMIT || waiting.has(tag)) waiting.set(tag, { leftMs: atMs, lastMs: atMs, isInside: false })
    },
    seen(tag, zone, atMs) {
      const departure = waiting.get(tag)
      if (!departure) return
      departure.lastMs = atMs
      departure.isInside = zone === 'inside'
    },
    drop(isUsedUp) {
      for (const tag of waiting.keys()) if (isUsedUp(tag)) waiting.delete(tag)
    },
    removeGone(atMs) {
      const gone = [...waiting].filter(([, { lastMs }]) => atMs - lastMs >= GONE_MS)
      for (const [tag] of gone) waiting.delete(tag)
      return gone.flatMap(([tag, { leftMs, isInside }]) => (isInside ? [] : [{ tag, leftMs }]))
    },
  }
}
