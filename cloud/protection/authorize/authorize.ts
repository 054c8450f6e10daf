import { countsAsOverride, type Decision, type DecisionFacts } from '../../../policy/decide.ts'
import { decideUnits } from '../../../policy/decide-units.ts'
import { DEFAULT_POLICY, riskClassOf, type ProtectionPolicy } from '../../../policy/store-policy.ts'
import {
  rightClassOf,
  type DenyReason,
  type ProtectionAction,
  type AuthorizationState,
} from '../../../policy/vocabulary.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { noteExchange, requestLeaseRelease, transferLease, type LeaseView } from '../leases/leases.ts'
import { isLedgerUntrusted, issueAuthorization, redemptionsOf, viewAuthorization } from '../leases/authorizations.ts'
import { receiptRights, publishLease } from '../receipt-home/receipt-rights.ts'
import { policyOf } from '../../platform/stores/parsed-policy.ts'
import { approvalFacts, approvalsOf, recordApproval, type Approvals } from './approvals.ts'
import { loadItemTarget, type TargetUnit, type AuthorizationTarget, loadLockerTarget } from './authorization-target.ts'
import { overrideLease, type RequestContext } from './request-context.ts'
import { rightName } from '../rights/rights.ts'
import { loadPurchaseTarget } from './purchase-target.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import { itemHash, signAuthorization, type AuthorizationClaims } from '../../../policy/documents/authorization.ts'
import type { IdentifierKind } from '../../../policy/item-identifiers.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import { newId } from '../../../policy/ids.ts'
import { raiseForEvent } from '../../shop/assistance/requests.ts'
import { canonicalJson, hashOf } from '../../platform/operations/idempotency.ts'
import { storeDecision } from '../records/decision-records.ts'
import { recordEvents } from '../records/record-event.ts'

/** A request with its target and facts. Each decision has two events: `requested`, then `granted` or `denied`. */
interface DecisionContext {
  request: AuthorizationRequest
  target: Pick<AuthorizationTarget, 'purchase' | 'itemStatus' | 'lineId'>
  /** One entry per unit. `simulateProtectionPolicy` applies other policies to these facts. */
  facts: readonly DecisionFacts[]
  /**
   * The token contains the id `decided`. `requested` has the lower id, because lists sort events of the same time by
   * id.
   */
  eventIds: { requested: string; decided: string }
}

/**
 * Creates the ids of the two events. For a past request, the ids derive from the content of the request, so that a
 * repeated report adds no events.
 */
function eventIdsOf(
  { services: { platform } }: Pick<Call, 'services'>,
  request: AuthorizationRequest,
): DecisionContext['eventIds'] {
  const { context, action, identifiers, purchase, metadata } = request
  if (context.isPast) {
    const past = [
      context.caller.tenant,
      metadata.deviceId,
      context.occurredMs,
      action,
      identifiers,
      purchase?.purchase_id,
    ]
    const name = `evt_${hashOf(canonicalJson(past))}`
    return { requested: `${name}-1`, decided: `${name}-2` }
  }
  const [requested, decided] = [newId('evt', platform), newId('evt', platform)].sort() as [string, string]
  return { requested, decided }
}

/** Records a denial. Returns the id of the `denied` event. */
async function recordDenied(call: Call, decisionContext: DecisionContext, reason: DenyReason): Promise<string> {
  const { context } = decisionContext.request
  const scope = scopeOf(call, decisionContext)
  const fields = eventFields(decisionContext)
  const denied = {
    type: 'protection.authorization.denied',
    ...fields,
    reason,
    eventId: decisionContext.eventIds.decided,
  } as const
  await raiseForEvent(scope, denied, context.occurredMs)
  await recordEvents(scope, [requestedEvent(decisionContext, fields), denied])
  await storeFacts(call, decisionContext, reason)
  return decisionContext.eventIds.decided
}

/** Records a grant with or without a token. Returns the id of the `granted` event. */
async function recordGranted(
  call: Call,
  decisionContext: DecisionContext,
  authorization: Row<'protection_authorization'> | undefined,
): Promise<string> {
  const fields = eventFields(decisionContext)
  const granted = {
    type: 'protection.authorization.granted',
    ...fields,
    eventId: decisionContext.eventIds.decided,
    ...(authorization && { replayProtectedNonce: authorization.nonce, authorizationState: 'issued' as const }),
  } as const
  await recordEvents(scopeOf(call, decisionContext), [requestedEvent(decisionContext, fields), granted])
  await storeFacts(call, decisionContext, null)
  return decisionContext.eventIds.decided
}

function requestedEvent({ eventIds }: DecisionContext, fields: ReturnType<typeof eventFields>) {
  return { type: 'protection.authorization.requested', ...fields, eventId: eventIds.requested } as const
}

async function storeFacts(
  { db, nowMs }: Call,
  { request, facts, eventIds }: DecisionContext,
  reason: DenyReason | null,
) {
  const { store } = request.context
  if (store) await storeDecision(db, store, { eventId: eventIds.decided, atMs: nowMs, reason, facts })
}

function scopeOf(call: Call, { request: { context } }: DecisionContext) {
  return { db: call.db, tenant: context.caller.tenant, platform: call.services.platform, nowMs: call.nowMs }
}

