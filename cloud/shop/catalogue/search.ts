import type { Db } from '../../platform/persistence/database.ts'
import {
  listingsIn,
  listingsOfAll,
  allRowsBeginning,
  beginLongerWords,
  rowsBeginning,
  textsIn,
  windowsOf,
  type IndexRow,
  queryTermsOf,
  QUERY_TERMS_LIMIT,
} from './search-queries.ts'
import { insertChunks, prepared } from '../../platform/persistence/prepared.ts'

/** Maximum number of listings that `matching` compares at once. */
const COMPARED_AT_ONCE = 20

interface Numbers {
  storeId: string
  [listing: `listing${number}`]: number
}
type Compared = Numbers & { [pattern: `pattern${number}`]: string }

function rowsOf(db: Db, p: Numbers, count: number) {
  const numbers = Array.from({ length: count }, (_, i) => p[`listing${i}`] ?? 0)
  return db
    .selectFrom('store_product')
    .select(['listing_no', 'doc', 'words'])
    .where('store_id', '=', p.storeId)
    .where('listing_no', 'in', numbers)
}

/** Prepared queries by the number of listings that they read. */
const queries = new Map<number, ReturnType<typeof documentsQuery>>()
function documentsQuery(count: number) {
  return prepared((db, p: Numbers) => rowsOf(db, p, count))
}

const matchingRows = prepared((db, p: Compared) => {
  let query = rowsOf(db, p as Numbers, COMPARED_AT_ONCE)
  for (let i = 0; i < QUERY_TERMS_LIMIT; i++) query = query.where('words', 'like', p[`pattern${i}`] ?? '')
  return query
})

function numbersOf(listings: readonly number[]): Record<`listing${number}`, number> {
  return Object.fromEntries(listings.map((listing, i) => [`listing${i}`, listing]))
}

/** LIKE pattern that matches `words` if one of these words begins with the term. */
const beginning = (term: string): string => `% ${term}%`
/** LIKE pattern that matches `words` if the term is one of these words. */
const whole = (term: string): string => `% ${term} %`

/** Documents of a store by listing number. */
class Documents {
  readonly #db: Db
  readonly #storeId: string
  readonly #rows = new Map<number, { doc: string; words: string }>()

  constructor(db: Db, storeId: string) {
    this.#db = db
    this.#storeId = storeId
  }

