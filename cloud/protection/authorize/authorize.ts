import { countsAsOverride, type Decision, type DecisionFacts } from '../../../policy/decide.ts'
import { decideUnits } from '../../../policy/decide-units.ts'
import { DEFAULT_POLICY, riskClassOf, type ProtectionPolicy } from '../../../policy/store-policy.ts'
import { rightClassOf, type DenyReason } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { ProtectionAuthorizationRow } from '../../platform/persistence/tables/protection.ts'
import type { DeviceRow } from '../../platform/persistence/tables/agents.ts'
import type { StoreRow } from '../../platform/persistence/tables/stores.ts'
import { requestLeaseRelease } from '../leases/request-lease-release.ts'
import { isLedgerUntrusted, issueAuthorization, redemptionsOf } from '../leases/authorizations.ts'
import { transferLease, type LeaseView } from '../leases/leases.ts'
import { receiptRights, publishLease } from '../receipt-home/receipt-rights.ts'
import { policyOf } from '../store-documents/parsed-policy.ts'
import { describeAuthorization, NO_AUTHORIZATION, type AuthorizationAnswer } from './authorization-answer.ts'
import { approvalFacts, approvalsOf, recordApproval, type Approvals } from './approvals.ts'
import { loadItemTarget } from './item-target.ts'
import { loadLockerTarget } from './locker-target.ts'
import { overrideLease } from './override-lease.ts'
import { loadPurchaseTarget } from './purchase-target.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import { eventIdsOf, recordDenied, recordGranted, type DecisionContext } from './record-decision.ts'
import { signToken } from './sign-token.ts'
import type { TargetUnit, AuthorizationTarget } from './authorization-target.ts'

/** Response to a device, with its target and decision. */
export interface Authorized {
  target: AuthorizationTarget
  decision: Decision
  answer: AuthorizationAnswer & {
    authorized: boolean
    eventId: string
    reason?: DenyReason
    retryAfter?: number
    receiptRights?: Awaited<ReturnType<typeof receiptRights>>['receiptRights']
  }
}

/**
 *   read request ─▶ load facts ─▶ decide ─┬─ yes ─▶ lease ─▶ sign ─▶ record ─▶ answer
 *                                         └─ no ──────────────────▶ record ─▶ answer
 *
 *   ├ load facts   item-target.ts, purchase-target.ts or locker-target.ts: the units, their rights and the lease holders
 *   ├ decide       policy/decide-units.ts, by the store's policy
 *   ├ lease        ../leases/authorizations.ts, `issueAuthorization`: reserves the rights for the device
 *   ├ sign         sign-token.ts
 *   ├ record       record-decision.ts: two events, and the facts of the decision
 *   └ answer       authorization-answer.ts
 *
 * Decides about one authorization request. Requests for an item, a purchase, a receipt or a token take the same steps.
 * These kinds differ in how the cloud reads the request (authorization-request.ts, verify-purchase.ts) and which facts
 * it loads. Offline agents decide with the same `decideUnits`.
 */
export async function authorize(call: Call, request: AuthorizationRequest): Promise<Authorized> {
  const { context, action } = request
  const policy = context.store ? policyOf(context.store) : DEFAULT_POLICY
  const approvals = await approvalsOf(call, context, action)
  const target = await loadTarget(call, request, approvals)
  const facts = factsOf(target)
  const { decision, allowed } = decideUnits(facts, policy)
  if (!decision.allowed || !isPlainRelease(request, target)) call.requireAlone()
  const decisionContext: DecisionContext = { request, target, facts, eventIds: eventIdsOf(call, request) }
  if (!decision.allowed) {
    const answer = await refuse(call, decisionContext, decision.reason, target)
    return { target, decision, answer }
  }

  const { device, store } = context
  // For past requests and status checks, the cloud records the grant but issues no token.
  if (action === 'verify_item_status' || context.isPast || !device || !store || !target.isKnown) {
    const eventId = await recordGranted(call, decisionContext, undefined)
    return { target, decision, answer: { authorized: true, ...NO_AUTHORIZATION, eventId } }
  }

  const units = target.units.filter((_, n) => allowed.includes(n))
  const own = units.findLast((unit) => unit.lease.own)?.lease.own
  const authorization =
    own ?? (await leaseUnits(call, decisionContext, { target, units, device: device.row, store, policy }))
  const token = signToken(authorization, call.services)
  const eventId = own ? own.event_id : await recordGranted(call, decisionContext, authorization)
  const redemptions = own ? await redemptionsOf(call.db, own.nonce) : []
  const answer = {
    authorized: true,
    ...describeAuthorization(call, authorization, token, redemptions),
    eventId,
    // A repeated response contains the receipt rights too, because the first response may have been lost.
    ...(context.caller.kind === 'agent' &&
      target.purchase &&
      (await receiptRights(call.db, target.purchase, authorization))),
  }
  return { target, decision, answer }
}

/**
 * True if an allowed request releases an item that is bound to a purchase unit, and names no operator, purchase or
 * token. The unit must have no lease and no failed attempt. Such a request writes only rows that no other request
 * reads, except the row of the right (ADR 0049).
 */
