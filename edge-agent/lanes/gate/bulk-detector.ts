import type { GatePolicy } from '../../../policy/gate-policy.ts'

/** How many different unpaid items left within a time: a bag full of them, or goods that are being moved. */
export interface Crowd {
  /** Another one leaves. */
  add(tag: string, atMs: number): { isBulk: boolean; count: number; isReplenishment: boolean }
  /** Until when the siren is silent because goods are being moved, ms; 0: it is not. */
  readonly mutedUntilMs: number
}

/** Items remembered; more than any policy asks for. */
const LIMIT = 10_000

/** The crowd at one gate. `policy` is read at every item. */
export function crowd(policy: () => GatePolicy): Crowd {
  /** In the order in which they left. */
  const left = new Map<string, number>()
  let mutedUntilMs = 0

  function within(seconds: number, atMs: number): number {
    let count = 0
    for (const at of left.values()) if (atMs - at <= seconds * 1_000) count++
    return count
  }

  function forget(atMs: number, seconds: number): void {
    for (const [tag, at] of left) {
      if (atMs - at <= seconds * 1_000 && left.size <= LIMIT) return
      left.delete(tag)
    }
  }

  return {
    add(tag, atMs) {
      const { bulk, replenishment } = policy()
      left.delete(tag)
      left.set(tag, atMs)
      forget(atMs, Math.max(bulk.seconds, replenishment.seconds))
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
