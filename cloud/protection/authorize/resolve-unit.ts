import { assert } from '../../../policy/assert.ts'
import { rightUsedFor, type ItemFacts } from '../../../policy/decide.ts'
import { RECALLED } from '../../../policy/item-status.ts'
import type { DeviceFacts } from '../../../policy/devices.ts'
import type { ItemIdentifiers } from '../../../policy/item-identifiers.ts'
import {
  rightClassOf,
  type ItemStatus,
  type ProtectionAction,
  type RightClass,
  RIGHT_CLASSES,
} from '../../../policy/vocabulary.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { type Db, groupBy } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { valueOf } from '../../shop/purchases/line-value.ts'
import { findPurchase, readUnits, readLines } from '../../shop/purchases/queries.ts'
import { findItem } from '../items/item-queries.ts'
import { standaloneUnitOf } from '../items/standalone-unit.ts'
import { recallsIn, type RecallableGoods, type StoreRecalls } from '../items/recalls.ts'
import { itemAsOf, purchaseAsOf, rightsAsOf } from '../rights/past-state.ts'
import { viewGrantableRights, type StoredRight } from '../rights/delegated-rights.ts'
import {
  allRightsOf,
  findRight,
  rightName,
  triesOf,
  type RightView,
  type Tries,
  type UnitKey,
  viewRight,
  type UnitRight,
} from '../rights/rights.ts'
import { isPaid, itemsBoundTo, itemFacts, lineFacts, mustBeReadAt, shopperPrice } from './item-facts.ts'
import { findAuthorization } from '../leases/authorizations.ts'

/** A purchase unit that an item may be bound to. */
interface BindableUnit {
  key: UnitKey
  line: Row<'purchase_line'>
  /**
   * State of the unit's right. A unit is bound to one item only. So if another right of the unit is leased for another
   * item, `right` is that lease, and it blocks the unit.
   */
  right: RightView
}

/** `agentId`: agent of the device; null for a device without an agent. */
interface BindQuery {
  db: Db
  nowMs: number
  agentId: string | null
}

/**
 * Finds an unbound unit of the same product to which this item can be bound (ADR sales). Prefers a unit that is leased
 * for this item, then the lowest free unit, then a unit leased for another item. `only` restricts the search to one
 * line. Returns undefined if no unit is left.
 */
async function unitToBind(
  { db, nowMs, agentId }: BindQuery,
  purchase: Row<'purchase'>,
  item: Row<'protected_item'>,
  rights: RightClass,
  only: Row<'purchase_line'> | undefined,
): Promise<BindableUnit | undefined> {
  if (item.product_id === null) return undefined
  const { purchase_id: purchaseId } = purchase
  const lines = only ? [only] : await readLines(db, purchaseId)
  const units = groupBy(
    (await readUnits(db, purchaseId)).filter((unit) => unit.bound === 0),
    (unit) => unit.line_id,
  )
  const stored = await allRightsOf(db, purchaseId)
  const free = lines
    .filter((line) => line.product_id === item.product_id)
    .flatMap((line) => (units.get(line.line_id) ?? []).map((unit) => ({ line, unit })))
    .map(({ line, unit }) => {
      const key = { lineId: line.line_id, unitNo: unit.unit_no, rightClass: rights, purchaseId }
      return { line, key, row: stored.get(rightName(key)) }
    })
  const views = await viewGrantableRights(db, free, nowMs, agentId)
  const leasedFor = leasedItems(db)
  const found: (BindableUnit & { rank: number })[] = []
  for (const [n, { key, line }] of free.entries()) {
    const own = views[n]
    if (!own || own.state === 'used' || hasLeft(stored, key, nowMs)) continue
    const others: { right: RightView; leasedItem: string | null | undefined }[] = []
    for (const rightClass of RIGHT_CLASSES.filter((each) => each !== rights)) {
      const right = viewRight(stored.get(rightName({ ...key, rightClass })), nowMs)
      others.push({ right, leasedItem: await leasedFor(right) })
    }
    const isForItem = [{ leasedItem: await leasedFor(own) }, ...others].some(
      ({ leasedItem }) => leasedItem === item.item_id,
    )
    // A purchase-wide lease (null) does not block this item.
    const forOther = isForItem ? undefined : others.find(({ leasedItem }) => typeof leasedItem === 'string')?.right
    const rank = isForItem ? 0 : own.state === 'free' && !forOther ? 1 : 2
    found.push({ key, line, right: own.state === 'free' && forOther ? forOther : own, rank })
  }
  return lowestBy(found, ({ rank }) => rank)
}

/** True if the goods of a unit that names no item have left. A shopper who shows the receipt afterwards has other goods. */
function hasLeft(stored: ReadonlyMap<string, UnitRight>, key: UnitKey, nowMs: number): boolean {
  return viewRight(stored.get(rightName({ ...key, rightClass: 'exit' })), nowMs).state === 'used'
}

