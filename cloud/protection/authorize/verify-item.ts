import { decide, restsOnOperator, type Decision, type DecisionFacts } from '../../../policy/decide.ts'
import { firstIdentifier, normaliseIdentifiers, type ItemIdentifiers } from '../../../policy/identifiers.ts'
import { DEFAULT_POLICY, riskClass } from '../../../policy/store-policy.ts'
import { rightClass, type DenyReason, type ProtectionAction, type ScanSource } from '../../../policy/vocabulary.ts'
import { maySee } from '../../operations/caller.ts'
import { invalid, notFound } from '../../operations/failure.ts'
import type { Call } from '../../operations/operation.ts'
import type { ProtectionAuthorizationRow } from '../../persistence/tables/protection.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import { findPurchase } from '../../scan-and-go/queries.ts'
import {
  describeAuthorization,
  extras,
  newEventIds,
  NO_AUTHORIZATION,
  recordDenied,
  recordGranted,
  type AskedAbout,
} from './answer.ts'
import { approvalFacts, approvalsOf, noteApproval } from './approvals.ts'
import { purchaseAsOf } from './as-of.ts'
import { askHolders } from './ask-void.ts'
import { readAsked, type Asked, type Metadata } from './asking.ts'
import { issueAuthorization, redemptionsOf } from '../leases/authorizations.ts'
import { restOnProduct } from '../items/item-product.ts'
import { itemHead } from '../items/item-sequence.ts'
import { take, viewLease, type LeaseView } from '../leases/leases.ts'
import { overrideLease, withOverride } from './override-lease.ts'
import { policyOf } from '../store-documents/policy.ts'
import { readReceipt } from './presented-receipt.ts'
import { readPresentedToken, type Presented } from './presented-token.ts'
import { grantPurchaseWide } from './purchase-wide.ts'
import { receiptRights, tellHome } from './receipt-rights.ts'
import { findSubject, type Subject } from './subject.ts'

export interface ItemRequest extends Metadata {
  deviceId: string
  protectionAction: ProtectionAction
  tagId?: string | undefined
  epc?: string | undefined
  tagUid?: string | undefined
  itemLineId?: string | undefined
  purchaseId?: string | undefined
  receiptToken?: string | undefined
  authorizationToken?: string | undefined
  scanSource?: ScanSource | undefined
  explain?: boolean | undefined
}

