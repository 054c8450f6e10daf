import { decide, restsOnOperator, type Decision, type DecisionFacts, type ItemFacts } from '../../../policy/decide.ts'
import { betterDecision } from '../../../policy/decide-units.ts'
import type { DeviceFacts } from '../../../policy/devices.ts'
import { DEFAULT_POLICY, riskClass } from '../../../policy/store-policy.ts'
import {
  rightClass,
  type DenyReason,
  type ItemStatus,
  type ProtectionAction,
  type RightClass,
  type ScanSource,
} from '../../../policy/vocabulary.ts'
import type { Call } from '../../operations/operation.ts'
import type { ProtectionAuthorizationRow } from '../../persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow } from '../../persistence/tables/purchases.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { readLines } from '../../scan-and-go/queries.ts'
import {
  describeAuthorization,
  newEventIds,
  NO_AUTHORIZATION,
  recordDenied,
  recordGranted,
  type AskedAbout,
} from './answer.ts'
import { approvalFacts, approvalsOf, noteApproval } from './approvals.ts'
import { askHolders } from './ask-void.ts'
import type { Asked, Metadata } from './asking.ts'
import { isDoubted, issueAuthorization, redemptionsOf, type GrantedUnit } from '../leases/authorizations.ts'
import { restOnProduct } from '../items/item-product.ts'
import { readItem } from '../items/item-queries.ts'
import { take, viewLease, type LeaseView } from '../leases/leases.ts'
import { overrideLease, withOverride } from './override-lease.ts'
import { policyOf } from '../store-documents/policy.ts'
import { receiptRights, tellHome } from './receipt-rights.ts'
import { isPaid, itemBoundTo, itemFacts, lineFacts, mightRead, openUnits } from './subject.ts'

export interface PurchaseWideRequest {
  purchase: PurchaseRow | undefined
  /** How the receipt failed that should have named it. */
  token: DecisionFacts['token']
  action: ProtectionAction
  scanSource: ScanSource | undefined
  metadata: Metadata
}

