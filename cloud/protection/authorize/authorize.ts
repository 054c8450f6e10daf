import { restsOnOperator, type Decision, type DecisionFacts } from '../../../policy/decide.ts'
import { decideUnits } from '../../../policy/decide-units.ts'
import { DEFAULT_POLICY, riskClass, type ProtectionPolicy } from '../../../policy/store-policy.ts'
import { rightClass, type DenyReason } from '../../../policy/vocabulary.ts'
import type { Call } from '../../operations/operation.ts'
import type { ProtectionAuthorizationRow } from '../../persistence/tables/protection.ts'
import type { DeviceRow } from '../../persistence/tables/agents.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { requestLeaseRelease } from '../leases/request-lease-release.ts'
import { isLedgerUntrusted, issueAuthorization, redemptionsOf, signToken } from '../leases/authorizations.ts'
import { takeLease, type LeaseView } from '../leases/leases.ts'
import { receiptRights, publishLease } from '../receipt-home/receipt-rights.ts'
import { policyOf } from '../store-documents/parsed-policy.ts'
import { describeAuthorization, NO_AUTHORIZATION, type AuthorizationAnswer } from './authorization-answer.ts'
import { approvalFacts, approvalsOf, recordApproval, type Approvals } from './approvals.ts'
import { loadItemTarget } from './item-target.ts'
import { overrideLease } from './override-lease.ts'
import { loadPurchaseTarget } from './purchase-target.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import { eventIdsOf, recordDenied, recordGranted, type DecisionContext } from './record-decision.ts'
import type { TargetUnit, AuthorizationTarget } from './authorization-target.ts'

/** The answer to a device, with the target and the decision it rests on. */
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
 *                                          └─ no ──────────────────▶ record ─▶ answer
 *
 *   load facts   item-subject.ts or purchase-subject.ts: the units, their rights, and who holds these
 *   decide       policy/decide-units.ts, by the store's policy
 *   lease        ../leases/authorizations.ts, `issueAuthorization`: the rights go to this device until the token ends
 *   sign         ../leases/authorizations.ts, `signToken`
 *   record       record.ts: two events, and the facts that the decision rested on
 *   answer       answer.ts
 *
 * How the cloud answers a device. A request about an item, a purchase, a receipt or a token takes these steps alike. They differ in
 * how the request is read (question.ts, verify-purchase.ts) and which facts are loaded (item-subject.ts, purchase-subject.ts).
 * An agent that works without the cloud decides by the same function, policy/decide-units.ts.
 */
export async function authorize(call: Call, request: AuthorizationRequest): Promise<Authorized> {
  const { context, action } = request
  const policy = context.store ? policyOf(context.store) : DEFAULT_POLICY
  const approvals = await approvalsOf(call, context, action)
  const target = await loadTarget(call, request, approvals)
  const facts = factsOf(target)
  const { decision, allowed } = decideUnits(facts, policy)
  const decisionContext: DecisionContext = { request, target, facts, eventIds: eventIdsOf(call, request) }
  if (!decision.allowed) {
    const answer = await refuse(call, decisionContext, decision.reason, target)
    return { target, decision, answer }
  }

  const { device, store } = context
  // The cloud records a request about the past, or about a status, and issues no token for it.
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
    // Repeated with every answer, because the agent may not have received the first one.
    ...(context.caller.kind === 'agent' &&
      target.purchase &&
      (await receiptRights(call.db, target.purchase, authorization))),
  }
  return { target, decision, answer }
}

async function loadTarget(
  call: Call,
  request: AuthorizationRequest,
  approvals: Approvals | undefined,
): Promise<AuthorizationTarget> {
  const target = await (request.item ? loadItemTarget(call, request) : loadPurchaseTarget(call, request))
  const withApprovals = (unit: TargetUnit): TargetUnit => ({
    ...unit,
    facts: { ...unit.facts, ...approvalFacts(approvals, unit.lease) },
  })
  const [first, ...others] = target.units
  return { ...target, units: [withApprovals(first), ...others.map(withApprovals)] }
}

function factsOf({ units: [first, ...others] }: AuthorizationTarget): [DecisionFacts, ...DecisionFacts[]] {
  return [first.facts, ...others.map((unit) => unit.facts)]
}

interface Granted {
  target: AuthorizationTarget
  /** Those that are allowed. */
  units: readonly TargetUnit[]
  device: DeviceRow
  store: StoreRow
  policy: ProtectionPolicy
}

/** Revokes the leases of other devices that may be revoked, then leases the units' rights to this device until its new token ends. */
async function leaseUnits(
  call: Call,
  { request, eventIds }: DecisionContext,
  { target, units, device, store, policy }: Granted,
): Promise<ProtectionAuthorizationRow> {
  const { context, action, item, scanSource } = request
  for (const row of distinct(units, ({ takeable }) => takeable)) await takeLease(call, row, device)
  for (const row of distinct(units, ({ overridden }) => overridden)) await overrideLease(call, row, context.operatorId)

  // A token that is for one request only covers one release: the next unit is context for by the next request.
  const isForOne =
    units.length > 1 &&
    context.caller.kind === 'agent' &&
    rightClass(action) === 'release' &&
    (await isLedgerUntrusted(call, device))
  const given = isForOne ? units.slice(0, 1) : units
  const authorization = await issueAuthorization(call, context.caller.tenant, {
    store,
    device,
    action,
    rightClass: rightClass(action) ?? 'fixture',
    ...(item && { item }),
    itemId: target.item?.item_id ?? null,
    purchaseId: target.purchase?.purchase_id ?? null,
    units: given.flatMap(({ right }) => right ?? []),
    riskClass: riskClass(target.purchase?.total_cent ?? target.units[0].facts.item?.priceCent ?? 0),
    eventId: eventIds.decided,
    operatorId: context.operatorId,
    scanSource,
  })
  const isApproval = given.some(({ facts }) => facts.approvals !== undefined && restsOnOperator(facts, policy))
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
  const held = distinct(units, (lease) => lease.held)
  if (isOutstanding && !decisionContext.request.context.isPast) requestLeaseRelease(call, held)
  const ends = units.flatMap(({ lease }) => lease.endsAt ?? [])
  const endsAt = ends.length > 0 ? Math.min(...ends) : undefined
  const retryAfter =
    isOutstanding && endsAt !== undefined ? Math.max(1, endsAt - Math.floor(call.nowMs / 1_000)) : undefined
  const eventId = await recordDenied(call, decisionContext, reason)
  return { authorized: false, reason, ...NO_AUTHORIZATION, eventId, ...(retryAfter !== undefined && { retryAfter }) }
}

/** The authorizations that `of` picks from the leases of these units, each once. */
function distinct(
  units: readonly TargetUnit[],
  of: (lease: LeaseView) => ProtectionAuthorizationRow | undefined,
): ProtectionAuthorizationRow[] {
  const rows = units.flatMap(({ lease }) => of(lease) ?? [])
  return [...new Map(rows.map((row) => [row.nonce, row])).values()]
}
