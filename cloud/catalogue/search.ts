import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import { QUERY_TERMS_LIMIT, queryTermsOf } from './search-terms.ts'

/**
 * A search scans the index entries of the rarest term of the query, and keeps products that match the other terms too.
 *
 * Results have the order of the index: a whole word comes before longer words that start with it.
 */

/** Maximum number of entries that are counted for each term to find the rarest term. */
const COUNT_LIMIT = 1_000
/**
 * Maximum number of entries that one database query scans. This limit matters if a query has two frequent terms that
 * few products share.
 */
const SCAN_LIMIT = 20_000
/** Character that sorts after all others. A prefix followed by it ends the range of the terms with this prefix. */
const LAST = '\u{10FFFF}'

const countOf = prepared((db, p: { storeId: string; from: string; to: string; limit: number }) =>
  db
    .selectFrom((eb) =>
      eb
        .selectFrom('product_word')
        .select('word')
        .where('store_id', '=', p.storeId)
        .where('word', '>=', p.from)
        .where('word', '<', p.to)
        .limit(p.limit)
        .as('some'),
    )
    .select((eb) => eb.fn.countAll<number>().as('count')),
)

interface Range {
  storeId: string
  /** Start of the range, exclusive. */
  word: string
  productId: string
  /** End of the range, exclusive. */
  to: string
  scan: number
  limit: number
  /** LIKE patterns for the other terms of the query. */
  [other: `other${number}`]: string
}

/** One prepared query for each number of other terms. */
const found = Array.from({ length: QUERY_TERMS_LIMIT }, (_, others) =>
  prepared((db, p: Range) => {
    const entries = db
      .selectFrom('product_word')
      .select(['word', 'product_id', 'words'])
      .where('store_id', '=', p.storeId)
      .where((eb) => eb(eb.refTuple('word', 'product_id'), '>', eb.tuple(p.word, p.productId)))
      .where('word', '<', p.to)
      .orderBy('word')
      .orderBy('product_id')
      .limit(p.scan)
      .as('entry')
    let query = db
      .selectFrom(entries)
      .innerJoin('store_product', 'store_product.product_id', 'entry.product_id')
      .select(['entry.word', 'entry.product_id', 'store_product.doc'])
      .where('store_product.store_id', '=', p.storeId)
    for (let i = 0; i < others; i++) query = query.where('entry.words', 'like', p[`other${i}`] ?? '')
    return query.orderBy('entry.word').orderBy('entry.product_id').limit(p.limit)
  }),
)

/**
 * Returns the documents of at most `limit` products. Each of these products has, for each prefix in `q`, a term that
 * starts with the prefix. Returns an empty list if `q` contains no term.
 */
export async function searchDocuments(db: Db, storeId: string, q: string, limit: number): Promise<string[]> {
  const [rarest, ...others] = await byRarity(db, storeId, queryTermsOf(q))
  const page = found[others.length]
  if (rarest === undefined || !page) return []
  const patterns = Object.fromEntries(others.map((word, i) => [`other${i}`, `% ${word}%`]))
  const documents = new Map<string, string>()
  // A second page is needed only if rows repeat products, because several terms of one product start with the prefix.
  for (let [word, productId] = [rarest, '']; documents.size < limit;) {
    const rows = await page(db, { storeId, word, productId, to: rarest + LAST, scan: SCAN_LIMIT, limit, ...patterns })
    for (const row of rows) if (documents.size < limit) documents.set(row.product_id, row.doc)
    const last = rows.at(-1)
    if (!last || rows.length < limit) break
    ;[word, productId] = [last.word, last.product_id]
  }
  return [...documents.values()]
}

/** Sorts by rarity, the rarest term first; among equally rare terms the longest first. */
async function byRarity(db: Db, storeId: string, terms: readonly string[]): Promise<string[]> {
  if (terms.length < 2) return [...terms]
  const counted = []
  for (const word of terms) {
    const [row] = await countOf(db, { storeId, from: word, to: word + LAST, limit: COUNT_LIMIT })
    counted.push({ word, count: row?.count ?? 0 })
  }
  return counted.sort((a, b) => a.count - b.count || b.word.length - a.word.length).map(({ word }) => word)
}
