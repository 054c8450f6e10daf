import { decide, type Decision, type DecisionFacts } from './decide.ts'
import type { ProtectionPolicy } from './store-policy.ts'
import type { ItemFactName } from './vocabulary.ts'

export interface UnitsDecision {
  /** The first allowed decision, else the first with `tag_not_read`, else the decision on the first unit. */
  decision: Decision
  /** Indexes of the allowed units. */
  allowed: number[]
  /** Facts that a rule needed and that were unknown for at least one unit. */
  unknownFacts: ItemFactName[]
}

/** Decides on each unit separately: a denied unit does not stop the others. Units may share one object of facts. */
export function decideUnits(
  units: readonly [DecisionFacts, ...DecisionFacts[]],
  policy: ProtectionPolicy,
): UnitsDecision {
  const known = new Map<DecisionFacts, Decision>()
  const decideOnce = (unit: DecisionFacts): Decision => {
    const decision = known.get(unit) ?? decide(unit, policy)
    known.set(unit, decision)
    return decision
  }
  const [first, ...others] = units
  const decisions: [Decision, ...Decision[]] = [decideOnce(first), ...others.map(decideOnce)]
  return {
    decision: decisions.reduce(betterDecision),
    allowed: decisions.flatMap((each, n) => (each.allowed ? [n] : [])),
    unknownFacts: [...new Set([...known.values()].flatMap((each) => each.unknownFacts))],
  }
}

/** Returns `second` if it is closer to a grant than `first`. */
function betterDecision(first: Decision, second: Decision): Decision {
  return closeness(second) > closeness(first) ? second : first
}

/** With `tag_not_read`, only the tag is missing: the device may act once it reads the tag. */
function closeness(decision: Decision): number {
  if (decision.allowed) return 2
  return decision.reason === 'tag_not_read' ? 1 : 0
}
