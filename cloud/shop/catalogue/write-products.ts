import { sql } from 'kysely'
import { assert } from '../../../policy/assert.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { insertChunks, preparedInsert } from '../../platform/persistence/prepared.ts'
import { NEXT_LISTING_NUMBER, takeListingNumbers } from '../../platform/persistence/listing-numbers.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { listingsAfter, type StoredListing } from './queries.ts'
import { renderListing, type NumberedListing } from './render.ts'
import { blockOf, entryOf, termsOf, withoutEntries } from './search-queries.ts'

/** A term of a listing. */
interface ListingTerm {
  store_id: string
  word: string
  listing_no: number
}

const appendListings = preparedInsert((db, rows: readonly Row<'product_word'>[]) =>
  db
    .insertInto('product_word')
    .values(rows)
    .onConflict((c) =>
      c.columns(['store_id', 'word', 'block']).doUpdateSet((eb) => ({
        products: eb('product_word.products', '||', eb.ref('excluded.products')),
      })),
    ),
)
const replaceRows = preparedInsert((db, rows: readonly Row<'product_word'>[]) =>
  db
    .insertInto('product_word')
    .values(rows)
    .onConflict((c) =>
      c.columns(['store_id', 'word', 'block']).doUpdateSet((eb) => ({ products: eb.ref('excluded.products') })),
    ),
)

type IndexKey = Omit<Row<'product_word'>, 'products'>

function isOneOf(keys: readonly IndexKey[]) {
  const rows = keys.map(({ store_id, word, block }) => sql`(${store_id}, ${word}, cast(${block} as bigint))`)
  return sql<boolean>`(store_id, word, block) in (values ${sql.join(rows)})`
}
const rowsAt = preparedInsert((db, keys: readonly IndexKey[]) =>
  db.selectFrom('product_word').selectAll().where(isOneOf(keys)),
)
const deleteRows = preparedInsert((db, keys: readonly IndexKey[]) => db.deleteFrom('product_word').where(isOneOf(keys)))

/** Entries by row of the index. */
class Entries {
  readonly #rows = new Map<string, IndexKey & { entries: string[] }>()

  add({ store_id, word, listing_no }: ListingTerm): void {
    const block = blockOf(listing_no)
    const row = this.of({ store_id, word, block }) ?? { store_id, word, block, entries: [] }
    row.entries.push(entryOf(listing_no))
    this.#rows.set(keyOf(row), row)
  }

  of(key: IndexKey) {
    return this.#rows.get(keyOf(key))
  }

  /** Always in the same order, which avoids deadlocks between two transactions. */
  inOrder() {
    return [...this.#rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
  }
}

function keyOf({ store_id, word, block }: IndexKey): string {
  return `${store_id} ${word} ${block}`
}

/** Changes of the search index in one transaction. Do not add a term to a listing that already has it. */
class IndexChanges {
  readonly #added = new Entries()
  readonly #removed = new Entries()

  add(term: ListingTerm): void {
    this.#added.add(term)
  }

  remove(term: ListingTerm): void {
    this.#removed.add(term)
  }

  async write(db: Db): Promise<void> {
    await this.#writeRemoved(db)
    const rows = this.#added.inOrder().map(({ entries, ...key }) => ({ products: entries.join(''), ...key }))
    for (const chunk of insertChunks(rows)) await appendListings(db, chunk)
  }

