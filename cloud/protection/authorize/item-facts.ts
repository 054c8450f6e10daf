import type { ItemFacts } from '../../../policy/decide.ts'
import { canRead, type DeviceFacts } from '../../../policy/devices.ts'
import { ITEM_IDENTIFIER_KINDS, type ItemIdentifierKind } from '../../../policy/item-identifiers.ts'
import type { ItemStatus, ProtectionTechnology } from '../../../policy/vocabulary.ts'
import { definedFields } from '../../operations/fields.ts'
import type { Db } from '../../persistence/database.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow, PurchaseUnitRow } from '../../persistence/tables/purchases.ts'
import { isComplete, productOf } from '../items/item-product.ts'
import { readItem } from '../items/item-queries.ts'
import { itemAsOf } from '../rights/past-state.ts'

/** Facts about an item or purchase line for the function `decide`. */

/** True for a paid purchase that was not cancelled. */
export function isPaid(purchase: { status: string }): boolean {
  return purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
}

/** Facts of a line without a registered item. */
export function lineFacts(line: PurchaseLineRow): ItemFacts {
  return { status: null, category: line.category ?? '', brand: line.brand ?? '', priceCent: line.price_cent }
}

/** Facts of an item. The price is the paid price, else the item's own price, else the product's price in the store. */
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

/** Requires staff if the prices of the purchase come only from the shopper's app. */
export function shopperPrice(purchase: PurchaseRow): Pick<ItemFacts, 'staffReason'> {
  return purchase.price_origin === 'shopper' ? { staffReason: 'only the shopper’s app states the price' } : {}
}

/** The item that a unit is bound to, now or at `pastMs`. */
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

/** Kinds of identifiers under which an item is registered. */
export function identifierKindsOf(item: ProtectedItemRow): ItemIdentifierKind[] {
  const names = definedFields({ epc: item.epc, tagUid: item.tag_uid, tagId: item.tag_id })
  return ITEM_IDENTIFIER_KINDS.filter((kind) => kind in names)
}

/** True if the device can read the item. Printed tag numbers are for people only. */
export function readableBy(device: DeviceFacts, item: ProtectedItemRow): boolean {
  return identifierKindsOf(item).some((kind) => (kind === 'epc' || kind === 'tagUid') && canRead(device, kind))
}

/** True if the device may be able to read the item. If the item has no registered EPC or UID, compares technologies. */
export function mightRead(device: DeviceFacts, item: ProtectedItemRow): boolean {
  if (item.epc !== null || item.tag_uid !== null) return readableBy(device, item)
  const technology = item.protection_technology
  if (technology === null) return true
  return (
    (technology === 'uhf_rfid' && device.capabilities.canReadUhfRfid) ||
    (technology === 'hf_nfc' && device.capabilities.canReadHfNfc)
  )
}