function isPlainRelease(
  { context, action, purchase, token }: AuthorizationRequest,
  { units, item, purchase: owner }: AuthorizationTarget,
): boolean {
  const [{ lease, right }, ...others] = units
  const isBound =
    item !== undefined && item.line_id !== null && owner !== undefined && right?.key.lineId === item.line_id
  const isFree = !lease.own && !lease.transferable && !lease.overridden && right?.tries.failures === 0
  const isSimple = others.length === 0 && purchase === undefined && token === undefined
  return (
    isBound &&
    isFree &&
    isSimple &&
    rightClassOf(action) === 'release' &&
    !context.isPast &&
    context.operatorId === null
  )
}

async function loadTarget(
  call: Call,
  request: AuthorizationRequest,
  approvals: Approvals | undefined,
): Promise<AuthorizationTarget> {
  const target = await loadGoods(call, request)
  const changed = new Map<DecisionFacts, DecisionFacts>()
  // Units that share their facts have the same lease.
  const withApprovals = (unit: TargetUnit): TargetUnit => {
    const facts = changed.get(unit.facts) ?? { ...unit.facts, ...approvalFacts(approvals, unit) }
    changed.set(unit.facts, facts)
    return { ...unit, facts }
  }
  const [first, ...others] = target.units
  return { ...target, units: [withApprovals(first), ...others.map(withApprovals)] }
}

function loadGoods(call: Call, request: AuthorizationRequest): Promise<AuthorizationTarget> {
  if (request.pickupCode !== undefined) return loadLockerTarget(call, request, request.pickupCode)
  return request.item ? loadItemTarget(call, request) : loadPurchaseTarget(call, request)
}

function factsOf({ units: [first, ...others] }: AuthorizationTarget): [DecisionFacts, ...DecisionFacts[]] {
  return [first.facts, ...others.map((unit) => unit.facts)]
}

interface Granted {
  target: AuthorizationTarget
  /** Units that the decision allows. */
  units: readonly TargetUnit[]
  device: DeviceRow
  store: StoreRow
  policy: ProtectionPolicy
}

/** Ends the leases that the decision transfers or overrides. Then leases the rights to this device. */
async function leaseUnits(
  call: Call,
  { request, eventIds }: DecisionContext,
  { target, units, device, store, policy }: Granted,
): Promise<ProtectionAuthorizationRow> {
  const { context, action, item, scanSource } = request
  for (const row of distinct(units, ({ transferable }) => transferable)) await transferLease(call, row, device)
  for (const row of distinct(units, ({ overridden }) => overridden)) await overrideLease(call, row, context.operatorId)

  // For an untrusted ledger a token covers one release. The agent requests each further unit separately.
  const isForOne =
    units.length > 1 &&
    context.caller.kind === 'agent' &&
    rightClassOf(action) !== 'exit' &&
    (await isLedgerUntrusted(call, device))
  const leasedUnits = isForOne ? units.slice(0, 1) : units
  const authorization = await issueAuthorization(call, context.caller.tenant, {
    store,
    device,
    action,
    rightClass: rightClassOf(action) ?? 'open',
    ...(item && { item }),
    itemId: target.item?.item_id ?? null,
    purchaseId: target.purchase?.purchase_id ?? null,
    units: leasedUnits.flatMap(({ right }) => right ?? []),
    riskClass: riskClassOf(target.purchase?.value_cent ?? target.units[0].facts.item?.priceCent ?? 0),
    eventId: eventIds.decided,
    operatorId: context.operatorId,
    scanSource,
  })
  const isApproval = leasedUnits.some(({ facts }) => facts.approvals !== undefined && countsAsOverride(facts, policy))
  if (isApproval) await recordApproval(call, authorization)
  if (target.purchase) await publishLease(call, store, target.purchase, authorization)
  return authorization
}

async function refuse(
  call: Call,
  decisionContext: DecisionContext,
  reason: DenyReason,
  { units }: AuthorizationTarget,
) {
  const isOutstanding = reason === 'authorization_outstanding'
  const recallable = distinct(units, (lease) => lease.recallable)
  if (isOutstanding && !decisionContext.request.context.isPast) requestLeaseRelease(call, recallable)
  const endsAt = units.reduce((least, { lease }) => Math.min(least, lease.endsAt ?? Infinity), Infinity)
  const retryAfter =
    isOutstanding && endsAt !== Infinity ? Math.max(1, endsAt - Math.floor(call.nowMs / 1_000)) : undefined
  const eventId = await recordDenied(call, decisionContext, reason)
  return { authorized: false, reason, ...NO_AUTHORIZATION, eventId, ...(retryAfter !== undefined && { retryAfter }) }
}

/** Applies `of` to the lease of each unit and returns the distinct authorizations. */
function distinct(
  units: readonly TargetUnit[],
  of: (lease: LeaseView) => ProtectionAuthorizationRow | undefined,
): ProtectionAuthorizationRow[] {
  const rows = units.flatMap(({ lease }) => of(lease) ?? [])
  return [...new Map(rows.map((row) => [row.nonce, row])).values()]
}
