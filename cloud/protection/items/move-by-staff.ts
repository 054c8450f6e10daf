import { newId } from '../../../policy/ids.ts'
import { RIGHT_CLASSES, type ItemStatus } from '../../../policy/vocabulary.ts'
import { deleteOpenReservations } from '../../shop/pickup-orders/queries.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { groupBy } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findPurchase } from '../../shop/purchases/queries.ts'
import type { MovedBy } from './item-moves.ts'
import { soldLines } from './recalls.ts'
import { updateItem, updateStatuses } from './item-queries.ts'
import { endStandaloneUnits } from './standalone-unit.ts'
import { returnUnits, revokeLease } from '../leases/leases.ts'
import { itemsWithTokens, revokeTokens } from '../leases/token-revocations.ts'
import { rightName, rightsOfUnits } from '../rights/rights.ts'

/** Statuses of goods that are back in the store. */
const CAME_BACK: ReadonlySet<ItemStatus> = new Set(['returned', 'cancelled', 'sellable'])

/**
 * Changes the status of an item on behalf of staff. The tokens for the item are revoked, and for goods on hold also the
 * tokens for their whole purchase. Returned goods lose all rights of their purchase. A `sellable` item also loses its
 * purchase and order.
 */
export async function moveByStaff(
  call: Call,
  item: Row<'protected_item'>,
  itemStatus: ItemStatus,
  by: MovedBy,
): Promise<Row<'protected_item'>> {
  const { db, nowMs } = call
  if (itemStatus === 'sellable')
    return updateItem(db, item, { item_status: itemStatus, ...(await clearPurchaseLinks(call, item)) }, nowMs, by)
  if (CAME_BACK.has(itemStatus)) await returnItems(call, [item])
  else if (itemStatus === 'exception_hold') await revokeLeases(call, item, 'its goods are on hold')
  else await revokeTokens(call, { kind: 'item', itemId: item.item_id }, `staff made its item ${itemStatus}`)
  return updateItem(db, item, { item_status: itemStatus }, nowMs, by)
}

/**
 * Purchases whose rights end with one report of returned goods. Goods of further ones are `returned` and alarm; their
 * rights end when they go back on sale.
 */
export const PURCHASES_LIMIT = 20

/** Does for goods that came back to a till what `moveByStaff` does for one, with few statements. Returns them by id. */
export async function moveBack(
  call: Call,
  items: readonly Row<'protected_item'>[],
  itemStatus: 'returned' | 'sellable',
  by: MovedBy,
): Promise<ReadonlyMap<string, Row<'protected_item'>>> {
  const unlinked = itemStatus === 'sellable' ? await unlinkPurchases(call, items) : undefined
  if (!unlinked) await returnItems(call, items, PURCHASES_LIMIT)
  const changes = items.map((item) => ({
    item,
    change: { item_status: itemStatus, ...unlinked?.get(item.item_id) },
  }))
  return updateStatuses(call.db, changes, call.nowMs, by)
}

/** Revokes the tokens for an item and for its unit. The rights stay as they are. */
export async function revokeLeases(call: Call, item: Row<'protected_item'>, reason: string): Promise<void> {
  const { purchase_id: purchaseId, line_id: lineId, unit_no: unitNo } = item
  await revokeTokens(call, { kind: 'item', itemId: item.item_id }, reason)
  if (purchaseId === null || lineId === null || unitNo === null) return
  for (const rightClass of RIGHT_CLASSES) await revokeLease(call, { lineId, unitNo, rightClass, purchaseId }, reason)
}

const NO_PURCHASE = { purchase_id: null, line_id: null, unit_no: null }

/**
 * Records that the goods came back: ends the rights and the standalone unit of the item, and deletes its reservations.
 * The result contains the columns to write. What only the line states about the goods stays with the item, so that a
 * recall still stops it.
 */
export async function clearPurchaseLinks(
  call: Call,
  item: Row<'protected_item'>,
): Promise<Partial<Row<'protected_item'>>> {
  return (await unlinkPurchases(call, [item])).get(item.item_id) ?? NO_PURCHASE
}

/** Does for many items what `clearPurchaseLinks` does for one. Returns the columns to write by item. */
async function unlinkPurchases(
  call: Call,
  items: readonly Row<'protected_item'>[],
): Promise<ReadonlyMap<string, Partial<Row<'protected_item'>>>> {
  const itemIds = items.map(({ item_id: itemId }) => itemId)
  await returnItems(call, items)
  await deleteOpenReservations(call.db, itemIds)
  await endStandaloneUnits(call, itemIds, newId('ret', call.services.platform))
  const lines = await soldLines(
    call.db,
    items.flatMap(({ line_id: lineId }) => lineId ?? []),
  )
  return new Map(
    items.map((item) => {
      const { lot = null, expiry = null, serial = null } = lines.get(item.line_id ?? '') ?? {}
      const known = { lot: item.lot ?? lot, expiry: item.expiry ?? expiry, serial: item.serial ?? serial }
      return [item.item_id, { ...known, ...NO_PURCHASE }]
    }),
  )
}

/** Ends tokens and units of items that came back. */
async function returnItems(
  call: Call,
  items: readonly Row<'protected_item'>[],
  purchasesLimit = Number.POSITIVE_INFINITY,
): Promise<void> {
  const { db, services } = call
  for (const itemId of await itemsWithTokens(
    call,
    items.map((item) => item.item_id),
  ))
    await revokeTokens(call, { kind: 'item', itemId }, 'its item was returned')
  const sold = items.filter((item) => item.purchase_id !== null && item.line_id !== null && item.unit_no !== null)
  const byPurchase = [...groupBy(sold, (item) => item.purchase_id ?? '')].slice(0, purchasesLimit)
  for (const [purchaseId, ofPurchase] of byPurchase) {
    const purchase = await findPurchase(db, ofPurchase[0]?.tenant ?? '', purchaseId)
    if (!purchase) continue
    const units = ofPurchase.map(({ line_id: lineId, unit_no: unitNo }) => ({
      lineId: lineId ?? '',
      unitNo: unitNo ?? 0,
    }))
    const rights = await rightsOfUnits(db, purchaseId, units)
    // If a unit was returned before, by a refund or by staff, nothing changes for it.
    const back = units.filter((unit) =>
      RIGHT_CLASSES.every(
        (rightClass) => (rights.get(rightName({ ...unit, rightClass }))?.returned_by ?? null) === null,
      ),
    )
    if (back.length > 0) {
      const rows = back.map(({ lineId, unitNo }) => ({ line_id: lineId, unit_no: unitNo }))
      await returnUnits(call, purchase, rows, newId('ret', services.platform))
    }
  }
}
