import { decide, type DecisionFacts } from '../../../policy/decide.ts'
import { releaseActionOf } from '../../../policy/devices.ts'
import { DEFAULT_POLICY } from '../../../policy/store-policy.ts'
import type { ScanSource, SecurityTagMode } from '../../../policy/vocabulary.ts'
import { maySee } from '../../foundation/caller.ts'
import { invalid, notFound } from '../../foundation/failure.ts'
import { definedFields } from '../../operations/fields.ts'
import type { Call } from '../../operations/operation.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import { assertResynced } from '../leases/resync.ts'
import { storeDataOf } from '../../purchases/present.ts'
import { findPurchase, readLines, readUnits } from '../../purchases/queries.ts'
import { ownStoreOf } from '../../stores/own-store.ts'
import { policyOf } from '../store-documents/parsed-policy.ts'
import { traceAndWarnings, NO_AUTHORIZATION } from './authorization-answer.ts'
import { readRequestContext, type RequestContext, type Metadata } from './request-context.ts'
import { authorize } from './authorize.ts'
import { isPaid } from './item-facts.ts'
import { readReceipt } from './presented-token.ts'
import { mayHoldPurchaseWide, openUnits, type OpenUnit } from './purchase-target.ts'
import { requestFacts, purchaseAtRequestTime, type AuthorizationRequest } from './authorization-request.ts'
import { eventIdsOf, recordDenied } from './record-decision.ts'

export interface PurchaseRequest extends Metadata {
  purchaseId?: string | undefined
  receiptToken?: string | undefined
  scanSource?: ScanSource | undefined
  explain?: boolean | undefined
}

/** Decides whether the tags of a purchase may be removed (specification, purchase-based path). */
export async function verifyPurchase(call: Call, input: PurchaseRequest) {
  const context = await readRequestContext(call, input)
  const { purchase: now, expired } = await namedPurchase(call, context, input)
  const purchase = await purchaseAtRequestTime(call, context, now)
  const store = await ownStoreOf(call, purchase.store_id, 'purchase')
  const lines = await readLines(call.db, purchase.purchase_id)
  const units = await readUnits(call.db, purchase.purchase_id)
  const openNow = await openUnits(
    { db: call.db, nowMs: call.nowMs, pastMs: context.pastMs, agentId: context.device?.row.agent_id ?? null },
    purchase,
    'release',
  )
  const open = new Set(openNow.map(({ unit }) => `${unit.line_id}/${unit.unit_no}`))
  const mayDeactivate = isPaid(purchase) && purchase.security_tag_mode !== 'none' && open.size > 0
  if (mayDeactivate && !expired) await assertResynced(call, purchase.store_id)
  const common = {
    status: statusOf(purchase),
    items: lines.map((line) => {
      const own = units.filter((u) => u.line_id === line.line_id)
      return {
        itemLineId: line.line_id,
        ...definedFields({ productId: line.product_id }),
        name: line.name,
        quantity: line.quantity,
        taggedUnits: own.length,
        openUnits: own.filter((u) => open.has(`${u.line_id}/${u.unit_no}`)).length,
      }
    }),
    securityTagMode: purchase.security_tag_mode as SecurityTagMode,
    ...(purchase.security_tag_status !== null && {
      securityTagStatus: purchase.security_tag_status as 'pending' | 'deactivated',
    }),
    storeData: storeDataOf(store),
  }
  if (input.deviceId === undefined) {
    const reason = expired ? { reason: 'token_expired' as const } : {}
    return {
      ...common,
      deactivationAuthorized: mayDeactivate && !expired,
      ...NO_AUTHORIZATION,
      ...reason,
      ...traceAndWarnings(context, undefined, false),
    }
  }
  return {
    ...common,
    ...(await authorizeDevice(call, context, input, purchase, { mayDeactivate, expired, open: openNow })),
  }
}

interface PurchaseState {
  mayDeactivate: boolean
  /** True if the presented receipt has expired. */
  expired: boolean
  open: readonly OpenUnit[]
}

async function authorizeDevice(
  call: Call,
  context: RequestContext,
  input: PurchaseRequest,
  purchase: PurchaseRow,
  { mayDeactivate, expired, open }: PurchaseState,
) {
  const { device } = context
  const releaseAction = device && releaseActionOf(device.facts)
  const request: AuthorizationRequest = {
    context,
    action: releaseAction ?? 'deactivate_label',
    identifiers: {},
    item: undefined,
    purchase,
    token: expired ? 'token_expired' : undefined,
    scanSource: input.scanSource,
    metadata: input,
  }
  const { action: protectionAction } = request
  if (device && releaseAction && mayDeactivate && !expired && !(await mayHoldPurchaseWide(call, device.facts, open))) {
    return { protectionAction, ...(await requireItemRequests(call, request, input.explain)) }
  }
  const { answer, decision } = await authorize(call, request)
  const { authorized, ...rest } = answer
  return {
    deactivationAuthorized: authorized && mayDeactivate,
    protectionAction,
    ...rest,
    ...traceAndWarnings(context, decision, input.explain),
  }
}

/** Denies a purchase-wide token to a device that can read the items. The device must request each item separately. */
async function requireItemRequests(call: Call, request: AuthorizationRequest, explain: boolean | undefined) {
  const { context, purchase } = request
  const facts: DecisionFacts = {
    ...requestFacts(request),
    item: { status: 'paid', brand: '' },
    identifiedBy: [],
    mustBeRead: true,
    right: 'free',
  }
  const decision = decide(facts, context.store ? policyOf(context.store) : DEFAULT_POLICY)
  const reason = decision.allowed ? 'technology_mismatch' : decision.reason
  const target = { purchase, itemStatus: null, lineId: null }
  const eventId = await recordDenied(
    call,
    { request, target, facts: [facts], eventIds: eventIdsOf(call, request) },
    reason,
  )
  return {
    deactivationAuthorized: reason === 'technology_mismatch',
    ...NO_AUTHORIZATION,
    reason,
    eventId,
    ...traceAndWarnings(context, decision, explain),
  }
}

/** Finds the purchase by id or receipt. Throws 404 if the purchase is unknown or the receipt invalid. */
async function namedPurchase(
  call: Call,
  { caller, pastMs }: RequestContext,
  { purchaseId, receiptToken }: PurchaseRequest,
): Promise<{ purchase: PurchaseRow; expired: boolean }> {
  if (purchaseId === undefined && receiptToken === undefined)
    throw invalid('purchaseId', 'is missing: name the purchase by purchaseId or receiptToken', 'missing')
  const byId = purchaseId === undefined ? undefined : await findPurchase(call.db, caller.tenant, purchaseId)
  if (purchaseId !== undefined && !(byId && maySee(caller, byId))) throw notFound('purchase')
  if (receiptToken === undefined) {
    if (!byId) throw notFound('purchase')
    return { purchase: byId, expired: false }
  }
  const receipt = await readReceipt(call, caller.tenant, receiptToken, { pastMs })
  if (!receipt.purchase) throw notFound('purchase')
  if (byId && byId.purchase_id !== receipt.purchase.purchase_id)
    throw invalid('receiptToken', 'belongs to another purchase than purchaseId')
  return { purchase: receipt.purchase, expired: !receipt.ok }
}

function statusOf({ status }: PurchaseRow): 'paid' | 'CREATED' | 'PENDING_PAYMENT' | 'CANCELLED' {
  if (status === 'SUCCESS' || status === 'UNLOADED') return 'paid'
  return status as 'CREATED' | 'PENDING_PAYMENT' | 'CANCELLED'
}