/** May this device do this to this item, now? (specification, item-level path; decisions §9) */
export async function verifyItem(call: Call, request: ItemRequest) {
  const told = await readAsked(call, request)
  const normal = normaliseIdentifiers(request)
  if (!normal.ok) throw invalid(normal.field, normal.message)
  const { purchase, token, item, operatorId } = await presented(call, told, request)
  const asked: Asked = {
    ...told,
    operatorId: told.operatorId ?? operatorId ?? null,
    isApproved: operatorId !== undefined,
  }
  const identifiers = firstIdentifier(normal.identifiers) || !item ? normal.identifiers : { [item.kind]: item.id }
  const named = firstIdentifier(identifiers)
  if (!named) return verifyWithoutItem(call, asked, request, purchase, token)

  const { device, store } = asked
  const { protectionAction: action } = request
  const here = purchase && purchase.store_id === device?.row.store_id ? await asAsked(call, asked, purchase) : undefined
  const subject =
    device && store
      ? await findSubject({
          db: call.db,
          tenant: asked.caller.tenant,
          storeId: device.row.store_id,
          deviceId: device.row.device_id,
          agentId: device.row.agent_id,
          device: device.facts,
          action,
          identifiers,
          purchase: here,
          nowMs: call.nowMs,
          pastMs: asked.pastMs,
        })
      : undefined
  const viewed: LeaseView =
    device && subject
      ? await viewLease(
          call,
          subject.unit?.right,
          device.row,
          action,
          (row) => row.ith_kind !== null && row.item_id === (subject.item?.item_id ?? null),
        )
      : { right: 'free' }
  const lease = withOverride(call, asked, viewed)
  const policy = store ? policyOf(store) : DEFAULT_POLICY
  const approvals = await approvalsOf(call, asked, action)
  const facts = { ...factsOf(asked, request, identifiers, subject, lease, token), ...approvalFacts(approvals, lease) }
  const decision = decide(facts, policy)
  await restOn(call, asked, subject)
  const about: AskedAbout = {
    eventIds: newEventIds(call),
    action,
    identifiers,
    itemStatus: subject?.itemStatus ?? null,
    purchaseId: subject?.purchase?.purchase_id ?? null,
    itemLineId: subject?.unit?.key.purchaseId ? subject.unit.key.lineId : null,
    scanSource: request.scanSource,
    metadata: request,
    facts: [facts],
  }
  const common = { protectionAction: action, itemStatus: about.itemStatus, ...extras(asked, decision, request.explain) }
  if (!decision.allowed) {
    if (decision.reason === 'authorization_outstanding' && lease.held && !asked.isPast) askHolders(call, [lease.held])
    if (decision.reason === 'limit_exceeded' && approvals?.endsMs !== undefined) call.trueUntil(approvals.endsMs)
    return { ...common, ...(await denied(call, asked, about, decision, lease)) }
  }
  if (action === 'verify_item_status' || asked.isPast || !device || !store || !subject) {
    return {
      authorized: true,
      ...common,
      ...NO_AUTHORIZATION,
      eventId: await recordGranted(call, asked, about, undefined),
    }
  }
  if (lease.own) {
    return {
      authorized: true,
      eventId: lease.own.event_id,
      ...common,
      ...describeAuthorization(call, lease.own, await redemptionsOf(call.db, lease.own.nonce)),
      ...(await rightsFor(asked, subject.purchase, lease.own)),
    }
  }
  if (lease.takeable) {
    await take(call, lease.takeable, device.row)
    await restOn(call, asked, subject, 1)
  }
  if (lease.overridden) await overrideLease(call, lease.overridden, asked.operatorId)
  const row = await issueAuthorization(call, asked.caller.tenant, {
    store,
    device: device.row,
    action,
    rightClass: rightClass(action) ?? 'fixture',
    item: named,
    itemId: subject.item?.item_id ?? null,
    purchaseId: subject.purchase?.purchase_id ?? null,
    units: subject.unit ? [subject.unit] : [],
    riskClass: riskClass(subject.purchase?.total_cent ?? subject.facts.priceCent ?? 0),
    eventId: about.eventIds.decided,
    operatorId: asked.operatorId,
    scanSource: request.scanSource,
  })
  if (approvals && restsOnOperator(facts, policy)) await noteApproval(call, row)
  if (subject.purchase) await tellHome(call, store, subject.purchase, row)
  const eventId = await recordGranted(call, asked, about, row)
  return {
    authorized: true,
    eventId,
    ...common,
    ...describeAuthorization(call, row, []),
    ...(await rightsFor(asked, subject.purchase, row)),
  }

  /** What an agent is told of its token besides, with every answer: it may not have had the first. */
  async function rightsFor({ caller }: Asked, of: PurchaseRow | undefined, authorization: ProtectionAuthorizationRow) {
    return caller.kind === 'agent' && of ? receiptRights(call.db, of, authorization) : {}
  }
}

function factsOf(
  { device, store, operatorId }: Asked,
  request: ItemRequest,
  identifiers: ItemIdentifiers,
  subject: Subject | undefined,
  lease: LeaseView,
  token: DecisionFacts['token'],
): DecisionFacts {
  return {
    action: request.protectionAction,
    storeId: store?.store_id ?? '',
    device: device?.facts ?? null,
    token,
    clockTrusted: true,
    stage: 'fresh',
    item: subject?.facts ?? null,
    identifiedBy: (['epc', 'tagUid', 'tagId', 'itemLineId'] as const).filter((kind) => identifiers[kind] !== undefined),
    mustBeRead: subject?.mustBeRead ?? false,
    right: lease.right,
    operator: operatorId !== null,
  }
}

function asAsked({ db }: Call, { pastMs }: Asked, purchase: PurchaseRow): Promise<PurchaseRow> | PurchaseRow {
  return pastMs === undefined ? purchase : purchaseAsOf(db, purchase, pastMs)
}

