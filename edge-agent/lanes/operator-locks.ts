import type { Clock } from '../../policy/platform.ts'
import { lockouts, type Lockouts, type NameKind } from './lockouts.ts'

/**
 *   5 errors of one caller about an operator ──▶ that operator is locked for that caller (1 min, then longer: lockouts.ts)
 *   20 errors of several callers within an hour ──▶ the operator is locked for every caller of this agent, 15 min
 *
 * Errors are wrong PINs and badges. A caller is a paired browser or program, or a device's own scanner. Locks are in memory.
 */
export interface OperatorLocks {
  /** Time that this caller must wait before it may try this operator, ms; 0 allows a try now. With `as`, the proof is a PIN. */
  waitMs(operatorId: string, caller: string, as?: NameKind): number
  failed(operatorId: string, caller: string, as?: NameKind): void
  passed(operatorId: string, caller: string): void
}

/** Callers with errors in memory. The one with the oldest last error is dropped first. */
const CALLERS_LIMIT = 500
/** Operators with errors that are remembered: as many as a store may have. */
const OPERATORS_LIMIT = 500
const ERRORS = 20
/** Maximum errors that count for one caller, so that a single caller never locks an operator elsewhere. */
const ONE_CALLERS_SHARE = 10
const COUNTED_MS = 3_600_000
const LOCK_MS = 15 * 60_000

interface OperatorErrors {
  /** Oldest first; fewer than `ERRORS`. */
  errors: { caller: string; atMs: number }[]
  lockedUntil: number
}

/** Makes empty tables. */
export function operatorLocks(clock: Pick<Clock, 'elapsed'>): OperatorLocks {
  /** Both tables are ordered by the last error, oldest first. */
  const callers = new Map<string, Lockouts>()
  const operators = new Map<string, OperatorErrors>()

  function countFor(operatorId: string, caller: string): void {
    const nowMs = clock.elapsed()
    const { errors: before, lockedUntil } = operators.get(operatorId) ?? { errors: [], lockedUntil: 0 }
    const errors = before.filter(({ atMs }) => nowMs - atMs < COUNTED_MS)
    if (errors.filter((error) => error.caller === caller).length < ONE_CALLERS_SHARE)
      errors.push({ caller, atMs: nowMs })
    const isLocked = errors.length >= ERRORS
    putLast(
      operators,
      operatorId,
      isLocked ? { errors: [], lockedUntil: nowMs + LOCK_MS } : { errors, lockedUntil },
      OPERATORS_LIMIT,
    )
  }

  return {
    waitMs(operatorId, caller, as) {
      const ownMs = callers.get(caller)?.waitMs(operatorId, as) ?? 0
      return Math.max(ownMs, (operators.get(operatorId)?.lockedUntil ?? 0) - clock.elapsed())
    },
    failed(operatorId, caller, as) {
      const own = callers.get(caller) ?? lockouts(clock)
      own.failed(operatorId, as)
      putLast(callers, caller, own, CALLERS_LIMIT)
      if (as !== 'invented') countFor(operatorId, caller)
    },
    passed(operatorId, caller) {
      callers.get(caller)?.passed(operatorId)
      const counted = operators.get(operatorId)
      if (counted) counted.errors = counted.errors.filter((error) => error.caller !== caller)
    },
  }
}

/** Makes the entry the newest of the table, and drops the oldest if the table is over its limit. */
function putLast<V>(table: Map<string, V>, name: string, value: V, limit: number): void {
  table.delete(name)
  table.set(name, value)
  const oldest = table.keys().next().value
  if (table.size > limit && oldest !== undefined) table.delete(oldest)
}
