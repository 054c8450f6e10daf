import type { ItemFacts } from '../../../policy/decide.ts'
import { canRead, releasesByTag, type DeviceFacts } from '../../../policy/devices.ts'
import { ITEM_IDENTIFIER_KINDS, type ItemIdentifierKind } from '../../../policy/item-identifiers.ts'
import type { ItemStatus, ProtectionTechnology } from '../../../policy/vocabulary.ts'
import { definedFields } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { valueOf } from '../../shop/purchases/line-value.ts'
import { boundItemsOf } from '../../shop/purchases/queries.ts'
import { isComplete, productsIn, type ProductOfItem, readItems } from '../items/item-queries.ts'
import { itemAsOf } from '../rights/past-state.ts'

/** Facts about an item or purchase line for the function `decide`. */

/** True for a paid purchase that was not cancelled. */
export function isPaid(purchase: { status: string }): boolean {
  return purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED'
}

/** Facts of a line without a registered item. */
export function lineFacts(line: Row<'purchase_line'>): ItemFacts {
  return { status: null, category: line.category ?? '', brand: line.brand ?? '', priceCent: valueOf(line) }
}

/**
 * Facts of an item. The price is the value of its sold line, else the item's own price, else the product's price in the
 * store.
 */
export async function itemFacts(db: Db, item: Row<'protected_item'>, soldCent: number | undefined): Promise<ItemFacts> {
  return factsOfItem(item, soldCent, await productsOfItems(db, [{ item, soldCent }]))
}

/** Products of the items that need data of their product, by product id. All items are in one store. */
export async function productsOfItems(
  db: Db,
  items: readonly { item: Row<'protected_item'>; soldCent: number | undefined }[],
): Promise<ReadonlyMap<string, ProductOfItem>> {
  const [first] = items
  const productIds = items.flatMap(({ item, soldCent }) =>
    isComplete(item, soldCent ?? item.price_cent) ? [] : (item.product_id ?? []),
  )
  return productsIn(db, first?.item.store_id ?? '', productIds)
}

/** Like `itemFacts`, with the result of `productsOfItems`. */
export function factsOfItem(
  item: Row<'protected_item'>,
  soldCent: number | undefined,
  products: ReadonlyMap<string, ProductOfItem>,
): ItemFacts {
  const price = soldCent ?? item.price_cent
  const product = isComplete(item, price) ? undefined : products.get(item.product_id ?? '')
  return {
    status: item.item_status as ItemStatus,
    category: item.category ?? product?.category ?? '',
    brand: item.brand ?? product?.brand ?? '',
    priceCent: price ?? product?.price_cent ?? undefined,
    technology: (item.protection_technology as ProtectionTechnology | null) ?? undefined,
  }
}

/** Requires staff if the prices of the purchase come only from the shopper's app. */
export function shopperPrice(purchase: Row<'purchase'>): Pick<ItemFacts, 'staffReason'> {
  return purchase.price_origin === 'shopper' ? { staffReason: 'only the shopper’s app states the price' } : {}
}

/** The items that the units are bound to, now or at `pastMs`; undefined for a unit that is not bound. */
export async function itemsBoundTo(
  db: Db,
  units: readonly Row<'purchase_unit'>[],
  pastMs: number | undefined,
): Promise<(Row<'protected_item'> | undefined)[]> {
  const items = await readItems(db, boundItemsOf(units))
  const bound: (Row<'protected_item'> | undefined)[] = []
  for (const unit of units) {
    const item = unit.bound === 1 ? items.get(unit.item_id ?? '') : undefined
    const then = item && pastMs !== undefined ? await itemAsOf(db, item, pastMs) : item
    const isStill = pastMs === undefined || (then?.line_id === unit.line_id && then.unit_no === unit.unit_no)
    bound.push(isStill ? then : undefined)
  }
  return bound
}

/** Kinds of identifiers under which an item is registered. */
function identifierKindsOf(item: Row<'protected_item'>): ItemIdentifierKind[] {
  const names = definedFields({ epc: item.epc, tagUid: item.tag_uid, tagId: item.tag_id })
  return ITEM_IDENTIFIER_KINDS.filter((kind) => kind in names)
}

/** True if the device can read the item. Printed tag numbers are for people only. */
function readableBy(device: DeviceFacts, item: Row<'protected_item'>): boolean {
  return identifierKindsOf(item).some((kind) => (kind === 'epc' || kind === 'tagUid') && canRead(device, kind))
}

/**
 * True if the device must read the tag of a unit before it acts. An unattended device with a reader must read every tag
 * that it may be able to read: a unit without an item may be any item. `item`: the item that the unit is bound to.
 */
export function mustBeReadAt(device: DeviceFacts, item: Row<'protected_item'> | undefined): boolean {
  if (!releasesByTag(device)) return item !== undefined && readableBy(device, item)
  return item === undefined || mightRead(device, item)
}

/** True if the device may be able to read the item. If the item has no registered EPC or UID, compares technologies. */
export function mightRead(device: DeviceFacts, item: Row<'protected_item'>): boolean {
  if (item.epc !== null || item.tag_uid !== null) return readableBy(device, item)
  const technology = item.protection_technology
  if (technology === null) return true
  return (
    (technology === 'uhf_rfid' && device.capabilities.canReadUhfRfid) ||
    (technology === 'hf_nfc' && device.capabilities.canReadHfNfc)
  )
}
