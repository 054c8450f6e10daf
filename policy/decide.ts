import { canPerform, canRead, type DeviceFacts } from './devices.ts'
import { byFoldedName, foldText } from './fold-text.ts'
import type { IdentifierKind } from './item-identifiers.ts'
import { overrideThresholdCent, type PolicyStage, type ProtectionPolicy } from './store-policy.ts'
import {
  rightClassOf,
  type DenyReason,
  type ItemFactName,
  type ItemStatus,
  type ProtectionAction,
  type ProtectionTechnology,
  type RightClass,
  type WorkflowType,
} from './vocabulary.ts'

/**
 * Pure decision rules that cloud and agent share: may this device perform this action on this item now? Test vectors:
 * policy/vectors/decisions.json.
 */

/**
 * Facts about an item or unit. An undefined category, brand or price is unknown: `decide` then applies the strictest
 * possible rule. An empty text means that the item has no category or brand.
 */
export interface ItemFacts {
  /** null: the payment state is unknown. */
  status: ItemStatus | null
  /**
   * Set if a paid purchase covers the item. A `sellable` item, or an item of unknown status, then counts as paid. Every
   * other status keeps its meaning: goods on hold stay on hold.
   */
  paidBy?: 'purchase'
  /** Set if a recall stops the item; `status` then is `exception_hold`. */
  recalled?: true | undefined
  category?: string | undefined
  brand?: string | undefined
  priceCent?: number | undefined
  /** Exclusive upper bound of an unknown price, cents. */
  priceBelowCent?: number | null
  technology?: ProtectionTechnology | undefined
  /** Why only staff may release this unit under any policy. */
  staffReason?: string | undefined
}

export interface DecisionFacts {
  action: ProtectionAction
  /** Store of the caller. */
  storeId: string
  device: DeviceFacts | null
  /** True if the presented receipt, purchase or line belongs to another store. */
  isOtherStores?: boolean
  /** True if the device belongs to a till, and the goods are not of a sale of this till. */
  isOtherTill?: boolean | undefined
  /** Error of the presented token or receipt. */
  token?: 'token_invalid' | 'token_expired' | 'token_revoked' | 'already_redeemed' | undefined
  clockTrusted: boolean
  stage: PolicyStage
  /** null: the item is not registered. */
  item: ItemFacts | null
  /** Kinds of the identifiers in the request. */
  identifiedBy: readonly IdentifierKind[]
  /**
   * True if this device can read the item's tag, but the request has no identifier that the device read. If nothing
   * else forbids the request, `decide` denies it with `tag_not_read` (ADR releases).
   */
  mustBeRead?: boolean
  /** `none`: the purchase or line has no tagged goods, so there is no right. Staff may open a fixture with a `used` right. */
  right: 'free' | 'used' | 'leased_elsewhere' | 'none'
  /** True if a signed-in operator approves the request. */
  hasOperator: boolean
  /** True if the request contains a valid token. The cloud applied the policy when it issued the token. */
  hasValidToken?: true
  /** Set if a pick-up code is presented: whether this device is the locker of its order (ADR sales). */
  locker?: 'own' | 'other'
  /** The operator overrides the lease of another device. */
  overridesLease?: true
  /** Overrides that this operator approved in the last hour. Undefined: the caller does not limit these overrides. */
  approvals?: number
  /** Set if a limit of the policy is exhausted: the text for the denial. An operator may approve the request. */
  limit?: string | undefined
}

export interface TraceStep {
  check: DenyReason
  passed: boolean
  detail: string
}

/**
 * `unknownFacts`: item facts that a rule needed and that were unknown. An unknown fact can only make the decision
 * stricter.
 */
export type Decision = { trace: TraceStep[]; unknownFacts: ItemFactName[] } & (
  | { allowed: true }
  | { allowed: false; reason: DenyReason }
)

/** Item states in which an action is granted (ADR releases). */
const GRANTED_IN: Record<ProtectionAction, readonly ItemStatus[]> = {
  deactivate_label: ['paid', 'picked_up'],
  detach_hard_tag: ['paid', 'picked_up'],
  authorize_exit: ['paid', 'picked_up', 'transfer_in_transit'],
  suppress_alarm: ['paid', 'picked_up', 'transfer_in_transit'],
  unlock_fixture: ['paid', 'picked_up'],
  verify_item_status: [],
}

/** Statuses in which only staff open a fixture. No right is used. */
const OPENED_BY_STAFF: readonly ItemStatus[] = ['sellable', 'reserved_bopis']

