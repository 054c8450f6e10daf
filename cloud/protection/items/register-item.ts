import { z } from 'zod'
import { parseEpc } from '../../../policy/gs1/epc.ts'
import { eanOfGtin14, toGtin14 } from '../../../policy/gs1/gtin.ts'
import { newId } from '../../../policy/ids.ts'
import { normaliseIdentifiers } from '../../../policy/item-identifiers.ts'
import { FIRST_ITEM_STATUSES } from '../../../policy/item-status.ts'
import { PROTECTION_TECHNOLOGIES, TAG_TECHNOLOGIES, type ItemStatus } from '../../../policy/vocabulary.ts'
import { findProduct } from '../../catalogue/queries.ts'
import { invalid, precondition } from '../../foundation/failure.ts'
import { centsOf, Euros, Id, definedFields, text } from '../../operations/fields.ts'
import type { Call } from '../../operations/operation.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'
import type { StoreRow } from '../../persistence/tables/stores.ts'
import { receiveTransfer } from './receive-transfer.ts'
import { storeMoves } from './item-moves.ts'
import { findItem, updateItem } from './item-queries.ts'
import { nextItemSeq } from './item-sequence.ts'

/** One row of registerProtectedItems. */
export const NewItem = z.strictObject({
  tagId: text(128).optional(),
  epc: text(200).optional().describe('Hex or URI.'),
  tagUid: text(40).optional(),
  tagTechnology: z.enum(TAG_TECHNOLOGIES).optional(),
  protectionTechnology: z.enum(PROTECTION_TECHNOLOGIES).optional(),
  serialNumber: text(128).optional(),
  ean: text(128).optional(),
  productId: Id.optional(),
  brand: text(120).optional(),
  category: text(120).optional(),
  price: Euros.optional(),
  itemStatus: z
    .enum(FIRST_ITEM_STATUSES)
    .optional()
    .describe('Status of a new item, default `sellable`. For a known item it must equal the current status.'),
})
type NewItem = z.output<typeof NewItem>

/**
 * Statuses in which staff may put the tag of an item on other goods. Gates alarm for these statuses, so the tag also
 * protects the other goods.
 */
const MAY_BE_OTHER_GOODS: ReadonlySet<string> = new Set<ItemStatus>(['sellable', 'exception_hold'])

