import {
  decide,
  policyEntryFor,
  toApiDecision,
  type DecisionFacts,
  type ApiDecision,
  type TraceStep,
} from './decide.ts'
import type { DeviceFacts } from './devices.ts'
import { predictIsolatedDecision, type IsolatedPrediction } from './decide-units.ts'
import { limitAt, type PolicyStage, type ProtectionPolicy } from './store-policy.ts'
import type { ProtectionAction } from './vocabulary.ts'

/**
 * The case to explain. The explanation assumes that the item's status and right permit the action, so that only the
 * policy decides.
 */
export interface PolicyScenario {
  device: DeviceFacts
  action: ProtectionAction
  /** Undefined: the item has no category. The offline prediction then treats the category as unknown. */
  category: string | undefined
  /** Undefined: the item has no brand. The offline prediction then treats the brand as unknown. */
  brand: string | undefined
  /** Undefined: unknown. */
  priceCent: number | undefined
  /** True if a signed-in operator approves. */
  hasOperator: boolean
}

export type StageDecision = ApiDecision & {
  stage: PolicyStage
  trace: TraceStep[]
  /** Limits of an isolated agent at this stage; null if an isolated agent honours no receipts. */
  isolated: { receipts: number; seconds: number } | null
}

export interface PolicyExplanation {
  /** Policy entry for the category; null if there is none and the defaults apply. */
  entry: string | null
  stages: StageDecision[]
  /**
   * Decision of the device's agent by a receipt, just after the agent became isolated. Facts that the scenario omits
   * are unknown.
   */
  offline: IsolatedPrediction
}

const STAGES: readonly PolicyStage[] = ['fresh', 'stale', 'expired']

/** Explains the decisions of a policy at each stage. Cloud and agent run the same `decide`. */
export function explainPolicy(scenario: PolicyScenario, policy: ProtectionPolicy): PolicyExplanation {
  const { category, brand, priceCent } = scenario
  const fresh = factsOf(scenario, 'fresh')
  const known = { status: fresh.item?.status ?? null, category, brand, priceCent }
  return {
    offline: predictIsolatedDecision([{ ...fresh, item: known }], policy),
    entry: policyEntryFor(scenario.category, policy) ?? null,
    stages: STAGES.map((stage) => {
      const decision = decide(factsOf(scenario, stage), policy)
      return { stage, ...toApiDecision(decision), trace: decision.trace, isolated: isolatedAt(policy, stage) }
    }),
  }
}

function factsOf(
  { device, action, category, brand, priceCent, hasOperator }: PolicyScenario,
  stage: PolicyStage,
): DecisionFacts {
  const item = { status: 'paid', category: category ?? '', brand: brand ?? '', priceCent } as const
  return {
    action,
    storeId: device.storeId,
    device,
    clockTrusted: true,
    stage,
    item,
    identifiedBy: [],
    right: 'free',
    hasOperator,
  }
}

function isolatedAt({ offline }: ProtectionPolicy, stage: PolicyStage): StageDecision['isolated'] {
  if (offline.storeBound === 'deny') return null
  return { receipts: limitAt(offline.hardCount, stage), seconds: limitAt(offline.maxIsolatedSeconds, stage) }
}
