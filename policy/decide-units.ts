import { allowsInWorkflow, decide, type Decision, type DecisionFacts } from './decide.ts'
import {
  type ProtectionPolicy,
  limitAt,
  overrideThresholdCent,
  riskClassOf,
  riskClassCeiling,
  type PolicyStage,
} from './store-policy.ts'
import {
  type ItemFactName,
  PROTECTION_ACTIONS,
  type DenyReason,
  type ProtectionAction,
  type WorkflowType,
} from './vocabulary.ts'
import type { DeviceFacts } from './devices.ts'
import { MAX_ENTRIES } from './receipts/receipt-claims.ts'

interface UnitsDecision {
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
  const decisionOf = (unit: DecisionFacts): Decision => {
    const decision = known.get(unit) ?? decide(unit, policy)
    known.set(unit, decision)
    return decision
  }
  const [first, ...others] = units
  const decisions: [Decision, ...Decision[]] = [decisionOf(first), ...others.map(decisionOf)]
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

/** A receipt at an isolated agent. */
interface IsolatedReceiptFacts {
  /** Undefined: unknown. */
  riskClass: number | undefined
  stage: PolicyStage
  /** Time since the agent last reached the cloud or the receipt home, s. */
  isolatedSeconds: number
  /**
   * Other receipts that the agent honoured while isolated and that the cloud has not acknowledged yet. 0 for a receipt
   * that is one of them: its further units count with it.
   */
  otherReceipts: number
}

/**
 * Returns why the limits of an isolated agent reject the receipt. Undefined if the agent honours the receipt. Agents
 * call it (edge-agent/decisions/by-receipt.ts); `simulateProtectionPolicy` and `untag policy explain` use
 * `predictIsolatedDecision`.
 */
export function isolatedDenial(
  { offline }: ProtectionPolicy,
  { riskClass: own, stage, isolatedSeconds, otherReceipts }: IsolatedReceiptFacts,
): string | undefined {
  if (offline.storeBound === 'deny') return 'the policy allows no receipts while the agent is isolated'
  if (own !== undefined && own > offline.maxRiskClass)
    return `risk class ${own} is above the limit ${offline.maxRiskClass} of an isolated agent`
  if (isolatedSeconds >= limitAt(offline.maxIsolatedSeconds, stage))
    return `the agent has been isolated for ${Math.round(isolatedSeconds)} s`
  return otherReceipts >= limitAt(offline.hardCount, stage)
    ? `the agent has honoured ${otherReceipts} receipts while isolated`
    : undefined
}

/** An offline decision in the shape that the API returns. */
export interface IsolatedPrediction {
  authorized: boolean
  reason?: DenyReason
  unknownFacts: ItemFactName[]
}

/**
 * Predicts the decision of the device's agent on these units by receipt, just after the agent became isolated. That
 * agent does not know which rights are leased to other agents. A device without an agent is treated as if it had an
 * isolated agent.
 */
export function predictIsolatedDecision(
  [first, ...others]: readonly [DecisionFacts, ...DecisionFacts[]],
  policy: ProtectionPolicy,
): IsolatedPrediction {
  const { decision, unknownFacts } = decideUnits(
    [atAgent(first, policy), ...others.map((unit) => atAgent(unit, policy))],
    policy,
  )
  return decision.allowed
    ? { authorized: true, unknownFacts }
    : { authorized: false, reason: decision.reason, unknownFacts }
}

function atAgent({ approvals: _counted, ...facts }: DecisionFacts, policy: ProtectionPolicy): DecisionFacts {
  const { device, item, action } = facts
  const isHome = device?.agentId !== null && device?.agentId === policy.home
  const takesReceipts = action !== 'verify_item_status'
  const receipt = {
    // The risk class of a receipt is at least the risk class of each of its units.
    riskClass: item?.priceCent === undefined ? undefined : riskClassOf(item.priceCent),
    stage: facts.stage,
    isolatedSeconds: 0,
    otherReceipts: 0,
  }
  return {
    ...facts,
    right: facts.right === 'leased_elsewhere' ? 'free' : facts.right,
    limit: isHome || !takesReceipts ? undefined : isolatedDenial(policy, receipt),
  }
}

/**
 * Upper bound of the loss while every agent is isolated, EUR: ledgers × `hardCount` × value of one receipt. The code of a
 * till counts as a receipt. The number
 * of ledgers is the larger of two numbers: exit gates that release goods, and agents with devices that release goods.
 * The value of one receipt is at most the ceiling of `maxRiskClass`. If no exit gate releases goods, it is also at most
 * `MAX_ENTRIES` times the highest unit price that needs no staff. Approvals by staff are
 * not part of the bound; `operatorOverridesPerHour` limits them. With `tillSales.passByProduct`, each gate may also let
 * `hardCount` tags pass for pieces that were used at another gate, each below the price for staff and the ceiling.
 * Returns 0 if only staff can release goods; null if there is no bound.
 */
export function worstCaseLoss(policy: ProtectionPolicy, devices: readonly DeviceFacts[]): number | null {
  const { hardCount, maxRiskClass } = policy.offline
  // Without a receipt home, every agent is treated as isolated.
  const releasing = releasingDevices({ ...policy, home: '' }, devices)
  const gates = releasing.filter(({ deviceType }) => deviceType === 'exit_gate').length
  const agents = new Set(releasing.flatMap(({ agentId }) => agentId ?? [])).size
  const receipts = Math.max(gates, agents) * hardCount
  if (receipts === 0) return 0
  const threshold = overrideThresholdCent(policy)
  // Without an operator a receipt releases only units that have an entry. Gates let paid goods of any price pass.
  const units = threshold === null || gates > 0 ? null : MAX_ENTRIES * (threshold - 1)
  const ceiling = riskClassCeiling(maxRiskClass)
  const ofReceipts = lossOf(receipts, [ceiling, units])
  if (policy.tillSales.passByProduct === 0 || gates === 0) return ofReceipts
  const ofPieces = lossOf(gates * hardCount, [ceiling, threshold === null ? null : Math.max(0, threshold - 1)])
  return ofReceipts === null || ofPieces === null ? null : ofReceipts + ofPieces
}

/** Value of so many uses in EUR, each at most the lowest of these bounds in cents; null: none. */
function lossOf(count: number, bounds: readonly (number | null)[]): number | null {
  const known = bounds.filter((bound) => bound !== null)
  return known.length === 0 ? null : (count * Math.min(...known)) / 100
}

/** Devices that release any goods by a receipt without staff. */
function releasingDevices(policy: ProtectionPolicy, devices: readonly DeviceFacts[]): DeviceFacts[] {
  const known = new Map<string, boolean>()
  const categoryOf = easiestCategories(policy)
  return devices.filter((device) => {
    const { deviceType, workflowType, capabilities, revoked } = device
    const kind = JSON.stringify([deviceType, workflowType, capabilities, revoked])
    const releases = known.get(kind) ?? releasesAnything(policy, device, categoryOf)
    known.set(kind, releases)
    return releases
  })
}

function releasesAnything(policy: ProtectionPolicy, device: DeviceFacts, categoryOf: CategoryFor): boolean {
  return PROTECTION_ACTIONS.some((action) => {
    if (action === 'verify_item_status') return false
    const item = { status: 'paid', category: categoryOf(action, device.workflowType), brand: '', priceCent: 0 } as const
    const facts = { action, storeId: device.storeId, device, clockTrusted: true, stage: 'fresh', item } as const
    return predictIsolatedDecision([{ ...facts, identifiedBy: [], right: 'free', hasOperator: false }], policy)
      .authorized
  })
}

type CategoryFor = (action: ProtectionAction, workflow: WorkflowType) => string

/**
 * A category in which the policy allows the action in this workflow; '' if there is none. A policy may have hundreds of
 * categories and a store a thousand kinds of devices, so `decide` does not try each of them.
 */
function easiestCategories(policy: ProtectionPolicy): CategoryFor {
  const categories = ['', ...Object.keys(policy.allowedActionsByCategory).filter((name) => name !== '*')]
  const known = new Map<string, string>()
  return (action, workflow) => {
    const key = `${action} ${workflow}`
    const found = known.get(key) ?? categories.find((name) => allowsInWorkflow(policy, name, action, workflow)) ?? ''
    known.set(key, found)
    return found
  }
}