/** Registers the item of one row, or updates a known item. Throws if the row is invalid or contradicts that item. */
export async function registerItem(call: Call, store: StoreRow, item: NewItem): Promise<void> {
  const normal = normaliseIdentifiers({ epc: item.epc, tagUid: item.tagUid, tagId: item.tagId })
  if (!normal.ok) throw invalid(normal.field, normal.message)
  const { epc, tagUid, tagId } = normal.identifiers
  if (epc === undefined && tagUid === undefined && tagId === undefined)
    throw invalid('epc', 'is missing: an item needs an epc, a tagUid or a tagId', 'missing')
  const known = await findItem(call.db, store.tenant, normal.identifiers)
  const isElsewhere = known !== undefined && known.store_id !== store.store_id
  if (isElsewhere && known.item_status !== 'transfer_in_transit')
    throw precondition('item_in_another_store', 'the item is registered in another of your stores')
  const product = await productOf(call, store, item, epc)
  // The row changes only the fields that it contains. If the row has no EPC and no product, EPC and product stay as
  // they were, so the check is skipped.
  if (epc !== undefined || product) assertSameProduct(epc ?? known?.epc, product?.ean ?? known?.ean)
  const stated = definedFields({
    epc: epc ?? null,
    tag_uid: tagUid ?? null,
    tag_id: tagId ?? null,
    tag_technology: item.tagTechnology ?? null,
    protection_technology: item.protectionTechnology ?? null,
    serial_number: item.serialNumber ?? null,
    product_id: product?.product_id ?? null,
    ean: product?.ean ?? item.ean ?? null,
    brand: item.brand ?? null,
    category: item.category ?? null,
    price_cent: item.price === undefined ? null : centsOf(item.price),
  })
  if (isElsewhere) {
    await receiveTransfer(
      call,
      known,
      store.store_id,
      item.itemStatus ?? 'sellable',
      stated as Partial<ProtectedItemRow>,
    )
    return
  }
  if (known) {
    assertStatusStays(known, item.itemStatus)
    if (product) assertProductStays(known, product.product_id, epc)
    await updateItem(call.db, known, stated as Partial<ProtectedItemRow>, call.nowMs)
    return
  }
  const registered = await call.db
    .insertInto('protected_item')
    .values({
      item_id: newId('itm', call.services.platform),
      tenant: store.tenant,
      store_id: store.store_id,
      item_status: item.itemStatus ?? 'sellable',
      rev: 1,
      created_ms: call.nowMs,
      updated_ms: call.nowMs,
      item_seq: await nextItemSeq(call.db, store.store_id),
      ...stated,
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  await storeMoves(call.db, [registered], null, call.nowMs)
}

/**
 * Throws if the row names another status than a known item has. The error shows the caller that a row cannot change the
 * status.
 */
function assertStatusStays({ item_status }: ProtectedItemRow, stated: ItemStatus | undefined): void {
  if (stated === undefined || stated === item_status) return
  throw precondition('item_status_differs', `the item is ${item_status}, not ${stated}: move it with updateItemStatus`)
}

/**
 * Throws if the row assigns the tag to another product while the tag is in use. If the known item is paid, its tag
 * would let other goods pass the gate.
 */
function assertProductStays(known: ProtectedItemRow, productId: string, epc: string | undefined): void {
  if (known.product_id === productId || MAY_BE_OTHER_GOODS.has(known.item_status)) return
  // If the item had no product yet, its SGTIN proves that the tag is still on the same goods.
  if (known.product_id === null && parseEpc(epc ?? known.epc ?? '')?.gtin14 !== undefined) return
  throw precondition(
    'item_not_sellable',
    `the item is ${known.item_status}: make it sellable with updateItemStatus before you put its tag on other goods`,
  )
}

/**
 * Throws if SGTIN and product of an item differ. Such an item could not be sold, because checkout rejects both products
 * (price-lines.ts).
 */
function assertSameProduct(epc: string | null | undefined, ean: string | null | undefined): void {
  const gtin14 = epc ? parseEpc(epc)?.gtin14 : undefined
  if (gtin14 === undefined || !ean || gtin14 === toGtin14(ean)) return
  throw invalid(
    'epc',
    `is an SGTIN of ${eanOfGtin14(gtin14) ?? gtin14}, not of ${ean}: send the product of the tag, or encode the tag again`,
    'item_mismatch',
  )
}

/**
 * Finds the product that the row names, or that its SGTIN contains. Throws if the row names a product that the store
 * does not sell.
 */
async function productOf({ db }: Call, store: StoreRow, item: NewItem, epc: string | undefined) {
  if (item.productId !== undefined) {
    const product = await findProduct(db, store.tenant, { productId: item.productId }, store.store_id)
    if (!product) throw invalid('productId', 'is not in the catalogue of this store', 'product_unknown')
    if (item.ean !== undefined && item.ean !== product.ean) throw invalid('ean', 'names another product than productId')
    return product
  }
  if (item.ean !== undefined) {
    const product = await findProduct(db, store.tenant, { ean: item.ean }, store.store_id)
    if (!product) throw invalid('ean', 'is not in the catalogue of this store', 'product_unknown')
    return product
  }
  const gtin14 = epc === undefined ? undefined : parseEpc(epc)?.gtin14
  const ean = gtin14 === undefined ? undefined : eanOfGtin14(gtin14)
  return ean === undefined ? undefined : findProduct(db, store.tenant, { ean }, store.store_id)
}
