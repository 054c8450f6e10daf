import type { ItemFacts } from '../../../policy/decide.ts'
import { canRead, type DeviceFacts } from '../../../policy/devices.ts'
import { ITEM_IDENTIFIER_KINDS, type ItemIdentifierKind, type ItemIdentifiers } from '../../../policy/identifiers.ts'
import {
  rightClass,
  type ItemStatus,
  type ProtectionAction,
  type ProtectionTechnology,
  type RightClass,
} from '../../../policy/vocabulary.ts'
import { invalid } from '../../operations/failure.ts'
import { present } from '../../operations/fields.ts'
import type { Db } from '../../persistence/database.ts'
import { prepared } from '../../persistence/prepared.ts'
import type { ProtectedItemRow, UnitRightRow } from '../../persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow, PurchaseUnitRow } from '../../persistence/tables/purchases.ts'
import { findPurchase, readUnits } from '../../scan-and-go/queries.ts'
import { itemAsOf, purchaseAsOf, rightAsOf } from './as-of.ts'
import { viewGranting } from '../rights/given-rights.ts'
import { findItem, readItem } from '../items/item-queries.ts'
import { isComplete, productOf } from '../items/item-product.ts'
import { ownUnitOf } from '../items/own-unit.ts'
import { findRight, rightsOfPurchase, triesOf, type RightView, type Tries, type UnitKey } from '../rights/rights.ts'
import { lowestBy, unitToBind } from './unit-to-bind.ts'

/** What a request is about: one item or one unit of a purchase, with the right it would use up. */
export interface Subject {
  facts: ItemFacts
  /** As it is answered; null when nothing registered stands behind it. */
  itemStatus: ItemStatus | null
  /** Absent for actions that use nothing up (verify_item_status, unlock_fixture). */
  unit?: { key: UnitKey; right: RightView; tries: Tries }
  item?: ProtectedItemRow
  purchase?: PurchaseRow
  /** The purchase that was named along with an item that is none of it: once it is paid, the item may become one. */
  named?: PurchaseRow
  /** The item is still sellable and will be bound to the unit when this is granted. */
  binds: boolean
  /** The line's unit is bound to something that the device can read. */
  mustBeRead: boolean
}

export interface SubjectQuery {
  db: Db
  tenant: string
  storeId: string
  deviceId: string
  /** Whose device it is; null: one without agent. */
  agentId: string | null
  device: DeviceFacts
  action: ProtectionAction
  identifiers: ItemIdentifiers
  /** The purchase that a receipt or a purchaseId names. */
  purchase: PurchaseRow | undefined
  nowMs: number
  /** When it was asked about, if that is past; `purchase` is then as it was. */
  pastMs: number | undefined
}

/** Statuses of purchases that were paid and have not been taken back. */
export function isPaid(purchase: { status: string }): boolean {
  return purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
}

const lineById = prepared((db, p: { lineId: string }) =>
  db.selectFrom('purchase_line').selectAll().where('line_id', '=', p.lineId),
)
const priceOfLine = prepared((db, p: { lineId: string }) =>
  db.selectFrom('purchase_line').select('price_cent').where('line_id', '=', p.lineId),
)

/** The item or unit behind the names of a request, or undefined when there is none in this store. */
export async function findSubject(query: SubjectQuery): Promise<Subject | undefined> {
  const { db, tenant, storeId, identifiers } = query
  const known = await findItem(db, tenant, identifiers)
  const item = known && (await asItWas(query, known))
  if (item && item.store_id !== storeId) return undefined
  const line = identifiers.itemLineId === undefined ? undefined : await findLine(query, identifiers.itemLineId)
  if (identifiers.itemLineId !== undefined && !line) return undefined
  const namesItem = identifiers.epc !== undefined || identifiers.tagUid !== undefined || identifiers.tagId !== undefined
  if (item) return itemSubject(query, item, line)
  return namesItem || !line ? undefined : lineSubject(query, line)
}

/** One that was bound to the purchase afterwards, by the very release or exit that this is about, is a part of it. */
async function asItWas({ db, purchase, pastMs }: SubjectQuery, item: ProtectedItemRow): Promise<ProtectedItemRow> {
  if (pastMs === undefined) return item
  const then = await itemAsOf(db, item, pastMs)
  const isBoundSince =
    then.item_status === 'sellable' && item.purchase_id !== null && item.purchase_id === purchase?.purchase_id
  return isBoundSince ? { ...item, item_status: then.item_status } : then
}

