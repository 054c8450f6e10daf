import type { ItemFacts } from '../../../policy/decide.ts'
import type { DeviceFacts } from '../../../policy/devices.ts'
import type { ItemIdentifiers } from '../../../policy/item-identifiers.ts'
import { rightClassOf, type ItemStatus, type ProtectionAction, type RightClass } from '../../../policy/vocabulary.ts'
import { invalid } from '../../foundation/failure.ts'
import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import type { ProtectedItemRow, UnitRightRow } from '../../persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow, PurchaseUnitRow } from '../../persistence/tables/purchases.ts'
import { findPurchase, readUnits } from '../../purchases/queries.ts'
import { findItem } from '../items/item-queries.ts'
import { standaloneUnitOf } from '../items/standalone-unit.ts'
import { itemAsOf, purchaseAsOf, rightAsOf } from '../rights/past-state.ts'
import { viewGrantableRight } from '../rights/delegated-rights.ts'
import { findRight, triesOf, type RightView, type Tries, type UnitKey } from '../rights/rights.ts'
import { isPaid, itemBoundTo, itemFacts, lineFacts, readableBy, shopperPrice } from './item-facts.ts'
import { lowestBy, unitToBind } from './unit-to-bind.ts'

/**
 *   epc, tagUid, tagId ─▶ item ─┬─ bound to a unit of a purchase ──────────▶ that unit
 *                               ├─ sellable, and the request names a paid purchase ─▶ the unit to bind it to
 *                               └─ neither ───────────────────────────────▶ the standalone unit of the item
 *   itemLineId ─▶ line ─▶ its lowest free unit that the device cannot read
 *
 * The item or purchase unit that a request names, with the right that the action uses. A standalone unit belongs to an
 * item that has no purchase in untag (../items/standalone-unit.ts).
 */
export interface ResolvedUnit {
  facts: ItemFacts
  /** Status in the response; null without a registered item. */
  itemStatus: ItemStatus | null
  /** Absent for actions that use no right: `verify_item_status`, `unlock_fixture`. */
  unit?: { key: UnitKey; right: RightView; tries: Tries }
  item?: ProtectedItemRow
  purchase?: PurchaseRow
  /**
   * Purchase that the request names but the item does not belong to. After payment the item may be bound to this
   * purchase.
   */
  named?: PurchaseRow
  /** True if the device can read the item of the unit. The request must then name the tag. */
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
  purchase: PurchaseRow | undefined
  nowMs: number
  /** Time of a past request, ms; `purchase` then has the state of that time. Undefined for a live request. */
  pastMs: number | undefined
}

