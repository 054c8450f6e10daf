import type { Zone } from './deduplicate.ts'

/**
 *   paid and leaving ─▶ not read for 30 s ─▶ gone: reported once
 *                         └ last read inside, or covered by a receipt ─▶ not reported
 *
 * Paid tags that left one gate. A shopper who is still there may present a receipt, which needs these exit rights. So
 * tags are reported only when they are gone.
 */
export interface Departures {
  left(tag: string, atMs: number): void
  /** Call it for every read. Most tags have not left, and are ignored. */
  seen(tag: string, zone: Zone, atMs: number): void
  /** Drops tags whose exit right was used otherwise. */
  drop(isUsedUp: (tag: string) => boolean): void
  /** Removes and returns the tags that are gone, with the time at which they left. */
  takeGone(atMs: number): { tag: string; leftMs: number }[]
}

/** Time after which a tag that left counts as gone, ms: a shown receipt covers tags for as long (receipt-pass.ts). */
const GONE_MS = 30_000
/** Maximum tags that left and do not yet count as gone. Further tags are not reported. */
const LIMIT = 2_000

/** Nobody has left yet. */
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
    takeGone(atMs) {
      const gone = [...waiting].filter(([, { lastMs }]) => atMs - lastMs >= GONE_MS)
      for (const [tag] of gone) waiting.delete(tag)
      return gone.flatMap(([tag, { leftMs, isInside }]) => (isInside ? [] : [{ tag, leftMs }]))
    },
  }
}
