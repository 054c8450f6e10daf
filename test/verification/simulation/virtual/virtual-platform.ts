import type { Cancel, Clock, Platform, Randomness, Timers } from '../../../../policy/platform.ts'

/**
 * Platform with virtual time and seeded randomness. Time moves only if the caller moves it, for example with
 * `advance`. Equal seeds give equal runs.
 *
 *   const world = virtualPlatform({ seed: 7 })
 *   await world.advance(1_000)      // runs every timer of this second, in order
 */
export interface VirtualPlatform extends Platform {
  /** Moves time forward by `ms`. Runs due timers in order, and settles promises after each timer. */
  advance(ms: number): Promise<void>
  /**
   * Moves time forward by `ms` without running timers, as during sleep. Overdue timers run the next time that time
   * moves.
   */
  sleep(ms: number): void
  /** Moves time forward until `promise` settles. Throws after `limitMs` of virtual time (default 3,600,000 ms). */
  settle<T>(promise: Promise<T>, limitMs?: number): Promise<T>
  /** Changes the wall clock only, as a wrong NTP answer does. */
  setWall(ms: number): void
  /** Simulates a reboot: elapsed time starts at 0. */
  reboot(): void
  /** Number of timers that have not run. */
  readonly pending: number
}

interface Due {
  at: number
  order: number
  task: () => void
}

/** Mulberry32: a small, fast and portable generator. For tests and simulation only. */
export function seededRandom(seed: number): Randomness {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) % 256
  }
  return { bytes: (length) => Uint8Array.from({ length }, next) }
}

/** Runs all work that needs no time. */
export function letPromisesSettle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Creates a platform with virtual time. */
export function virtualPlatform(options: { seed?: number; startMs?: number } = {}): VirtualPlatform {
  let now = 0
  let wallOffset = options.startMs ?? Date.UTC(2026, 10, 20, 9)
  let boots = 1
  let bootedAt = 0
  let order = 0
  const due: Due[] = []

  const clock: Clock = {
    wall: () => wallOffset + now,
    elapsed: () => now - bootedAt,
    get bootId() {
      return `boot-${boots}`
    },
  }
  const timers: Timers = {
    after(ms, task): Cancel {
      const entry = { at: now + Math.max(0, ms), order: order++, task }
      due.push(entry)
      return () => {
        const i = due.indexOf(entry)
        if (i >= 0) due.splice(i, 1)
      }
    },
  }

  async function runNext(limit: number): Promise<boolean> {
    let first: Due | undefined
    for (const d of due) if (!first || d.at < first.at || (d.at === first.at && d.order < first.order)) first = d
    if (!first || first.at > limit) return false
    due.splice(due.indexOf(first), 1)
    now = Math.max(now, first.at)
    first.task()
    await letPromisesSettle()
    return true
  }

  async function advance(ms: number): Promise<void> {
    const until = now + ms
    await letPromisesSettle()
    while (await runNext(until)) continue
    // A task may have called `sleep`, which moved time past `until`. Time never goes back.
    now = Math.max(now, until)
  }

  async function settle<T>(promise: Promise<T>, limitMs = 3_600_000): Promise<T> {
    let settled = false
    const mark = () => void (settled = true)
    promise.then(mark, mark)
    const until = now + limitMs
    await letPromisesSettle()
    while (!settled && (await runNext(until))) continue
    if (!settled)
      throw new Error(`the promise did not settle within ${limitMs} ms of virtual time; ${due.length} timers wait`)
    return promise
  }

  return {
    clock,
    timers,
    random: seededRandom(options.seed ?? 1),
    advance,
    sleep: (ms) => void (now += ms),
    settle,
    setWall: (ms) => void (wallOffset = ms - now),
    reboot: () => {
      boots++
      bootedAt = now
    },
    get pending() {
      return due.length
    },
  }
}
