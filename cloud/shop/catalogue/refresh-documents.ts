import type { Database, Db } from '../../platform/persistence/database.ts'
import { readValue, writeValue } from '../../platform/persistence/installation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { DOCUMENT_VERSION } from './render.ts'
import { writeListings } from './write-products.ts'

const NAME = 'catalogue-documents'
/** Listings per transaction. */
const BATCH = 500

/** The last listing of a transaction. */
type Place = Pick<Row<'store_product'>, 'product_id' | 'store_id'>

/**
 * Rebuilds all product documents, search terms and counts if `DOCUMENT_VERSION` has changed since they were written.
 * Call it before the server accepts requests.
 */
export async function refreshDocuments(database: Database): Promise<void> {
  if ((await readValue(database.reads, NAME)) === DOCUMENT_VERSION) return
  await database.write((db) => db.deleteFrom('product_word').execute())
  for (let after: Place = { product_id: '', store_id: '' }; ;) {
    const last = await database.write((db) => refreshBatch(db, after))
    if (last === undefined) break
    after = last
  }
  await database.write(async (db) => {
    await recount(db)
    await writeValue(db, NAME, DOCUMENT_VERSION)
  })
}

async function refreshBatch(db: Db, after: Place): Promise<Place | undefined> {
  const listings = await db
    .selectFrom('store_product')
    .selectAll()
    .where((eb) => eb(eb.refTuple('product_id', 'store_id'), '>', eb.tuple(after.product_id, after.store_id)))
    .orderBy('product_id')
    .orderBy('store_id')
    .limit(BATCH)
    .execute()
  if (listings.length === 0) return undefined
  const ids = [...new Set(listings.map((listing) => listing.product_id))]
  const rows = await db.selectFrom('product').selectAll().where('product_id', 'in', ids).execute()
  const byId = new Map(rows.map((product) => [product.product_id, product]))
  const writes = listings.flatMap((listing) => {
    const product = byId.get(listing.product_id)
    return product ? { product, stored: undefined, listing, isNews: false } : []
  })
  await writeListings(db, writes)
  return listings.at(-1)
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
