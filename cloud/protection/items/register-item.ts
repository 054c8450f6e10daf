import { z } from 'zod'
import { isUnprogrammed, parseEpc } from '../../../policy/gs1/epc.ts'
import { eanOfGtin14, toGtin14 } from '../../../policy/gs1/gtin.ts'
import { newId } from '../../../policy/ids.ts'
import { comparableIdentifier, normaliseIdentifiers, hasItemIdentifier } from '../../../policy/item-identifiers.ts'
import { FIRST_ITEM_STATUSES, mayItemMove, nextItemStatuses } from '../../../policy/item-status.ts'
import { PROTECTION_TECHNOLOGIES, TAG_TECHNOLOGIES, type ItemStatus } from '../../../policy/vocabulary.ts'
import { comparableCode, whyUnknown } from '../../shop/catalogue/ean.ts'
import { findProduct } from '../../shop/catalogue/queries.ts'
import { unitDataOf, UnitInput } from '../../shop/catalogue/render.ts'
import { isRoleAtLeast, rolesFrom } from '../../platform/foundation/caller.ts'
import { invalid, precondition, Failure, notFound } from '../../platform/foundation/failure.ts'
import {
  centsOf,
  Euros,
  Id,
  definedFields,
  scanned,
  text,
  ProductCodeText,
  Success,
} from '../../platform/operations/fields.ts'
import { type Call, operation } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { revokeLeases, clearPurchaseLinks } from './move-by-staff.ts'
import { storeMoves, storeTagRemoval, type MovedBy } from './item-moves.ts'
import { findItem, updateItem } from './item-queries.ts'
import { goodsOf, recallsIn } from './recalls.ts'
import { nextItemSeq, notifyGates, removeItemNames } from './item-sequence.ts'
import { findPurchase } from '../../shop/purchases/queries.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { denyRights } from '../rights/deny-list.ts'
import { findRight } from '../rights/rights.ts'
import { standaloneUnitOf } from './standalone-unit.ts'

/** A row of a list that was refused. */
export const RowError = z.strictObject({ index: z.int(), field: z.string(), code: z.string(), message: z.string() })

/**
 * Runs each row from number `first` alone: a refused row does not stop the others. `done`: number of rows without an
 * error; `next`: the first row that is left, because `isOver` (`endsSoon`).
 */
export async function runRows<T>(
  rows: readonly T[],
  run: (row: T) => Promise<void>,
  first = 0,
  isOver = () => false,
): Promise<{ done: number; errors: z.infer<typeof RowError>[]; next: number }> {
  const errors: z.infer<typeof RowError>[] = []
  let index = first
  for (const row of rows.slice(first)) {
    try {
      await run(row)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      const [detail] = error.extras.details ?? []
      const code = error.extras.reason ?? detail?.code ?? error.code
      errors.push({ index, field: detail?.path ?? '', code, message: error.message })
    }
    index++
    if (isOver()) break
  }
  return { done: index - first - errors.length, errors, next: index }
}

/** Moves an item in transit to this store. Gates of the previous store delete the identifiers of the item. */
async function receiveTransfer(
  call: Call,
  item: Row<'protected_item'>,
  itemStatus: ItemStatus,
  stated: Partial<Row<'protected_item'>> & Pick<Row<'protected_item'>, 'store_id'>,
): Promise<void> {
  const { db, nowMs } = call
  const from = item.item_status as ItemStatus
  if (!mayItemMove(from, itemStatus))
    throw precondition('illegal_move', `an item that is ${from} cannot become ${itemStatus}`, {
      allowedNext: nextItemStatuses(from),
    })
  const noPurchase = await clearPurchaseLinks(call, item)
  await removeItemNames(db, item, nowMs)
  const change = {
    ...noPurchase,
    ...stated,
    item_status: itemStatus,
    item_seq: await nextItemSeq(db, stated.store_id),
    updated_ms: nowMs,
  }
  const arrived = await db
    .updateTable('protected_item')
    .set((eb) => ({ ...change, rev: eb('rev', '+', 1) }))
    .where('item_id', '=', item.item_id)
    .returningAll()
    .executeTakeFirstOrThrow()
  await storeMoves(db, [arrived], from, nowMs)
  notifyGates(call, item.store_id)
}

