import type { Clock } from '../../policy/platform.ts'
import { lockouts, type Lockouts, type NameKind } from './lockouts.ts'

/**
 * Locks operators after wrong PINs and badges.
 *
 * - 5 errors of one caller lock the operator for that caller: 1 minute, then longer (lockouts.ts).
 * - 20 errors of several callers within an hour lock the operator for all callers of this agent: 15 minutes.
 *
 * A caller is a paired browser or program, or a device's own scanner. The agent stores the locks only in memory.
 */
export interface OperatorLocks {
  /**
   * Wait before this caller may try this operator, ms; 0 if an attempt is allowed. `as`: whether an operator has this
   * id; set only if the proof is a PIN.
   */
  waitMs(operatorId: string, caller: string, as?: NameKind): number
  failed(operatorId: string, caller: string, as?: NameKind): void
  passed(operatorId: string, caller: string): void
}

/** Maximum callers in memory. A further caller replaces the caller whose last error is oldest. */
const CALLERS_LIMIT = 500
/** Maximum operators in memory: as many as a store may have. */
const OPERATORS_LIMIT = 500
const ERRORS = 20
/** Maximum counted errors of one caller, so that one caller alone never locks an operator for others. */
const ERRORS_OF_ONE_CALLER = 10
const COUNTED_MS = 3_600_000
const LOCK_MS = 15 * 60_000

interface OperatorErrors {
  /** The counted errors, oldest first; always fewer than `ERRORS`. */
  errors: { caller: string; atMs: number }[]
  lockedUntil: number
}

/** Makes the locks of this agent; no operator is locked. */
export function operatorLocks(clock: Pick<Clock, 'elapsed'>): OperatorLocks {
  /** Both tables are in order of the last error, oldest first. */
  const callers = new Map<string, Lockouts>()
  const operators = new Map<string, OperatorErrors>()

  function countFor(operatorId: string, caller: string): void {
    const nowMs = clock.elapsed()
    const { errors: before, lockedUntil } = operators.get(operatorId) ?? { errors: [], lockedUntil: 0 }
    const errors = before.filter(({ atMs }) => nowMs - atMs < COUNTED_MS)
    if (errors.filter((error) => error.caller === caller).length < ERRORS_OF_ONE_CALLER)
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

/** Sets an entry as the newest of the table. Drops the oldest entry above the limit. */
function putLast<V>(table: Map<string, V>, name: string, value: V, limit: number): void {
  table.delete(name)
  table.set(name, value)
  const oldest = table.keys().next().value
  if (table.size > limit && oldest !== undefined) table.delete(oldest)
}
