import type { GatePolicy } from '../../../policy/gate-policy.ts'

/**
 * Counts the distinct unpaid items that left within the time windows of the policy. If many items leave, they are
 * probably stolen. If very many items leave, staff are probably moving goods.
 */
export interface BulkDetector {
  /** Counts a leaving tag. `count`: items that left within the time for bulk alarms. */
  add(tag: string, atMs: number): { isBulk: boolean; count: number; isReplenishment: boolean }
  /** Time until which the siren stays silent because staff move goods, ms; 0 at first. */
  readonly mutedUntilMs: number
}

/** Maximum items in memory. No policy needs so many. */
const LIMIT = 10_000

/** Makes the detector of one gate. The detector reads `policy` again for each item. */
export function bulkDetector(policy: () => GatePolicy): BulkDetector {
  /** Tag → time at which it left, ms; oldest first. */
  const departures = new Map<string, number>()
  let mutedUntilMs = 0

  function within(seconds: number, atMs: number): number {
    let count = 0
    for (const at of departures.values()) if (atMs - at <= seconds * 1_000) count++
    return count
  }

  function dropOld(atMs: number, seconds: number): void {
    for (const [tag, at] of departures) {
      if (atMs - at <= seconds * 1_000 && departures.size <= LIMIT) return
      departures.delete(tag)
    }
  }

  return {
    add(tag, atMs) {
      const { bulk, replenishment } = policy()
      departures.delete(tag)
      departures.set(tag, atMs)
      dropOld(atMs, Math.max(bulk.seconds, replenishment.seconds))
      const count = within(bulk.seconds, atMs)
      const moved = replenishment.tags > 0 && within(replenishment.seconds, atMs) >= replenishment.tags
      if (moved) mutedUntilMs = atMs + replenishment.muteSeconds * 1_000
      return { isBulk: count >= bulk.tags, count, isReplenishment: moved || atMs < mutedUntilMs }
    },
    get mutedUntilMs() {
      return mutedUntilMs
    },
  }
}