  /** Reads the documents of these listings. A listing that was removed meanwhile has no document. */
  async read(listings: readonly number[]): Promise<void> {
    const missing = listings.filter((listing) => !this.#rows.has(listing))
    for (const some of insertChunks(missing)) {
      const query = queries.get(some.length) ?? documentsQuery(some.length)
      queries.set(some.length, query)
      for (const row of await query(this.#db, { storeId: this.#storeId, ...numbersOf(some) }))
        this.#rows.set(row.listing_no, row)
    }
  }

  /** Returns the listings whose words match all patterns, and reads their documents. */
  async matching(listings: readonly number[], patterns: readonly string[]): Promise<number[]> {
    if (patterns.length === 0) return [...listings]
    const all = Array.from({ length: QUERY_TERMS_LIMIT }, (_, i) => [`pattern${i}`, patterns[i] ?? '%'])
    const found = new Set<number>()
    for (let at = 0; at < listings.length; at += COMPARED_AT_ONCE) {
      const some = listings.slice(at, at + COMPARED_AT_ONCE)
      // The query has a fixed number of parameters, so the last listing fills the rest.
      const numbers = numbersOf(Array.from({ length: COMPARED_AT_ONCE }, (_, i) => some[i] ?? some.at(-1) ?? 0))
      const rows = await matchingRows(this.#db, { storeId: this.#storeId, ...numbers, ...Object.fromEntries(all) })
      for (const row of rows) {
        this.#rows.set(row.listing_no, row)
        found.add(row.listing_no)
      }
    }
    return listings.filter((listing) => found.has(listing))
  }

  /** A document that was read. */
  get(listing: number): string | undefined {
    return this.#rows.get(listing)?.doc
  }

  /** The first word of the listing, in the order of bytes, that begins with `term`. */
  firstWord(listing: number, term: string): Buffer {
    const words = this.#rows.get(listing)?.words.split(' ') ?? []
    const begun = words.filter((word) => word.startsWith(term)).map((word) => Buffer.from(word))
    return begun.sort((a, b) => Buffer.compare(a, b))[0] ?? Buffer.alloc(0)
  }
}

/**
 * Order of the results, the same on each engine:
 *
 * 1. products that have each term of the query as a whole word;
 * 2. the first word of the product that begins with the longest term of the query, in the order of bytes;
 * 3. the number of the listing. The numbers follow the order in which the store got the products, but each connection
 *    to PostgreSQL numbers its own blocks.
 *
 * A search reads the index by blocks of listings, so frequent words cost little: their first blocks contain enough
 * results.
 */

/** Maximum number of products whose words one step of a search compares with the terms. */
const CHECKED_LIMIT = 2_000
/** With at most this many candidates, comparing their words is cheaper than reading the index for another term. */
const FEW = COMPARED_AT_ONCE

interface Search {
  readonly db: Db
  readonly storeId: string
  /** The longest first. */
  readonly terms: readonly string[]
  readonly limit: number
  readonly documents: Documents
  /** Listings found, in order. */
  readonly found: Set<number>
}

/**
 * Returns the documents of at most `limit` products. Each of these products has, for each prefix in `q`, a term that
 * starts with the prefix. Returns an empty list if `q` contains no term.
 */
export async function searchDocuments(db: Db, storeId: string, q: string, limit: number): Promise<string[]> {
  const terms = queryTermsOf(q).sort((a, b) => b.length - a.length)
  const documents = new Documents(db, storeId)
  const found = new Set<number>()
  const search: Search = { db, storeId, terms, limit, documents, found }
  const [first, second] = terms
  if (first === undefined) return []
  if (second === undefined) await addFrom(search, listingsBeginning(search, first), [])
  else {
    await findWholeWords(search, [first, second])
    if (found.size < limit && (await beginLongerWords(db, storeId, terms))) await findBeginnings(search, first)
  }
  await documents.read([...found])
  return [...found].flatMap((listing) => documents.get(listing) ?? [])
}

/** Finds listings that have each term as a whole word. `two` are the first two terms. */
async function findWholeWords(search: Search, two: readonly [string, string]): Promise<void> {
  const { db, storeId, terms, limit, documents, found } = search
  const others = terms.slice(2)
  for await (const window of windowsOf(db, storeId, two)) {
    let candidates = window.blocks.flatMap(({ block, texts }) =>
      listingsOfAll(
        block,
        texts.map((text) => [text]),
      ),
    )
    for (const term of others) {
      if (candidates.length <= FEW) break
      const texts = await textsIn(db, storeId, term, window)
      const listings = new Set([...texts].flatMap(([block, products]) => listingsIn({ block, products })))
      candidates = candidates.filter((listing) => listings.has(listing))
    }
    if (candidates.length <= FEW) candidates = await documents.matching(candidates, others.map(whole))
    for (const listing of candidates) if (found.size < limit) found.add(listing)
    if (found.size >= limit) return
  }
}

/** Finds listings that have, for each term, a word that begins with it. `first` is the longest term. */
async function findBeginnings(search: Search, first: string): Promise<void> {
  const others = search.terms.slice(1)
  // If many of the first products match, comparing their words is cheaper than reading the index for each term.
  if (await addFrom(search, listingsBeginning(search, first), others, FEW)) return
  const { candidates, rows, unread } = await readIndex(search)
  if (!candidates) await addFrom(search, listingsBeginning(search, first), others)
  else if (rows) await addFrom(search, inWordOrder(rows, candidates), unread)
  else await addInAnyOrder(search, first, candidates, unread)
}

/** Listings with words that begin with `term`, in the order of the words. */
async function* listingsBeginning({ db, storeId }: Search, term: string): AsyncGenerator<number[]> {
  for await (const rows of rowsBeginning(db, storeId, term)) for (const row of rows) yield listingsIn(row)
}

/**
 * Adds the candidates that have, for each of these terms, a word that begins with it. Returns false if less than
 * one of `patience` candidates matches, because another kind of search is then cheaper.
 */
async function addFrom(
  { limit, documents, found }: Search,
  candidates: AsyncIterable<number[]> | Iterable<number[]>,
  terms: readonly string[],
  patience = Infinity,
): Promise<boolean> {
  const patterns = terms.map(beginning)
  let [checked, added] = [0, 0]
  for await (const some of fewAtOnce(candidates, found)) {
    const matching = await documents.matching(some, patterns)
    for (const listing of matching) if (found.size < limit) found.add(listing)
    if (found.size >= limit) return true
    if (terms.length === 0) continue
    ;[checked, added] = [checked + some.length, added + matching.length]
    if (checked >= CHECKED_LIMIT) return true
    if (checked > (added + 1) * patience) return false
  }
  return true
}

/**
 * Divides candidates that are not found yet into lists of the same length. A query for few listings costs hardly less.
 */
async function* fewAtOnce(
  candidates: AsyncIterable<number[]> | Iterable<number[]>,
  found: ReadonlySet<number>,
): AsyncGenerator<number[]> {
  let some: number[] = []
  for await (const listings of candidates) {
    for (const listing of listings) {
      if (found.has(listing) || some.includes(listing)) continue
      some.push(listing)
      if (some.length < FEW) continue
      yield some
      some = []
    }
  }
  if (some.length > 0) yield some
}

/** Result of reading the index for the terms of a query. */
interface IndexResult {
  /** Listings that have all terms that were read, ascending; undefined if no term was read. */
  readonly candidates: readonly number[] | undefined
  /** Index rows of the longest term, if it was read. */
  readonly rows: readonly IndexRow[] | undefined
  /** Terms with too many rows, and terms that are cheaper to compare with a few candidates. */
  readonly unread: readonly string[]
}

async function readIndex({ db, storeId, terms }: Search): Promise<IndexResult> {
  const [read, unread]: [(readonly IndexRow[])[], string[]] = [[], []]
  let candidates: number[] | undefined
  for (const term of terms) {
    const rows = candidates && candidates.length <= FEW ? undefined : await allRowsBeginning(db, storeId, term)
    if (rows) {
      read.push(rows)
      candidates = listingsOfTerms(read)
    } else unread.push(term)
  }
  return { candidates, rows: unread.includes(terms[0] ?? '') ? undefined : read[0], unread }
}

/** Listings that have all these terms, ascending. `terms` contains the index rows of each term. */
function listingsOfTerms(terms: readonly (readonly IndexRow[])[]): number[] {
  const blocks = new Map<number, string[][]>()
  terms.forEach((rows, i) => {
    for (const { block, products } of rows) {
      const texts = blocks.get(block) ?? terms.map(() => [])
      texts[i]?.push(products)
      blocks.set(block, texts)
    }
  })
  const inOrder = [...blocks].sort(([a], [b]) => a - b)
  return inOrder.flatMap(([block, texts]) => listingsOfAll(block, texts))
}

/** Sorts listings by the first of these index rows that contains the listing. */
function* inWordOrder(rows: readonly IndexRow[], listings: readonly number[]): Generator<number[]> {
  const rest = new Set(listings)
  for (const row of rows) yield listingsIn(row).filter((listing) => rest.delete(listing))
}

/**
 * Adds matching candidates in the order of their first word that begins with `first`. Reads these words from the
 * documents, because the index rows of `first` were not read.
 */
async function addInAnyOrder(
  { limit, documents, found }: Search,
  first: string,
  candidates: readonly number[],
  terms: readonly string[],
): Promise<void> {
  const some = candidates.filter((listing) => !found.has(listing)).slice(0, CHECKED_LIMIT)
  const matching = (await documents.matching(some, terms.map(beginning)))
    .map((listing) => ({ listing, word: documents.firstWord(listing, first) }))
    .sort((a, b) => Buffer.compare(a.word, b.word) || a.listing - b.listing)
  for (const { listing } of matching) if (found.size < limit) found.add(listing)
}
