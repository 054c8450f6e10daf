import {
  decide,
  policyEntryFor,
  toApiDecision,
  type DecisionFacts,
  type ApiDecision,
  type TraceStep,
} from './decide.ts'
import type { DeviceFacts } from './devices.ts'
import { predictIsolatedDecision, type IsolatedPrediction } from './isolated-agent.ts'
import { limitAt, type PolicyStage, type ProtectionPolicy } from './store-policy.ts'
import type { ProtectionAction } from './vocabulary.ts'

/** What somebody wants to know of a policy: about an item whose payment and right are in order, so that only the policy decides. */
export interface PolicyScenario {
  device: DeviceFacts
  action: ProtectionAction
  /** Left out: an item without one; offline: unknown. */
  category: string | undefined
  /** Left out: an item without one; offline: unknown. */
  brand: string | undefined
  /** Left out: unknown. */
  priceCent: number | undefined
  /** An operator stands behind the request. */
  hasOperator: boolean
}

export type StageDecision = ApiDecision & {
  stage: PolicyStage
  trace: TraceStep[]
  /** How far an agent goes by receipts that cannot ask their home; null: it honours none. */
  isolated: { receipts: number; seconds: number } | null
}

export interface PolicyExplanation {
  /** The entry that counts for the category; null: the policy says nothing, and the defaults count. */
  entry: string | null
  stages: StageDecision[]
  /** What the device's agent decides by a receipt, just cut off from cloud and home; what the question leaves out is unknown. */
  offline: IsolatedPrediction
}

const STAGES: readonly PolicyStage[] = ['fresh', 'stale', 'expired']

/** What a policy decides at each stage of its age, and why: by the same `decide` as in cloud and agent. */
export function explainPolicy(question: PolicyScenario, policy: ProtectionPolicy): PolicyExplanation {
  const { category, brand, priceCent } = question
  const fresh = factsOf(question, 'fresh')
  const known = { status: fresh.item?.status ?? null, category, brand, priceCent }
  return {
    offline: predictIsolatedDecision([{ ...fresh, item: known }], policy),
    entry: policyEntryFor(question.category, policy) ?? null,
    stages: STAGES.map((stage) => {
      const decision = decide(factsOf(question, stage), policy)
      return { stage, ...toApiDecision(decision), trace: decision.trace, isolated: isolatedAt(policy, stage) }
    }),
  }
}

function factsOf(
  { device, action, category, brand, priceCent, hasOperator }: PolicyScenario,
  stage: PolicyStage,
): DecisionFacts {
  const status = action === 'unlock_fixture' ? 'sellable' : 'paid'
  const item = { status, category: category ?? '', brand: brand ?? '', priceCent } as const
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