  /**
   * Reads the rows, removes the entries here, and writes the rows. Rows with a frequent word are long and may lose many
   * entries at once. No other transaction changes the rows meanwhile (ADR database).
   */
  async #writeRemoved(db: Db): Promise<void> {
    const keys = this.#removed.inOrder().map(({ store_id, word, block }) => ({ store_id, word, block }))
    for (const chunk of insertChunks(keys)) {
      const [kept, empty]: [Row<'product_word'>[], IndexKey[]] = [[], []]
      for (const { products, ...key } of await rowsAt(db, chunk)) {
        const rest = withoutEntries(products, new Set(this.#removed.of(key)?.entries))
        if (rest === '') empty.push(key)
        else kept.push({ products: rest, ...key })
      }
      for (const rows of insertChunks(empty)) await deleteRows(db, rows)
      for (const rows of insertChunks(kept)) await replaceRows(db, rows)
    }
  }
}

/** A product in a store. */
interface ProductInStore {
  storeId: string
  productId: string
}

/** Listings per statement. */
const AT_ONCE = 200

/**
 * Notes that agents must receive the items of these products again, because name, brand, category, price or picture
 * changed. A job publishes the items (protection/items/item-sequence.ts), because a product may have many. Products
 * without items are skipped.
 */
async function noteProductChanges(db: Db, products: readonly ProductInStore[]): Promise<void> {
  // Rows are always written in the same order, which avoids deadlocks between two transactions.
  const byKey = new Map(products.map((each) => [`${each.storeId} ${each.productId}`, each]))
  const all = [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, each]) => each)
  for (let i = 0; i < all.length; i += AT_ONCE) await noteSome(db, all.slice(i, i + AT_ONCE))
}

async function noteSome(db: Db, products: readonly ProductInStore[]): Promise<void> {
  const pairs = products.map(({ storeId, productId }) => sql`(${storeId}, ${productId})`)
  const tagged = await db
    .selectFrom(sql<{ column1: string; column2: string }>`(values ${sql.join(pairs)})`.as('changed'))
    .innerJoin('product', 'product.product_id', 'changed.column2')
    .select(['column1 as store_id', 'column2 as product_id', 'product.tenant', 'product.updated_ms as queued_ms'])
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('protected_item')
          .select('item_id')
          .whereRef('protected_item.store_id', '=', 'changed.column1')
          .whereRef('protected_item.product_id', '=', 'changed.column2'),
      ),
    )
    .orderBy('column1')
    .orderBy('column2')
    .execute()
  if (tagged.length === 0) return
  await db
    .insertInto('item_refresh')
    .values(tagged.map((row) => ({ ...row, after_item: '' })))
    // A job that is under way begins again.
    .onConflict((c) => c.columns(['store_id', 'product_id']).doUpdateSet({ after_item: '' }))
    .execute()
}

/**
 * All writes of the catalogue use this file.
 *
 *   transaction   product ▶ listing of the named store ▶ at most 200 other listings ▶ listing_refresh
 *   job           listing_refresh ▶ the other listings, some per transaction (refresh-documents.ts)
 *
 * A listing is written with its document (`store_product.doc`), its search terms (`product_word`) and the counts
 * (`product_count`), always by `writeListings`.
 */
export interface ProductWrite {
  /** Row that the database contains; undefined for a new product. */
  before: Row<'product'> | undefined
  after: Row<'product'>
  /** Stored listing in the store of `listing`. */
  here: StoredListing | undefined
  /** The listing to write in the named store. Without it, the product alone changes. */
  listing: PriceInStore | undefined
}

/** A listing without its product. A new listing has no number yet. */
export type PriceInStore = Omit<NumberedListing, 'product_id' | 'listing_no'> & { listing_no?: number }

/**
 * Writes products and their listings. `writes` may contain an unchanged product once per store, but a changed product
 * only once.
 */
export async function writeProducts(db: Db, writes: readonly ProductWrite[]): Promise<void> {
  const changed = writes.filter(({ before, after }) => before !== after)
  for (const rows of insertChunks(changed.map((write) => write.after))) await upsertProducts(db, rows)
  const named = (await withNumbers(db, writes)).flatMap(({ before, after, here, listing }) =>
    listing ? { product: after, stored: here, listing, isNews: isNews(before, after, here, listing) } : [],
  )
  await writeListings(db, [...named, ...(await otherListings(db, changed))])
}

/** True if agents must receive the items of the product in the store of the listing again. */
function isNews(
  before: Row<'product'> | undefined,
  after: Row<'product'>,
  here: StoredListing | undefined,
  listing: PriceInStore,
): boolean {
  return before !== undefined && (changesItems(before, after) || here?.price_cent !== listing.price_cent)
}

