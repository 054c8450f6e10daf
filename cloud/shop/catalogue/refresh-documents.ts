import type { Database, Db } from '../../platform/persistence/database.ts'
import { DOCUMENT_VERSION } from './render.ts'
import { listListings } from './queries.ts'
import { writeProducts } from './write-products.ts'

const NAME = 'catalogue-documents'
/** Products per transaction. */
const BATCH = 200

/**
 * Rebuilds all product documents, search terms and counts if `DOCUMENT_VERSION` has changed since they were written.
 * Call it before the server accepts requests.
 */
export async function refreshDocuments(database: Database): Promise<void> {
  const found = await database.reads
    .selectFrom('installation')
    .select('value')
    .where('name', '=', NAME)
    .executeTakeFirst()
  if (found?.value === DOCUMENT_VERSION) return
  await database.write((db) => db.deleteFrom('product_word').execute())
  for (let after = ''; ;) {
    const last = await database.write((db) => refreshBatch(db, after))
    if (last === undefined) break
    after = last
  }
  await database.write(async (db) => {
    await recount(db)
    const row = { name: NAME, value: DOCUMENT_VERSION }
    await db
      .insertInto('installation')
      .values(row)
      .onConflict((c) => c.column('name').doUpdateSet({ value: row.value }))
      .execute()
  })
}

async function refreshBatch(db: Db, after: string): Promise<string | undefined> {
  const products = await db
    .selectFrom('product')
    .selectAll()
    .where('product_id', '>', after)
    .orderBy('product_id')
    .limit(BATCH)
    .execute()
  const listings = await listListings(
    db,
    products.map((product) => product.product_id),
  )
  const writes = products.flatMap((product) =>
    (listings.get(product.product_id) ?? []).map((listing) => ({
      before: product,
      after: product,
      known: [],
      listing,
    })),
  )
  await writeProducts(db, writes)
  return products.at(-1)?.product_id
}

async function recount(db: Db): Promise<void> {
  await db.deleteFrom('product_count').execute()
  const all = db
    .selectFrom('store_product')
    .select((eb) => ['store_id', eb.val('').as('category'), eb.fn.countAll<number>().as('products')])
  await db
    .insertInto('product_count')
    .columns(['store_id', 'category', 'products'])
    .expression(all.groupBy('store_id'))
    .execute()
  const categories = db
    .selectFrom('store_product')
    .select((eb) => ['store_id', 'category', eb.fn.countAll<number>().as('products')])
  await db
    .insertInto('product_count')
    .columns(['store_id', 'category', 'products'])
    .expression(categories.where('category', 'is not', null).groupBy(['store_id', 'category']))
    .execute()
}
