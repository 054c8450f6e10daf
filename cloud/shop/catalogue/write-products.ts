import { assert } from '../../../policy/assert.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { insertChunks, prepared } from '../../platform/persistence/prepared.ts'
import { preparedInsert } from '../../platform/persistence/prepared-insert.ts'
import { NEXT_LISTING_NUMBER, takeListingNumbers } from '../../platform/persistence/listing-numbers.ts'
import type { ProductRow, StoreProductRow, ProductWordRow } from '../../platform/persistence/tables/stores.ts'
import { listedCategory, renderListing, type NumberedListing } from './render.ts'
import { searchTermsOf, blockOf, entryOf } from './search-queries.ts'

/** A term of a listing. */
interface ListingTerm {
  store_id: string
  word: string
  listing_no: number
}

const appendListings = preparedInsert((db, rows: readonly ProductWordRow[]) =>
  db
    .insertInto('product_word')
    .values(rows)
    .onConflict((c) =>
      c.columns(['store_id', 'word', 'block']).doUpdateSet((eb) => ({
        products: eb('product_word.products', '||', eb.ref('excluded.products')),
      })),
    ),
)

const removeEntry = prepared((db, p: Omit<ProductWordRow, 'products'> & { entry: string; empty: string }) =>
  db
    .updateTable('product_word')
    .set((eb) => ({ products: eb.fn<string>('replace', [eb.ref('products'), eb.val(p.entry), eb.val(p.empty)]) }))
    .where('store_id', '=', p.store_id)
    .where('word', '=', p.word)
    .where('block', '=', p.block),
)
const removeEmptyRow = prepared((db, p: ProductWordRow) =>
  db
    .deleteFrom('product_word')
    .where('store_id', '=', p.store_id)
    .where('word', '=', p.word)
    .where('block', '=', p.block)
    .where('products', '=', p.products),
)

/** Changes of the search index in one transaction. Do not add a term to a listing that already has it. */
class IndexChanges {
  readonly #added = new Map<string, ProductWordRow>()
  readonly #removed: ListingTerm[] = []