/** One authorization for all open units of a purchase: for devices at which staff compare goods and count, and for leaving. */
export async function grantPurchaseWide(
  call: Call,
  asked: Asked,
  { purchase, token, action, scanSource, metadata }: PurchaseWideRequest,
) {
  const { device, store } = asked
  const rights = rightClass(action) as RightClass
  const looked: DecisionFacts[] = []
  const about: AskedAbout = {
    eventIds: newEventIds(call),
    action,
    identifiers: {},
    itemStatus: null,
    purchaseId: purchase?.purchase_id ?? null,
    itemLineId: null,
    scanSource,
    metadata,
    facts: looked,
  }
  if (store) call.restsOn({ kind: 'store', id: store.store_id, rev: store.document_version })
  if (purchase) call.restsOn({ kind: 'purchase', id: purchase.purchase_id, rev: purchase.rev })

  const policy = store ? policyOf(store) : DEFAULT_POLICY
  const open =
    purchase && device && purchase.store_id === device.row.store_id
      ? await openUnits(
          { db: call.db, nowMs: call.nowMs, pastMs: asked.pastMs, agentId: device.row.agent_id },
          purchase,
          rights,
        )
      : []
  const facts = baseFacts(asked, action, token)
  const approvals = await approvalsOf(call, asked, action)
  const units: GrantedUnit[] = []
  /** Those that an operator answers for. */
  const approved = new Set<GrantedUnit>()
  const taken = new Map<string, ProtectionAuthorizationRow>()
  const held = new Map<string, ProtectionAuthorizationRow>()
  const overridden = new Map<string, ProtectionAuthorizationRow>()
  let own: ProtectionAuthorizationRow | undefined
  let endsAt: number | undefined
  let decision: Decision | undefined
  const lines = new Map(purchase ? (await readLines(call.db, purchase.purchase_id)).map((l) => [l.line_id, l]) : [])
  for (const unit of open) {
    const lease: LeaseView = device
      ? withOverride(call, asked, await viewLease(call, unit.right, device.row, action, isPurchaseWide))
      : { right: unit.right.state === 'leased' ? 'leased_elsewhere' : unit.right.state }
    if (lease.held) held.set(lease.held.nonce, lease.held)
    const item = await unitFacts(call, unit, lines.get(unit.key.lineId), purchase, asked.pastMs)
    const unitFact = { ...facts, item, right: lease.right, ...approvalFacts(approvals, lease) }
    looked.push(unitFact)
    const each = decide(unitFact, policy)
    if (lease.right === 'leased_elsewhere') endsAt = Math.min(endsAt ?? Infinity, lease.endsAt ?? Infinity)
    // What may be released is; a unit that needs staff or is held elsewhere is told only when nothing else is left.
    decision = decision ? betterDecision(decision, each) : each
    if (!each.allowed) continue
    if (lease.own) own = lease.own
    if (lease.takeable) taken.set(lease.takeable.nonce, lease.takeable)
    if (lease.overridden) overridden.set(lease.overridden.nonce, lease.overridden)
    const granted = { key: unit.key, tries: unit.tries }
    units.push(granted)
    if (restsOnOperator(unitFact, policy)) approved.add(granted)
  }
  if (!decision) {
    looked.push({
      ...facts,
      item: emptyFacts(purchase, device?.row.store_id),
      right: wasPaid(purchase) ? 'used' : 'free',
    })
    decision = decide(looked[0] as DecisionFacts, policy)
  }
  if (!decision.allowed) {
    if (decision.reason === 'authorization_outstanding' && !asked.isPast) askHolders(call, [...held.values()])
    if (decision.reason === 'limit_exceeded' && approvals?.endsMs !== undefined) call.trueUntil(approvals.endsMs)
    return { decision, answer: await denied(call, asked, about, decision.reason, endsAt) }
  }
  if (own && !asked.isPast) {
    const answer = {
      authorized: true,
      ...describeAuthorization(call, own, await redemptionsOf(call.db, own.nonce)),
      eventId: own.event_id,
    }
    return {
      decision,
      answer: {
        ...answer,
        ...(asked.caller.kind === 'agent' && purchase && (await receiptRights(call.db, purchase, own))),
      },
    }
  }
  if (asked.isPast || !device || !store || !purchase) {
    return {
      decision,
      answer: { authorized: true, ...NO_AUTHORIZATION, eventId: await recordGranted(call, asked, about, undefined) },
    }
  }
  for (const row of taken.values()) await take(call, row, device.row)
  for (const row of overridden.values()) await overrideLease(call, row, asked.operatorId)
  if (taken.size > 0) call.restsOn({ kind: 'purchase', id: purchase.purchase_id, rev: purchase.rev + taken.size })
  // What is for one request only is for what that can use: the next unit is asked for by the next request.
  const isForOne = asked.caller.kind === 'agent' && rights === 'release' && (await isDoubted(call, device.row))
  const given = isForOne ? units.slice(0, 1) : units
  const row = await issue(call, asked, {
    store,
    action,
    rights,
    purchase,
    units: given,
    scanSource,
    eventId: about.eventIds.decided,
  })
  if (approvals && given.some((unit) => approved.has(unit))) await noteApproval(call, row)
  const eventId = await recordGranted(call, asked, about, row)
  return {
    decision,
    answer: {
      authorized: true,
      ...describeAuthorization(call, row, []),
      eventId,
      ...(asked.caller.kind === 'agent' && (await receiptRights(call.db, purchase, row))),
    },
  }
}

type OpenUnits = Awaited<ReturnType<typeof openUnits>>

interface Wide {
  store: StoreRow
  action: ProtectionAction
  rights: RightClass
  purchase: PurchaseRow
  units: readonly GrantedUnit[]
  scanSource: ScanSource | undefined
  eventId: string
}