/**
 * Returns a function that returns the item of a right's lease; null for a purchase-wide lease, undefined without a
 * lease. It reads each lease once.
 */
function leasedItems(db: Db): (right: RightView) => Promise<string | null | undefined> {
  const items = new Map<string, string | null>()
  return async (right) => {
    if (right.state !== 'leased') return undefined
    const known = items.get(right.nonce)
    if (known !== undefined) return known
    const item = (await findAuthorization(db, right.nonce))?.item_id ?? null
    items.set(right.nonce, item)
    return item
  }
}

/** Returns the first entry with the lowest rank. */
function lowestBy<T>(all: readonly T[], rankOf: (each: T) => number): T | undefined {
  let lowest: { each: T; rank: number } | undefined
  for (const each of all) {
    const rank = rankOf(each)
    if (!lowest || rank < lowest.rank) lowest = { each, rank }
  }
  return lowest?.each
}

/**
 *   epc, tagUid, tagId ─▶ item ─┬─ bound to a unit of a purchase ──────────▶ that unit
 *                               ├─ sellable, and the request names a paid purchase ─▶ the unit to bind it to
 *                               └─ neither ───────────────────────────────▶ the standalone unit of the item
 *   itemLineId ─▶ line ─▶ its lowest free unit whose tag the device need not read
 *
 * The item or purchase unit that a request names, with the right that the action uses. A standalone unit belongs to an
 * item that has no purchase in untag (../items/standalone-unit.ts).
 */
export interface ResolvedUnit {
  facts: ItemFacts
  /** Status in the response; null without a registered item. */
  itemStatus: ItemStatus | null
  /** Absent if the action uses no right: `verify_item_status`, and `unlock_fixture` for goods that are not paid. */
  unit?: { key: UnitKey; right: RightView; tries: Tries }
  item?: Row<'protected_item'>
  purchase?: Row<'purchase'>
  /**
   * Purchase that the request names but the item does not belong to. After payment the item may be bound to this
   * purchase.
   */
  named?: Row<'purchase'>
  /** True if the request names a line without tagged units. */
  isUntagged?: true
  /** True if the device must read the tag of the unit. The request must then name the tag. */
  mustBeRead: boolean
}

export interface UnitQuery {
  db: Db
  tenant: string
  storeId: string
  deviceId: string
  /** Agent of the device; null for a device without an agent. */
  agentId: string | null
  device: DeviceFacts
  action: ProtectionAction
  identifiers: ItemIdentifiers
  /** Purchase named by a receipt or `purchaseId`. */
  purchase: Row<'purchase'> | undefined
  nowMs: number
  /** Time of a past request, ms; `purchase` then has the state of that time. Undefined for a live request. */
  pastMs: number | undefined
}

const lineById = prepared((db, p: { lineId: string }) =>
  db.selectFrom('purchase_line').selectAll().where('line_id', '=', p.lineId),
)
const soldLine = prepared((db, p: { lineId: string }) =>
  db
    .selectFrom('purchase_line')
    .select(['price_cent', 'list_price_cent', 'product_id', 'lot', 'expiry', 'serial'])
    .where('line_id', '=', p.lineId),
)

/** Finds the item or unit that the identifiers name. Returns undefined if this store has no such item or unit. */
export async function resolveUnit(query: UnitQuery): Promise<ResolvedUnit | undefined> {
  const { db, tenant, storeId, identifiers } = query
  const known = await findItem(db, tenant, identifiers)
  const item = known && (await itemAtQueryTime(query, known))
  if (item && item.store_id !== storeId) return undefined
  const line = identifiers.itemLineId === undefined ? undefined : await findLine(query, identifiers.itemLineId)
  if (identifiers.itemLineId !== undefined && !line) return undefined
  const namesItem = identifiers.epc !== undefined || identifiers.tagUid !== undefined || identifiers.tagId !== undefined
  if (item) return byItem(query, item, line)
  return namesItem || !line ? undefined : byLine(query, line)
}

/**
 * The item at the time of the request. If the item was `sellable` then and is bound to the purchase now, the result
 * keeps the binding, because the release in this request made the binding.
 */
async function itemAtQueryTime(
  { db, purchase, pastMs }: UnitQuery,
  item: Row<'protected_item'>,
): Promise<Row<'protected_item'>> {
  if (pastMs === undefined) return item
  const then = await itemAsOf(db, item, pastMs)
  const isBoundSince =
    then.item_status === 'sellable' && item.purchase_id !== null && item.purchase_id === purchase?.purchase_id
  return isBoundSince ? { ...item, item_status: then.item_status } : then
}

