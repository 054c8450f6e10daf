import { releaseActionOf } from '../../../policy/devices.ts'
import type { SecurityTagMode } from '../../../policy/vocabulary.ts'
import { decide, type Decision, type DecisionFacts } from '../../../policy/decide.ts'
import { DEFAULT_POLICY } from '../../../policy/store-policy.ts'
import { maySee } from '../../operations/caller.ts'
import { invalid, notFound } from '../../operations/failure.ts'
import type { Call } from '../../operations/operation.ts'
import { present } from '../../operations/fields.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import { assertResynced } from '../../restore/resync.ts'
import { storeDataOf } from '../../scan-and-go/present.ts'
import { findPurchase, readLines, readUnits } from '../../scan-and-go/queries.ts'
import { ownStoreOf } from '../../stores/own-store.ts'
import { extras, newEventIds, NO_AUTHORIZATION, recordDenied } from './answer.ts'
import { purchaseAsOf } from './as-of.ts'
import { readAsked, type Asked, type Metadata } from './asking.ts'
import { policyOf } from '../store-documents/policy.ts'
import { readReceipt } from './presented-receipt.ts'
import { grantPurchaseWide, mayHoldPurchaseWide } from './purchase-wide.ts'
import { isPaid, openUnits } from './subject.ts'
import type { ScanSource } from '../../../policy/vocabulary.ts'

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
  const purchase = asked.pastMs === undefined ? now : await purchaseAsOf(call.db, now, asked.pastMs)
  const store = await ownStoreOf(call, purchase.store_id, 'purchase')
  const lines = await readLines(call.db, purchase.purchase_id)
  const units = await readUnits(call.db, purchase.purchase_id)
  const openNow = await openUnits(
    { db: call.db, nowMs: call.nowMs, pastMs: asked.pastMs, agentId: asked.device?.row.agent_id ?? null },
    purchase,
    'release',
  )
  const open = new Set(openNow.map(({ unit }) => `${unit.line_id}/${unit.unit_no}`))
  call.restsOn({ kind: 'purchase', id: purchase.purchase_id, rev: purchase.rev })
  call.restsOn({ kind: 'store', id: store.store_id, rev: store.document_version })
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
  open: Awaited<ReturnType<typeof openUnits>>
}

async function forDevice(
  call: Call,
  asked: Asked,
  request: PurchaseRequest,
  purchase: PurchaseRow,
  { mayCome, expired, open }: Standing,
) {
  const { device } = asked
  const action = (device && releaseActionOf(device.facts)) ?? 'deactivate_label'
  const token: DecisionFacts['token'] = expired ? 'token_expired' : undefined
  if (
    device &&
    mayCome &&
    !expired &&
    releaseActionOf(device.facts) &&
    !(await mayHoldPurchaseWide(call, device.facts, open))
  ) {
    // Such a device asks item by item: the purchase as a whole is fine, but not for it.
    const facts = mismatchFacts(asked, action)
    const decision = decide(facts, asked.store ? policyOf(asked.store) : DEFAULT_POLICY)
    const reason = decision.allowed ? 'technology_mismatch' : decision.reason
    const about = {
      eventIds: newEventIds(call),
      action,
      identifiers: {},
      itemStatus: null,
      purchaseId: purchase.purchase_id,
      itemLineId: null,
      scanSource: request.scanSource,
      metadata: request,
      facts: [facts],
    }
    const eventId = await recordDenied(call, asked, about, reason)
    const isOwnWay = reason === 'technology_mismatch'
    return {
      deactivationAuthorized: isOwnWay,
      protectionAction: action,
      ...NO_AUTHORIZATION,
      reason,
      eventId,
      ...extras(asked, decision, request.explain),
    }
  }
  const { answer, decision } = await grantPurchaseWide(call, asked, {
    purchase,
    token,
    action,
    scanSource: request.scanSource,
    metadata: request,
  })
  const { authorized, ...rest } = answer
  return {
    deactivationAuthorized: authorized && mayCome,
    protectionAction: action,
    ...rest,
    ...extras(asked, decision satisfies Decision, request.explain),
  }
}

function mismatchFacts(
  { device, store, operatorId }: Asked,
  action: 'deactivate_label' | 'detach_hard_tag',
): DecisionFacts {
  return {
    action,
    storeId: store?.store_id ?? '',
    device: device?.facts ?? null,
    clockTrusted: true,
    stage: 'fresh',
    item: { status: 'paid', brand: '' },
    identifiedBy: [],
    mustBeRead: true,
    right: 'free',
    operator: operatorId !== null,
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
