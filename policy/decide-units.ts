import { decide, type Decision, type DecisionFacts } from './decide.ts'
import type { ProtectionPolicy } from './store-policy.ts'
import type { ItemFactName } from './vocabulary.ts'

export interface UnitsDecision {
  /** The answer as a whole: the first unit that is allowed, else the first unit. */
  decision: Decision
  /** The positions of the units that are allowed. */
  allowed: number[]
  /** What was unknown of any unit, and a rule needed it. */
  unknownFacts: ItemFactName[]
}

/** Decides about several units at once: each unit that is allowed is released, and the others are not. There is at least one. */
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

/** The decision that is told of two units: the first one, unless only the second is allowed. */
export function betterDecision(first: Decision, second: Decision): Decision {
  return !first.allowed && second.allowed ? second : first
}
