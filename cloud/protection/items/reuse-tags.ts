import { z } from 'zod'
import { newId } from '../../../policy/ids.ts'
import { hasItemIdentifier, normaliseIdentifiers } from '../../../policy/item-identifiers.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { rolesFrom } from '../../platform/foundation/roles.ts'
import { definedFields, Id, Success, scanned, text, ProductCodeText } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import type { StoreRow } from '../../platform/persistence/tables/stores.ts'
import { unitDataOf } from '../../shop/catalogue/unit-data.ts'
import { findPurchase } from '../../shop/purchases/queries.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { denyRights } from '../rights/deny-list.ts'
import { findRight } from '../rights/rights.ts'
import { storeMoves, storeTagRemoval, type MovedBy } from './item-moves.ts'
import { findItem, updateItem } from './item-queries.ts'
import { nextItemSeq, notifyGates } from './item-sequence.ts'
import { revokeLeases } from './move-by-staff.ts'
import { assertSameProduct, productOf } from './register-item.ts'
import { RowError, runRows } from './row-errors.ts'
import { standaloneUnitOf } from './standalone-unit.ts'

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
async function reuseTag(call: Call, store: StoreRow, { ean, ...names }: ReusedTag, by: MovedBy): Promise<void> {
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
async function assertReleased({ db }: Call, item: ProtectedItemRow): Promise<void> {
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
  { tenant, purchase_id, line_id, unit_no }: ProtectedItemRow,
): Promise<void> {
  const purchase = purchase_id === null ? undefined : await findPurchase(call.db, tenant, purchase_id)
  if (!purchase?.receipt_exp || line_id === null || unit_no === null) return
  const units = [{ lineId: line_id, unitNo: unit_no }]
  for (const rightClass of ['exit', 'open'] as const)
    await denyRights(call, purchase, rightClass, units, purchase.receipt_exp + GUARD_SECONDS)
}
