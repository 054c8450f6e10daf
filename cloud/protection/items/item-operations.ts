import { z } from 'zod'
import { normaliseIdentifiers } from '../../../policy/item-identifiers.ts'
import { mayItemMove, nextItemStatuses } from '../../../policy/item-status.ts'
import { ITEM_STATUSES, type ItemStatus } from '../../../policy/vocabulary.ts'
import { findProduct } from '../../shop/catalogue/queries.ts'
import { toProduct, UnitOutput } from '../../shop/catalogue/render.ts'
import { Product } from '../../shop/catalogue/schema.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { eurosOf, Id, iso, definedFields, Success, lines, scanned, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { endsSoon } from '../../platform/operations/job-steps.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { goodsOf, recallsIn } from './recalls.ts'
import { newestMoves } from './item-moves.ts'
import { findItem, itemsOfLine } from './item-queries.ts'
import { moveByStaff } from './move-by-staff.ts'
import { NewItem, registerItem, RowError, runRows } from './register-item.ts'
import { notifyGates } from './item-sequence.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'

const ITEMS_LIMIT = 500
const BULK_BODY_LIMIT = 2 * 1024 * 1024

/**
 * Registry of tagged items. Purchases, refunds and `updateItemStatus` change the status of an item
 * (policy/item-status.ts). Each change gets the next number of the store's sequence. Agents fetch the changes for their
 * replicas in this order (item-sequence.ts).
 *
 * A purchase binds an item to one of its units. An item that was paid at another till has a standalone unit
 * (standalone-unit.ts).
 */

export const registerProtectedItems = operation({
  name: 'registerProtectedItems',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Registers tagged items, or updates items with a known identifier.',
  description:
    'Valid rows are registered even if others fail; `errors[]` lists the failed rows. The cloud finds the product by ean, productId, or the GTIN in an SGTIN. ' +
    'A known item keeps its status (see updateItemStatus). It can change its product only while it is `sellable` or `exception_hold`. An item that is `transfer_in_transit` in another of your stores moves to this store.',
  changes: true,
  bodyLimit: BULK_BODY_LIMIT,
  request: z.strictObject({ storeId: Id, items: z.array(NewItem).min(1).max(ITEMS_LIMIT) }),
  response: z.strictObject({
    ...Success,
    registered: z.int(),
    errors: z.array(RowError),
  }),
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    items: [{ epc: '3034F4E4E4424C800000000B', ean: '4012345678901' }],
  },
  emits: ['securityTag.deactivated'],
  async steps(work, { storeId, items }) {
    const answer = { success: true as const, registered: 0, errors: [] as z.infer<typeof RowError>[] }
    for (let first = 0; first < items.length;) {
      const { done, errors, next } = await work.step(async (call) => {
        const isOver = endsSoon(call.services.platform.clock)
        const store = await ownStore(call, storeId)
        const part = await runRows(items, (item) => registerItem(call, store, item), first, isOver)
        call.changed(storeId)
        if (part.done > 0) notifyGates(call, storeId)
        return part
      })
      answer.registered += done
      answer.errors.push(...errors)
      first = next
    }
    return answer
  },
})

/** An item in API form. */
const Item = z.strictObject({
  itemId: z.string(),
  storeId: z.string(),
  epc: z.string().optional(),
  tagUid: z.string().optional(),
  tagId: z.string().optional(),
  tagTechnology: z.string().optional(),
  protectionTechnology: z.string().optional(),
  serialNumber: z.string().optional(),
  ean: z.string().optional(),
  brand: z.string().optional(),
  category: z.string().optional(),
  price: z.number().optional(),
  ...UnitOutput,
  itemStatus: z.enum(ITEM_STATUSES),
  recalled: z
    .literal(true)
    .optional()
    .describe('True if a recall stops the item, whatever its status is (fetchRecalls).'),
  product: Product.optional(),
  purchaseId: z.string().optional(),
  itemLineId: z.string().optional(),
  updatedAt: z.string(),
})

/** Maximum number of moves in a response. */
const MOVES_LIMIT = 50

const Move = z.strictObject({
  at: z.string(),
  from: z
    .enum(ITEM_STATUSES)
    .optional()
    .describe('Absent for the registration of the item. Equal to `to` if the tag was put on other goods (reuseTags).'),
  to: z.enum(ITEM_STATUSES),
  purchaseId: z.string().optional(),
  reason: z.string().optional().describe('Reason that was sent to updateItemStatus.'),
  operatorId: z.string().optional(),
})

const ItemNames = {
  tagId: scanned(128).optional(),
  epc: scanned(200).optional(),
  tagUid: scanned(40).optional(),
  itemLineId: Id.optional().describe('Paid purchase line that is bound to exactly one item.'),
}

interface NamesOfItem {
  tagId?: string | undefined
  epc?: string | undefined
  tagUid?: string | undefined
  itemLineId?: string | undefined
}