/** Listings of other stores that one transaction writes. A job writes the rest. */
export const OTHER_LISTINGS = 200

/** The first listings of changed products in other stores, to write at once. Enqueues the rest for the job. */
async function otherListings(db: Db, writes: readonly ProductWrite[]): Promise<ListingWrite[]> {
  const byId = new Map(writes.flatMap((write) => (write.before ? [[write.after.product_id, write] as const] : [])))
  const ids = [...byId.keys()].sort()
  const found = await listingsAfter(db, ids, '', OTHER_LISTINGS + ids.length + 1)
  const others = found.filter((row) => byId.get(row.product_id)?.listing?.store_id !== row.store_id)
  const now = others.slice(0, OTHER_LISTINGS)
  const last = now.at(-1)
  if (last && others.length > now.length) {
    const later = ids.flatMap((id) => (id >= last.product_id ? (byId.get(id) ?? []) : []))
    await enqueueListings(db, later, last)
  }
  return now.flatMap((stored) => {
    const { before, after } = byId.get(stored.product_id) ?? {}
    return before && after ? { product: after, stored, listing: stored, isNews: changesItems(before, after) } : []
  })
}

/** Enqueues the stores of these products after `last`, the last listing that is written now. */
async function enqueueListings(
  db: Db,
  writes: readonly ProductWrite[],
  last: Pick<StoredListing, 'product_id' | 'store_id'>,
): Promise<void> {
  const rows = writes.map(({ before, after: { product_id, tenant, updated_ms }, after }) => ({
    product_id,
    tenant,
    queued_ms: updated_ms,
    after_store: product_id === last.product_id ? last.store_id : '',
    again: 0,
    is_news: before && changesItems(before, after) ? 1 : 0,
  }))
  for (const chunk of insertChunks(rows)) await upsertRefreshes(db, chunk)
}

const upsertRefreshes = preparedInsert((db, rows: readonly Row<'listing_refresh'>[]) =>
  db
    .insertInto('listing_refresh')
    .values(rows)
    .onConflict((c) =>
      // A pass that is under way continues and is followed by another, so that frequent changes do not stop it.
      c.column('product_id').doUpdateSet((eb) => ({
        again: sql<number>`1`,
        is_news: sql<number>`case when ${eb.ref('excluded.is_news')} = 1 then 1 else ${eb.ref('listing_refresh.is_news')} end`,
      })),
    ),
)

/**
 * Adds a product that the account does not have yet, and its listing. Returns false, and writes nothing, if the account
 * has a product with this EAN. Does not search for the product first, because PostgreSQL would then let inserts of
 * neighbouring EANs conflict.
 */
export async function addNewProduct(db: Db, after: Row<'product'>, listing: PriceInStore): Promise<boolean> {
  const [added] = await insertNewProduct(db, [after])
  if (added)
    await writeListings(db, [
      { product: after, stored: undefined, listing: numbered(listing, added.listing_no), isNews: false },
    ])
  return added !== undefined
}

const insertNewProduct = preparedInsert((db, rows: readonly Row<'product'>[]) =>
  db
    .insertInto('product')
    .values(rows)
    .onConflict((c) => c.columns(['tenant', 'ean']).doNothing())
    .returning(NEXT_LISTING_NUMBER.as('listing_no')),
)

/** A write whose listing, if it has one, has a number. */
type NumberedWrite = ProductWrite & { listing: Omit<NumberedListing, 'product_id'> | undefined }

async function withNumbers(db: Db, writes: readonly ProductWrite[]): Promise<NumberedWrite[]> {
  const isNew = ({ listing, here }: ProductWrite) => listing && listing.listing_no === undefined && !here
  const numbers = await takeListingNumbers(db, writes.filter(isNew).length)
  return writes.map((write) => {
    const { listing, here } = write
    if (!listing) return { ...write, listing }
    const listing_no = listing.listing_no ?? here?.listing_no ?? numbers.shift()
    assert(listing_no !== undefined, 'a new listing got no number')
    return { ...write, listing: numbered(listing, listing_no) }
  })
}