async function findPurchaseAsOf(
  { db, tenant, pastMs }: SubjectQuery,
  purchaseId: string,
): Promise<PurchaseRow | undefined> {
  const purchase = await findPurchase(db, tenant, purchaseId)
  return purchase && pastMs !== undefined ? purchaseAsOf(db, purchase, pastMs) : purchase
}

function rightOf(
  { db, nowMs, pastMs, agentId }: Pick<SubjectQuery, 'db' | 'nowMs' | 'pastMs' | 'agentId'>,
  key: UnitKey,
  row: UnitRightRow | undefined,
): Promise<RightView> {
  return pastMs === undefined ? viewGranting(db, key, row, nowMs, agentId) : rightAsOf(db, key, pastMs)
}

interface Line {
  line: PurchaseLineRow
  purchase: PurchaseRow
}

async function findLine(query: SubjectQuery, lineId: string): Promise<Line | undefined> {
  const { db, storeId, purchase: named } = query
  const [line] = await lineById(db, { lineId })
  const purchase = line && (await findPurchaseAsOf(query, line.purchase_id))
  if (!purchase || purchase.store_id !== storeId) return undefined
  if (named && named.purchase_id !== purchase.purchase_id) throw invalid('itemLineId', 'belongs to another purchase')
  return { line, purchase }
}

/** By the item itself: its unit when it is bound to one, else the free unit of a paid purchase that it may be bound to. */
async function itemSubject(query: SubjectQuery, item: ProtectedItemRow, line: Line | undefined): Promise<Subject> {
  const { db, action, pastMs } = query
  const rights = usedUpBy(action)
  if (item.purchase_id !== null && item.line_id !== null && item.unit_no !== null) {
    if (line && line.line.line_id !== item.line_id)
      throw invalid('itemLineId', 'names another item than the other identifier')
    const purchase = await findPurchaseAsOf(query, item.purchase_id)
    const key = rights && {
      lineId: item.line_id,
      unitNo: item.unit_no,
      rightClass: rights,
      purchaseId: item.purchase_id,
    }
    const [paid] = await priceOfLine(db, { lineId: item.line_id })
    const isBoundSince =
      pastMs !== undefined && item.item_status === 'sellable' && purchase !== undefined && isPaid(purchase)
    const facts: ItemFacts = {
      ...(await itemFacts(db, item, paid?.price_cent)),
      ...(isBoundSince && { paidBy: 'purchase' as const }),
    }
    return withRight(query, { item, key, facts, binds: false, ...(purchase && { purchase }) })
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
    return withRight(query, { item, key: unit.key, facts, binds: true, purchase, right: unit.right })
  }
  const key = rights && { ...(await ownUnitOf(db, item.item_id)), rightClass: rights }
  return {
    ...(await withRight(query, { item, key, facts: await itemFacts(db, item, undefined), binds: false })),
    ...(purchase && { named: purchase }),
  }
}

/** By the line alone: its lowest free unit that the device could not read by itself. */
async function lineSubject(query: SubjectQuery, { line, purchase }: Line): Promise<Subject | undefined> {
  const { db, action } = query
  const units = (await readUnits(db, purchase.purchase_id)).filter((u) => u.line_id === line.line_id)
  if (units.length === 0) return undefined
  const rights = usedUpBy(action)
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
      binds: false,
      purchase,
      ...(chosen.item && { item: chosen.item }),
    })),
    mustBeRead,
  }
}

