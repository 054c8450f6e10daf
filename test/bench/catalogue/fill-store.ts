import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import { newProductRow } from '../../../cloud/shop/catalogue/queries.ts'
import { writeProducts } from '../../../cloud/shop/catalogue/write-products.ts'
import type { Tenant } from '../../../cloud/platform/foundation/caller.ts'
import type { Database } from '../../../cloud/platform/persistence/database.ts'
import { benchProduct } from './products.ts'

/** Products per transaction. */
const AT_ONCE = 500

/** Adds an empty store to the sandbox. Returns its id. */
export async function addStore(database: Database, tenant: Tenant, platform: Platform): Promise<string> {
  const storeId = newId('st', platform)
  await database.write(async (db) => {
    const known = await db.selectFrom('store').selectAll().where('tenant', '=', tenant).executeTakeFirstOrThrow()
    await db
      .insertInto('store')
      .values({ ...known, store_id: storeId, trading_name: 'Bench' })
      .execute()
  })
  return storeId
}

/**
 * Inserts the products `from` to `to - 1` (`benchProduct`) directly into the catalogue, because a million API calls
 * would take longer than the bench. `onProgress` receives the number of inserted products.
 */
export async function fillStore(
  database: Database,
  where: { tenant: Tenant; storeId: string; from: number; to: number },
  platform: Platform,
  onProgress: (done: number) => void = () => undefined,
): Promise<void> {
  const { tenant, storeId, from, to } = where
  for (let start = from; start < to; start += AT_ONCE) {
    const nowMs = platform.clock.wall()
    const writes = Array.from({ length: Math.min(AT_ONCE, to - start) }, (_, i) => {
      const product = benchProduct(start + i)
      const after = newProductRow(product, { productId: newId('prd', platform), tenant, ean: product.ean, nowMs })
      const listing = { store_id: storeId, price_cent: after.price_cent, old_price_cent: null, updated_ms: nowMs }
      return { before: undefined, after, here: undefined, listing }
    })
    await database.write((db) => writeProducts(db, writes))
    onProgress(start + writes.length - from)
  }
}
