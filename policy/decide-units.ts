import { decide, type Decision, type DecisionFacts } from './decide.ts'
import type { ProtectionPolicy } from './store-policy.ts'
import type { ItemFactName } from './vocabulary.ts'

export interface UnitsDecision {
  /** The first allowed decision, else the decision on the first unit. */
  decision: Decision
  /** Indexes of the allowed units. */
  allowed: number[]
  /** Facts that a rule needed and that were unknown for at least one unit. */
  unknownFacts: ItemFactName[]
}

/** Decides on each unit separately: a denied unit does not stop the others. */
export function decideUnits(
  units: readonly [DecisionFacts, ...DecisionFacts[]],
  policy: ProtectionPolicy,
): UnitsDecision {
  const [first, ...others] = units
  const decisions: [Decision, ...Decision[]] = [decide(first, policy), ...others.map((unit) => decide(unit, policy))]
  return {
    decision: decisions.reduce(betterDecision),
    allowed: decisions.flatMap((each, n) => (each.allowed ? [n] : [])),
    unknownFacts: [...new Set(decisions.flatMap((each) => each.unknownFacts))],
  }
}

/** Returns `second` if only `second` is allowed, else `first`. */
export function betterDecision(first: Decision, second: Decision): Decision {
  return !first.allowed && second.allowed ? second : first
}
