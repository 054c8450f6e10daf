import type { DecisionFacts } from '../../../policy/decide.ts'
import {
  firstIdentifier,
  normaliseIdentifiers,
  type IdentifierKind,
  type ItemIdentifiers,
} from '../../../policy/item-identifiers.ts'
import { rightClassOf, type ProtectionAction, type ScanSource } from '../../../policy/vocabulary.ts'
import { maySee } from '../../platform/foundation/caller.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findPurchase } from '../../shop/purchases/queries.ts'
import { purchaseAsOf } from '../rights/past-state.ts'
import type { RightView, Tries, UnitKey } from '../rights/rights.ts'
import { readRequestContext, type RequestContext, type Metadata } from './request-context.ts'
import { verifyPresentedToken, verifyReceipt, type PresentedDocument } from './presented-token.ts'

/** Input of `authorize`: a device requests to act on an item or on all goods of a purchase. */
export interface AuthorizationRequest {
  context: RequestContext
  action: ProtectionAction
  /** Canonical item identifiers; empty for a request about a whole purchase. */
  identifiers: ItemIdentifiers
  /** Identifier for the token; undefined for a purchase-wide token. */
  item: { kind: IdentifierKind; id: string } | undefined
  /** Purchase that `purchaseId`, receipt or token names, in its state at the time of the request. */
  purchase: Row<'purchase'> | undefined
  /** Why the presented receipt or token is not valid. */
  token: DecisionFacts['token']
  /** The token that the agent exchanges. It covers no other goods than its own. */
  exchanged?: Row<'protection_authorization'> | undefined
  /** Presented pick-up code. The request then names neither item nor purchase. */
  pickupCode?: string | undefined
  /** Units of the purchase with an open right of release, if the caller has read them. */
  open?: readonly OpenUnit[]
  scanSource: ScanSource | undefined
  /** Device and location as the caller sent them, for the events. */
  metadata: Metadata
}

/** A tagged unit whose right is not used. */
export interface OpenUnit {
  unit: Row<'purchase_unit'>
  key: UnitKey
  right: Exclude<RightView, { state: 'used' }>
  tries: Tries
}

interface ItemRequest extends Metadata {
  deviceId: string
  protectionAction: ProtectionAction
  tagId?: string | undefined
  epc?: string | undefined
  tagUid?: string | undefined
  itemLineId?: string | undefined
  purchaseId?: string | undefined
  receiptToken?: string | undefined
  authorizationToken?: string | undefined
  pickupCode?: string | undefined
  scanSource?: ScanSource | undefined
  explain?: boolean | undefined
}

/**
 * Reads a `verifyProtectedItem` request. Throws `invalid_request` for contradicting fields and 404 for an unknown
 * purchase.
 */
export async function readItemRequest(call: Call, request: ItemRequest): Promise<AuthorizationRequest> {
  const context = await readRequestContext(call, request)
  const named = normaliseIdentifiers(request)
  if (!named.ok) throw invalid(named.field, named.message)
  const { purchase, token, authorization: exchanged } = await readPresented(call, context, request)
  const { protectionAction: action, scanSource, pickupCode } = request
  if (pickupCode !== undefined && (action !== 'unlock_fixture' || namesGoods(request)))
    throw invalid('pickupCode', 'is only for unlock_fixture, without an item, purchase, receipt or token')
  const identifiers = firstIdentifier(named.identifiers) ? named.identifiers : itemOf(exchanged)
  const item = firstIdentifier(identifiers)
  // A purchase covers all its goods at a gate and at a fixture, and a token may be purchase-wide. Other requests need an
  // item.
  const rights = rightClassOf(action)
  const mayBeWhole = rights === 'exit' || rights === 'open' || request.authorizationToken !== undefined
  if (!item && pickupCode === undefined && !(mayBeWhole && (purchase || token)))
    throw invalid('epc', 'is missing: name the item by at least one of epc, tagUid, tagId, itemLineId', 'missing')
  const asOf = purchase && (await purchaseAtRequestTime(call, context, purchase))
  const isOver = item === undefined && isReceiptOver(asOf, request)
  return {
    context: { ...context, operatorId: context.operatorId ?? exchanged?.operator_id ?? null },
    action,
    identifiers,
    item,
    purchase: asOf,
    token: token ?? (isOver ? 'token_revoked' : undefined),
    exchanged,
    pickupCode,
    scanSource,
    metadata: request,
  }
}