  add({ store_id, word, listing_no }: ListingTerm): void {
    const block = blockOf(listing_no)
    const key = `${store_id} ${word} ${block}`
    const products = (this.#added.get(key)?.products ?? '') + entryOf(listing_no)
    this.#added.set(key, { store_id, word, block, products })
  }

  remove(term: ListingTerm): void {
    this.#removed.push(term)
  }

  async write(db: Db): Promise<void> {
    for (const { store_id, word, listing_no } of this.#removed) {
      const row = { store_id, word, block: blockOf(listing_no) }
      await removeEntry(db, { ...row, entry: entryOf(listing_no), empty: '' })
      await removeEmptyRow(db, { ...row, products: '' })
    }
    // Rows are always written in the same order, which avoids deadlocks between two transactions.
    const rows = [...this.#added.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
    for (const chunk of insertChunks(rows)) await appendListings(db, chunk)
  }
}

/** A product in a store. */
interface ProductInStore {
  storeId: string
  productId: string
}

/** Products per statement. */
const AT_ONCE = 200

/**
 * Notes that agents must receive the items of these products again, because name, brand, category, price or picture
 * changed. A job publishes the items (protection/items/refresh-items.ts), because a product may have many. Products
 * without items are skipped.
 */
async function noteProductChanges(db: Db, products: readonly ProductInStore[]): Promise<void> {
  // Rows are always written in the same order, which avoids deadlocks between two transactions.
  for (const storeId of [...new Set(products.map((each) => each.storeId))].sort()) {
    const ofStore = products.filter((each) => each.storeId === storeId)
    const ids = [...new Set(ofStore.map(({ productId }) => productId))].sort()
    for (let i = 0; i < ids.length; i += AT_ONCE) await noteOfStore(db, storeId, ids.slice(i, i + AT_ONCE))
  }
}

async function noteOfStore(db: Db, storeId: string, productIds: readonly string[]): Promise<void> {
  const tagged = await db
    .selectFrom('protected_item')
    .select('product_id')
    .distinct()
    .where('store_id', '=', storeId)
    .where('product_id', 'in', productIds)
    .orderBy('product_id')
    .execute()
  if (tagged.length === 0) return
  await db
    .insertInto('item_refresh')
    .values(tagged.map(({ product_id }) => ({ store_id: storeId, product_id: product_id ?? '', after_item: '' })))
    // A job that is under way begins again.
    .onConflict((c) => c.columns(['store_id', 'product_id']).doUpdateSet({ after_item: '' }))
    .execute()
}

/**
 * All writes of the catalogue use this file. One transaction updates the product, its documents in all stores
 * (`store_product.doc`), its search terms (`product_word`) and the counts (`product_count`).
 */
export interface ProductWrite {
  /** Row that the database contains; undefined for a new product. */
  before: ProductRow | undefined
  after: ProductRow
  /** Listings in all stores before the write. May be empty if the product itself does not change. */
  known: readonly NumberedListing[]
  /** New or changed price in one store. */
  listing: PriceInStore | undefined
}

/** A listing without its product. A new listing has no number yet. */
export type PriceInStore = Omit<NumberedListing, 'product_id' | 'listing_no'> & { listing_no?: number }

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
export async function addNewProduct(db: Db, after: ProductRow, listing: PriceInStore): Promise<boolean> {
  const added = await db
    .insertInto('product')
    .values(after)
    .onConflict((c) => c.columns(['tenant', 'ean']).doNothing())
    .returning(NEXT_LISTING_NUMBER.as('listing_no'))
    .executeTakeFirst()
  if (added) await writeListings(db, [{ before: undefined, after, known: [], listing: { ...listing, ...added } }])
  return added !== undefined
}

/** A write whose listing, if it has one, has a number. */
type NumberedWrite = ProductWrite & { listing: Omit<NumberedListing, 'product_id'> | undefined }

async function withNumbers(db: Db, writes: readonly ProductWrite[]): Promise<NumberedWrite[]> {
  const isNew = ({ listing, known }: ProductWrite) =>
    listing && listing.listing_no === undefined && !known.some((row) => row.store_id === listing.store_id)
  const numbers = await takeListingNumbers(db, writes.filter(isNew).length)
  return writes.map((write) => {
    const { listing, known } = write
    if (!listing) return { ...write, listing }
    const number = listing.listing_no ?? known.find((row) => row.store_id === listing.store_id)?.listing_no
    const listing_no = number ?? numbers.shift()
    assert(listing_no !== undefined, 'a new listing got no number')
    return { ...write, listing: { ...listing, listing_no } }
  })
}

async function writeListings(db: Db, writes: readonly ProductWrite[]): Promise<void> {
  const listings: StoreProductRow[] = []
  const index = new IndexChanges()
  const published: ProductInStore[] = []
  const counts = new Map<string, Count>()
  const count = (store_id: string, category: string | null, by: number) => {
    if (category === null) return
    const key = `${store_id}\0${category}`
    counts.set(key, { store_id, category, products: (counts.get(key)?.products ?? 0) + by })
  }
  for (const { before, after, known, listing } of await withNumbers(db, writes)) {
    const oldTerms = before ? searchTermsOf(before) : []
    const newTerms = searchTermsOf(after)
    const repriced = known.filter((row) => row.store_id !== listing?.store_id && before !== after)
    for (const row of listing ? [...repriced, listing] : repriced) {
      const listed = known.find(({ store_id }) => store_id === row.store_id)
      const isNew = listed === undefined
      if (before && (changesItems(before, after) || listed?.price_cent !== row.price_cent))
        published.push({ storeId: row.store_id, productId: after.product_id })
      listings.push(renderListing(after, { ...row, product_id: after.product_id }))
      const indexed = isNew ? [] : oldTerms
      for (const word of indexed) if (!newTerms.includes(word)) index.remove({ ...row, word })
      for (const word of newTerms) if (!indexed.includes(word)) index.add({ ...row, word })
      if (isNew) count(row.store_id, '', 1)
      if (!isNew && before) count(row.store_id, listedCategory(before), -1)
      count(row.store_id, listedCategory(after), 1)
    }
  }
  for (const rows of insertChunks(listings)) await upsertListings(db, rows)
  await index.write(db)
  await addToCounts(db, [...counts.values()])
  await noteProductChanges(db, published)
}

/** True if a change of the product changes what agents know about its items. */
function changesItems(before: ProductRow, after: ProductRow): boolean {
  return ITEM_FACTS.some((fact) => before[fact] !== after[fact])
}

const ITEM_FACTS = ['name', 'brand', 'category', 'image_url', 'price_cent'] as const

/** Removes a product from a store. The product row stays, because purchases and other stores may refer to it. */
export async function removeListing(db: Db, storeId: string, product: ProductRow): Promise<void> {
  const removed = await db
    .deleteFrom('store_product')
    .where('store_id', '=', storeId)
    .where('product_id', '=', product.product_id)
    .returning('listing_no')
    .executeTakeFirst()
  if (!removed) return
  const index = new IndexChanges()
  for (const word of searchTermsOf(product)) index.remove({ store_id: storeId, word, ...removed })
  await index.write(db)
  const category = listedCategory(product)
  const categories = ['', ...(category === null ? [] : [category])]
  await addToCounts(
    db,
    categories.map((category) => ({ store_id: storeId, category, products: -1 })),
  )
  // Its items now have the price of the product.
  await noteProductChanges(db, [{ storeId, productId: product.product_id }])
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
        words: eb.ref('excluded.words'),
      })),
    ),
)

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
