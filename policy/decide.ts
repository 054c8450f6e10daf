import { canPerform, canRead, type DeviceFacts } from './devices.ts'
import type { IdentifierKind } from './item-identifiers.ts'
import { overrideThresholdCent, type PolicyStage, type ProtectionPolicy } from './store-policy.ts'
import type {
  DenyReason,
  ItemFactName,
  ItemStatus,
  ProtectionAction,
  ProtectionTechnology,
  WorkflowType,
} from './vocabulary.ts'

/**
 * The one decision of the house: may this device do this to this item, now? Cloud and agent both
 * run it, on the same vectors (policy/vectors/). Facts in, answer and explanation out; nothing else.
 */

/**
 * What is known of the item, or of one unit of a purchase. A category, brand or price that is absent is unknown, and the
 * strictest rule that could apply counts. An item without category or brand has the empty text.
 */
export interface ItemFacts {
  /** null: whether it is paid cannot be known here. */
  status: ItemStatus | null
  /** A paid purchase that the item belongs to, or can be bound to, makes it count as paid. */
  paidBy?: 'purchase'
  category?: string | undefined
  brand?: string | undefined
  /** Where the price is unknown, `priceBelowCent` may bound it. */
  priceCent?: number | undefined
  priceBelowCent?: number | null
  technology?: ProtectionTechnology | undefined
  /** Why only staff may go on with this unit, whatever the policy says. */
  staffReason?: string | undefined
}

export interface DecisionFacts {
  action: ProtectionAction
  /** The store in whose name is asked. */
  storeId: string
  device: DeviceFacts | null
  /** How a presented token or receipt failed, when one did. */
  token?: 'token_invalid' | 'token_expired' | 'token_revoked' | undefined
  clockTrusted: boolean
  stage: PolicyStage
  /** null: no such item. */
  item: ItemFacts | null
  /** What the item was named by. */
  identifiedBy: readonly IdentifierKind[]
  /** The item can be read by this device, which must then ask by what it reads (ADR 0009). */
  mustBeRead?: boolean
  right: 'free' | 'used' | 'leased_elsewhere'
  /** An operator stands behind the request. */
  hasOperator: boolean
  /** A genuine token is shown: the cloud has asked for staff where the policy wants them, and what is left is whether its word still holds. */
  hasValidToken?: true
  /** The operator goes past what another device holds. */
  overridesLease?: true
  /** What this operator has approved within the hour, where this would be counted as well. */
  approvals?: number
  /** Why a limit of the policy is used up, when one is. */
  limit?: string | undefined
}

export interface TraceStep {
  check: DenyReason
  passed: boolean
  detail: string
}

/** `unknownFacts`: what a rule that was checked needed to know of the item and did not; only with them a decision may be stricter. */
export type Decision = { trace: TraceStep[]; unknownFacts: ItemFactName[] } & (
  | { allowed: true }
  | { allowed: false; reason: DenyReason }
)

/** Item states in which an action is granted (ADR 0009). */
const GRANTED_IN: Record<ProtectionAction, readonly ItemStatus[]> = {
  deactivate_label: ['paid', 'picked_up'],
  detach_hard_tag: ['paid', 'picked_up'],
  authorize_exit: ['paid', 'picked_up', 'transfer_in_transit'],
  suppress_alarm: ['paid', 'picked_up', 'transfer_in_transit'],
  unlock_fixture: ['sellable', 'reserved_bopis'],
  verify_item_status: [],
}

/** What is allowed where the policy has no entry at all for a category. */
const ALLOWED_WITHOUT_ENTRY: readonly WorkflowType[] = ['staff_assisted', 'pos_integrated', 'automatic_exit']

type Check = (facts: DecisionFacts, policy: ProtectionPolicy) => string | null

