import type { Db } from '../../platform/persistence/database.ts'
import { insertChunks } from '../../platform/persistence/insert-chunks.ts'
import { preparedInsert } from '../../platform/persistence/prepared-insert.ts'
import type { StockLevelRow } from '../../platform/persistence/tables/stock.ts'

const upsertLevels = preparedInsert((db, rows: readonly StockLevelRow[]) =>
  db
    .insertInto('stock_level')
    .values(rows)
    .onConflict((c) =>
      c
        .columns(['store_id', 'product_id'])
        .doUpdateSet((eb) => ({ on_hand: eb.ref('excluded.on_hand'), updated_ms: eb.ref('excluded.updated_ms') })),
    ),
)

/** Sets the numbers of pieces of many products, by product id. Reserved pieces stay reserved. */
export async function setLevels(
  db: Db,
  storeId: string,
  levels: ReadonlyMap<string, number>,
  updated_ms: number,
): Promise<void> {
  // Writes products always in the same order, which avoids deadlocks between two writers.
  const rows = [...levels]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([product_id, on_hand]) => ({ store_id: storeId, product_id, on_hand, reserved: 0, updated_ms }))
  for (const chunk of insertChunks(rows)) await upsertLevels(db, chunk)
}
