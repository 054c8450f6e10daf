import { sql } from 'kysely'
import { inTurns, runJobStep } from '../../platform/operations/job-steps.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { groupBy, type Database, type Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { renumberItems } from '../items/item-sequence.ts'
import {
  findRecall,
  isInStore,
  namesGoods,
  readWindow,
  recallsIn,
  type RecallableGoods,
  type StoreRecalls,
} from '../items/recalls.ts'
import { itemsOf, linesOf } from '../../shop/pickup-orders/queries.ts'
import { readLines, readUnits } from '../../shop/purchases/queries.ts'
import { readItems, readItem } from '../items/item-queries.ts'
import { unitsOfAuthorization } from '../leases/authorizations.ts'

/**
 * True if a recall stops goods of a pick-up order: an item that is reserved for it, or the product of a line with pieces
 * that have no tag.
 */
export async function hasRecalledGoods(
  db: Db,
  { order_id: orderId }: Pick<Row<'pickup_order'>, 'order_id'>,
  recalls: StoreRecalls,
): Promise<boolean> {
  const items = await itemsOf(db, [orderId])
  for (const line of await linesOf(db, [orderId])) {
    const own = items.filter((item) => item.line_no === line.line_no)
    const goods = own.length < line.quantity ? [...own, undefined] : own
    if (goods.some((item) => recalls.stop({ item, line: { ean: line.ean } }))) return true
  }
  return false
}

/** True if an item that the purchase names is stopped, or other goods of one of its lines. */
export async function hasRecalledUnit(
  db: Db,
  { purchase_id: purchaseId }: Pick<Row<'purchase'>, 'purchase_id'>,
  stops: (goods: RecallableGoods) => boolean,
): Promise<boolean> {
  const lines = await readLines(db, purchaseId)
  const units = groupBy(await readUnits(db, purchaseId), (unit) => unit.line_id)
  const idsOf = (line: Row<'purchase_line'>) => (units.get(line.line_id) ?? []).flatMap((unit) => unit.item_id ?? [])
  const items = await readItems(db, lines.flatMap(idsOf))
  return lines.some((line) => {
    const itemIds = idsOf(line)
    return (
      (itemIds.length < line.quantity && stops({ line })) || itemIds.some((id) => stops({ line, item: items.get(id) }))
    )
  })
}

/** Items per transaction and their stores, because each transaction locks the heads of its stores. */
const AT_ONCE = { items: 1_000, stores: 50 }
/** Accounts per read. Further accounts follow in the next run. */
const ACCOUNTS = 1_000

/**
 * Gives the items of a recall that began or ended new numbers, so that agents receive them again (agents/documents), and
 * counts them. The operation publishes the first items with its own change. A job publishes the others.
 *
 * Returns the stores of these items.
 */
export async function publishSome(db: Db, recall: Row<'product_recall'>): Promise<readonly string[]> {
  const { items, sold, last } = await readWindow(db, recall, recall.publish_after ?? '', AT_ONCE)
  const stores = [...new Set(items.map((item) => item.store_id))].sort()
  for (const storeId of stores)
    await renumberItems(
      db,
      storeId,
      items.flatMap((item) => (item.store_id === storeId ? item.item_id : [])),
    )
  const counted = recall.ended_ms === null
  await db
    .updateTable('product_recall')
    .set({
      publish_after: last,
      ...(counted && { items: recall.items + items.length, sold_items: recall.sold_items + sold }),
    })
    .where('recall_id', '=', recall.recall_id)
    .execute()
  return stores
}

/**
 * Publishes what the operations did not publish. Accounts take turns, so that long recalls of one delay no other; of an
 * account its active recalls come first. Several processes may run this at the same time. `column` says where a recall
 * goes on; null: all of it is published. `publish` publishes the next part.
 */
export function publishInTurns(
  database: Database,
  services: Pick<Services, 'log' | 'platform'>,
  { job, column, publish }: RecallJob,
): Promise<boolean> {
  return inTurns(database, services, {
    job,
    async accounts(db) {
      const due = db.selectFrom('product_recall').select('tenant').where(column, 'is not', null)
      const rows = await due
        .groupBy('tenant')
        .orderBy((eb) => eb.fn.min('recall_id'))
        .limit(ACCOUNTS)
        .execute()
      return rows.map(({ tenant }) => tenant)
    },
    async turn(tenant) {
      const next = await database.reads
        .selectFrom('product_recall')
        .select('recall_id')
        .where('tenant', '=', tenant)
        .where(column, 'is not', null)
        .orderBy(sql`case when ended_ms is null then 0 else 1 end`)
        .orderBy('recall_id')
        .limit(1)
        .executeTakeFirst()
      if (next) await publish(next.recall_id, tenant)
      return next && true
    },
  })
}

interface RecallJob {
  readonly job: string
  readonly column: 'publish_after' | 'receipts_after'
  publish(recallId: string, tenant: string): Promise<unknown>
}

/** Publishes the items that the operations did not publish. */
export function publishRecalls(database: Database, services: Services): Promise<boolean> {
  return publishInTurns(database, services, {
    job: 'items of recalls',
    column: 'publish_after',
    async publish(recallId, tenant) {
      const stores = await runJobStep({ database, services, holder: tenant }, ({ db }) => publishNext(db, recallId))
      for (const storeId of stores ?? []) void services.agents.itemsChanged(storeId)
    },
  })
}

/** Publishes the next items. Returns undefined if all are published. */
async function publishNext(db: Db, recallId: string): Promise<readonly string[] | undefined> {
  // The update locks the row, so that two processes do not publish the same items.
  const recall = await db
    .updateTable('product_recall')
    .set((eb) => ({ publish_after: eb.ref('publish_after') }))
    .where('recall_id', '=', recallId)
    .where('publish_after', 'is not', null)
    .returningAll()
    .executeTakeFirst()
  return recall && publishSome(db, recall)
}

/** True if the token is for goods that this recall stops. False if it has ended. */
export async function coversRecalled(
  db: Db,
  { tenant, recallId }: { tenant: string; recallId: string },
  { nonce, device_id, store_id: storeId, purchase_id, item_id }: Row<'protection_authorization'>,
): Promise<boolean> {
  const recall = await findRecall(db, tenant, recallId)
  if (recall?.ended_ms !== null) return false
  if (item_id === null && purchase_id === null) return isLockerOfRecalled(db, device_id)
  if (!(await isInStore(db, recall, storeId))) return false
  if (item_id === null)
    return hasRecalledUnit(db, { purchase_id: purchase_id ?? '' }, (goods) => namesGoods(recall, goods))
  const item = await readItem(db, item_id)
  if (namesGoods(recall, { item })) return true
  if (purchase_id === null) return false
  const lines = await readLines(db, purchase_id)
  const units = await unitsOfAuthorization(db, nonce)
  return units.some((unit) => namesGoods(recall, { item, line: lines.find((line) => line.line_id === unit.line_id) }))
}

/** True if an order with recalled goods waits in this locker. Each locker holds one order. */
async function isLockerOfRecalled(db: Db, deviceId: string): Promise<boolean> {
  const order = await db
    .selectFrom('pickup_order')
    .select(['tenant', 'store_id', 'order_id'])
    .where('locker_device_id', '=', deviceId)
    .where('status', '=', 'ready')
    .executeTakeFirst()
  return order !== undefined && (await hasRecalledGoods(db, order, await recallsIn(db, order)))
}