/** Workflows that allow every action if the policy has an entry neither for the category nor for `*`. */
const ALLOWED_WITHOUT_ENTRY: readonly WorkflowType[] = ['staff_assisted', 'pos_integrated', 'automatic_exit']

type Check = (facts: DecisionFacts, policy: ProtectionPolicy) => string | null

const CHECKS: readonly (readonly [DenyReason, Check])[] = [
  ['token_invalid', (f) => (f.token === 'token_invalid' ? 'the presented token or receipt is not valid' : null)],
  ['token_expired', (f) => (f.token === 'token_expired' ? 'the presented token or receipt has expired' : null)],
  ['token_revoked', (f) => (f.token === 'token_revoked' ? 'the presented token or receipt was revoked' : null)],
  ['device_unknown', (f) => (f.device === null ? 'the device is not registered' : null)],
  ['device_revoked', (f) => (f.device?.revoked ? 'the device was taken out of service' : null)],
  [
    'store_mismatch',
    (f) => {
      if (f.device && f.device.storeId !== f.storeId) return 'the device belongs to another store'
      return f.isOtherStores ? 'the receipt or purchase belongs to another store' : null
    },
  ],
  ['locker_mismatch', (f) => (f.locker === 'other' ? 'the order of this code is in another locker, or in none' : null)],
  [
    'clock_untrusted',
    (f) =>
      f.clockTrusted || worksWithoutClock(f)
        ? null
        : 'the agent has no trusted time; connect it to the cloud, or use a staff station',
  ],
  [
    'policy_stale',
    (f) =>
      f.stage === 'expired' && !worksWithoutClock(f)
        ? 'the cloud has not confirmed the policy for over 80 hours; connect the agent, or use a staff station'
        : null,
  ],
  ['device_not_capable', (f) => (f.device && !canPerform(f.device, f.action) ? `the device cannot ${f.action}` : null)],
  ['technology_mismatch', technologyMismatch],
  ['item_unknown', (f) => (f.item === null ? 'the item is not registered' : null)],
  [
    'recalled',
    (f) =>
      f.item?.recalled && f.action !== 'verify_item_status' ? 'the item is recalled: keep it, and take it aside' : null,
  ],
  ['item_not_paid', itemNotPaid],
  ['no_tagged_goods', (f) => (f.right === 'none' ? 'the purchase has no goods with a security tag' : null)],
  [
    'already_redeemed',
    (f) => {
      if (f.token === 'already_redeemed') return 'the presented token was already used'
      return f.right === 'used' && !mayOpenAgain(f) ? 'the right of this unit was already used' : null
    },
  ],
  [
    'authorization_outstanding',
    (f) => (f.right === 'leased_elsewhere' ? 'another device holds an authorization for this unit' : null),
  ],
  ['action_not_allowed', actionNotAllowed],
  ['workflow_not_allowed', workflowNotAllowed],
  ['manual_assistance_required', (f, p) => (f.hasOperator ? null : staffNeeded(f, p))],
  ['limit_exceeded', (f, p) => (f.hasOperator ? approvedTooOften(f, p) : (f.limit ?? null))],
  [
    'tag_not_read',
    (f) => (f.mustBeRead ? 'the device can read the tag of this item; send the epc or tagUid that it reads' : null),
  ],
]

/** Runs the checks in order. The first failed check is the reason of the denial. */
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

/** Unknown facts that this check needs. The category is needed only if the possible rules give different results. */
function factsMissing(check: DenyReason, facts: DecisionFacts, policy: ProtectionPolicy): ItemFactName[] {
  const { action, item } = facts
  if (action === 'verify_item_status' || isPolicyApplied(facts) || !item) return []
  if (check === 'action_not_allowed') {
    if (item.category !== undefined) return []
    const answers = rulesFor(facts, policy).map((rule) => (isForbidden(rule) ? undefined : isAllowedBy(facts, rule)))
    return new Set(answers).size > 1 ? ['category'] : []
  }
  if (check !== 'manual_assistance_required' || rightClassOf(action) === 'exit') return []
  return [
    ...(item.brand === undefined && policy.requiresStaffForBrand.length > 0 ? (['brand'] as const) : []),
    ...(item.priceCent === undefined && mayReachStaffPrice(item, policy) ? (['price'] as const) : []),
  ]
}

/** A decision in the shape that the API returns. */
export type ApiDecision = { authorized: true } | { authorized: false; reason: DenyReason; detail: string }

/** Converts a decision. `detail` comes from the last step of the trace, the failed check. */
export function toApiDecision(decision: Decision): ApiDecision {
  return decision.allowed
    ? { authorized: true }
    : { authorized: false, reason: decision.reason, detail: decision.trace.at(-1)?.detail ?? decision.reason }
}

