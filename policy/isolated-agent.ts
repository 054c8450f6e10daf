import type { DecisionFacts } from './decide.ts'
import { decideUnits } from './decide-units.ts'
import type { DeviceFacts } from './devices.ts'
import { MAX_ENTRIES } from './receipts/receipt-claims.ts'
import {
  limitAt,
  overrideThresholdCent,
  riskClassOf,
  riskClassCeiling,
  type PolicyStage,
  type ProtectionPolicy,
} from './store-policy.ts'
import { PROTECTION_ACTIONS, type DenyReason, type ItemFactName } from './vocabulary.ts'

/**
 * What an agent that reaches neither the cloud nor the receipt home may do. Agents use `isolatedDenial` (edge-agent/decisions/by-receipt.ts
 * decides there); `predictIsolatedDecision` is for simulateProtectionPolicy and `untag policy explain`.
 */

/** An agent that cannot ask the receipt home, and a receipt that it is shown. */
export interface IsolatedReceiptFacts {
  /** Absent: unknown. */
  riskClass: number | undefined
  stage: PolicyStage
  /** Time since the receipt home could be asked, s. */
  isolatedSeconds: number
  /** Receipts that the agent has honoured in this time. */
  honouredReceipts: number
}

/** Why an isolated agent may not honour this receipt; undefined where it may. */
export function isolatedDenial(
  { offline }: ProtectionPolicy,
  { riskClass: own, stage, isolatedSeconds, honouredReceipts }: IsolatedReceiptFacts,
): string | undefined {
  if (offline.storeBound === 'deny') return 'no receipt is honoured without the home'
  if (own !== undefined && own > offline.maxRiskClass) return `risk class ${own} is above ${offline.maxRiskClass}`
  if (isolatedSeconds >= limitAt(offline.maxIsolatedSeconds, stage))
    return `isolated for ${Math.round(isolatedSeconds)} s`
  return honouredReceipts >= limitAt(offline.hardCount, stage)
    ? `${honouredReceipts} receipts while isolated`
    : undefined
}

/** An offline decision in the words of the API. */
export interface IsolatedPrediction {
  authorized: boolean
  reason?: DenyReason
  unknownFacts: ItemFactName[]
}

/**
 * Predicts what the device's agent decides about these units by their receipt, just after it has lost the cloud and the home. The agent
 * sees no leases of other agents. A device without an agent is decided like one of an isolated agent.
 */
export function predictIsolatedDecision(
  [first, ...others]: readonly [DecisionFacts, ...DecisionFacts[]],
  policy: ProtectionPolicy,
): IsolatedPrediction {
  const { decision, unknownFacts } = decideUnits(
    [atAgent(first, policy), ...others.map((unit) => atAgent(unit, policy))],
    policy,
  )
  if (!decision.allowed) return { authorized: false, reason: decision.reason, unknownFacts }
  // Offline a fixture opens for an operator only, counted as an override.
  if (first.action === 'unlock_fixture' && !first.hasOperator)
    return { authorized: false, reason: 'manual_assistance_required', unknownFacts }
  return { authorized: true, unknownFacts }
}

function atAgent({ approvals: _counted, ...facts }: DecisionFacts, policy: ProtectionPolicy): DecisionFacts {
  const { device, item, action } = facts
  const isHome = device?.agentId !== null && device?.agentId === policy.home
  const takesReceipts = action !== 'verify_item_status' && action !== 'unlock_fixture'
  const receipt = {
    // One unit alone: the receipt's class is no lower.
    riskClass: item?.priceCent === undefined ? undefined : riskClassOf(item.priceCent),
    stage: facts.stage,
    isolatedSeconds: 0,
    honouredReceipts: 0,
  }
  return {
    ...facts,
    right: facts.right === 'leased_elsewhere' ? 'free' : facts.right,
    limit: isHome || !takesReceipts ? undefined : isolatedDenial(policy, receipt),
  }
}

/**
 * The most that can be lost in EUR while no agent can reach anybody: ledgers (exit gates that release, or agents with devices that
 * do where those are more) × hardCount × what one receipt releases. A receipt releases no more than the ceiling of `maxRiskClass`,
 * and no unit from the threshold for staff on. 0 where nothing is released without staff; null where there is no bound.
 */
export function worstCaseLoss(policy: ProtectionPolicy, devices: readonly DeviceFacts[]): number | null {
  const { hardCount, maxRiskClass } = policy.offline
  // Every ledger counts as one that cannot ask the home.
  const releasing = releasingDevices({ ...policy, home: '' }, devices)
  const gates = releasing.filter(({ deviceType }) => deviceType === 'exit_gate').length
  const agents = new Set(releasing.flatMap(({ agentId }) => agentId ?? [])).size
  const receipts = Math.max(gates, agents) * hardCount
  if (receipts === 0) return 0
  const threshold = overrideThresholdCent(policy)
  // Without an operator a receipt releases only units that its entries tell apart.
  const units = threshold === null ? null : MAX_ENTRIES * (threshold - 1)
  const bounds = [riskClassCeiling(maxRiskClass), units].filter((bound) => bound !== null)
  return bounds.length === 0 ? null : (receipts * Math.min(...bounds)) / 100
}

/** The devices at which the policy releases any goods by a receipt without staff. */
function releasingDevices(policy: ProtectionPolicy, devices: readonly DeviceFacts[]): DeviceFacts[] {
  const known = new Map<string, boolean>()
  return devices.filter((device) => {
    const { deviceType, workflowType, capabilities, revoked } = device
    const kind = JSON.stringify([deviceType, workflowType, capabilities, revoked])
    const releases = known.get(kind) ?? releasesAnything(policy, device)
    known.set(kind, releases)
    return releases
  })
}

function releasesAnything(policy: ProtectionPolicy, device: DeviceFacts): boolean {
  const categories = ['', ...Object.keys(policy.allowedActionsByCategory).filter((name) => name !== '*')]
  return PROTECTION_ACTIONS.some((action) => {
    if (action === 'verify_item_status' || action === 'unlock_fixture') return false
    return categories.some((category) => {
      const item = { status: 'paid', category, brand: '', priceCent: 0 } as const
      const facts = { action, storeId: device.storeId, device, clockTrusted: true, stage: 'fresh', item } as const
      return predictIsolatedDecision([{ ...facts, identifiedBy: [], right: 'free', hasOperator: false }], policy)
        .authorized
    })
  })
}
