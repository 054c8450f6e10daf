import type { Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import { wordsAsked, wordsOf } from './words.ts'

/**
 *   rarest word of the question ─▶ index (store, word, product) ─▶ has it the other words too? ─▶ document
 *
 * Found products come in the order of the index: the shortest word that fits first, so a whole word before a longer one.
 */

/** Postings that are counted to find the rarest word. */
const COUNT_LIMIT = 500
/** Postings that are looked through for one question: bounds what two frequent words without a product in common cost. */
const SCAN_LIMIT = 10_000
/** No word begins with it and has anything behind it: the end of the range of a prefix. */
const LAST = '\u{10FFFF}'

const postings = prepared((db, p: { storeId: string; from: string; to: string; limit: number }) =>
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

const candidates = prepared((db, p: { storeId: string; word: string; productId: string; to: string; limit: number }) =>
  db
    .selectFrom('product_word')
    .innerJoin('store_product', (join) =>
      join.onRef('store_product.store_id', '=', 'product_word.store_id').onRef('store_product.product_id', '=', 'product_word.product_id'),
    )
    .innerJoin('product', 'product.product_id', 'product_word.product_id')
    .select(['product_word.word', 'product_word.product_id', 'store_product.doc', 'product.name_lower', 'product.brand_lower', 'product.ean'])
    .where('product_word.store_id', '=', p.storeId)
    .where((eb) => eb(eb.refTuple('product_word.word', 'product_word.product_id'), '>', eb.tuple(p.word, p.productId)))
    .where('product_word.word', '<', p.to)
    .orderBy('product_word.word')
    .orderBy('product_word.product_id')
    .limit(p.limit),
)

/** Documents of at most `limit` products of which each word of `q` begins a word. None for a question without a word. */
export async function searchDocuments(db: Db, storeId: string, q: string, limit: number): Promise<string[]> {
  const asked = wordsAsked(q)
  const [rarest, ...others] = await byRarity(db, storeId, asked)
  if (rarest === undefined) return []
  const found = new Map<string, string>()
  let [word, productId] = [rarest, '']
  for (let scanned = 0; scanned < SCAN_LIMIT && found.size < limit; ) {
    const size = others.length === 0 ? limit : Math.min(1_000, limit * 4)
    const rows = await candidates(db, { storeId, word, productId, to: rarest + LAST, limit: size })
    for (const row of rows) {
      if (found.size >= limit) break
      if (others.length === 0 || hasAll(wordsOf(row), others)) found.set(row.product_id, row.doc)
    }
    const last = rows.at(-1)
    if (!last || rows.length < size) break
    ;[word, productId] = [last.word, last.product_id]
    scanned += rows.length
  }
  return [...found.values()]
}

function hasAll(words: readonly string[], beginnings: readonly string[]): boolean {
  return beginnings.every((beginning) => words.some((word) => word.startsWith(beginning)))
}

/** The words with the rarest first; of equally rare ones the longest. */
async function byRarity(db: Db, storeId: string, asked: readonly string[]): Promise<string[]> {
  if (asked.length < 2) return [...asked]
  const counted = []
  for (const word of asked) {
    const [row] = await postings(db, { storeId, from: word, to: word + LAST, limit: COUNT_LIMIT })
    counted.push({ word, count: row?.count ?? 0 })
  }
  return counted.sort((a, b) => a.count - b.count || b.word.length - a.word.length).map(({ word }) => word)
}