/** The purchase that the request names, or how the receipt failed. */
async function presented(call: Call, asked: Asked, request: ItemRequest): Promise<Presented> {
  const { tenant } = asked.caller
  if (request.authorizationToken !== undefined) {
    if (request.purchaseId !== undefined || request.receiptToken !== undefined)
      throw invalid('authorizationToken', 'comes without purchaseId and receiptToken: it says what it is for')
    return readPresentedToken(call, asked, { ...request, authorizationToken: request.authorizationToken })
  }
  const byId = request.purchaseId === undefined ? undefined : await findPurchase(call.db, tenant, request.purchaseId)
  if (request.purchaseId !== undefined && !(byId && maySee(asked.caller, byId))) throw notFound('purchase')
  if (request.receiptToken === undefined) return byId ? { purchase: byId } : {}
  // As an agent would have it: goods are released where they were bought.
  const receipt = await readReceipt(call, tenant, request.receiptToken, {
    storeId: asked.device?.row.store_id,
    pastMs: asked.pastMs,
  })
  if (!receipt.ok) return { token: receipt.reason }
  if (byId && byId.purchase_id !== receipt.purchase.purchase_id)
    throw invalid('receiptToken', 'is of another purchase than purchaseId')
  return { purchase: receipt.purchase }
}

/** Without any item only leaving makes sense: a receipt at a gate lets all of its goods out (contracts §4). */
async function verifyWithoutItem(
  call: Call,
  asked: Asked,
  request: ItemRequest,
  purchase: PurchaseRow | undefined,
  token: DecisionFacts['token'],
) {
  const { protectionAction: action } = request
  const isWhole = rightClass(action) === 'exit' || request.authorizationToken !== undefined
  if (!isWhole || (!purchase && !token)) {
    throw invalid('epc', 'is missing: name the item by at least one of epc, tagUid, tagId, itemLineId', 'missing')
  }
  const then = purchase && (await asAsked(call, asked, purchase))
  const result = await grantPurchaseWide(call, asked, {
    purchase: then,
    token,
    action,
    scanSource: request.scanSource,
    metadata: request,
  })
  return {
    protectionAction: action,
    itemStatus: null,
    ...result.answer,
    ...extras(asked, result.decision, request.explain),
  }
}

async function denied(
  call: Call,
  asked: Asked,
  about: AskedAbout,
  { reason }: Decision & { reason: DenyReason },
  lease: LeaseView,
) {
  const retryAfter =
    reason === 'authorization_outstanding' && lease.endsAt !== undefined
      ? Math.max(1, lease.endsAt - Math.floor(call.nowMs / 1_000))
      : undefined
  // A lease that ends makes the answer untrue without any row changing.
  if (lease.endsAt !== undefined) call.trueUntil(lease.endsAt * 1_000)
  const eventId = await recordDenied(call, asked, about, reason)
  return { authorized: false, reason, ...NO_AUTHORIZATION, eventId, ...(retryAfter !== undefined && { retryAfter }) }
}

/** `moved`: how often this very call has touched the subject since it was read. */
async function restOn(call: Call, { store, device }: Asked, subject: Subject | undefined, moved = 0): Promise<void> {
  if (store) call.restsOn({ kind: 'store', id: store.store_id, rev: store.document_version })
  // What is not known here may be registered at any moment.
  if (device && !subject)
    call.restsOn({ kind: 'items', id: device.row.store_id, rev: (await itemHead(call.db, device.row.store_id)).seq })
  if (subject?.named) call.restsOn({ kind: 'purchase', id: subject.named.purchase_id, rev: subject.named.rev })
  const isByItem = subject?.unit?.key.purchaseId === ''
  if (subject?.item)
    call.restsOn({ kind: 'item', id: subject.item.item_id, rev: subject.item.rev + (isByItem ? moved : 0) })
  if (subject?.item) await restOnProduct(call, subject.item)
  if (subject?.purchase)
    call.restsOn({
      kind: 'purchase',
      id: subject.purchase.purchase_id,
      rev: subject.purchase.rev + (isByItem ? 0 : moved),
    })
}
