import { denyReasonOf } from '../../policy/documents/authorization.ts'
import { ITEM_IDENTIFIER_KINDS } from '../../policy/identifiers.ts'
import { receiptTextIn } from '../../policy/receipts/receipt-token.ts'
import { DENY_REASONS, rightClass, type DenyReason, type ItemStatus } from '../../policy/vocabulary.ts'
import type { CloudLink } from '../link/cloud-link.ts'
import { readReceipt } from './by-receipt.ts'
import { decideByToken, openByNewestKeys, type TokenParts } from './by-token.ts'
import type { Ask, Verdict } from './request.ts'

/** Asks the cloud, and believes what it signs. Undefined: nobody answered, so the agent decides alone. */
export async function decideOnline(parts: TokenParts, link: CloudLink, ask: Ask): Promise<Verdict | undefined> {
  const forged = isForged(parts, ask)
  if (forged) return { granted: false, reason: forged }
  const { operation, body } = question(ask)
  const heardSeq = parts.ledger.journal.acked
  const answer = await link.ask(operation, body)
  if (answer.kind === 'unreachable') return undefined
  // That a login has ended says nothing of what was asked: nobody is sent away for it.
  if (answer.kind === 'refused')
    return answer.status >= 500 || answer.status === 429 || answer.status === 401
      ? undefined
      : {
          granted: false,
          reason:
            ask.request.receipt === undefined && ask.request.token === undefined ? 'item_unknown' : 'token_invalid',
        }
  return believe(parts, link, ask, answer.body, heardSeq)
}

/** What is plainly not genuine need not bother the cloud; a key that is not known here may be a new one. */
function isForged({ trust }: TokenParts, { request, device }: Ask): DenyReason | undefined {
  if (request.receipt === undefined) return undefined
  const opened = readReceipt(trust, request.receipt, device.storeId)
  return opened.ok || opened.fault === 'unknown_key' ? undefined : denyReasonOf(opened.fault)
}

function namesItem({ request }: Ask): boolean {
  return ITEM_IDENTIFIER_KINDS.some((kind) => request.identifiers[kind] !== undefined)
}

function question(ask: Ask): { operation: string; body: Record<string, unknown> } {
  const { request, device } = ask
  const common = {
    deviceId: device.deviceId,
    // Only what was meant for us: around it may stand an address, or noise.
    ...(request.receipt !== undefined && { receiptToken: receiptTextIn(request.receipt) ?? request.receipt }),
    ...(request.operatorId !== undefined && { operatorId: request.operatorId }),
    ...(request.scanSource !== undefined && { scanSource: request.scanSource }),
    ...(request.occurredAt !== undefined && { occurredAt: request.occurredAt }),
  }
  if (request.token !== undefined)
    return {
      operation: 'verifyProtectedItem',
      body: { ...common, protectionAction: request.action, authorizationToken: request.token, ...request.identifiers },
    }
  if (request.receipt !== undefined && !namesItem(ask) && rightClass(request.action) === 'release') {
    return { operation: 'verifySecurityTagDeactivation', body: common }
  }
  return {
    operation: 'verifyProtectedItem',
    body: { ...common, protectionAction: request.action, ...request.identifiers },
  }
}

async function believe(
  parts: TokenParts,
  link: CloudLink,
  ask: Ask,
  body: Record<string, unknown>,
  heardSeq: number,
): Promise<Verdict> {
  const token = body['authorizationToken']
  const eventId = typeof body['eventId'] === 'string' ? body['eventId'] : null
  const itemStatus = typeof body['itemStatus'] === 'string' ? { itemStatus: body['itemStatus'] as ItemStatus } : {}
  const reason = body['reason']
  if (typeof token !== 'string') {
    const authorized = body['authorized'] === true && ask.request.action === 'verify_item_status'
    if (authorized) return { granted: true, grant: null, eventId, ...itemStatus }
    return {
      granted: false,
      reason: isReason(reason) ? reason : 'token_invalid',
      ...(eventId !== null && { eventId }),
      ...itemStatus,
    }
  }
  const verdict = decideByToken(parts, ask, await openByNewestKeys(parts, link, ask, token), true)
  if (!verdict.granted || verdict.grant === null) return verdict
  const all = rightClass(ask.request.action) === 'exit' && !namesItem(ask)
  return { granted: true, grant: { ...verdict.grant, token, all, heardSeq, ...receiptOf(body), ...itemStatus } }
}

function isReason(value: unknown): value is DenyReason {
  return (DENY_REASONS as readonly unknown[]).includes(value)
}

/** The rights of the receipt that the token covers, so that they are used up here too. */
function receiptOf(body: Record<string, unknown>): { receipt?: { cti: string; ordinals: number[] } } {
  const rights = body['receiptRights'] as { cti?: unknown; ordinals?: unknown } | undefined
  if (typeof rights?.cti !== 'string' || !Array.isArray(rights.ordinals)) return {}
  return { receipt: { cti: rights.cti, ordinals: rights.ordinals.filter((n): n is number => Number.isSafeInteger(n)) } }
}
