import type { Services } from '../../platform/operations/operation.ts'
import { processEach } from '../../platform/operations/process-each.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import type { ItemRefreshRow } from '../../platform/persistence/tables/protection.ts'
import { renumberItems } from './item-sequence.ts'

/** Items per transaction: few, because each transaction locks the store's head. */
const ITEMS_AT_ONCE = 100
/** Transactions per product and run. A product with more items continues in the next run. */
const ROUNDS = 50

/**
 * Publishes the items of changed products again, so that agents decide with the same price, category and brand as the
 * cloud, and show the new name and picture. Several processes may run this at the same time.
 */
export function refreshItems(database: Database, services: Services): Promise<void> {
  return processEach(services, {
    job: 'items of changed products',
    read: (limit, failed) =>
      database.reads
        .selectFrom('item_refresh')
        .selectAll()
        .orderBy('store_id')
        .orderBy('product_id')
        .limit(limit)
        .offset(failed)
        .execute(),
    async process(row) {
      let round = 0
      while (await database.write((db) => refreshSome(db, row))) {
        services.agents.itemsChanged(row.store_id)
        if (++round === ROUNDS) return
      }
      services.agents.itemsChanged(row.store_id)
    },
  })
}

/** Publishes the next items of a product. Returns false after the last ones. */
async function refreshSome(
  db: Db,
  { store_id, product_id }: Pick<ItemRefreshRow, 'store_id' | 'product_id'>,
): Promise<boolean> {
  // The update locks the row, so that two processes do not publish the same items.
  const row = await db
    .updateTable('item_refresh')
    .set((eb) => ({ after_item: eb.ref('after_item') }))
    .where('store_id', '=', store_id)
    .where('product_id', '=', product_id)
    .returning('after_item')
    .executeTakeFirst()
  if (!row) return false
  const items = await db
    .selectFrom('protected_item')
    .select('item_id')
    .where('store_id', '=', store_id)
    .where('product_id', '=', product_id)
    .where('item_id', '>', row.after_item)
    .orderBy('item_id')
    .limit(ITEMS_AT_ONCE)
    .execute()
  const ids = items.map(({ item_id }) => item_id)
  await renumberItems(db, store_id, ids)
  const isDone = ids.length < ITEMS_AT_ONCE
  const after_item = ids.at(-1) ?? ''
  const found = { store_id, product_id }
  if (isDone)
    await db
      .deleteFrom('item_refresh')
      .where((eb) => eb.and(found))
      .execute()
  else
    await db
      .updateTable('item_refresh')
      .set({ after_item })
      .where((eb) => eb.and(found))
      .execute()
  return !isDone
}
