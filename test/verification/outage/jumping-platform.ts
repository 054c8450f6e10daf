import { realPlatform } from '../../../host/platform.ts'
import type { Cancel, Platform } from '../../../policy/platform.ts'

/** A real platform whose time also jumps ahead, so that days pass in minutes. */
export interface JumpingPlatform extends Platform {
  /** Sum of all jumps, ms. */
  readonly aheadMs: number
  /** Lets `ms` pass at once, and runs the tasks that are due then. */
  jump(ms: number): void
}

interface Waiting {
  readonly dueMs: number
  readonly task: () => void
  cancel: Cancel
}

/** Creates a platform. `aheadMs`: time that has passed by jumps before, in another process of the same machine. */
export function jumpingPlatform(aheadMs: number, base: Platform = realPlatform()): JumpingPlatform {
  let ahead = aheadMs
  const elapsed = () => base.clock.elapsed() + ahead
  const waiting = new Set<Waiting>()

  function run(each: Waiting): void {
    each.cancel()
    if (waiting.delete(each)) each.task()
  }
  const startTimer = (each: Waiting) => base.timers.after(Math.max(0, each.dueMs - elapsed()), () => run(each))

  return {
    random: base.random,
    clock: { bootId: base.clock.bootId, wall: () => base.clock.wall() + ahead, elapsed },
    timers: {
      after(ms, task) {
        const each: Waiting = { dueMs: elapsed() + ms, task, cancel: () => {} }
        each.cancel = startTimer(each)
        waiting.add(each)
        return () => {
          each.cancel()
          waiting.delete(each)
        }
      },
    },
    get aheadMs() {
      return ahead
    },
    jump(ms) {
      ahead += ms
      const ordered = [...waiting].sort((a, b) => a.dueMs - b.dueMs)
      for (const each of ordered) {
        if (each.dueMs <= elapsed()) {
          run(each)
          continue
        }
        each.cancel()
        each.cancel = startTimer(each)
      }
    },
  }
}