const CHECKS: readonly (readonly [DenyReason, Check])[] = [
  ['token_invalid', (f) => (f.token === 'token_invalid' ? 'what was presented is not genuine' : null)],
  ['token_expired', (f) => (f.token === 'token_expired' ? 'what was presented has expired' : null)],
  ['token_revoked', (f) => (f.token === 'token_revoked' ? 'what was presented was taken back' : null)],
  ['device_unknown', (f) => (f.device === null ? 'no such device' : null)],
  ['device_revoked', (f) => (f.device?.revoked ? 'the device was taken out of service' : null)],
  ['store_mismatch', (f) => (f.device && f.device.storeId !== f.storeId ? 'the device stands in another store' : null)],
  ['clock_untrusted', (f) => (f.clockTrusted || worksWithoutClock(f) ? null : 'the time is not known well enough')],
  [
    'policy_stale',
    (f) => (f.stage === 'expired' && !worksWithoutClock(f) ? 'no word from the cloud for over 80 hours' : null),
  ],
  ['device_not_capable', (f) => (f.device && !canPerform(f.device, f.action) ? `the device cannot ${f.action}` : null)],
  ['technology_mismatch', technologyMismatch],
  ['item_unknown', (f) => (f.item === null ? 'no such item' : null)],
  ['item_not_paid', itemNotPaid],
  ['already_redeemed', (f) => (f.right === 'used' ? 'the right of this unit is used up' : null)],
  [
    'authorization_outstanding',
    (f) => (f.right === 'leased_elsewhere' ? 'another device holds an authorization for this unit' : null),
  ],
  ['action_not_allowed', actionNotAllowed],
  ['workflow_not_allowed', workflowNotAllowed],
  ['manual_assistance_required', (f, p) => (f.hasOperator ? null : staffNeeded(f, p))],
  ['limit_exceeded', (f, p) => f.limit ?? approvedTooOften(f, p)],
]

/** Whether a request may be granted; the first reason that holds is the one that is told. */
export function decide(facts: DecisionFacts, policy: ProtectionPolicy): Decision {
  const trace: TraceStep[] = []
  const unknown = new Set<ItemFactName>()
  for (const [check, fails] of CHECKS) {
    for (const fact of factsMissing(check, facts, policy)) unknown.add(fact)
    const detail = fails(facts, policy)
    trace.push({ check, passed: detail === null, detail: detail ?? 'ok' })
    if (detail !== null) return { allowed: false, reason: check, trace, unknownFacts: [...unknown] }
  }
  return { allowed: true, trace, unknownFacts: [...unknown] }
}

/** What this check needs of the item, and is unknown. The category is needed where the rules that could apply differ. */
function factsMissing(check: DenyReason, facts: DecisionFacts, policy: ProtectionPolicy): ItemFactName[] {
  const { action, item, hasValidToken } = facts
  if (action === 'verify_item_status' || hasValidToken || !item) return []
  if (check === 'action_not_allowed') {
    if (item.category !== undefined) return []
    const answers = rulesFor(facts, policy).map((rule) => rule.workflows && isAllowedBy(facts, rule))
    return new Set(answers).size > 1 ? ['category'] : []
  }
  if (check !== 'manual_assistance_required') return []
  return [
    ...(item.brand === undefined && policy.requiresStaffForBrand.length > 0 ? (['brand'] as const) : []),
    ...(item.priceCent === undefined && mayReachStaffPrice(item, policy) ? (['price'] as const) : []),
  ]
}

/** A decision in the words of the API: whether, and why not. */
export type ApiDecision = { authorized: true } | { authorized: false; reason: DenyReason; detail: string }

/** What is told of a decision: the reason that counts is the last thing that was looked at. */
export function toApiDecision(decision: Decision): ApiDecision {
  return decision.allowed
    ? { authorized: true }
    : { authorized: false, reason: decision.reason, detail: decision.trace.at(-1)?.detail ?? decision.reason }
}

/** Whether the grant rests on an operator's word: such grants are counted per operator and hour. */
export function countsAsOverride(facts: DecisionFacts, policy: ProtectionPolicy): boolean {
  return facts.hasOperator && (facts.overridesLease === true || staffNeeded(facts, policy) !== null)
}

function approvedTooOften(facts: DecisionFacts, policy: ProtectionPolicy): string | null {
  const { approvals } = facts
  if (approvals === undefined || approvals < policy.operatorOverridesPerHour || !countsAsOverride(facts, policy))
    return null
  return `the operator has approved ${approvals} within the hour`
}

function worksWithoutClock({ action, device }: DecisionFacts): boolean {
  return action === 'verify_item_status' || device?.workflowType === 'staff_assisted'
}

function technologyMismatch({ device, item, identifiedBy, mustBeRead }: DecisionFacts): string | null {
  if (!device) return null
  const unreadable = identifiedBy.find((kind) => !canRead(device, kind))
  if (unreadable) return `the device has no reader for ${unreadable}`
  if (item?.technology && !device.supportedTechnologies.includes(item.technology))
    return `the device does not work with ${item.technology} tags`
  return mustBeRead ? 'the device can read this item and must ask by what it reads' : null
}

function itemNotPaid({ action, item }: DecisionFacts): string | null {
  if (action === 'verify_item_status' || !item || item.paidBy === 'purchase') return null
  if (item.status === null) return 'whether the item is paid cannot be known here'
  return GRANTED_IN[action].includes(item.status) ? null : `the item is ${item.status}`
}