const lineById = prepared((db, p: { lineId: string }) =>
  db.selectFrom('purchase_line').selectAll().where('line_id', '=', p.lineId),
)
const priceOfLine = prepared((db, p: { lineId: string }) =>
  db.selectFrom('purchase_line').select('price_cent').where('line_id', '=', p.lineId),
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
async function itemAtQueryTime({ db, purchase, pastMs }: UnitQuery, item: ProtectedItemRow): Promise<ProtectedItemRow> {
  if (pastMs === undefined) return item
  const then = await itemAsOf(db, item, pastMs)
  const isBoundSince =
    then.item_status === 'sellable' && item.purchase_id !== null && item.purchase_id === purchase?.purchase_id
  return isBoundSince ? { ...item, item_status: then.item_status } : then
}

async function findPurchaseAsOf(
  { db, tenant, pastMs }: UnitQuery,
  purchaseId: string,
): Promise<PurchaseRow | undefined> {
  const purchase = await findPurchase(db, tenant, purchaseId)
  return purchase && pastMs !== undefined ? purchaseAsOf(db, purchase, pastMs) : purchase
}

/** State of a unit's right for this agent: now, or at the time of a past request. */
export function rightOf(
  { db, nowMs, pastMs, agentId }: Pick<UnitQuery, 'db' | 'nowMs' | 'pastMs' | 'agentId'>,
  key: UnitKey,
  row: UnitRightRow | undefined,
): Promise<RightView> {
  return pastMs === undefined ? viewGrantableRight(db, key, row, nowMs, agentId) : rightAsOf(db, key, pastMs)
}

interface Line {
  line: PurchaseLineRow
  purchase: PurchaseRow
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
async function byItem(query: UnitQuery, item: ProtectedItemRow, line: Line | undefined): Promise<ResolvedUnit> {
  const { db, action, pastMs } = query
  const rights = rightUsedBy(action)
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
    const [purchase, [paid], stored] = await Promise.all([
      findPurchaseAsOf(query, item.purchase_id),
      priceOfLine(db, { lineId: item.line_id }),
      key && findRight(db, key),
    ])
    const isBoundSince =
      pastMs !== undefined && item.item_status === 'sellable' && purchase !== undefined && isPaid(purchase)
    const facts: ItemFacts = {
      ...(await itemFacts(db, item, paid?.price_cent)),
      ...(isBoundSince && { paidBy: 'purchase' as const }),
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
      ...(await itemFacts(db, item, unit.line.price_cent)),
      paidBy: 'purchase',
      ...shopperPrice(purchase),
    }
    return withRight(query, { item, key: unit.key, facts, purchase, right: unit.right })
  }
  const key = rights && { ...(await standaloneUnitOf(db, item.item_id)), rightClass: rights }
  return {
    ...(await withRight(query, { item, key, facts: await itemFacts(db, item, undefined) })),
    ...(purchase && { named: purchase }),
  }
}

/** Resolves a purchase line to its best unit (`rankOf`). Prefers units whose item the device cannot read. */
async function byLine(query: UnitQuery, { line, purchase }: Line): Promise<ResolvedUnit | undefined> {
  const { db, action } = query
  const units = (await readUnits(db, purchase.purchase_id)).filter((u) => u.line_id === line.line_id)
  if (units.length === 0) return undefined
  const rights = rightUsedBy(action)
  const candidates = await Promise.all(units.map((unit) => candidateOf(query, unit, rights, purchase)))
  const open = candidates.filter((c) => !c.readable)
  const chosen = lowestBy(open, (c) => c.rank) ?? candidates[0]
  if (!chosen) return undefined
  const paid = isPaid(purchase)
  const facts: ItemFacts = {
    ...(chosen.item ? await itemFacts(db, chosen.item, line.price_cent) : lineFacts(line)),
    status: chosen.item ? (chosen.item.item_status as ItemStatus) : paid ? 'paid' : 'sellable',
    ...(paid && !chosen.item && { paidBy: 'purchase' as const }),
    ...shopperPrice(purchase),
  }
  const mustBeRead = chosen.readable && rights !== null
  return {
    ...(await withRight(query, {
      key: chosen.key,
      facts,
      purchase,
      ...(chosen.item && { item: chosen.item }),
    })),
    mustBeRead,
  }
}

async function candidateOf(query: UnitQuery, unit: PurchaseUnitRow, rights: RightClass | null, purchase: PurchaseRow) {
  const item = await itemBoundTo(query.db, unit, query.pastMs)
  const key = rights && {
    lineId: unit.line_id,
    unitNo: unit.unit_no,
    rightClass: rights,
    purchaseId: purchase.purchase_id,
  }
  const right = key && (await rightOf(query, key, await findRight(query.db, key)))
  return { key, item, readable: item !== undefined && readableBy(query.device, item), rank: rankOf(query, right, item) }
}

/**
 * Order of preference: units leased to this device, free units, units leased elsewhere, units on hold or returned,
 * used units.
 */
function rankOf({ deviceId }: UnitQuery, right: RightView | null, item: ProtectedItemRow | undefined): number {
  if (right === null) return 0
  if (right.state === 'used') return 4
  if (item && item.item_status !== 'paid' && item.item_status !== 'picked_up') return 3
  if (right.state !== 'leased') return 1
  return right.deviceId === deviceId ? 0 : 2
}

function rightUsedBy(action: ProtectionAction): RightClass | null {
  const rights = rightClassOf(action)
  return rights === 'fixture' ? null : rights
}

interface Parts {
  facts: ItemFacts
  key: UnitKey | null
  /** Stored right of `key`, if the caller has read it already; null if there is none. */
  stored?: UnitRightRow | null
  /** State that replaces the stored right of `key`, such as a lease of the unit's other right class. */
  right?: RightView
  item?: ProtectedItemRow
  purchase?: PurchaseRow
}

async function withRight(query: UnitQuery, { facts, key, item, purchase, ...found }: Parts): Promise<ResolvedUnit> {
  const common = {
    itemStatus: facts.status,
    mustBeRead: false,
    ...(item && { item }),
    ...(purchase && { purchase }),
  }
  if (!key) return { facts, ...common }
  const row = found.stored === undefined ? await findRight(query.db, key) : (found.stored ?? undefined)
  const right = found.right ?? (await rightOf(query, key, row))
  const staffReason = facts.staffReason ?? (right.state === 'used' ? undefined : right.staffReason)
  return {
    facts: { ...facts, ...(staffReason !== undefined && { staffReason }) },
    unit: { key, right, tries: triesOf(row) },
    ...common,
  }
}
