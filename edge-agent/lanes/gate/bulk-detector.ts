import type { GatePolicy } from '../../../policy/gate-policy.ts'

/** How many different unpaid items left within a time: a bag full of them, or goods that are being moved. */
export interface BulkDetector {
  /** Another one leaves. */
  add(tag: string, atMs: number): { isBulk: boolean; count: number; isReplenishment: boolean }
  /** Until when the siren is silent because goods are being moved, ms; 0: it is not. */
  readonly mutedUntilMs: number
}

/** Items remembered; more than any policy asks for. */
const LIMIT = 10_000

/** The crowd at one gate. `policy` is read at every item. */
export function bulkDetector(policy: () => GatePolicy): BulkDetector {
  /** In the order in which they left. */
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
