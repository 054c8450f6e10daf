import type { Db } from '../../platform/persistence/database.ts'
import { insertChunks } from '../../platform/persistence/insert-chunks.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import { QUERY_TERMS_LIMIT } from './search-terms.ts'

/** Maximum number of listings that `matching` compares at once. */
export const COMPARED_AT_ONCE = 20

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
export const beginning = (term: string): string => `% ${term}%`
/** LIKE pattern that matches `words` if the term is one of these words. */
export const whole = (term: string): string => `% ${term} %`

/** Documents of a store by listing number. */
export class Documents {
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