function eventFields({ request, target }: DecisionContext) {
  const { context, action, identifiers, metadata, scanSource } = request
  const { device, store } = context
  return {
    storeId: store?.store_id ?? 'unknown',
    protectionAction: action,
    deviceId: metadata.deviceId ?? null,
    deviceType: device?.facts.deviceType ?? null,
    workflowType: device?.facts.workflowType ?? null,
    zoneId: metadata.zoneId ?? device?.row.zone_id ?? null,
    laneId: metadata.laneId ?? device?.row.lane_id ?? null,
    gateId: metadata.gateId ?? device?.row.gate_id ?? null,
    firmwareVersion: metadata.firmwareVersion ?? device?.row.firmware_version ?? null,
    operatorId: context.operatorId,
    scanSource: scanSource ?? null,
    purchaseId: target.purchase?.purchase_id ?? null,
    itemLineId: target.lineId ?? identifiers.itemLineId ?? null,
    epc: identifiers.epc ?? null,
    tagUid: identifiers.tagUid ?? null,
    tagId: identifiers.tagId ?? null,
    itemStatus: target.itemStatus,
    occurredMs: context.occurredMs,
  }
}

/** Signs the token of an authorization. Ed25519 is deterministic, so the same row always has the same token. */
function signToken(row: Row<'protection_authorization'>, { authority }: Services): string {
  const tenant = row.tenant as Tenant
  const claims: AuthorizationClaims = {
    iss: tenant,
    aud: row.device_id,
    iat: row.iat,
    exp: row.exp,
    jti: row.nonce,
    led: row.ledger,
    act: row.action as ProtectionAction,
    cnt: row.count,
    ...(row.ith_kind &&
      row.ith_id && { ith: itemHash(row.device_id, row.nonce, row.ith_kind as IdentifierKind, row.ith_id) }),
    eid: row.event_id,
    rc: row.risk_class,
    pv: row.policy_version,
    kv: row.key_version,
  }
  return signAuthorization(claims, authority.keysOf(tenant).token)
}

/** Response to a device, with its target and decision. */
interface Authorized {
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
 *   ├ load facts   authorization-target.ts or purchase-target.ts: the units, their rights and the lease holders
 *   ├ decide       policy/decide-units.ts, by the store's policy
 *   ├ lease        ../leases/authorizations.ts, `issueAuthorization`: reserves the rights for the device
 *   ├ sign         `signToken`, with the tenant's key (policy/documents/authorization.ts)
 *   ├ record       ../records: two events, and the facts of the decision
 *   └ answer       describeAuthorization
 *
 * Decides about one authorization request. Requests for an item, a purchase, a receipt or a token take the same steps.
 * These kinds differ in how the cloud reads the request (authorization-request.ts, authorize-operations.ts) and which facts
 * it loads. Offline agents decide with the same `decideUnits`.
 */
export async function authorize(call: Call, request: AuthorizationRequest): Promise<Authorized> {
  const { context, action } = request
  const policy = context.store ? policyOf(context.store) : DEFAULT_POLICY
  const approvals = await approvalsOf(call, request)
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
 * reads, except the row of the right (ADR database).
 */
function isPlainRelease(
  { context, action, purchase, token, exchanged }: AuthorizationRequest,
  { units, item, purchase: owner }: AuthorizationTarget,
): boolean {
  const [{ lease, right }, ...others] = units
  const isBound =
    item !== undefined && item.line_id !== null && owner !== undefined && right?.key.lineId === item.line_id
  const isFree = !lease.own && !lease.transferable && !lease.overridden && right?.tries.failures === 0
  const isSimple = others.length === 0 && purchase === undefined && token === undefined && exchanged === undefined
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
  device: Row<'device'>
  store: Row<'store'>
  policy: ProtectionPolicy
}

/** Ends the leases that the decision transfers or overrides. Then leases the rights to this device. */
async function leaseUnits(
  call: Call,
  { request, eventIds }: DecisionContext,
  { target, units, device, store, policy }: Granted,
): Promise<Row<'protection_authorization'>> {
  const { context, action, item, scanSource } = request
  if (request.exchanged) await noteExchange(call, request.exchanged)
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
    // The goods of a receipt share its pass.
    units: [...new Map(leasedUnits.flatMap(({ right }) => (right ? [[rightName(right.key), right]] : []))).values()],
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
  of: (lease: LeaseView) => Row<'protection_authorization'> | undefined,
): Row<'protection_authorization'>[] {
  const rows = units.flatMap(({ lease }) => of(lease) ?? [])
  return [...new Map(rows.map((row) => [row.nonce, row])).values()]
}

/** Fields of a response that describe the authorization. */
interface AuthorizationAnswer {
  authorizationState: AuthorizationState | null
  authorizationToken: string | null
  expiresAt: string | null
  redeemedAt: string | null
  replayProtectedNonce: string | null
  itemCount: number
}

export const NO_AUTHORIZATION: AuthorizationAnswer = {
  authorizationState: null,
  authorizationToken: null,
  expiresAt: null,
  redeemedAt: null,
  replayProtectedNonce: null,
  itemCount: 0,
}

/** Describes an issued authorization. `redemptions`: redemptions of the authorization so far; empty if it is new. */
function describeAuthorization(
  call: Call,
  row: Row<'protection_authorization'>,
  authorizationToken: string,
  redemptions: readonly Row<'redemption'>[],
): AuthorizationAnswer {
  const { state, redeemedAtMs } = viewAuthorization(row, redemptions, call.nowMs)
  const usedSteps = new Set(redemptions.map((r) => r.step)).size
  return {
    authorizationState: state,
    authorizationToken,
    expiresAt: new Date(row.exp * 1_000).toISOString(),
    redeemedAt: redeemedAtMs === null ? null : new Date(redeemedAtMs).toISOString(),
    replayProtectedNonce: row.nonce,
    itemCount: row.count - usedSteps,
  }
}

/** Adds `warnings[]` if there are any, and `trace[]` if the caller sent `explain`. */
export function traceAndWarnings(
  context: RequestContext,
  decision: Decision | undefined,
  explain: boolean | undefined,
) {
  return {
    ...(context.warnings.length > 0 && { warnings: context.warnings }),
    ...(explain === true && decision && { trace: decision.trace }),
  }
}