function itemOf(token: Row<'protection_authorization'> | undefined): ItemIdentifiers {
  const { ith_kind: kind = null, ith_id: id = null } = token ?? {}
  return kind === null || id === null ? {} : { [kind]: id }
}

function namesGoods(request: ItemRequest): boolean {
  const { epc, tagUid, tagId, itemLineId, purchaseId, receiptToken, authorizationToken } = request
  const names = [epc, tagUid, tagId, itemLineId, purchaseId, receiptToken, authorizationToken]
  return names.some((name) => name !== undefined)
}

/**
 * True if a receipt is presented whose purchase was refunded or cancelled as a whole: nothing is unpaid then, as agents
 * say offline. Goods that the request names keep their own reason, for which gates alarm.
 */
export function isReceiptOver(
  purchase: Row<'purchase'> | undefined,
  { receiptToken }: Pick<ItemRequest, 'receiptToken'>,
): boolean {
  return receiptToken !== undefined && purchase?.status === 'CANCELLED'
}

/** The purchase at the time of the request. */
export function purchaseAtRequestTime(
  { db }: Call,
  { pastMs }: RequestContext,
  purchase: Row<'purchase'>,
): Promise<Row<'purchase'>> | Row<'purchase'> {
  return pastMs === undefined ? purchase : purchaseAsOf(db, purchase, pastMs)
}

/** Reads the purchase that the request names. If the presented receipt or token is invalid, returns the reason. */
async function readPresented(call: Call, context: RequestContext, request: ItemRequest): Promise<PresentedDocument> {
  const { tenant } = context.caller
  if (request.authorizationToken !== undefined) {
    if (request.purchaseId !== undefined || request.receiptToken !== undefined)
      throw invalid(
        'authorizationToken',
        'must be sent without purchaseId and receiptToken: the token names its purchase',
      )
    return verifyPresentedToken(call, context, { ...request, authorizationToken: request.authorizationToken })
  }
  const byId = request.purchaseId === undefined ? undefined : await findPurchase(call.db, tenant, request.purchaseId)
  if (request.purchaseId !== undefined && !(byId && maySee(context.caller, byId))) throw notFound('purchase')
  if (request.receiptToken === undefined) return byId ? { purchase: byId } : {}
  const receipt = await verifyReceipt(call, tenant, request.receiptToken, context.pastMs)
  if (!receipt.ok) return { token: receipt.reason }
  if (byId && byId.purchase_id !== receipt.purchase.purchase_id)
    throw invalid('receiptToken', 'belongs to another purchase than purchaseId')
  return { purchase: receipt.purchase }
}

/**
 * Facts that the request itself determines. A purchase or receipt is accepted only in the store that sold the goods, as
 * at agents.
 */
export function requestFacts({ context, action, purchase, token }: AuthorizationRequest) {
  const { device, store, operatorId } = context
  return {
    action,
    storeId: store?.store_id ?? '',
    device: device?.facts ?? null,
    isOtherStores: purchase !== undefined && device !== null && purchase.store_id !== device.row.store_id,
    isOtherTill: purchase !== undefined && isOfOtherTill(device?.row.till_id ?? null, action, purchase),
    token,
    clockTrusted: true,
    stage: 'fresh',
    hasOperator: operatorId !== null,
  } as const satisfies Partial<DecisionFacts>
}

/** True if a device beside a till must not release the goods of this purchase, because another till sold them. */
export function isOfOtherTill(
  tillId: string | null,
  action: ProtectionAction,
  { till }: Pick<Row<'purchase'>, 'till'>,
): boolean {
  if (tillId === null || rightClassOf(action) !== 'release') return false
  return till === null || (JSON.parse(till) as { tillId?: string }).tillId !== tillId
}
