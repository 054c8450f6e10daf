import { rightUsedFor, type DecisionFacts, type ItemFacts } from '../../../policy/decide.ts'
import type { DeviceFacts } from '../../../policy/devices.ts'
import { rightClassOf, type ItemStatus, type RightClass } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { valueOf } from '../../shop/purchases/line-value.ts'
import { readLines, readUnits } from '../../shop/purchases/queries.ts'
import { recallsIn } from '../items/recalls.ts'
import { viewLease, type LeaseView } from '../leases/leases.ts'
import { allRightsOf, findRight, passOf, rightName, triesOf, viewRight } from '../rights/rights.ts'
import { rightsOf, type UnitQuery } from './resolve-unit.ts'
import { factsOfItem, isPaid, itemsBoundTo, lineFacts, mightRead, productsOfItems, shopperPrice } from './item-facts.ts'
import { applyOverride } from './request-context.ts'
import { requestFacts, type AuthorizationRequest, type OpenUnit } from './authorization-request.ts'
import type { TargetUnit, AuthorizationTarget } from './authorization-target.ts'

/** Loads the open units of a purchase with their rights and leases. */
export async function loadPurchaseTarget(call: Call, request: AuthorizationRequest): Promise<AuthorizationTarget> {
  const { context, action, purchase } = request
  const { device } = context
  const isHere = purchase !== undefined && device !== null && purchase.store_id === device.row.store_id
  const rights = rightClassOf(action) as RightClass
  const [first, ...others] = !isHere
    ? []
    : rights === 'exit'
      ? await loadPass(call, request, purchase, device.row)
      : await loadOpenUnits(call, request, purchase, device, rights)
  return {
    units: first ? [first, ...others] : [await closedPurchaseUnit(call, request)],
    isKnown: isHere,
    // Events of this store do not name a purchase of another store.
    purchase: isHere ? purchase : undefined,
    itemStatus: null,
    lineId: null,
  }
}

async function loadOpenUnits(
  call: Call,
  request: AuthorizationRequest,
  purchase: Row<'purchase'>,
  { row: device, facts: deviceFacts }: { row: Row<'device'>; facts: DeviceFacts },
  rights: RightClass,
): Promise<TargetUnit[]> {
  const { context, action } = request
  const query = { db: call.db, nowMs: call.nowMs, pastMs: context.pastMs, agentId: device.agent_id }
  const open = (rights === 'release' ? request.open : undefined) ?? (await openUnits(query, purchase, rights))
  const items = await itemsBoundTo(
    call.db,
    open.map(({ unit }) => unit),
    undefined,
  )
  const mustBeRead = rights === 'release' && !mayHoldPurchaseWide(deviceFacts, items)
  const factsOf = await loadFacts(
    call,
    purchase,
    open,
    context.pastMs === undefined ? items : undefined,
    context.pastMs,
  )
  // The units of one lease have the same view, and the unbound units of a line the same facts. So a large purchase
  // needs few decisions (`decideUnits`).
  const leases = new Map<string, LeaseView>()
  const alike = new Map<string, DecisionFacts>()
  const units: TargetUnit[] = []
  for (const unit of open) {
    const name = unit.right.state === 'leased' ? unit.right.nonce : ''
    // A device that must read the tags requests each item separately. Only that request needs the lease.
    const lease: LeaseView =
      leases.get(name) ??
      (mustBeRead
        ? { right: 'free' }
        : applyOverride(call, context, await viewLease(call, unit.right, device, action, isPurchaseWide)))
    leases.set(name, lease)
    const kind =
      unit.unit.bound === 1 ? rightName(unit.key) : `${unit.key.lineId} ${name} ${unit.right.staffReason ?? ''}`
    const facts: DecisionFacts = alike.get(kind) ?? {
      ...requestFacts(request),
      item: factsOf(unit),
      identifiedBy: [],
      mustBeRead,
      right: lease.right,
    }
    alike.set(kind, facts)
    const usesRight = facts.item !== null && rightUsedFor(action, facts.item) !== null
    units.push({ facts, lease, right: usesRight ? { key: unit.key, tries: unit.tries } : undefined })
  }
  return units
}

/**
 * Loads the right of a receipt to open a barrier. The goods that have not left tell which rules apply; without tagged
 * goods, the rules for goods without category.
 */
async function loadPass(
  call: Call,
  request: AuthorizationRequest,
  purchase: Row<'purchase'>,
  device: Row<'device'>,
): Promise<TargetUnit[]> {
  const { context, action } = request
  const { db, nowMs } = call
  const { pastMs } = context
  const query = { db, nowMs, pastMs, agentId: device.agent_id }
  const key = passOf(purchase.purchase_id)
  const row = await findRight(db, key)
  const [right = viewRight(row, nowMs)] = await rightsOf(query, [{ key, row }])
  const lease = applyOverride(call, context, await viewLease(call, right, device, action, isPurchaseWide))
  const open = await openUnits(query, purchase, 'exit')
  const hasUnits = open.length > 0 || (await readUnits(db, purchase.purchase_id)).length > 0
  if (hasUnits && open.length === 0) return []
  const factsOf = await loadFacts(call, purchase, open, undefined, pastMs)
  const untagged: ItemFacts = {
    status: isPaid(purchase) ? 'paid' : 'sellable',
    category: '',
    brand: '',
    ...shopperPrice(purchase),
  }
  const staffReason = right.state !== 'used' && right.staffReason !== undefined && { staffReason: right.staffReason }
  const pass = lease.right === 'used' ? undefined : { key, tries: triesOf(row) }
  // Many goods are alike, so a large purchase needs few decisions (`decideUnits`).
  const alike = new Map<string, TargetUnit>()
  for (const item of hasUnits ? open.map(factsOf) : [untagged]) {
    const facts = {
      ...requestFacts(request),
      item: item && { ...item, ...staffReason },
      identifiedBy: [],
      right: lease.right,
    }
    alike.set(JSON.stringify(item), { facts, lease, right: pass })
  }
  return [...alike.values()]
}

