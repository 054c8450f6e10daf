import type { ItemFacts } from '../../../policy/decide.ts'
import type { DeviceFacts } from '../../../policy/devices.ts'
import { rightClassOf, type ItemStatus, type RightClass } from '../../../policy/vocabulary.ts'
import type { Call } from '../../operations/operation.ts'
import type { DeviceRow } from '../../persistence/tables/agents.ts'
import type { ProtectionAuthorizationRow } from '../../persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow } from '../../persistence/tables/purchases.ts'
import { readLines, readUnits } from '../../purchases/queries.ts'
import { readItem } from '../items/item-queries.ts'
import { viewLease } from '../leases/leases.ts'
import { rightsOfPurchase, triesOf, type UnitKey } from '../rights/rights.ts'
import { rightOf, type UnitQuery } from './resolve-unit.ts'
import { isPaid, itemBoundTo, itemFacts, lineFacts, mightRead, shopperPrice } from './item-facts.ts'
import { applyOverride } from './override-lease.ts'
import { requestFacts, type AuthorizationRequest } from './authorization-request.ts'
import type { TargetUnit, AuthorizationTarget } from './authorization-target.ts'

/** Loads the open units of a purchase with their rights and leases. */
export async function loadPurchaseTarget(call: Call, request: AuthorizationRequest): Promise<AuthorizationTarget> {
  const { context, action, purchase } = request
  const { device } = context
  const isHere = purchase !== undefined && device !== null && purchase.store_id === device.row.store_id
  const [first, ...others] = isHere
    ? await loadOpenUnits(call, request, purchase, device.row, rightClassOf(action) as RightClass)
    : []
  return {
    units: first ? [first, ...others] : [closedPurchaseUnit(request)],
    isKnown: purchase !== undefined,
    purchase,
    itemStatus: null,
    lineId: null,
  }
}

async function loadOpenUnits(
  call: Call,
  request: AuthorizationRequest,
  purchase: PurchaseRow,
  device: DeviceRow,
  rights: RightClass,
): Promise<TargetUnit[]> {
  const { context, action } = request
  const query = { db: call.db, nowMs: call.nowMs, pastMs: context.pastMs, agentId: device.agent_id }
  const open = await openUnits(query, purchase, rights)
  const lines = new Map((await readLines(call.db, purchase.purchase_id)).map((line) => [line.line_id, line]))
  const units: TargetUnit[] = []
  for (const unit of open) {
    const lease = applyOverride(call, context, await viewLease(call, unit.right, device, action, isPurchaseWide))
    const item = await unitFacts(call, unit, lines.get(unit.key.lineId), purchase, context.pastMs)
    const facts = { ...requestFacts(request), item, identifiedBy: [], right: lease.right }
    units.push({ facts, lease, right: { key: unit.key, tries: unit.tries } })
  }
  return units
}

/** Placeholder unit for a purchase that is unknown in this store or has no open unit. */
function closedPurchaseUnit(request: AuthorizationRequest): TargetUnit {
  const { context, purchase } = request
  const paid = purchase !== undefined && isPaid(purchase)
  const right = paid ? 'used' : 'free'
  const isHere = purchase?.store_id === context.device?.row.store_id
  const item: ItemFacts | null =
    purchase && isHere ? { status: paid ? 'paid' : 'sellable', category: '', brand: '' } : null
  return { facts: { ...requestFacts(request), item, identifiedBy: [], right }, lease: { right } }
}

async function unitFacts(
  call: Call,
  { unit, right }: OpenUnit,
  line: PurchaseLineRow | undefined,
  purchase: PurchaseRow,
  pastMs: number | undefined,
): Promise<ItemFacts | null> {
  if (!line) return null
  const item = await itemBoundTo(call.db, unit, pastMs)
  const { technology: _unread, ...known } = item ? await itemFacts(call.db, item, line.price_cent) : lineFacts(line)
  const paid = isPaid(purchase)
  return {
    ...known,
    status: item ? (item.item_status as ItemStatus) : paid ? 'paid' : 'sellable',
    ...(paid && !item && { paidBy: 'purchase' as const }),
    ...(right.staffReason !== undefined && { staffReason: right.staffReason }),
    ...shopperPrice(purchase),
  }
}

function isPurchaseWide({ ith_kind }: ProtectionAuthorizationRow): boolean {
  return ith_kind === null
}

export type OpenUnit = Awaited<ReturnType<typeof openUnits>>[number]

/** Tagged units whose right of this class is not used, in the order of line and number. */
export async function openUnits(
  query: Pick<UnitQuery, 'db' | 'nowMs' | 'pastMs' | 'agentId'>,
  purchase: PurchaseRow,
  rights: RightClass,
) {
  const { db } = query
  const [units, rows] = [
    await readUnits(db, purchase.purchase_id),
    await rightsOfPurchase(db, purchase.purchase_id, rights),
  ]
  const byUnit = new Map(rows.map((row) => [`${row.line_id}/${row.unit_no}`, row]))
  const open = units.map(async (unit) => {
    const row = byUnit.get(`${unit.line_id}/${unit.unit_no}`)
    const key: UnitKey = {
      lineId: unit.line_id,
      unitNo: unit.unit_no,
      rightClass: rights,
      purchaseId: purchase.purchase_id,
    }
    const right = await rightOf(query, key, row)
    return right.state === 'used' ? [] : [{ unit, key, right, tries: triesOf(row) }]
  })
  return (await Promise.all(open)).flat()
}

/**
 * True if this device may get one token for all these units (ADR 0009). Either staff count the goods at the device, or
 * the device can read none of the goods. An unbound unit may be any item. So a device that can read tags gets no token
 * for all units if one unit is unbound.
 */
export async function mayHoldPurchaseWide(
  call: Call,
  device: DeviceFacts,
  open: readonly OpenUnit[],
): Promise<boolean> {
  if (device.workflowType === 'staff_assisted' || device.workflowType === 'pos_integrated') return true
  if (!device.capabilities.canReadUhfRfid && !device.capabilities.canReadHfNfc) return true
  for (const { unit } of open) {
    if (unit.bound !== 1 || unit.item_id === null) return false
    const item = await readItem(call.db, unit.item_id)
    if (mightRead(device, item)) return false
  }
  return true
}
