import type { Services } from '../../operations/operation.ts'
import { processEach } from '../../operations/process-each.ts'
import type { Database, Db } from '../../persistence/database.ts'
import type { ProductRecallRow } from '../../persistence/tables/protection.ts'
import { renumberItems } from '../items/item-sequence.ts'
import { recalledItems } from '../items/recalls.ts'

/** Items per transaction, because each transaction locks the heads of its stores. */
const ITEMS_AT_ONCE = 1_000
/** Transactions per recall and run. */
const ROUNDS = 100

/**
 * Gives the items of a recall that began or ended new numbers, so that agents receive them again (agents/documents). The
 * operation publishes the first items with its own change. A job publishes the others.
 *
 * Returns the stores of these items.
 */
export async function publishSome(db: Db, recall: ProductRecallRow): Promise<readonly string[]> {
  const items = await recalledItems(db, recall)
    .select(['i.item_id', 'i.store_id'])
    .where('i.item_id', '>', recall.publish_after ?? '')
    .orderBy('i.item_id')
    .limit(ITEMS_AT_ONCE)
    .execute()
  const stores = [...new Set(items.map((item) => item.store_id))].sort()
  for (const storeId of stores)
    await renumberItems(
      db,
      storeId,
      items.flatMap((item) => (item.store_id === storeId ? item.item_id : [])),
    )
  await db
    .updateTable('product_recall')
    .set({ publish_after: items.length < ITEMS_AT_ONCE ? null : (items.at(-1)?.item_id ?? null) })
    .where('recall_id', '=', recall.recall_id)
    .execute()
  return stores
}

/** Publishes the items that the operations did not publish. Several processes may run this at the same time. */
export function publishRecalls(database: Database, services: Services): Promise<void> {
  return processEach(services, {
    job: 'items of recalls',
    read: (limit, failed) =>
      database.reads
        .selectFrom('product_recall')
        .select('recall_id')
        .where('publish_after', 'is not', null)
        .orderBy('recall_id')
        .limit(limit)
        .offset(failed)
        .execute(),
    async process({ recall_id }) {
      for (let round = 0; round < ROUNDS; round++) {
        const stores = await database.write((db) => publishNext(db, recall_id))
        if (!stores) return
        for (const storeId of stores) void services.agents.itemsChanged(storeId)
      }
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