async function issue(
  call: Call,
  asked: Asked,
  { store, action, rights, purchase, units, scanSource, eventId }: Wide,
): Promise<ProtectionAuthorizationRow> {
  const { device } = asked
  if (!device) throw new Error('an authorization needs a device')
  const row = await issueAuthorization(call, asked.caller.tenant, {
    store,
    device: device.row,
    action,
    rightClass: rights,
    itemId: null,
    purchaseId: purchase.purchase_id,
    units,
    riskClass: riskClass(purchase.total_cent),
    eventId,
    operatorId: asked.operatorId,
    scanSource,
  })
  await tellHome(call, store, purchase, row)
  return row
}

function baseFacts(
  { device, store, operatorId }: Asked,
  action: ProtectionAction,
  token: DecisionFacts['token'],
): Omit<DecisionFacts, 'item' | 'right'> {
  return {
    action,
    storeId: store?.store_id ?? '',
    device: device?.facts ?? null,
    token,
    clockTrusted: true,
    stage: 'fresh',
    identifiedBy: [],
    operator: operatorId !== null,
  }
}

async function unitFacts(
  call: Call,
  { unit, right }: OpenUnits[number],
  line: PurchaseLineRow | undefined,
  purchase: PurchaseRow | undefined,
  pastMs: number | undefined,
): Promise<ItemFacts | null> {
  if (!line || !purchase) return null
  const item = await itemBoundTo(call.db, unit, pastMs)
  if (item) await restOnProduct(call, item)
  const { technology: _unread, ...known } = item ? await itemFacts(call.db, item, line.price_cent) : lineFacts(line)
  const paid = isPaid(purchase)
  const staffReason =
    purchase.price_origin === 'shopper' ? 'only the shopper’s app vouches for the price' : right.staffReason
  return {
    ...known,
    status: item ? (item.item_status as ItemStatus) : paid ? 'paid' : 'sellable',
    ...(paid && !item && { paidBy: 'purchase' as const }),
    ...(staffReason !== undefined && { staffReason }),
  }
}

/** When a purchase has no open unit: unknown in this store, not paid, or all used up. */
function emptyFacts(purchase: PurchaseRow | undefined, storeId: string | undefined): ItemFacts | null {
  if (!purchase || purchase.store_id !== storeId) return null
  return { status: isPaid(purchase) ? 'paid' : 'sellable', category: '', brand: '' }
}

function wasPaid(purchase: PurchaseRow | undefined): boolean {
  return purchase !== undefined && isPaid(purchase)
}

async function denied(call: Call, asked: Asked, about: AskedAbout, reason: DenyReason, endsAt: number | undefined) {
  if (endsAt !== undefined) call.trueUntil(endsAt * 1_000)
  const retryAfter =
    reason === 'authorization_outstanding' && endsAt !== undefined
      ? Math.max(1, endsAt - Math.floor(call.nowMs / 1_000))
      : undefined
  const eventId = await recordDenied(call, asked, about, reason)
  return { authorized: false, reason, ...NO_AUTHORIZATION, eventId, ...(retryAfter !== undefined && { retryAfter }) }
}

function isPurchaseWide({ ith_kind }: ProtectionAuthorizationRow): boolean {
  return ith_kind === null
}

/**
 * Whether a purchase-wide token for these units may be given to this device at all (contracts §3): staff compare goods and count, or it can
 * read none of them. A unit that is not bound yet may be anything.
 */
export async function mayHoldPurchaseWide(call: Call, device: DeviceFacts, open: OpenUnits): Promise<boolean> {
  if (device.workflowType === 'staff_assisted' || device.workflowType === 'pos_integrated') return true
  if (!device.capabilities.canReadUhfRfid && !device.capabilities.canReadHfNfc) return true
  for (const { unit } of open) {
    if (unit.bound !== 1 || unit.item_id === null) return false
    const item = await readItem(call.db, unit.item_id)
    call.restsOn({ kind: 'item', id: item.item_id, rev: item.rev })
    if (mightRead(device, item)) return false
  }
  return true
}
