import { PSP_NAMES } from '../../../simulators/services/psp-books.ts'
import { drawFaults, type Fault } from './faults/fault-kinds.ts'
import type { Chance } from './virtual/chance.ts'
import { drawPace, type Pace } from './virtual/pace.ts'

/** Choices that a seed draws before the run starts. */
export interface Plan {
  readonly faults: readonly Fault[]
  /** Number of agents that customers use. */
  readonly agents: number
  /** Number of enrolled agents. If an agent lies, the third agent is the liar. */
  readonly enrolled: number
  readonly pace: Pace
  /** Draws visit times and the phases at the end. */
  readonly chance: Chance
  /** Payment provider; undefined in a sandbox. */
  readonly provider: (typeof PSP_NAMES)[number] | undefined
}

/** Draws the plan of a run. If `faults` is given, it replaces the drawn faults. */
export function drawPlan(chance: Chance, liveness: boolean, faults: readonly Fault[] = drawFaults(chance)): Plan {
  const has = (kind: Fault) => faults.includes(kind)
  const isShared = chance.happens(0.7) || has('home') || has('moves') || has('liar')
  const isLarge = chance.happens(has('home') ? 0.4 : 0.1)
  // If an agent lies, the third agent is the liar, so customers use at most two agents.
  const agents = isShared ? (isLarge && !has('liar') ? 3 : 2) : 1
  const pace = drawPace(chance, liveness)
  return {
    faults,
    agents,
    enrolled: has('liar') ? 3 : Math.max(2, agents),
    pace,
    chance,
    provider: has('provider') ? chance.one(PSP_NAMES) : undefined,
  }
}
