import type { DecisionFacts } from '../../../policy/decide.ts'
import {
  firstIdentifier,
  normaliseIdentifiers,
  type IdentifierKind,
  type ItemIdentifiers,
} from '../../../policy/identifiers.ts'
import { rightClass, type ProtectionAction, type ScanSource } from '../../../policy/vocabulary.ts'
import { maySee } from '../../foundation/caller.ts'
import { invalid, notFound } from '../../foundation/failure.ts'
import type { Call } from '../../operations/operation.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import { findPurchase } from '../../purchases/queries.ts'
import { purchaseAsOf } from '../rights/past-state.ts'
import { readRequestContext, type RequestContext, type Metadata } from './request-context.ts'
import { readPresentedToken, readReceipt, type PresentedDocument } from './presented-token.ts'

/** The input of `authorize`: may this device perform this action on this item, or on the goods of this purchase? */
export interface AuthorizationRequest {
  context: RequestContext
  action: ProtectionAction
  /** Names of the item, in their canonical form; none: the request is about all goods of the purchase. */
  identifiers: ItemIdentifiers
  /** The name that the token will be for; undefined: all goods of the purchase. */
  item: { kind: IdentifierKind; id: string } | undefined
  /** The purchase that a purchaseId, a receipt or a token names, as it was at the time that is context about. */
  purchase: PurchaseRow | undefined
  /** Why the receipt or the token that was shown names nothing. */
  token: DecisionFacts['token']
  scanSource: ScanSource | undefined
  /** The device and its place as the request states them, for the events. */
  metadata: Metadata
}

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

/** Reads a request of `verifyProtectedItem`. Throws invalid_request where its fields contradict each other, and 404 for an unknown purchase. */
export async function readItemRequest(call: Call, request: ItemRequest): Promise<AuthorizationRequest> {
  const context = await readRequestContext(call, request)
  const named = normaliseIdentifiers(request)
  if (!named.ok) throw invalid(named.field, named.message)
  const { purchase, token, item: itemOfToken, operatorId } = await readPresented(call, context, request)
  const { protectionAction: action, scanSource } = request
  const identifiers =
    firstIdentifier(named.identifiers) || !itemOfToken ? named.identifiers : { [itemOfToken.kind]: itemOfToken.id }
  const item = firstIdentifier(identifiers)
  // A receipt at a gate releases all of its goods. Every other request needs an item.
  const mayBeWhole = rightClass(action) === 'exit' || request.authorizationToken !== undefined
  if (!item && !(mayBeWhole && (purchase || token)))
    throw invalid('epc', 'is missing: name the item by at least one of epc, tagUid, tagId, itemLineId', 'missing')
  return {
    context: {
      ...context,
      operatorId: context.operatorId ?? operatorId ?? null,
      wasApproved: operatorId !== undefined,
    },
    action,
    identifiers,
    item,
    purchase: purchase && (await purchaseAtRequestTime(call, context, purchase)),
    token,
    scanSource,
    metadata: request,
  }
}

/** The purchase as it was at the time that is context about. */
export function purchaseAtRequestTime(
  { db }: Call,
  { pastMs }: RequestContext,
  purchase: PurchaseRow,
): Promise<PurchaseRow> | PurchaseRow {
  return pastMs === undefined ? purchase : purchaseAsOf(db, purchase, pastMs)
}

/** The purchase that the request names by its id, a receipt or a token, or how the receipt or token failed. */
async function readPresented(call: Call, context: RequestContext, request: ItemRequest): Promise<PresentedDocument> {
  const { tenant } = context.caller
  if (request.authorizationToken !== undefined) {
    if (request.purchaseId !== undefined || request.receiptToken !== undefined)
      throw invalid('authorizationToken', 'comes without purchaseId and receiptToken: it says what it is for')
    return readPresentedToken(call, context, { ...request, authorizationToken: request.authorizationToken })
  }
  const byId = request.purchaseId === undefined ? undefined : await findPurchase(call.db, tenant, request.purchaseId)
  if (request.purchaseId !== undefined && !(byId && maySee(context.caller, byId))) throw notFound('purchase')
  if (request.receiptToken === undefined) return byId ? { purchase: byId } : {}
  // As an agent does it: goods are released in the store where they were bought.
  const receipt = await readReceipt(call, tenant, request.receiptToken, {
    storeId: context.device?.row.store_id,
    pastMs: context.pastMs,
  })
  if (!receipt.ok) return { token: receipt.reason }
  if (byId && byId.purchase_id !== receipt.purchase.purchase_id)
    throw invalid('receiptToken', 'is of another purchase than purchaseId')
  return { purchase: receipt.purchase }
}

/** The facts of a decision that the request itself gives. */
export function requestFacts({ context: { device, store, operatorId }, action, token }: AuthorizationRequest) {
  return {
    action,
    storeId: store?.store_id ?? '',
    device: device?.facts ?? null,
    token,
    clockTrusted: true,
    stage: 'fresh',
    operator: operatorId !== null,
  } as const satisfies Partial<DecisionFacts>
}
