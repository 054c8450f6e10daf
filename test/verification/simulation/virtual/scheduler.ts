import type { Cancel } from '../../../../policy/platform.ts'
import type { Chance } from './chance.ts'

/**
 * The clock of a run. Time advances only in this clock, from event to event. The next event is the earliest one. If
 * several events have the same time, one is chosen at random. After each event, all promises settle before the next
 * event.
 */
export interface Scheduler {
  /** True time, whole ms since 1970. */
  readonly nowMs: number
  /** Number of events so far. */
  readonly steps: number
  after(ms: number, task: () => void): Cancel
  pause(ms: number): Promise<void>
  /** Runs until `isDone` returns true, `untilMs` is reached or no event is left. */
  run(untilMs: number, isDone?: () => boolean): Promise<void>
  /** Runs all work that needs no time. */
  settle(): Promise<void>
}

interface Due {
  at: number
  tie: number
  order: number
  task: (() => void) | undefined
}

/** Limit of event loop turns at one point in time. A higher number indicates an endless loop. */
const ROUNDS_LIMIT = 10_000

/** True if a group commit or other work waits for the next turn of the event loop. */
function isTurnWaiting(): boolean {
  return process.getActiveResourcesInfo().includes('Immediate')
}

function isBefore(a: Due, b: Due): boolean {
  if (a.at !== b.at) return a.at < b.at
  return a.tie === b.tie ? a.order < b.order : a.tie < b.tie
}

/** Creates a clock that starts at `startMs`. Calls `afterStep` after each event and all work that the event caused. */
export function scheduler(startMs: number, chance: Chance, afterStep: () => void = () => undefined): Scheduler {
  const heap: Due[] = []
  let nowMs = startMs
  let order = 0
  let steps = 0

  function push(due: Due): void {
    let i = heap.push(due) - 1
    while (i > 0) {
      const up = (i - 1) >> 1
      const above = heap[up] as Due
      if (!isBefore(due, above)) break
      heap[i] = above
      i = up
    }
    heap[i] = due
  }

  function pop(): Due | undefined {
    const first = heap[0]
    const last = heap.pop()
    if (!first || !last || heap.length === 0) return first
    let i = 0
    for (;;) {
      let down = 2 * i + 1
      if (down >= heap.length) break
      if (down + 1 < heap.length && isBefore(heap[down + 1] as Due, heap[down] as Due)) down++
      if (!isBefore(heap[down] as Due, last)) break
      heap[i] = heap[down] as Due
      i = down
    }
    heap[i] = last
    return first
  }

  function after(ms: number, task: () => void): Cancel {
    const due: Due = { at: nowMs + Math.max(0, Math.ceil(ms)), tie: chance.next(), order: order++, task }
    push(due)
    return () => void (due.task = undefined)
  }

  async function settle(): Promise<void> {
    for (let round = 0; round < ROUNDS_LIMIT; round++) {
      await new Promise<void>((resolve) => setImmediate(resolve))
      if (!isTurnWaiting()) return
    }
    throw new Error('endless loop: work starts more work without progress of time')
  }

  return {
    get nowMs() {
      return nowMs
    },
    get steps() {
      return steps
    },
    after,
    pause: (ms) => new Promise((resolve) => after(ms, resolve)),
    settle,
    async run(untilMs, isDone = () => false) {
      await settle()
      while (!isDone()) {
        const due = heap[0]
        if (!due || due.at > untilMs) {
          nowMs = Math.max(nowMs, untilMs)
          return
        }
        pop()
        if (!due.task) continue
        nowMs = due.at
        steps++
        due.task()
        await settle()
        afterStep()
      }
    },
  }
}