async function findPurchaseAsOf(
  { db, tenant, pastMs }: UnitQuery,
  purchaseId: string,
): Promise<Row<'purchase'> | undefined> {
  const purchase = await findPurchase(db, tenant, purchaseId)
  return purchase && pastMs !== undefined ? purchaseAsOf(db, purchase, pastMs) : purchase
}

/** States of units' rights of one class for this agent: now, or at the time of a past request. */
export function rightsOf(
  { db, nowMs, pastMs, agentId }: Pick<UnitQuery, 'db' | 'nowMs' | 'pastMs' | 'agentId'>,
  rights: readonly StoredRight[],
): Promise<RightView[]> {
  return pastMs === undefined ? viewGrantableRights(db, rights, nowMs, agentId) : rightsAsOf(db, rights, pastMs)
}

async function rightOf(query: UnitQuery, right: StoredRight): Promise<RightView> {
  const [view] = await rightsOf(query, [right])
  assert(view, 'each right has a state')
  return view
}

/** Purchase of a line, in any store of the account. */
export async function purchaseOfLine(db: Db, tenant: string, lineId: string): Promise<Row<'purchase'> | undefined> {
  const [line] = await lineById(db, { lineId })
  return line && findPurchase(db, tenant, line.purchase_id)
}

interface Line {
  line: Row<'purchase_line'>
  purchase: Row<'purchase'>
}

async function findLine(query: UnitQuery, lineId: string): Promise<Line | undefined> {
  const { db, storeId, purchase: named } = query
  const [line] = await lineById(db, { lineId })
  const purchase = line && (await findPurchaseAsOf(query, line.purchase_id))
  if (!purchase || purchase.store_id !== storeId) return undefined
  if (named && named.purchase_id !== purchase.purchase_id) throw invalid('itemLineId', 'belongs to another purchase')
  return { line, purchase }
}

/**
 * Resolves an item to its unit: the unit that it is bound to, else a free unit of the paid purchase, else its
 * standalone unit.
 */
async function byItem(query: UnitQuery, item: Row<'protected_item'>, line: Line | undefined): Promise<ResolvedUnit> {
  const { db, action, pastMs } = query
  const rights = rightClassOf(action)
  if (item.purchase_id !== null && item.line_id !== null && item.unit_no !== null) {
    if (line && line.line.line_id !== item.line_id)
      throw invalid('itemLineId', 'names another item than the other identifier')
    const key = rights && {
      lineId: item.line_id,
      unitNo: item.unit_no,
      rightClass: rights,
      purchaseId: item.purchase_id,
    }
    // Sends the queries together, so that PostgreSQL needs one round trip.
    const [purchase, [sold], stored] = await Promise.all([
      findPurchaseAsOf(query, item.purchase_id),
      soldLine(db, { lineId: item.line_id }),
      key && findRight(db, key),
    ])
    const isBoundSince =
      pastMs !== undefined && item.item_status === 'sellable' && purchase !== undefined && isPaid(purchase)
    const facts: ItemFacts = {
      ...(await itemFacts(db, item, sold && valueOf(sold))),
      ...(isBoundSince && { paidBy: 'purchase' as const }),
      ...(await recallOf(query, item, sold)),
    }
    return withRight(query, { item, key, facts, stored: stored ?? null, ...(purchase && { purchase }) })
  }
  const purchase = line?.purchase ?? query.purchase
  const unit =
    purchase && item.item_status === 'sellable' && rights && isPaid(purchase)
      ? await unitToBind(query, purchase, item, rights, line?.line)
      : undefined
  if (unit && purchase) {
    const facts: ItemFacts = {
      ...(await itemFacts(db, item, valueOf(unit.line))),
      paidBy: 'purchase',
      ...shopperPrice(purchase),
      ...(await recallOf(query, item, unit.line)),
    }
    return withRight(query, { item, key: unit.key, facts, purchase, right: unit.right })
  }
  const key = rights && { ...(await standaloneUnitOf(db, item.item_id)), rightClass: rights }
  const facts: ItemFacts = { ...(await itemFacts(db, item, undefined)), ...(await recallOf(query, item, line?.line)) }
  return {
    ...(await withRight(query, { item, key, facts })),
    ...(purchase && { named: purchase }),
  }
}

