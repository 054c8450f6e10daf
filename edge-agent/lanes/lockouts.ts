import type { Clock } from '../../policy/platform.ts'

/**
 * Counts wrong sign-ins of one caller. After five wrong sign-ins with one name, this caller cannot use that name for
 * a minute. Each further lock lasts twice as long.
 */
export interface Lockouts {
  /**
   * Wait before the next attempt with this name, ms; 0 if an attempt is allowed. `as`: whether an operator has this
   * name; set only if the proof is a PIN.
   */
  waitMs(name: string, as?: NameKind): number
  failed(name: string, as?: NameKind): void
  passed(name: string): void
}

/** Unknown names have their own table, so that guesses cannot displace the lock of a known name. */
export type NameKind = 'known' | 'invented'

const TRIES = 5
const FIRST_LOCK_MS = 60_000
const LONGEST_LOCK_MS = 3_600_000
/** A store has at most 500 operators. */
const KNOWN_LIMIT = 500
/**
 * A caller that has tried this many unknown names counts as guessing. Such a caller waits a minute after each wrong
 * PIN, for any name.
 */
const INVENTED_LIMIT = 50
const REMEMBERED_MS = 86_400_000

interface Tries {
  failed: number
  locks: number
  lockedUntil: number
  lastMs: number
}

/** Makes the counters of one caller. */
export function lockouts(clock: Pick<Clock, 'elapsed'>): Lockouts {
  /** Both tables are in order of the last attempt, oldest first. */
  const known = new Map<string, Tries>()
  const invented = new Map<string, Tries>()
  let guessingUntil = 0

  function noteIn(table: Map<string, Tries>, name: string): void {
    const nowMs = clock.elapsed()
    const state = table.get(name) ?? { failed: 0, locks: 0, lockedUntil: 0, lastMs: 0 }
    state.failed++
    state.lastMs = nowMs
    if (state.failed >= TRIES) {
      state.lockedUntil = nowMs + Math.min(FIRST_LOCK_MS * 2 ** state.locks, LONGEST_LOCK_MS)
      state.locks++
      state.failed = 0
    }
    table.delete(name)
    table.set(name, state)
  }

  function dropOld(table: Map<string, Tries>, limit: number): void {
    for (const [name, { lastMs }] of table) {
      if (table.size <= limit && clock.elapsed() - lastMs < REMEMBERED_MS) return
      table.delete(name)
    }
  }

  return {
    waitMs(name, as) {
      const table = as === 'invented' ? invented : known
      const until = Math.max(table.get(name)?.lockedUntil ?? 0, as === undefined ? 0 : guessingUntil)
      return Math.max(0, until - clock.elapsed())
    },
    failed(name, as) {
      noteIn(as === 'invented' ? invented : known, name)
      dropOld(known, KNOWN_LIMIT)
      dropOld(invented, INVENTED_LIMIT)
      if (as !== undefined && invented.size >= INVENTED_LIMIT) guessingUntil = clock.elapsed() + FIRST_LOCK_MS
    },
    passed: (name) => void known.delete(name),
  }
}
