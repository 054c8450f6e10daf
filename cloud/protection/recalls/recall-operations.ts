import { z } from 'zod'
import { RECALLS_LIMIT } from '../../../policy/documents/store-documents.ts'
import { newId } from '../../../policy/ids.ts'
import { namedProduct } from '../../shop/catalogue/queries.ts'
import { unitDataOf, UnitInput, UnitOutput } from '../../shop/catalogue/render.ts'
import { actorOf, keyCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { Failure, notFound, precondition } from '../../platform/foundation/failure.ts'
import { definedFields, Id, iso, Limit, ProductCodeText, Success, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField, readPageWithinText } from '../../platform/operations/paging.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { raiseDocumentVersions } from '../../platform/stores/queries.ts'
import { ownStore, ownStores } from '../../platform/stores/own-store.ts'
import { notifyGates } from '../items/item-sequence.ts'
import { publishSome, coversRecalled } from './publish-recalls.ts'
import {
  countActive,
  findRecall,
  listRecalls,
  nameOfProduct,
  stopsWholeProduct,
  storesOfRecall,
} from '../items/recalls.ts'
import { publishReceipts } from './recalled-receipts.ts'
import { revokeTokens } from '../leases/token-revocations.ts'

const STORES_LIMIT = 1_000
/** Characters of an id in a response. */
const ID_LENGTH = 32
const DEFAULT_PAGE = 50
const PAGE_LIMIT = 100
const STATES = ['active', 'ended'] as const

const STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B'
const RECALL = 'rcl_01KANX6Y7C3V9Q2M8R5T4W6Z1B'

const Recall = z.strictObject({
  recallId: z.string(),
  state: z.enum(STATES),
  storeIds: z
    .array(z.string())
    .optional()
    .describe('Stores of the recall that the caller may see. Absent: all stores of the account, also later ones.'),
  ean: z.string(),
  name: z.string().describe('Name of the product.'),
  ...UnitOutput,
  reason: z.string(),
  startedAt: z.string(),
  endedAt: z.string().optional(),
  items: z
    .int()
    .optional()
    .describe(
      'Registered items that matched when the recall began, sold ones included. Absent while they are being counted, and for a key that does not see all stores of the recall.',
    ),
  soldItems: z.int().optional().describe('Those of them that were paid or picked up.'),
})

async function describe(call: Call, row: Row<'product_recall'>): Promise<z.infer<typeof Recall>> {
  const { storeIds: visible } = keyCaller(call.caller)
  const all = await storesOfRecall(call.db, row)
  const stores = all && [...all].sort()
  const { lot, expiry, serial } = row
  const seesAll = visible === null || (stores?.every((id) => visible.includes(id)) ?? false)
  const isCounted = seesAll && (row.publish_after === null || row.ended_ms !== null)
  return {
    recallId: row.recall_id,
    state: row.ended_ms === null ? 'active' : 'ended',
    ...(stores && { storeIds: stores.filter((id) => visible?.includes(id) ?? true) }),
    ean: row.ean,
    name: await nameOfProduct(call.db, row),
    ...definedFields({ lot, expiry, serial }),
    reason: row.reason,
    startedAt: iso(row.started_ms),
    ...(row.ended_ms !== null && { endedAt: iso(row.ended_ms) }),
    ...(isCounted && { items: row.items, soldItems: row.sold_items }),
  }
}

export const recallProducts = operation({
  name: 'recallProducts',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Recalls goods: from now on they are neither sold nor released, and gates alarm for them.',
  description:
    'The recall stops all goods of the product that have the stated lot, expiry and serial. ' +
    'Goods whose lot, expiry or serial is not known match only a recall that does not name it. ' +
    'Items that are registered later count, too. The status of an item stays as it is, and counts again after `endRecall`. ' +
    'Checkout, payment and pick-up fail with 409 `recalled`; devices are denied with the reason `recalled`, also for paid goods and for staff.',
  refusals: ['too_many_recalls'],
  changes: true,
  request: z.strictObject({
    storeIds: z
      .array(Id)
      .min(1)
      .max(STORES_LIMIT)
      .optional()
      .describe('Absent: all stores of the key, which may be the whole account.'),
    ean: ProductCodeText,
    ...UnitInput,
    reason: text(300).describe('Why, for staff. Shoppers do not see it.'),
  }),
  response: Recall.extend(Success),
  example: { storeIds: [STORE], ean: '4012345678901', lot: 'L-2611', reason: 'Splitter im Glas: zum Lieferanten' },
  async run(call, { storeIds, ean, lot, expiry, serial, reason }) {
    const { db, nowMs, services } = call
    const caller = keyCaller(call.caller)
    const named = storeIds ?? caller.storeIds
    const stores = named && [...new Set(named)]
    if (stores) await ownStores(call, stores)
    const product = await namedProduct(call, { ean })
    if ((await countActive(db, caller.tenant)) >= RECALLS_LIMIT)
      throw precondition('too_many_recalls', `the account has ${RECALLS_LIMIT} active recalls: end some of them`)
    const row: Row<'product_recall'> = {
      recall_id: newId('rcl', services.platform),
      tenant: caller.tenant,
      stores: stores && stores.length,
      product_id: product.product_id,
      ean: product.ean,
      lot: null,
      expiry: null,
      serial: null,
      ...unitDataOf({ lot, expiry, serial, ean }, nowMs),
      reason,
      started_ms: nowMs,
      started_by: actorOf(caller),
      ended_ms: null,
      ended_by: null,
      publish_after: '',
      receipts_after: '',
      items: 0,
      sold_items: 0,
    }
    await db.insertInto('product_recall').values(row).execute()
    if (stores && stores.length > 0)
      await db
        .insertInto('recall_store')
        .values(stores.map((storeId) => ({ recall_id: row.recall_id, store_id: storeId })))
        .execute()
    await publishUnits(call, row)
    await revokeTokens(call, { kind: 'recall', recallId: row.recall_id }, 'its goods are recalled', coversRecalled)
    await publish(call, row)
    call.changed(row.recall_id)
    return { success: true as const, ...(await describe(call, await ownRecall(call, row.recall_id))) }
  },
})

export const endRecall = operation({
  name: 'endRecall',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Ends a recall: its goods are again what their status says, unless another recall stops them.',
  description: 'A recall that has ended stays as it is. The key must see all stores of the recall.',
  changes: true,
  request: z.strictObject({ recallId: Id }),
  response: Recall.extend(Success),
  example: { recallId: RECALL },
  async run(call, { recallId }) {
    const { db, nowMs } = call
    const recall = await ownRecall(call, recallId)
    call.changed(recallId)
    if (recall.ended_ms !== null) return { success: true as const, ...(await describe(call, recall)) }
    const ended = await db
      .updateTable('product_recall')
      .set({
        ended_ms: nowMs,
        ended_by: actorOf(call.caller),
        publish_after: '',
        receipts_after: '',
      })
      .where('recall_id', '=', recallId)
      .returningAll()
      .executeTakeFirstOrThrow()
    await publishUnits(call, ended)
    await publish(call, ended)
    return { success: true as const, ...(await describe(call, ended)) }
  },
})

export const fetchRecalls = operation({
  name: 'fetchRecalls',
  area: 'protection',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Lists recalls, of a store or of all stores that the key may see, newest first.',
  description: 'A list of a store contains the recalls of the whole account.',
  changes: false,
  request: z.strictObject({
    storeId: Id.optional(),
    state: z.enum(STATES).optional(),
    limit: Limit.optional().describe(`A page contains at most ${PAGE_LIMIT}; use the cursor for more.`),
    cursor: cursorField('rcl').optional(),
  }),
  response: z.strictObject({ ...Success, recalls: z.array(Recall), nextCursor: z.string().optional() }),
  example: { storeId: STORE, state: 'active' },
  async run(call, { storeId, state, limit: wanted = DEFAULT_PAGE, cursor }) {
    const caller = keyCaller(call.caller)
    const stores = storeId === undefined ? caller.storeIds : [(await ownStore(call, storeId)).store_id]
    const limit = Math.min(wanted, PAGE_LIMIT)
    const { items, nextCursor } = await readPageWithinText(
      (atMost, last: Row<'product_recall'> | undefined) =>
        listRecalls(call.db, caller.tenant, { stores, state, after: last?.recall_id ?? cursor, limit: atMost }),
      (row) => row.recall_id,
      (row) => (row.stores ?? 0) * ID_LENGTH,
      { limit },
    )
    const recalls = []
    for (const row of items) recalls.push(await describe(call, row))
    return { success: true as const, recalls, ...(nextCursor && { nextCursor }) }
  },
})

/** Publishes the first items of a recall that began or ended. A job publishes the others. */
async function publish(call: Call, recall: Row<'product_recall'>): Promise<void> {
  for (const storeId of await publishSome(call.db, recall)) notifyGates(call, storeId)
}

/**
 * Publishes which units of receipts a recall stops or frees. If it names only the product, its stores get a new policy,
 * which names the product. The deny list names the other units, the first at once, the others by a job.
 */
async function publishUnits(call: Call, recall: Row<'product_recall'>): Promise<void> {
  await publishReceipts(call, recall)
  if (!stopsWholeProduct(recall) && recall.lot === null) return
  const stores = await storesOfRecall(call.db, recall)
  for (const storeId of await raiseDocumentVersions(call.db, recall.tenant, stores && [...stores]))
    call.afterCommit(() => call.services.agents.storeChanged(storeId))
}

/** Throws 404 for a recall that the caller may not see, and 403 if it also stops goods in stores of others. */
async function ownRecall(call: Call, recallId: string): Promise<Row<'product_recall'>> {
  const { tenant, storeIds: visible } = keyCaller(call.caller)
  const recall = await findRecall(call.db, tenant, recallId)
  const all = recall && (await storesOfRecall(call.db, recall))
  const stores = all && [...all]
  if (!recall || (visible && stores && !stores.some((id) => visible.includes(id)))) throw notFound('recall')
  if (visible && !stores?.every((id) => visible.includes(id)))
    throw new Failure('permission-denied', 'the recall also stops goods in stores that this key may not see', {
      reason: 'recall_of_other_stores',
    })
  if (stores) await ownStores(call, stores)
  return recall
}