/** Placeholder unit for a purchase that is unknown in this store or has no open unit. */
async function closedPurchaseUnit({ db }: Call, request: AuthorizationRequest): Promise<TargetUnit> {
  const { context, purchase } = request
  const paid = purchase !== undefined && isPaid(purchase)
  const hasUnits = purchase !== undefined && (await readUnits(db, purchase.purchase_id)).length > 0
  const right = !hasUnits ? 'none' : paid ? 'used' : 'free'
  const isHere = purchase?.store_id === context.device?.row.store_id
  const item: ItemFacts | null =
    purchase && isHere ? { status: paid ? 'paid' : 'sellable', category: '', brand: '' } : null
  return { facts: { ...requestFacts(request), item, identifiedBy: [], right }, lease: { right } }
}

/** Reads the lines and items of open units. Returns a function that returns the facts of a unit. */
async function loadFacts(
  { db }: Call,
  purchase: Row<'purchase'>,
  open: readonly OpenUnit[],
  known: readonly (Row<'protected_item'> | undefined)[] | undefined,
  pastMs: number | undefined,
): Promise<(unit: OpenUnit) => ItemFacts | null> {
  const lines = new Map((await readLines(db, purchase.purchase_id)).map((line) => [line.line_id, line]))
  const units = open.map(({ unit }) => unit)
  const items = new Map((known ?? (await itemsBoundTo(db, units, pastMs))).map((item, n) => [open[n], item]))
  const sold = open.flatMap((unit) => {
    const [item, line] = [items.get(unit), lines.get(unit.key.lineId)]
    return item ? [{ item, soldCent: line && valueOf(line) }] : []
  })
  const products = await productsOfItems(db, sold)
  const recalls = await recallsIn(db, purchase, pastMs)
  const paid = isPaid(purchase)
  return (unit) => {
    const line = lines.get(unit.key.lineId)
    if (!line) return null
    const item = items.get(unit)
    const { technology: _unread, ...facts } = item ? factsOfItem(item, valueOf(line), products) : lineFacts(line)
    const { staffReason } = unit.right
    return {
      ...facts,
      status: item ? (item.item_status as ItemStatus) : paid ? 'paid' : 'sellable',
      ...(paid && !item && { paidBy: 'purchase' as const }),
      ...(staffReason !== undefined && { staffReason }),
      ...shopperPrice(purchase),
      ...recalls.factsOf({ item, line }),
    }
  }
}

function isPurchaseWide({ ith_kind }: Row<'protection_authorization'>): boolean {
  return ith_kind === null
}

/**
 * Tagged units whose right of this class is not used, in the order of the receipt. Agents release by receipt in the same
 * order, and show the goods in it. Goods that have left cannot be released: a shopper who shows the receipt then has other goods.
 */
export async function openUnits(
  query: Pick<UnitQuery, 'db' | 'nowMs' | 'pastMs' | 'agentId'>,
  { purchase_id: purchaseId }: Row<'purchase'>,
  rightClass: RightClass,
): Promise<OpenUnit[]> {
  const { db } = query
  const units = (await readUnits(db, purchaseId)).toSorted((a, b) => placeOf(a) - placeOf(b))
  const stored = await allRightsOf(db, purchaseId)
  const rightsIn = (each: RightClass) =>
    units.map((unit) => {
      const key = { lineId: unit.line_id, unitNo: unit.unit_no, rightClass: each, purchaseId }
      return { key, row: stored.get(rightName(key)) }
    })
  const rights = rightsIn(rightClass)
  const views = await rightsOf(query, rights)
  const exits = rightClass === 'release' ? await rightsOf(query, rightsIn('exit')) : []
  return units.flatMap((unit, n) => {
    const [known, right] = [rights[n], views[n]]
    const isOpen = right && right.state !== 'used' && exits[n]?.state !== 'used'
    return known && isOpen ? [{ unit, key: known.key, right, tries: triesOf(known.row) }] : []
  })
}

/** Place of a unit in the receipt. Units without one are the last. */
function placeOf({ receipt_index: place }: Pick<Row<'purchase_unit'>, 'receipt_index'>): number {
  return place ?? Number.MAX_SAFE_INTEGER
}

/**
 * True if this device may get one token for all these units (ADR releases). Either staff count the goods at the device, or
 * the device can read none of the goods. An unbound unit may be any item. So a device that can read tags gets no token
 * for all units if one unit is unbound.
 */
function mayHoldPurchaseWide(device: DeviceFacts, items: readonly (Row<'protected_item'> | undefined)[]): boolean {
  if (device.workflowType === 'staff_assisted' || device.workflowType === 'pos_integrated') return true
  if (!device.capabilities.canReadUhfRfid && !device.capabilities.canReadHfNfc) return true
  return items.every((item) => item !== undefined && !mightRead(device, item))
}
