import type { Database, Db } from '../../platform/persistence/database.ts'
import { readValue, writeValue } from '../../platform/persistence/installation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { DOCUMENT_VERSION } from './render.ts'
import { writeListings } from './write-products.ts'
import type { Services } from '../../platform/operations/operation.ts'
import { inTurns } from '../../platform/operations/job-steps.ts'
import { listingsAfter } from './queries.ts'

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

/** Listings per transaction: with 40 words each, they take up to 50 ms. */
export const LISTINGS_AT_ONCE = 50
/** Accounts per read. Further accounts follow in the next run. */
const ACCOUNTS = 1_000

/** Writes the listings of changed products that the transaction of the change did not write (write-products.ts). */
export function refreshListings(database: Database, services: Pick<Services, 'log' | 'platform'>): Promise<boolean> {
  return inTurns(database, services, {
    job: 'listings of changed products',
    accounts: readAccounts,
    turn: (holder) => database.write((db) => refreshSome(db, holder), { alone: ['catalogue'], holder }),
  })
}

/** The accounts with changed products, the longest waiting first. */
async function readAccounts(db: Db): Promise<string[]> {
  const rows = await db
    .selectFrom('listing_refresh')
    .select('tenant')
    .groupBy('tenant')
    .orderBy((eb) => eb.fn.min('queued_ms'))
    .orderBy('tenant')
    .limit(ACCOUNTS)
    .execute()
  return rows.map(({ tenant }) => tenant)
}

/**
 * Writes the next listings of the account's first changed product, from the product as it is now. Returns undefined if
 * no product is left.
 */
async function refreshSome(db: Db, tenant: string): Promise<true | undefined> {
  const row = await db
    .selectFrom('listing_refresh')
    .selectAll()
    .where('tenant', '=', tenant)
    .orderBy('queued_ms')
    .orderBy('product_id')
    .limit(1)
    .executeTakeFirst()
  if (!row) return undefined
  const { product_id } = row
  const product = await db
    .selectFrom('product')
    .selectAll()
    .where('product_id', '=', product_id)
    .executeTakeFirstOrThrow()
  const listings = await listingsAfter(db, [product_id], row.after_store, LISTINGS_AT_ONCE)
  await writeListings(
    db,
    listings.map((stored) => ({ product, stored, listing: stored, isNews: row.is_news === 1 })),
  )
  const isDone = listings.length < LISTINGS_AT_ONCE
  if (isDone && row.again === 0) await db.deleteFrom('listing_refresh').where('product_id', '=', product_id).execute()
  else
    await db
      .updateTable('listing_refresh')
      .set(
        isDone
          ? { after_store: '', again: 0, queued_ms: product.updated_ms }
          : { after_store: listings.at(-1)?.store_id ?? '' },
      )
      .where('product_id', '=', product_id)
      .execute()
  return true
}
