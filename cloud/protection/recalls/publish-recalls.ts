import type { Services } from '../../platform/operations/operation.ts'
import { processEach } from '../../platform/operations/process-each.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import type { ProductRecallRow } from '../../platform/persistence/tables/protection.ts'
import { renumberItems } from '../items/item-sequence.ts'
import { readWindow } from '../items/recalls.ts'

/** Items per transaction, because each transaction locks the heads of its stores. */
const ITEMS_AT_ONCE = 1_000
/** Transactions per recall and run. */
const ROUNDS = 100

/**
 * Gives the items of a recall that began or ended new numbers, so that agents receive them again (agents/documents), and
 * counts them. The operation publishes the first items with its own change. A job publishes the others.
 *
 * Returns the stores of these items.
 */
export async function publishSome(db: Db, recall: ProductRecallRow): Promise<readonly string[]> {
  const { items, sold, last } = await readWindow(db, recall, recall.publish_after ?? '', ITEMS_AT_ONCE)
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
 * Publishes the items that the operations did not publish. Recalls take turns, so that a long one delays no other.
 * Several processes may run this at the same time.
 */
export async function publishRecalls(database: Database, services: Services): Promise<void> {
  for (let round = 0, published = 1; round < ROUNDS && published > 0; round++) {
    published = 0
    let after = ''
    await processEach(services, {
      job: 'items of recalls',
      async read(limit) {
        const due = await database.reads
          .selectFrom('product_recall')
          .select(['recall_id', 'tenant'])
          .where('publish_after', 'is not', null)
          .where('recall_id', '>', after)
          .orderBy('recall_id')
          .limit(limit)
          .execute()
        after = due.at(-1)?.recall_id ?? after
        return due
      },
      async process({ recall_id, tenant }) {
        const stores = await database.write((db) => publishNext(db, recall_id), { holder: tenant })
        if (!stores) return
        published++
        for (const storeId of stores) void services.agents.itemsChanged(storeId)
      },
    })
  }
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
