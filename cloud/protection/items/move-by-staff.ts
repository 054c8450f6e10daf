import { newId } from '../../../policy/ids.ts'
import { RIGHT_CLASSES, type ItemStatus } from '../../../policy/vocabulary.ts'
import { deleteOpenReservations } from '../../shop/pickup-orders/queries.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import { findPurchase } from '../../shop/purchases/queries.ts'
import type { MovedBy } from './item-moves.ts'
import { goodsOf } from './recalls.ts'
import { updateItem } from './item-queries.ts'
import { endStandaloneUnit } from './standalone-unit.ts'
import { returnUnits, revokeLease } from '../leases/return-units.ts'
import { revokeTokens } from '../leases/token-revocations.ts'
import { findRight } from '../rights/rights.ts'

/** Statuses of goods that are back in the store. */
const CAME_BACK: ReadonlySet<ItemStatus> = new Set(['returned', 'cancelled', 'sellable'])

/**
 * Changes the status of an item on behalf of staff. The tokens for the item are revoked, and for goods on hold also the
 * tokens for their whole purchase. Returned goods lose all rights of their purchase. A `sellable` item also loses its
 * purchase and order.
 */
export async function moveByStaff(
  call: Call,
  item: ProtectedItemRow,
  itemStatus: ItemStatus,
  by: MovedBy,
): Promise<ProtectedItemRow> {
  const { db, nowMs } = call
  if (itemStatus === 'sellable')
    return updateItem(db, item, { item_status: itemStatus, ...(await clearPurchaseLinks(call, item)) }, nowMs, by)
  if (CAME_BACK.has(itemStatus)) await returnItem(call, item)
  else if (itemStatus === 'exception_hold') await revokeLeases(call, item, 'its goods are on hold')
  else await revokeTokens(call, { kind: 'item', itemId: item.item_id }, `staff made its item ${itemStatus}`)
  return updateItem(db, item, { item_status: itemStatus }, nowMs, by)
}

/** Revokes the tokens for an item and for its unit. The rights stay as they are. */
export async function revokeLeases(call: Call, item: ProtectedItemRow, reason: string): Promise<void> {
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
export async function clearPurchaseLinks(call: Call, item: ProtectedItemRow): Promise<Partial<ProtectedItemRow>> {
  await returnItem(call, item)
  await deleteOpenReservations(call.db, item.item_id)
  await endStandaloneUnit(call, item.item_id, newId('ret', call.services.platform))
  const { line } = await goodsOf(call.db, item)
  const { lot = null, expiry = null, serial = null } = line ?? {}
  const known = { lot: item.lot ?? lot, expiry: item.expiry ?? expiry, serial: item.serial ?? serial }
  return { ...known, ...NO_PURCHASE }
}

async function returnItem(call: Call, item: ProtectedItemRow): Promise<void> {
  const { db, services } = call
  await revokeTokens(call, { kind: 'item', itemId: item.item_id }, 'its item was returned')
  const purchase = item.purchase_id === null ? undefined : await findPurchase(db, item.tenant, item.purchase_id)
  if (!purchase || item.line_id === null || item.unit_no === null) return
  const unit = { line_id: item.line_id, unit_no: item.unit_no }
  const rights = await Promise.all(
    RIGHT_CLASSES.map((rightClass) =>
      findRight(db, { lineId: unit.line_id, unitNo: unit.unit_no, rightClass, purchaseId: purchase.purchase_id }),
    ),
  )
  // If the unit was returned before, by a refund or by staff, nothing changes.
  if (rights.some((row) => row !== undefined && row.returned_by !== null)) return
  await returnUnits(call, purchase, [unit], newId('ret', services.platform))
}