/** True if the grant is an override, which is counted per operator and hour. */
export function countsAsOverride(facts: DecisionFacts, policy: ProtectionPolicy): boolean {
  const { hasOperator, overridesLease, limit, right } = facts
  const isException = overridesLease === true || limit !== undefined || right === 'used'
  return hasOperator && (isException || staffNeeded(facts, policy) !== null)
}

/** True if staff may open a fixture once more, although the unit's right is used. */
function mayOpenAgain({ action, hasOperator }: DecisionFacts): boolean {
  return action === 'unlock_fixture' && hasOperator
}

/** Right class that an action uses for this item, or null. Goods that are not paid have no right to open a fixture. */
export function rightUsedFor(action: ProtectionAction, item: ItemFacts): RightClass | null {
  return action === 'unlock_fixture' && !isPaidFor(item) ? null : rightClassOf(action)
}

function approvedTooOften(facts: DecisionFacts, policy: ProtectionPolicy): string | null {
  const { approvals } = facts
  if (approvals === undefined || approvals < policy.operatorOverridesPerHour || !countsAsOverride(facts, policy))
    return null
  return `the operator has approved ${approvals} overrides in the last hour; another operator must approve this one`
}

function worksWithoutClock({ action, device }: DecisionFacts): boolean {
  return action === 'verify_item_status' || device?.workflowType === 'staff_assisted'
}

function technologyMismatch({ action, device, item, identifiedBy }: DecisionFacts): string | null {
  if (!device) return null
  const unreadable = identifiedBy.find((kind) => !canRead(device, kind))
  if (unreadable) return `the device has no reader for ${unreadable}`
  // A lock opens whatever tags its goods have.
  if (action === 'unlock_fixture') return null
  if (item?.technology && !device.supportedTechnologies.includes(item.technology))
    return `the device does not work with ${item.technology} tags`
  return null
}

function itemNotPaid(facts: DecisionFacts): string | null {
  const { action, item } = facts
  if (action === 'verify_item_status' || !item) return null
  if (facts.isOtherTill) return 'the goods are not of a sale of the till beside this device'
  if (isPaidFor(item)) return null
  const { status } = item
  if (status === null) return 'the payment state of the item is unknown here'
  const granted = isOpenedByStaff(facts) ? OPENED_BY_STAFF : GRANTED_IN[action]
  return granted.includes(status) ? null : `the item is ${status}`
}

/** True if the item is paid, or a paid purchase covers it. Every action is granted for such an item. */
function isPaidFor({ status, paidBy }: ItemFacts): boolean {
  if (paidBy === 'purchase' && (status === null || status === 'sellable')) return true
  return status === 'paid' || status === 'picked_up'
}

/** True if staff open the fixture, or the cloud issued a token for them. At a `self_service` fixture shoppers pay first. */
function isOpenedByStaff({ action, device, hasOperator, hasValidToken, locker }: DecisionFacts): boolean {
  if (locker) return false
  return (
    action === 'unlock_fixture' && (hasOperator || hasValidToken === true || device?.workflowType !== 'self_service')
  )
}

/** True if the policy was applied before: when the cloud issued the token, or when staff filled the locker. */
function isPolicyApplied({ hasValidToken, locker }: DecisionFacts): boolean {
  return hasValidToken === true || locker !== undefined
}

/** A policy entry and the workflows in which it allows the action: none if it lacks the action or lists no workflow. */
interface Rule {
  entry: string | undefined
  workflows: readonly WorkflowType[]
}

/** The rule for the item's category. For an unknown category: all possible rules. */
function rulesFor({ action, item }: DecisionFacts, policy: ProtectionPolicy): Rule[] {
  const byCategory = policy.allowedActionsByCategory
  const others = policyEntryFor('', policy)
  const entries =
    item?.category === undefined
      ? [...new Set([...Object.keys(byCategory), others])]
      : [policyEntryFor(item.category, policy)]
  return entries.map((entry) => ({ entry, workflows: workflowsIn(entry, action, policy) }))
}

function workflowsIn(
  entry: string | undefined,
  action: ProtectionAction,
  { allowedActionsByCategory }: ProtectionPolicy,
): readonly WorkflowType[] {
  return entry === undefined ? ALLOWED_WITHOUT_ENTRY : (allowedActionsByCategory[entry]?.[action] ?? [])
}