async function namedItem(
  call: Call,
  store: Row<'store'>,
  { epc, tagUid, tagId, itemLineId }: NamesOfItem,
): Promise<Row<'protected_item'>> {
  const normal = normaliseIdentifiers({ epc, tagUid, tagId })
  if (!normal.ok) throw invalid(normal.field, normal.message)
  const namesTag = Object.keys(normal.identifiers).length > 0
  if (!namesTag && itemLineId === undefined)
    throw invalid('epc', 'is missing: name the item by epc, tagUid, tagId or itemLineId', 'missing')
  const item = namesTag
    ? await findItem(call.db, store.tenant, normal.identifiers)
    : await itemOfLine(call.db, store.store_id, itemLineId ?? '')
  if (item?.store_id !== store.store_id) {
    const path = Object.keys(normal.identifiers)[0] ?? 'itemLineId'
    const fix = namesTag
      ? 'check the identifier, or register the item with registerProtectedItems'
      : 'no item is bound to this line: name the item by epc, tagUid or tagId'
    throw notFound('item', { path, fix })
  }
  if (itemLineId !== undefined && item.line_id !== itemLineId)
    throw invalid('itemLineId', 'names another item than the other identifier')
  return item
}

/** The item of this store that the line is bound to. Throws 409 if the line is bound to several items. */
async function itemOfLine(db: Db, storeId: string, lineId: string): Promise<Row<'protected_item'> | undefined> {
  const [item, another] = (await itemsOfLine(db, lineId)).filter((each) => each.store_id === storeId)
  if (another)
    throw precondition('several_items', 'the line is bound to several items: name one by epc, tagUid or tagId')
  return item
}

async function describeItem(
  { db }: Call,
  store: Row<'store'>,
  item: Row<'protected_item'>,
): Promise<z.infer<typeof Item>> {
  const product =
    item.product_id === null
      ? undefined
      : await findProduct(db, store.tenant, { productId: item.product_id }, store.store_id)
  return {
    itemId: item.item_id,
    storeId: item.store_id,
    ...definedFields({
      epc: item.epc,
      tagUid: item.tag_uid,
      tagId: item.tag_id,
      tagTechnology: item.tag_technology,
      protectionTechnology: item.protection_technology,
      serialNumber: item.serial_number,
      ean: item.ean,
      brand: item.brand,
      category: item.category,
      price: item.price_cent === null ? null : eurosOf(item.price_cent),
      lot: item.lot,
      expiry: item.expiry,
      serial: item.serial,
      purchaseId: item.purchase_id,
      itemLineId: item.line_id,
    }),
    itemStatus: item.item_status as ItemStatus,
    ...(await isStopped(db, item)),
    ...(product && { product: toProduct(product) }),
    updatedAt: iso(item.updated_ms),
  }
}

async function isStopped(db: Db, item: Row<'protected_item'>): Promise<{ recalled?: true }> {
  const recalls = await recallsIn(db, item)
  return recalls.stop(await goodsOf(db, item)) ? { recalled: true } : {}
}

function describeMove({
  at_ms,
  from_status,
  to_status,
  purchase_id,
  reason,
  operator_id,
}: Row<'item_move'>): z.infer<typeof Move> {
  return {
    at: iso(at_ms),
    ...definedFields({ from: from_status as ItemStatus | null }),
    to: to_status as ItemStatus,
    ...definedFields({ purchaseId: purchase_id, reason, operatorId: operator_id }),
  }
}

export const fetchProtectedItem = operation({
  name: 'fetchProtectedItem',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Returns one tagged item with its status and its status history.',
  refusals: ['several_items'],
  changes: false,
  request: z.strictObject({ storeId: Id, ...ItemNames }),
  response: Item.extend({
    ...Success,
    moves: z.array(Move).describe(`Newest ${MOVES_LIMIT} status changes in this store, newest first.`),
  }),
  // The tag of a sandbox, so that the form of the reference finds it.
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', tagId: 'HT-2-001-1' },
  async run(call, { storeId, ...names }) {
    const store = await ownStore(call, storeId)
    const item = await namedItem(call, store, names)
    const moves = (await newestMoves(call.db, item, MOVES_LIMIT)).map(describeMove)
    return { success: true as const, ...(await describeItem(call, store, item)), moves }
  },
})

export const updateItemStatus = operation({
  name: 'updateItemStatus',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Moves a tagged item to another status.',
  description:
    'A move that is not allowed returns 409 with `allowedNext`. A returned item loses its purchase and its used rights. ' +
    '`reason` and `operatorId` are stored with the move (fetchProtectedItem). A move to the current status changes nothing.',
  refusals: ['illegal_move', 'several_items'],
  changes: true,
  request: z.strictObject({
    storeId: Id,
    ...ItemNames,
    itemStatus: z.enum(ITEM_STATUSES),
    reason: lines(300).optional(),
    operatorId: text(128).optional(),
  }),
  response: Item.extend(Success),
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    epc: '3034F4E4E4424C800000000B',
    itemStatus: 'exception_hold',
    reason: 'torn label',
  },
  emits: ['securityTag.deactivated'],
  async run(call, { storeId, itemStatus, reason, operatorId, ...names }) {
    const store = await ownStore(call, storeId)
    const item = await namedItem(call, store, names)
    const from = item.item_status as ItemStatus
    if (from !== itemStatus && !mayItemMove(from, itemStatus)) {
      throw precondition('illegal_move', `an item that is ${from} cannot become ${itemStatus}`, {
        allowedNext: nextItemStatuses(from),
      })
    }
    call.changed(item.item_id)
    const moved = from === itemStatus ? item : await moveByStaff(call, item, itemStatus, { reason, operatorId })
    notifyGates(call, storeId)
    return { success: true as const, ...(await describeItem(call, store, moved)) }
  },
})
