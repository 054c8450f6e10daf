import { decide, type DecisionFacts } from '../../../policy/decide.ts'
import { releaseActionOf } from '../../../policy/devices.ts'
import { DEFAULT_POLICY } from '../../../policy/store-policy.ts'
import type { ScanSource, SecurityTagMode } from '../../../policy/vocabulary.ts'
import { maySee } from '../../foundation/caller.ts'
import { invalid, notFound } from '../../foundation/failure.ts'
import { present } from '../../operations/fields.ts'
import type { Call } from '../../operations/operation.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import { assertResynced } from '../leases/resync.ts'
import { storeDataOf } from '../../purchases/present.ts'
import { findPurchase, readLines, readUnits } from '../../purchases/queries.ts'
import { ownStoreOf } from '../../stores/own-store.ts'
import { policyOf } from '../store-documents/policy.ts'
import { extras, NO_AUTHORIZATION } from './answer.ts'
import { readAsked, type Asked, type Metadata } from './asking.ts'
import { authorize } from './authorize.ts'
import { isPaid } from './item-facts.ts'
import { readReceipt } from './presented.ts'
import { mayHoldPurchaseWide, openUnits, type OpenUnit } from './purchase-subject.ts'
import { factsOfQuestion, purchaseAsAsked, type Question } from './question.ts'
import { eventIdsOf, recordDenied } from './record.ts'

export interface PurchaseRequest extends Metadata {
  purchaseId?: string | undefined
  receiptToken?: string | undefined
  scanSource?: ScanSource | undefined
  explain?: boolean | undefined
}

/** May the tags of this purchase come off? (specification, purchase-based path) */
export async function verifyPurchase(call: Call, request: PurchaseRequest) {
  const asked = await readAsked(call, request)
  const { purchase: now, expired } = await namedPurchase(call, asked, request)
  const purchase = await purchaseAsAsked(call, asked, now)
  const store = await ownStoreOf(call, purchase.store_id, 'purchase')
  const lines = await readLines(call.db, purchase.purchase_id)
  const units = await readUnits(call.db, purchase.purchase_id)
  const openNow = await openUnits(
    { db: call.db, nowMs: call.nowMs, pastMs: asked.pastMs, agentId: asked.device?.row.agent_id ?? null },
    purchase,
    'release',
  )
  const open = new Set(openNow.map(({ unit }) => `${unit.line_id}/${unit.unit_no}`))
  const mayCome = isPaid(purchase) && purchase.security_tag_mode !== 'none' && open.size > 0
  if (mayCome && !expired) await assertResynced(call, purchase.store_id)
  const common = {
    status: statusOf(purchase),
    items: lines.map((line) => {
      const own = units.filter((u) => u.line_id === line.line_id)
      return {
        itemLineId: line.line_id,
        ...present({ productId: line.product_id }),
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
  if (request.deviceId === undefined) {
    const reason = expired ? { reason: 'token_expired' as const } : {}
    return {
      ...common,
      deactivationAuthorized: mayCome && !expired,
      ...NO_AUTHORIZATION,
      ...reason,
      ...extras(asked, undefined, false),
    }
  }
  return { ...common, ...(await forDevice(call, asked, request, purchase, { mayCome, expired, open: openNow })) }
}

interface Standing {
  mayCome: boolean
  /** The receipt that names it has expired. */
  expired: boolean
  open: readonly OpenUnit[]
}

async function forDevice(
  call: Call,
  asked: Asked,
  request: PurchaseRequest,
  purchase: PurchaseRow,
  { mayCome, expired, open }: Standing,
) {
  const { device } = asked
  const releaseAction = device && releaseActionOf(device.facts)
  const question: Question = {
    asked,
    action: releaseAction ?? 'deactivate_label',
    identifiers: {},
    item: undefined,
    purchase,
    token: expired ? 'token_expired' : undefined,
    scanSource: request.scanSource,
    metadata: request,
  }
  const { action: protectionAction } = question
  if (device && releaseAction && mayCome && !expired && !(await mayHoldPurchaseWide(call, device.facts, open))) {
    return { protectionAction, ...(await askItemByItem(call, question, request.explain)) }
  }
  const { answer, decision } = await authorize(call, question)
  const { authorized, ...rest } = answer
  return {
    deactivationAuthorized: authorized && mayCome,
    protectionAction,
    ...rest,
    ...extras(asked, decision, request.explain),
  }
}

/** The purchase as a whole is fine, but a device that reads the items itself must ask about each of them. */
async function askItemByItem(call: Call, question: Question, explain: boolean | undefined) {
  const { asked, purchase } = question
  const facts: DecisionFacts = {
    ...factsOfQuestion(question),
    item: { status: 'paid', brand: '' },
    identifiedBy: [],
    mustBeRead: true,
    right: 'free',
  }
  const decision = decide(facts, asked.store ? policyOf(asked.store) : DEFAULT_POLICY)
  const reason = decision.allowed ? 'technology_mismatch' : decision.reason
  const subject = { purchase, itemStatus: null, lineId: null }
  const eventId = await recordDenied(
    call,
    { question, subject, facts: [facts], eventIds: eventIdsOf(call, question) },
    reason,
  )
  return {
    deactivationAuthorized: reason === 'technology_mismatch',
    ...NO_AUTHORIZATION,
    reason,
    eventId,
    ...extras(asked, decision, explain),
  }
}

/** The purchase by either name; 404 for an unknown one and for a receipt that is not genuine. */
async function namedPurchase(
  call: Call,
  { caller, pastMs }: Asked,
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
    throw invalid('receiptToken', 'is of another purchase than purchaseId')
  return { purchase: receipt.purchase, expired: !receipt.ok }
}

function statusOf({ status }: PurchaseRow): 'paid' | 'CREATED' | 'PENDING_PAYMENT' | 'CANCELLED' {
  if (status === 'SUCCESS' || status === 'UNLOADED') return 'paid'
  return status as 'CREATED' | 'PENDING_PAYMENT' | 'CANCELLED'
}