async function candidateOf(
  query: SubjectQuery,
  unit: PurchaseUnitRow,
  rights: RightClass | null,
  purchase: PurchaseRow,
) {
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
 * What this device was given for it is answered again; what another one holds is only taken when nothing else is left, and what nobody is
 * given (on hold, returned) is told only when nothing may be released.
 */
function rankOf({ deviceId }: SubjectQuery, right: RightView | null, item: ProtectedItemRow | undefined): number {
  if (right === null) return 0
  if (right.state === 'used') return 4
  if (item && item.item_status !== 'paid' && item.item_status !== 'picked_up') return 3
  if (right.state !== 'leased') return 1
  return right.deviceId === deviceId ? 0 : 2
}

function usedUpBy(action: ProtectionAction): RightClass | null {
  const rights = rightClass(action)
  return rights === 'fixture' ? null : rights
}

/** The item that a unit is bound to, or was then. */
export async function itemBoundTo(
  db: Db,
  unit: PurchaseUnitRow,
  pastMs: number | undefined,
): Promise<ProtectedItemRow | undefined> {
  if (unit.bound !== 1 || unit.item_id === null) return undefined
  const item = await readItem(db, unit.item_id)
  if (pastMs === undefined) return item
  const then = await itemAsOf(db, item, pastMs)
  return then.line_id === unit.line_id && then.unit_no === unit.unit_no ? then : undefined
}

/** The ways in which a registered item can be named. */
export function identifierKindsOf(item: ProtectedItemRow): ItemIdentifierKind[] {
  const names = present({ epc: item.epc, tagUid: item.tag_uid, tagId: item.tag_id })
  return ITEM_IDENTIFIER_KINDS.filter((kind) => kind in names)
}

/** Whether the device has a reader for the item. A printed tag number is read by people, not by devices. */
export function readableBy(device: DeviceFacts, item: ProtectedItemRow): boolean {
  return identifierKindsOf(item).some((kind) => (kind === 'epc' || kind === 'tagUid') && canRead(device, kind))
}

/** Whether the device may have a reader for the item: by what is registered of it, and for one of which only a printed number is, by its technology. */
export function mightRead(device: DeviceFacts, item: ProtectedItemRow): boolean {
  if (item.epc !== null || item.tag_uid !== null) return readableBy(device, item)
  const technology = item.protection_technology
  if (technology === null) return true
  return (
    (technology === 'uhf_rfid' && device.capabilities.canReadUhfRfid) ||
    (technology === 'hf_nfc' && device.capabilities.canReadHfNfc)
  )
}

function shopperPrice(purchase: PurchaseRow): Pick<ItemFacts, 'staffReason'> {
  return purchase.price_origin === 'shopper' ? { staffReason: 'only the shopper’s app vouches for the price' } : {}
}

/** What the policy wants to know of a line. */
export function lineFacts(line: PurchaseLineRow): ItemFacts {
  return { status: null, category: line.category ?? '', brand: line.brand ?? '', priceCent: line.price_cent }
}

/** What is known of an item; its price is what was paid for it, else its own, else the product's in the store. */
export async function itemFacts(db: Db, item: ProtectedItemRow, paidCent: number | undefined): Promise<ItemFacts> {
  const price = paidCent ?? item.price_cent
  const product = isComplete(item, price) ? undefined : await productOf(db, item)
  return {
    status: item.item_status as ItemStatus,
    category: item.category ?? product?.category ?? '',
    brand: item.brand ?? product?.brand ?? '',
    priceCent: price ?? product?.price_cent ?? undefined,
    technology: (item.protection_technology as ProtectionTechnology | null) ?? undefined,
  }
}

interface Found {
  facts: ItemFacts
  key: UnitKey | null
  /** As it stands, when that is not the right of the key alone. */
  right?: RightView
  binds: boolean
  item?: ProtectedItemRow
  purchase?: PurchaseRow
}

async function withRight(
  query: SubjectQuery,
  { facts, key, binds, item, purchase, ...found }: Found,
): Promise<Subject> {
  const subject = {
    itemStatus: facts.status,
    binds,
    mustBeRead: false,
    ...(item && { item }),
    ...(purchase && { purchase }),
  }
  if (!key) return { facts, ...subject }
  const row = await findRight(query.db, key)
  const right = found.right ?? (await rightOf(query, key, row))
  const staffReason = facts.staffReason ?? (right.state === 'used' ? undefined : right.staffReason)
  return {
    facts: { ...facts, ...(staffReason !== undefined && { staffReason }) },
    unit: { key, right, tries: triesOf(row) },
    ...subject,
  }
}

/** The tagged units of a purchase whose right of this class is not used up, lowest first. */
export async function openUnits(
  query: Pick<SubjectQuery, 'db' | 'nowMs' | 'pastMs' | 'agentId'>,
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