/** True if the policy allows the action for goods of this category in this workflow. */
export function allowsInWorkflow(
  policy: ProtectionPolicy,
  category: string,
  action: ProtectionAction,
  workflow: WorkflowType,
): boolean {
  return workflowsIn(policyEntryFor(category, policy), action, policy).includes(workflow)
}

/** True if the rule allows the action in no workflow: then staff may not approve it either. */
function isForbidden({ workflows }: Rule): boolean {
  return workflows.length === 0
}

function isAllowedBy({ action, device, hasOperator }: DecisionFacts, { workflows }: Rule): boolean {
  // An operator may unlock fixtures in every workflow; `staffNeeded` decides whether an operator is required.
  return !device || (action === 'unlock_fixture' && hasOperator) || workflows.includes(device.workflowType)
}

/** Name of the policy entry for a category: the category itself, else `*`. Undefined if the policy has neither. */
export function policyEntryFor(
  category: string | undefined,
  { allowedActionsByCategory }: ProtectionPolicy,
): string | undefined {
  const entries = byFoldedName(allowedActionsByCategory)
  return (category === undefined ? undefined : entries.get(foldText(category))) ?? entries.get('*')
}

function actionNotAllowed(facts: DecisionFacts, policy: ProtectionPolicy): string | null {
  if (facts.action === 'verify_item_status' || isPolicyApplied(facts)) return null
  const rule = rulesFor(facts, policy).find(isForbidden)
  return rule ? `the policy lists no ${facts.action} for ${categoryOf(facts, rule)}` : null
}

function workflowNotAllowed(facts: DecisionFacts, policy: ProtectionPolicy): string | null {
  const { action, device } = facts
  if (action === 'verify_item_status' || !device || isPolicyApplied(facts)) return null
  const rule = rulesFor(facts, policy).find((each) => !isAllowedBy(facts, each))
  if (!rule) return null
  return `the policy does not allow ${action} as ${device.workflowType}${facts.item?.category === undefined ? ` for ${categoryOf(facts, rule)}` : ''}`
}

function categoryOf({ item }: DecisionFacts, { entry }: Rule): string {
  if (item?.category !== undefined) return 'this category'
  return `"${entry ?? 'any other'}", and the item's category is unknown`
}

/** Returns why an operator must approve, or null. */
function staffNeeded(facts: DecisionFacts, policy: ProtectionPolicy): string | null {
  const { action, item, device, stage, clockTrusted } = facts
  if (action === 'verify_item_status') return null
  if (stage === 'expired' || !clockTrusted)
    return 'the agent has no current policy or time from the cloud, so an operator must approve'
  if (isPolicyApplied(facts)) return null
  if (action === 'unlock_fixture' && device?.workflowType !== 'self_service') return 'only staff may unlock a fixture'
  if (item?.staffReason !== undefined) return item.staffReason
  // The gate is silent for paid goods of any price, so its barrier opens for them, too.
  if (rightClassOf(action) === 'exit') return null
  if (mayReachStaffPrice(item, policy)) {
    const rule = `items from ${((overrideThresholdCent(policy) ?? 0) / 100).toFixed(2)} EUR need staff`
    return item?.priceCent === undefined ? `${rule}, and the price is unknown` : rule
  }
  if (policy.requiresStaffForBrand.length === 0 || isOtherBrand(item, policy.requiresStaffForBrand)) return null
  return item?.brand === undefined ? 'some brands need staff, and the brand is unknown' : 'the brand needs staff'
}

/** True if only staff release unpaid goods with this price and brand. The strictest rule counts if one is unknown. */
export function isStaffPriced(item: ItemFacts, policy: ProtectionPolicy): boolean {
  const brands = policy.requiresStaffForBrand
  return mayReachStaffPrice(item, policy) || (brands.length > 0 && !isOtherBrand(item, brands))
}

/** True if the price may reach the staff threshold. */
function mayReachStaffPrice(item: ItemFacts | null, policy: ProtectionPolicy): boolean {
  const threshold = overrideThresholdCent(policy)
  return threshold !== null && !isCertainlyBelow(item, threshold)
}

/** True if the price, or the upper bound of an unknown price, is below the threshold. */
function isCertainlyBelow(item: ItemFacts | null, thresholdCent: number): boolean {
  if (item?.priceCent !== undefined) return item.priceCent < thresholdCent
  return item?.priceBelowCent !== undefined && item.priceBelowCent !== null && item.priceBelowCent <= thresholdCent
}

function isOtherBrand(item: ItemFacts | null, brands: readonly string[]): boolean {
  if (item?.brand === undefined) return false
  return !byFoldedName(brands).has(foldText(item.brand))
}