/** Resolves a purchase line to its best unit (`rankOf`). Prefers units whose tag the device need not read. */
async function byLine(query: UnitQuery, { line, purchase }: Line): Promise<ResolvedUnit | undefined> {
  const { db, action } = query
  const units = (await readUnits(db, purchase.purchase_id)).filter((u) => u.line_id === line.line_id)
  const paid = isPaid(purchase)
  if (units.length === 0) {
    const facts: ItemFacts = {
      ...lineFacts(line),
      status: paid ? 'paid' : 'sellable',
      ...(await recallOf(query, undefined, line)),
    }
    return { facts, itemStatus: null, purchase, mustBeRead: false, isUntagged: true }
  }
  const rights = rightClassOf(action)
  const recalls = await recallsOf(query)
  const candidates = await candidatesOf(query, units, rights, purchase, (item) => recalls.stop({ item, line }))
  const open = candidates.filter((c) => !c.mustBeRead)
  const chosen = lowestBy(open, (c) => c.rank) ?? candidates[0]
  if (!chosen) return undefined
  const facts: ItemFacts = {
    ...(chosen.item ? await itemFacts(db, chosen.item, valueOf(line)) : lineFacts(line)),
    status: chosen.item ? (chosen.item.item_status as ItemStatus) : paid ? 'paid' : 'sellable',
    ...(paid && !chosen.item && { paidBy: 'purchase' as const }),
    ...shopperPrice(purchase),
    ...(chosen.isStopped && RECALLED),
  }
  const mustBeRead = chosen.mustBeRead && rights !== null
  return {
    ...(await withRight(query, {
      key: chosen.key,
      facts,
      purchase,
      ...(chosen.item && { item: chosen.item }),
      ...(chosen.gone && { right: chosen.gone }),
    })),
    mustBeRead,
  }
}

async function candidatesOf(
  query: UnitQuery,
  units: readonly Row<'purchase_unit'>[],
  rights: RightClass | null,
  { purchase_id: purchaseId }: Row<'purchase'>,
  isStoppedBy: (item: Row<'protected_item'> | undefined) => boolean,
) {
  const items = await itemsBoundTo(query.db, units, query.pastMs)
  const stored = rights && (await allRightsOf(query.db, purchaseId))
  const known = units.flatMap((unit) => {
    const key = rights && { lineId: unit.line_id, unitNo: unit.unit_no, rightClass: rights, purchaseId }
    return key ? [{ key, row: stored?.get(rightName(key)) }] : []
  })
  const views = await rightsOf(query, known)
  const exits = known.map(({ key }) => ({ ...key, rightClass: 'exit' as const }))
  const left =
    rights === 'release'
      ? await rightsOf(
          query,
          exits.map((key) => ({ key, row: stored?.get(rightName(key)) })),
        )
      : []
  return units.map((_, n) => {
    const [item, key, right] = [items[n], known[n]?.key ?? null, views[n] ?? null]
    // A fixture hides its goods until it is open.
    const mustBeRead = rights !== 'open' && mustBeReadAt(query.device, item)
    const isStopped = isStoppedBy(item)
    // Goods that have left cannot be released: a request that names only the line is about other goods.
    const gone = left[n]?.state === 'used' ? left[n] : undefined
    return { key, item, mustBeRead, isStopped, gone, rank: rankOf(query, gone ?? right, item, isStopped) }
  })
}

/**
 * Order of preference: units leased to this device, free units, units leased elsewhere, units on hold, recalled or
 * returned, used units.
 */
function rankOf(
  { deviceId }: UnitQuery,
  right: RightView | null,
  item: Row<'protected_item'> | undefined,
  isStopped: boolean,
): number {
  if (right === null) return 0
  if (right.state === 'used') return 4
  if (isStopped) return 3
  if (item && item.item_status !== 'paid' && item.item_status !== 'picked_up') return 3
  if (right.state !== 'leased') return 1
  return right.deviceId === deviceId ? 0 : 2
}

function recallsOf({ db, tenant, storeId, pastMs }: UnitQuery): Promise<StoreRecalls> {
  return recallsIn(db, { tenant, store_id: storeId }, pastMs)
}

async function recallOf(
  query: UnitQuery,
  item: Row<'protected_item'> | undefined,
  line: RecallableGoods['line'],
): Promise<Partial<typeof RECALLED>> {
  return (await recallsOf(query)).factsOf({ item, line })
}

interface Parts {
  facts: ItemFacts
  key: UnitKey | null
  /** Stored right of `key`, if the caller has read it already; null if there is none. */
  stored?: UnitRight | null
  /** State that replaces the stored right of `key`, such as a lease of the unit's other right class. */
  right?: RightView
  item?: Row<'protected_item'>
  purchase?: Row<'purchase'>
}

async function withRight(query: UnitQuery, { facts, key, item, purchase, ...found }: Parts): Promise<ResolvedUnit> {
  const common = {
    itemStatus: facts.status,
    mustBeRead: false,
    ...(item && { item }),
    ...(purchase && { purchase }),
  }
  if (!key || rightUsedFor(query.action, facts) === null) return { facts, ...common }
  const row = found.stored === undefined ? await findRight(query.db, key) : (found.stored ?? undefined)
  const right = found.right ?? (await rightOf(query, { key, row }))
  const staffReason = facts.staffReason ?? (right.state === 'used' ? undefined : right.staffReason)
  return {
    facts: { ...facts, ...(staffReason !== undefined && { staffReason }) },
    unit: { key, right, tries: triesOf(row) },
    ...common,
  }
}