/** An entry of the policy, by its name, with the workflows in which it allows the action. */
interface Rule {
  entry: string | undefined
  workflows: readonly WorkflowType[] | undefined
}

/** The rule for the item's category; where that is unknown, every rule that could apply. */
function rulesFor({ action, item }: DecisionFacts, policy: ProtectionPolicy): Rule[] {
  const byCategory = policy.allowedActionsByCategory
  const others = policyEntryFor('', policy)
  const entries =
    item?.category === undefined
      ? [...new Set([...Object.keys(byCategory), others])]
      : [policyEntryFor(item.category, policy)]
  return entries.map((entry) => ({
    entry,
    workflows: entry === undefined ? ALLOWED_WITHOUT_ENTRY : byCategory[entry]?.[action],
  }))
}

function isAllowedBy({ action, device, hasOperator }: DecisionFacts, { workflows }: Rule): boolean {
  if (workflows === undefined) return false
  // Serving from a cabinet is for staff unless the policy opens it: that is a question of staff, not of workflow.
  return !device || (action === 'unlock_fixture' && hasOperator) || workflows.includes(device.workflowType)
}

/** The entry of the policy that counts for a category: its own, else `*`; undefined: there is neither. */
export function policyEntryFor(
  category: string | undefined,
  { allowedActionsByCategory: byCategory }: ProtectionPolicy,
): string | undefined {
  if (category !== undefined && Object.hasOwn(byCategory, category)) return category
  return Object.hasOwn(byCategory, '*') ? '*' : undefined
}

function actionNotAllowed(facts: DecisionFacts, policy: ProtectionPolicy): string | null {
  if (facts.action === 'verify_item_status') return null
  const rule = rulesFor(facts, policy).find(({ workflows }) => workflows === undefined)
  return rule ? `the policy lists no ${facts.action} for ${categoryOf(facts, rule)}` : null
}

function workflowNotAllowed(facts: DecisionFacts, policy: ProtectionPolicy): string | null {
  const { action, device } = facts
  if (action === 'verify_item_status' || !device) return null
  const rule = rulesFor(facts, policy).find((each) => !isAllowedBy(facts, each))
  if (!rule) return null
  return `the policy does not allow ${action} as ${device.workflowType}${facts.item?.category === undefined ? ` for ${categoryOf(facts, rule)}` : ''}`
}

function categoryOf({ item }: DecisionFacts, { entry }: Rule): string {
  if (item?.category !== undefined) return 'this category'
  return `"${entry ?? 'any other'}", and the item's category is unknown`
}

/** Why staff are needed, or null. */
function staffNeeded(facts: DecisionFacts, policy: ProtectionPolicy): string | null {
  const { action, item, device, stage, clockTrusted, hasValidToken } = facts
  if (action === 'verify_item_status') return null
  if (stage === 'expired' || !clockTrusted) return 'without word from the cloud an operator must be present'
  if (hasValidToken) return null
  if (action === 'unlock_fixture' && device?.workflowType !== 'self_service') return 'a fixture is unlocked by staff'
  if (item?.staffReason !== undefined) return item.staffReason
  if (mayReachStaffPrice(item, policy)) {
    const rule = `items from ${((overrideThresholdCent(policy) ?? 0) / 100).toFixed(2)} EUR need staff`
    return item?.priceCent === undefined ? `${rule}, and the price is unknown` : rule
  }
  if (policy.requiresStaffForBrand.length === 0 || isOtherBrand(item, policy.requiresStaffForBrand)) return null
  return item?.brand === undefined ? 'some brands need staff, and the brand is unknown' : 'the brand needs staff'
}

/** Whether the price reaches the policy's threshold for staff, or may do so. */
function mayReachStaffPrice(item: ItemFacts | null, policy: ProtectionPolicy): boolean {
  const threshold = overrideThresholdCent(policy)
  return threshold !== null && !isCertainlyBelow(item, threshold)
}

/** Certainly cheaper than the threshold: the price where it is known, else what bounds it. */
function isCertainlyBelow(item: ItemFacts | null, thresholdCent: number): boolean {
  if (item?.priceCent !== undefined) return item.priceCent < thresholdCent
  return item?.priceBelowCent !== undefined && item.priceBelowCent !== null && item.priceBelowCent <= thresholdCent
}

function isOtherBrand(item: ItemFacts | null, brands: readonly string[]): boolean {
  if (item?.brand === undefined) return false
  const brand = item.brand.trim().toLowerCase()
  return !brands.some((b) => b.trim().toLowerCase() === brand)
}