/** One row of registerProtectedItems. */
export const NewItem = z.strictObject({
  tagId: scanned(128).optional(),
  epc: scanned(200).optional().describe('Hex or URI.'),
  tagUid: scanned(40).optional(),
  tagTechnology: z.enum(TAG_TECHNOLOGIES).optional(),
  protectionTechnology: z.enum(PROTECTION_TECHNOLOGIES).optional(),
  serialNumber: text(128).optional(),
  ean: ProductCodeText.optional(),
  productId: Id.optional(),
  brand: text(120).optional(),
  category: text(120).optional(),
  price: Euros.optional(),
  ...UnitInput,
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
export async function registerItem(call: Call, store: Row<'store'>, item: NewItem): Promise<void> {
  const normal = normaliseIdentifiers({ epc: item.epc, tagUid: item.tagUid, tagId: item.tagId })
  if (!normal.ok) throw invalid(normal.field, normal.message)
  const { epc, tagUid, tagId } = normal.identifiers
  if (epc === undefined && tagUid === undefined && tagId === undefined)
    throw invalid('epc', 'is missing: an item needs an epc, a tagUid or a tagId', 'missing')
  if (epc !== undefined && isUnprogrammed(epc))
    throw invalid(
      'epc',
      `${epc} is what unprogrammed tags contain, so many tags share it: write an EPC of its own to the tag`,
      'tag_unprogrammed',
    )
  const known = await findItem(call.db, store.tenant, normal.identifiers)
  assertSameSpelling(known, tagId)
  const isElsewhere = known !== undefined && known.store_id !== store.store_id
  if (isElsewhere && known.item_status !== 'transfer_in_transit')
    throw precondition('item_in_another_store', 'the item is registered in another of your stores')
  const { ean, lot, expiry, serial } = item
  const product = await productOf(call, store, item, epc)
  // The row changes only the fields that it contains. If the row has no EPC and no product, EPC and product stay as
  // they were, so the check is skipped.
  if (epc !== undefined || product) assertSameProduct(epc ?? known?.epc, product?.ean ?? known?.ean)
  const stated: Partial<Row<'protected_item'>> = definedFields({
    epc: epc ?? null,
    tag_uid: tagUid ?? null,
    tag_id: tagId ?? null,
    tag_id_folded: tagId === undefined ? null : comparableIdentifier('tagId', tagId),
    tag_technology: item.tagTechnology ?? null,
    protection_technology: item.protectionTechnology ?? null,
    serial_number: item.serialNumber ?? null,
    product_id: product?.product_id ?? null,
    ean: product?.ean ?? eanOfTag(epc) ?? null,
    brand: item.brand ?? null,
    category: item.category ?? null,
    price_cent: item.price === undefined ? null : centsOf(item.price),
    ...unitDataOf({ lot, expiry, serial, ean, epc: epc ?? known?.epc }, call.nowMs),
  })
  if (isElsewhere) {
    const change = { ...changeOf(known, stated), store_id: store.store_id }
    await assertStaysRecalled(call, known, change)
    await receiveTransfer(call, known, item.itemStatus ?? 'sellable', change)
    return
  }
  if (known) {
    assertStatusStays(known, item.itemStatus)
    if (product) assertProductStays(known, product.product_id, epc)
    await assertStaysRecalled(call, known, changeOf(known, stated))
    if (isOnOtherGoods(known, stated)) await revokeLeases(call, known, 'its tag is on other goods')
    await updateItem(call.db, known, changeOf(known, stated), call.nowMs)
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

/** True if the row puts the tag on goods of another product. */
function isOnOtherGoods(
  known: Row<'protected_item'>,
  { product_id: productId }: Partial<Row<'protected_item'>>,
): boolean {
  return known.product_id !== null && (productId ?? known.product_id) !== known.product_id
}

/** On other goods, the tag loses what the row does not state about them: it was said of the former goods. */
function changeOf(
  known: Row<'protected_item'>,
  stated: Partial<Row<'protected_item'>>,
): Partial<Row<'protected_item'>> {
  const none = {
    brand: null,
    category: null,
    price_cent: null,
    serial_number: null,
    lot: null,
    expiry: null,
    serial: null,
  }
  return isOnOtherGoods(known, stated) ? { ...none, ...stated } : stated
}

/**
 * Throws if the row spells the tag number of a known item differently. The number may be a typing variant, or belong to
 * another tag of a system that distinguishes case.
 */
function assertSameSpelling(known: Row<'protected_item'> | undefined, tagId: string | undefined): void {
  if (!known || known.tag_id === null || tagId === undefined || known.tag_id === tagId) return
  if (known.tag_id_folded !== comparableIdentifier('tagId', tagId)) return
  const message = `"${tagId}" is the same tag number as "${known.tag_id}", which is registered: send "${known.tag_id}"`
  throw invalid('tagId', message, 'tag_number_taken')
}

/**
 * Throws if the row names another status than a known item has. The error shows the caller that a row cannot change the
 * status.
 */
function assertStatusStays({ item_status }: Row<'protected_item'>, stated: ItemStatus | undefined): void {
  if (stated === undefined || stated === item_status) return
  throw precondition('item_status_differs', `the item is ${item_status}, not ${stated}: move it with updateItemStatus`)
}

/**
 * Throws if the row assigns the tag to another product while the tag is in use. If the known item is paid, its tag
 * would let other goods pass the gate.
 */
function assertProductStays(known: Row<'protected_item'>, productId: string, epc: string | undefined): void {
  if (known.product_id === productId || MAY_BE_OTHER_GOODS.has(known.item_status)) return
  // If the item had no product yet, its SGTIN proves that the tag is still on the same goods.
  if (known.product_id === null && parseEpc(epc ?? known.epc ?? '')?.gtin14 !== undefined) return
  throw precondition(
    'item_not_sellable',
    `the item is ${known.item_status}: make it sellable with updateItemStatus before you put its tag on other goods`,
  )
}

/**
 * Throws if other facts would end a recall of the item, or its arrival in a store that the recall does not name. Those
 * who may end a recall may do this, too: a key of the account, or a manager.
 */
async function assertStaysRecalled(
  { db, caller }: Call,
  known: Row<'protected_item'>,
  change: Partial<Row<'protected_item'>>,
): Promise<void> {
  if (caller.kind === 'user' ? isRoleAtLeast(caller.role, 'manager') : caller.kind === 'secret') return
  const before = await goodsOf(db, known)
  const item = { ...known, ...change }
  if (!(await recallsIn(db, known)).stop(before)) return
  if ((await recallsIn(db, item)).stop({ item, line: before.line })) return
  throw precondition(
    'recalled',
    'the item is recalled: a manager must confirm another product, lot, expiry, serial or store of its goods',
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
async function productOf(
  { db }: Call,
  store: Row<'store'>,
  item: Pick<NewItem, 'ean' | 'productId'>,
  epc: string | undefined,
) {
  if (item.productId !== undefined) {
    const product = await findProduct(db, store.tenant, { productId: item.productId }, store.store_id)
    if (!product) throw invalid('productId', 'is not in the catalogue of this store', 'product_unknown')
    if (item.ean !== undefined && comparableCode(item.ean) !== product.ean)
      throw invalid('ean', 'names another product than productId')
    return product
  }
  if (item.ean !== undefined) {
    const product = await findProduct(db, store.tenant, { ean: item.ean }, store.store_id)
    if (!product)
      throw invalid(
        'ean',
        `is not in the catalogue of this store${await whyUnknown(db, store.tenant, item.ean)}`,
        'product_unknown',
      )
    return product
  }
  const ean = eanOfTag(epc)
  return ean === undefined ? undefined : findProduct(db, store.tenant, { ean }, store.store_id)
}

/** EAN of an SGTIN. The item has it also while the catalogue lacks its product, so that a recall stops it. */
function eanOfTag(epc: string | undefined): string | undefined {
  const gtin14 = epc === undefined ? undefined : parseEpc(epc)?.gtin14
  return gtin14 === undefined ? undefined : eanOfGtin14(gtin14)
}

const TAGS_LIMIT = 500
const BULK_BODY_LIMIT = 2 * 1024 * 1024
const GUARD_SECONDS = 60

const ReusedTag = z.strictObject({
  tagId: scanned(128).optional(),
  epc: scanned(200).optional().describe('Hex or URI.'),
  tagUid: scanned(40).optional(),
  ean: ProductCodeText.describe('Product on which the tag is now.'),
})
type ReusedTag = z.output<typeof ReusedTag>

const RefusedTag = RowError.extend({ tag: z.string().optional().describe('The tag as the request named it.') })

export const reuseTags = operation({
  name: 'reuseTags',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Puts released hard tags on other goods.',
  description:
    'Each tag is judged alone; `errors[]` lists the tags that stay as they are. A tag can be reused if its last release is confirmed. ' +
    'The sold item keeps its purchase and loses the tag. A new `sellable` item gets the tag.',
  changes: true,
  bodyLimit: BULK_BODY_LIMIT,
  request: z.strictObject({
    storeId: Id,
    tags: z.array(ReusedTag).min(1).max(TAGS_LIMIT),
    operatorId: text(128).optional(),
  }),
  response: z.strictObject({ ...Success, reused: z.int(), errors: z.array(RefusedTag) }),
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    tags: [{ tagId: 'HT-004711', ean: '4012345678901' }],
  },
  async run(call, { storeId, tags, operatorId }) {
    const store = await ownStore(call, storeId)
    const { done, errors } = await runRows(tags, (tag) => reuseTag(call, store, tag, { operatorId }))
    call.changed(storeId)
    if (done > 0) notifyGates(call, storeId)
    const refused = errors.map((error) => {
      const { tagId, tagUid, epc } = tags[error.index] ?? {}
      return { ...error, ...definedFields({ tag: tagId ?? tagUid ?? epc ?? null }) }
    })
    return { success: true as const, reused: done, errors: refused }
  },
})

/**
 * Moves the identifiers of a released item to a new item. The released item keeps its status, purchase and rights, so
 * that returns, receipts and late reports still concern the goods that were sold. Its history ends with the removal of
 * the tag.
 */
async function reuseTag(call: Call, store: Row<'store'>, { ean, ...names }: ReusedTag, by: MovedBy): Promise<void> {
  const { db, nowMs, services } = call
  const normal = normaliseIdentifiers(names)
  if (!normal.ok) throw invalid(normal.field, normal.message)
  if (!hasItemIdentifier(normal.identifiers))
    throw invalid('tagId', 'is missing: name the tag by tagId, tagUid or epc', 'missing')
  const item = await findItem(db, store.tenant, normal.identifiers)
  if (item?.store_id !== store.store_id) throw notFound('item')
  await assertReleased(call, item)
  const product = await productOf(call, store, { ean }, undefined)
  assertSameProduct(item.epc, product?.ean)
  const unit = unitDataOf({ ean, epc: item.epc }, nowMs)
  await revokeLeases(call, item, 'its tag is on other goods')
  await denyRightsOffline(call, item)

  const { epc, tag_uid, tag_id, tag_id_folded, tag_technology, protection_technology } = item
  const released = await updateItem(db, item, { epc: null, tag_uid: null, tag_id: null, tag_id_folded: null }, nowMs)
  await storeTagRemoval(db, { ...item, rev: released.rev }, nowMs, by)
  const registered = await db
    .insertInto('protected_item')
    .values({
      item_id: newId('itm', services.platform),
      tenant: store.tenant,
      store_id: store.store_id,
      epc,
      tag_uid,
      tag_id,
      tag_id_folded,
      tag_technology,
      protection_technology,
      product_id: product?.product_id ?? null,
      ean: product?.ean ?? null,
      ...unit,
      item_status: 'sellable',
      rev: 1,
      created_ms: nowMs,
      updated_ms: nowMs,
      item_seq: await nextItemSeq(db, store.store_id),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
  await storeMoves(db, [registered], null, nowMs, by)
}

/** Throws if the tag may still be on its goods. */
async function assertReleased({ db }: Call, item: Row<'protected_item'>): Promise<void> {
  const { item_status: status, purchase_id: purchaseId, line_id: lineId, unit_no: unitNo } = item
  const isSold = status === 'paid' || status === 'picked_up'
  const unit =
    purchaseId !== null && lineId !== null && unitNo !== null
      ? { purchaseId, lineId, unitNo }
      : await standaloneUnitOf(db, item.item_id)
  const right = await findRight(db, { ...unit, rightClass: 'release' })
  if (isSold && right?.state === 'used' && right.outcome === 'confirmed' && right.returned_by === null) return
  throw precondition(
    'release_not_confirmed',
    isSold
      ? 'no confirmed release of this tag is known: release it at a device first'
      : `the item is ${status}: use registerProtectedItems for goods that were not sold`,
  )
}

/**
 * Denies the other rights of the sold unit at agents that are offline. Otherwise its receipt would let the tag pass with
 * the new goods, or open their fixture. Online, the cloud knows that the tag is on other goods.
 */
async function denyRightsOffline(
  call: Call,
  { tenant, purchase_id, line_id, unit_no }: Row<'protected_item'>,
): Promise<void> {
  const purchase = purchase_id === null ? undefined : await findPurchase(call.db, tenant, purchase_id)
  if (!purchase?.receipt_exp || line_id === null || unit_no === null) return
  const units = [{ lineId: line_id, unitNo: unit_no }]
  for (const rightClass of ['exit', 'open'] as const)
    await denyRights(call, purchase, rightClass, units, purchase.receipt_exp + GUARD_SECONDS)
}
