import type { Db } from '../persistence/database.ts'
import { insertChunks } from '../persistence/insert-chunks.ts'
import { preparedInsert } from '../persistence/prepared-insert.ts'
import type { ProductRow, ProductWordRow, StoreProductRow } from '../persistence/tables/stores.ts'
import { renderListing, type Listing } from './render.ts'
import { joinTerms, searchTermsOf } from './search-terms.ts'

/**
 * All writes of the catalogue use this file. One transaction updates the product, its documents in all stores
 * (`store_product.doc`), its search terms (`product_word`) and the counts (`product_count`).
 */
export interface ProductWrite {
  /** Row that the database contains; undefined for a new product. */
  before: ProductRow | undefined
  after: ProductRow
  /** Listings in all stores before the write. May be empty if the product itself does not change. */
  known: readonly Listing[]
  /** New or changed price in one store. */
  listing: Omit<Listing, 'product_id'> | undefined
}

/**
 * Writes products and listings with their documents, terms and counts. `writes` may contain an unchanged product once
 * per store, but a changed product only once.
 */
export async function writeProducts(db: Db, writes: readonly ProductWrite[]): Promise<void> {
  const changed = writes.filter(({ before, after }) => before !== after)
  for (const rows of insertChunks(changed.map((write) => write.after))) await upsertProducts(db, rows)
  await writeListings(db, writes)
}

/**
 * Adds a product that the account does not have yet, and its listing. Returns false, and writes nothing, if the account
 * has a product with this EAN. Does not search for the product first, because PostgreSQL would then let inserts of
 * neighbouring EANs conflict.
 */
export async function addNewProduct(db: Db, after: ProductRow, listing: Omit<Listing, 'product_id'>): Promise<boolean> {
  const added = await db
    .insertInto('product')
    .values(after)
    .onConflict((c) => c.columns(['tenant', 'ean']).doNothing())
    .returning('product_id')
    .executeTakeFirst()
  if (added) await writeListings(db, [{ before: undefined, after, known: [], listing }])
  return added !== undefined
}

async function writeListings(db: Db, writes: readonly ProductWrite[]): Promise<void> {
  const listings: StoreProductRow[] = []
  const words: { removed: ProductWordRow[]; added: ProductWordRow[] } = { removed: [], added: [] }
  const counts = new Map<string, Count>()
  const count = (store_id: string, category: string | null, by: number) => {
    if (category === null) return
    const key = `${store_id}\0${category}`
    counts.set(key, { store_id, category, products: (counts.get(key)?.products ?? 0) + by })
  }
  for (const { before, after, known, listing } of writes) {
    const oldTerms = before ? searchTermsOf(before) : []
    const newTerms = searchTermsOf(after)
    const joined = joinTerms(newTerms)
    const isSameTerms = joined === joinTerms(oldTerms)
    const repriced = known.filter((row) => row.store_id !== listing?.store_id && before !== after)
    for (const row of listing ? [...repriced, listing] : repriced) {
      const isNew = !known.some(({ store_id }) => store_id === row.store_id)
      listings.push(renderListing(after, { ...row, product_id: after.product_id }))
      const word = (text: string): ProductWordRow => ({
        store_id: row.store_id,
        word: text,
        product_id: after.product_id,
        words: joined,
      })
      if (isNew || !isSameTerms) words.added.push(...newTerms.map(word))
      if (!isNew) words.removed.push(...oldTerms.filter((w) => !newTerms.includes(w)).map(word))
      if (isNew) count(row.store_id, '', 1)
      if (!isNew) count(row.store_id, before?.category ?? null, -1)
      count(row.store_id, after.category, 1)
    }
  }
  for (const rows of insertChunks(listings)) await upsertListings(db, rows)
  for (const rows of insertChunks(words.removed)) await deleteTerms(db, rows)
  for (const rows of insertChunks(words.added)) await insertTerms(db, rows)
  await addToCounts(db, [...counts.values()])
}

/** Removes a product from a store. The product row stays, because purchases and other stores may refer to it. */
export async function removeListing(db: Db, storeId: string, product: ProductRow): Promise<void> {
  await db
    .deleteFrom('store_product')
    .where('store_id', '=', storeId)
    .where('product_id', '=', product.product_id)
    .execute()
  const words = searchTermsOf(product).map((word) => ({
    store_id: storeId,
    word,
    product_id: product.product_id,
    words: '',
  }))
  for (const rows of insertChunks(words)) await deleteTerms(db, rows)
  const categories = ['', ...(product.category === null ? [] : [product.category])]
  await addToCounts(
    db,
    categories.map((category) => ({ store_id: storeId, category, products: -1 })),
  )
}

const upsertProducts = preparedInsert((db, rows: readonly ProductRow[]) => {
  const { product_id: _id, tenant: _tenant, ean: _ean, created_ms: _created, ...changing } = rows[0] as ProductRow
  const columns = Object.keys(changing) as (keyof typeof changing)[]
  return db
    .insertInto('product')
    .values(rows)
    .onConflict((c) =>
      c
        .column('product_id')
        .doUpdateSet((eb) => Object.fromEntries(columns.map((name) => [name, eb.ref(`excluded.${name}`)]))),
    )
})

const upsertListings = preparedInsert((db, rows: readonly StoreProductRow[]) =>
  db
    .insertInto('store_product')
    .values(rows)
    .onConflict((c) =>
      c.columns(['store_id', 'product_id']).doUpdateSet((eb) => ({
        price_cent: eb.ref('excluded.price_cent'),
        old_price_cent: eb.ref('excluded.old_price_cent'),
        category: eb.ref('excluded.category'),
        updated_ms: eb.ref('excluded.updated_ms'),
        doc: eb.ref('excluded.doc'),
      })),
    ),
)

const insertTerms = preparedInsert((db, rows: readonly ProductWordRow[]) =>
  db
    .insertInto('product_word')
    .values(rows)
    .onConflict((c) =>
      c.columns(['store_id', 'word', 'product_id']).doUpdateSet((eb) => ({ words: eb.ref('excluded.words') })),
    ),
)

async function deleteTerms(db: Db, rows: readonly ProductWordRow[]): Promise<void> {
  await db
    .deleteFrom('product_word')
    .where((eb) => eb.or(rows.map(({ store_id, word, product_id }) => eb.and({ store_id, word, product_id }))))
    .execute()
}

interface Count {
  store_id: string
  category: string
  products: number
}

const addCounts = preparedInsert((db, rows: readonly Count[]) =>
  db
    .insertInto('product_count')
    .values(rows)
    .onConflict((c) =>
      c
        .columns(['store_id', 'category', 'slot'])
        .doUpdateSet((eb) => ({ products: eb('product_count.products', '+', eb.ref('excluded.products')) })),
    ),
)

async function addToCounts(db: Db, counts: readonly Count[]): Promise<void> {
  // Rows are always written in the same order, which avoids deadlocks between two transactions.
  const rows = counts
    .filter(({ products }) => products !== 0)
    .sort((a, b) => (a.store_id + a.category < b.store_id + b.category ? -1 : 1))
  for (const chunk of insertChunks(rows)) await addCounts(db, chunk)
}
