import { denyReasonOf } from '../../policy/documents/authorization.ts'
import { ITEM_IDENTIFIER_KINDS } from '../../policy/item-identifiers.ts'
import { extractReceiptToken } from '../../policy/receipts/receipt-token.ts'
import { DENY_REASONS, rightClassOf, type DenyReason, type ItemStatus } from '../../policy/vocabulary.ts'
import type { CloudLink } from '../link/cloud-link.ts'
import { verifyReceipt } from './by-receipt.ts'
import { judgeByToken, openWithNewestKeys, type TokenParts } from './by-token.ts'
import type { RequestContext, Verdict } from './request.ts'

/**
 * Requests a decision from the cloud and verifies the token in its answer. Returns undefined if the cloud did not
 * decide; the agent then decides alone.
 */
export async function judgeByCloud(
  parts: TokenParts,
  link: CloudLink,
  context: RequestContext,
): Promise<Verdict | undefined> {
  const forged = forgeryReason(parts, context)
  if (forged) return { granted: false, reason: forged }
  const { operation, body } = cloudRequest(context)
  const acknowledgedSeq = parts.ledger.journal.acked
  const answer = await link.call(operation, body)
  if (answer.kind === 'unreachable') return undefined
  // A server error, a rate limit and an expired login are no decision, so the agent decides alone.
  if (answer.kind === 'refused')
    return answer.status >= 500 || answer.status === 429 || answer.status === 401
      ? undefined
      : {
          granted: false,
          reason:
            context.request.receipt === undefined && context.request.token === undefined
              ? 'item_unknown'
              : 'token_invalid',
        }
  return verdictOf(parts, link, context, answer.body, acknowledgedSeq)
}

/** Returns why the agent rejects the receipt itself. An unknown key may be a new one, so the cloud decides. */
function forgeryReason({ trust }: TokenParts, { request, device }: RequestContext): DenyReason | undefined {
  if (request.receipt === undefined) return undefined
  const opened = verifyReceipt(trust, request.receipt, device.storeId)
  if (opened.ok || opened.fault === 'unknown_key') return undefined
  return opened.fault === 'wrong_audience' ? 'store_mismatch' : denyReasonOf(opened.fault)
}

function namesItem({ request }: RequestContext): boolean {
  return ITEM_IDENTIFIER_KINDS.some((kind) => request.identifiers[kind] !== undefined)
}

function cloudRequest(context: RequestContext): { operation: string; body: Record<string, unknown> } {
  const { request, device } = context
  const common = {
    deviceId: device.deviceId,
    // Sends only the receipt token, without a URL or noise around it in the scanned text.
    ...(request.receipt !== undefined && { receiptToken: extractReceiptToken(request.receipt) ?? request.receipt }),
    ...(request.operatorId !== undefined && { operatorId: request.operatorId }),
    ...(request.pickupCode !== undefined && { pickupCode: request.pickupCode }),
    ...(request.scanSource !== undefined && { scanSource: request.scanSource }),
    ...(request.occurredAt !== undefined && { occurredAt: request.occurredAt }),
  }
  if (request.token !== undefined)
    return {
      operation: 'verifyProtectedItem',
      body: { ...common, protectionAction: request.action, authorizationToken: request.token, ...request.identifiers },
    }
  if (request.receipt !== undefined && !namesItem(context) && rightClassOf(request.action) === 'release') {
    return { operation: 'verifySecurityTagDeactivation', body: common }
  }
  return {
    operation: 'verifyProtectedItem',
    body: { ...common, protectionAction: request.action, ...request.identifiers },
  }
}

async function verdictOf(
  parts: TokenParts,
  link: CloudLink,
  context: RequestContext,
  body: Record<string, unknown>,
  acknowledgedSeq: number,
): Promise<Verdict> {
  const token = body['authorizationToken']
  const eventId = typeof body['eventId'] === 'string' ? body['eventId'] : null
  const itemStatus = typeof body['itemStatus'] === 'string' ? { itemStatus: body['itemStatus'] as ItemStatus } : {}
  const reason = body['reason']
  if (typeof token !== 'string') {
    const authorized = body['authorized'] === true && context.request.action === 'verify_item_status'
    if (authorized) return { granted: true, grant: null, eventId, ...itemStatus }
    return {
      granted: false,
      reason: isReason(reason) ? reason : 'token_invalid',
      ...(eventId !== null && { eventId }),
      ...itemStatus,
    }
  }
  const verdict = judgeByToken(parts, context, await openWithNewestKeys(parts, link, context, token), true)
  if (!verdict.granted || verdict.grant === null) return verdict
  return { granted: true, grant: { ...verdict.grant, token, acknowledgedSeq, ...receiptOf(body), ...itemStatus } }
}

function isReason(value: unknown): value is DenyReason {
  return (DENY_REASONS as readonly unknown[]).includes(value)
}

/** Receipt rights that the token covers. The claim uses up these rights in this ledger, too. */
function receiptOf(body: Record<string, unknown>): { receipt?: { cti: string; ordinals: number[] } } {
  const rights = body['receiptRights'] as { cti?: unknown; ordinals?: unknown } | undefined
  if (typeof rights?.cti !== 'string' || !Array.isArray(rights.ordinals)) return {}
  return { receipt: { cti: rights.cti, ordinals: rights.ordinals.filter((n): n is number => Number.isSafeInteger(n)) } }
}