function numbered({ store_id, price_cent, old_price_cent, updated_ms }: PriceInStore, listing_no: number) {
  return { store_id, price_cent, old_price_cent, updated_ms, listing_no }
}

/** A listing to write. */
interface ListingWrite {
  product: Row<'product'>
  /** The listing as it is stored: its terms and category are replaced. Undefined for a new listing. */
  stored: Pick<StoredListing, 'words' | 'category'> | undefined
  listing: Omit<NumberedListing, 'product_id'>
  /** True if agents must receive the items of the product in this store again. */
  isNews: boolean
}

/** Writes listings with their documents, terms and counts. Replaces the terms and the category that are stored. */
export async function writeListings(db: Db, writes: readonly ListingWrite[]): Promise<void> {
  const listings: Row<'store_product'>[] = []
  const index = new IndexChanges()
  const counts = new Counts()
  for (const { product, stored, listing } of writes) {
    const row = renderListing(product, { product_id: product.product_id, ...listing })
    const { store_id, listing_no } = row
    listings.push(row)
    const oldTerms = new Set(stored ? termsOf(stored) : [])
    const newTerms = new Set(termsOf(row))
    for (const word of oldTerms) if (!newTerms.has(word)) index.remove({ word, store_id, listing_no })
    for (const word of newTerms) if (!oldTerms.has(word)) index.add({ word, store_id, listing_no })
    if (stored) counts.add(row.store_id, stored.category, -1)
    else counts.add(row.store_id, '', 1)
    counts.add(row.store_id, row.category, 1)
  }
  for (const rows of insertChunks(listings)) await upsertListings(db, rows)
  await index.write(db)
  await counts.write(db)
  const news = writes.filter(({ isNews }) => isNews)
  await noteProductChanges(
    db,
    news.map(({ product, listing }) => ({ storeId: listing.store_id, productId: product.product_id })),
  )
}

/** True if a change of the product changes what agents know about its items. */
function changesItems(before: Row<'product'>, after: Row<'product'>): boolean {
  return ITEM_FACTS.some((fact) => before[fact] !== after[fact])
}

const ITEM_FACTS = ['name', 'brand', 'category', 'image_url', 'price_cent'] as const

/** Removes a product from a store. The product row stays, because purchases and other stores may refer to it. */
export async function removeListing(db: Db, storeId: string, productId: string): Promise<void> {
  const removed = await db
    .deleteFrom('store_product')
    .where('store_id', '=', storeId)
    .where('product_id', '=', productId)
    .returning(['listing_no', 'words', 'category'])
    .executeTakeFirst()
  if (!removed) return
  const index = new IndexChanges()
  for (const word of termsOf(removed)) index.remove({ store_id: storeId, word, ...removed })
  await index.write(db)
  const counts = new Counts()
  for (const category of ['', removed.category]) counts.add(storeId, category, -1)
  await counts.write(db)
  // Its items now have the price of the product.
  await noteProductChanges(db, [{ storeId, productId }])
}

const upsertProducts = preparedInsert((db, rows: readonly Row<'product'>[]) => {
  const { product_id: _id, tenant: _tenant, ean: _ean, created_ms: _created, ...changing } = rows[0] as Row<'product'>
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

const upsertListings = preparedInsert((db, rows: readonly Row<'store_product'>[]) =>
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

/** Changes of the counts in one transaction. */
class Counts {
  readonly #counts = new Map<string, Count>()

  /** Ignores the category null, which is not counted. */
  add(store_id: string, category: string | null, by: number): void {
    if (category === null) return
    const key = `${store_id}\0${category}`
    this.#counts.set(key, { store_id, category, products: (this.#counts.get(key)?.products ?? 0) + by })
  }

  async write(db: Db): Promise<void> {
    // Rows are always written in the same order, which avoids deadlocks between two transactions.
    const rows = [...this.#counts.values()]
      .filter(({ products }) => products !== 0)
      .sort((a, b) => (a.store_id + a.category < b.store_id + b.category ? -1 : 1))
    for (const chunk of insertChunks(rows)) await addCounts(db, chunk)
  }
}
