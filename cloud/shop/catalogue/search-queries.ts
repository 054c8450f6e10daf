import { sql, type Compilable } from 'kysely'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { foldText } from '../../../policy/fold-text.ts'
import { normalForm } from '../../../policy/printable.ts'
import { LISTING_BLOCK } from '../../platform/persistence/listing-numbers.ts'

/**
 * Texts of `product_word.products`: the listings of one block whose product has the word. Each listing is a space and
 * the last two base-64 digits of its number. The space marks its beginning.
 */
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_'
const VALUES = new Uint8Array(128)
for (let i = 0; i < DIGITS.length; i++) VALUES[DIGITS.charCodeAt(i)] = i
/** Characters of one listing. */
const ENTRY = 3

/** Block of a listing number. */
export function blockOf(listingNo: number): number {
  return Math.floor(listingNo / LISTING_BLOCK)
}

/** Text of a listing in its block. */
export function entryOf(listingNo: number): string {
  const place = listingNo % LISTING_BLOCK
  return ` ${DIGITS[place >> 6]}${DIGITS[place & 63]}`
}

/** The text of a row without these entries. */
export function withoutEntries(products: string, entries: ReadonlySet<string>): string {
  let rest = ''
  for (let at = 0; at < products.length; at += ENTRY) {
    const entry = products.slice(at, at + ENTRY)
    if (!entries.has(entry)) rest += entry
  }
  return rest
}

/** Reads the text at `at` and returns the place of that listing in its block. */
function placeAt(products: string, at: number): number {
  return ((VALUES[products.charCodeAt(at + 1)] ?? 0) << 6) | (VALUES[products.charCodeAt(at + 2)] ?? 0)
}

/** Numbers of the listings in a row of the index, ascending. */
export function listingsIn({ block, products }: Pick<Row<'product_word'>, 'block' | 'products'>): number[] {
  const found: number[] = []
  for (let at = 0; at < products.length; at += ENTRY) found.push(block * LISTING_BLOCK + placeAt(products, at))
  return found.sort((a, b) => a - b)
}

/**
 * One entry for each place of a block, with one bit for each term that the listing at this place has. All calls of
 * `listingsOfAll` share this array, because a new array would cost more than the rest of a search.
 */
const SEEN = new Uint8Array(LISTING_BLOCK)
/** Value in `SEEN` of a listing that is already in the result. */
const FOUND = 255

/**
 * Numbers of the listings of one block that have all these terms, ascending. `terms` contains the texts of each term;
 * at most 7 terms.
 */
export function listingsOfAll(block: number, terms: readonly (readonly string[])[]): number[] {
  const last = terms.length - 1
  SEEN.fill(0)
  for (let i = 0; i < last; i++) {
    for (const products of terms[i] ?? []) markPlaces(products, 1 << i)
  }
  const found: number[] = []
  for (const products of terms[last] ?? []) {
    for (let at = 0; at < products.length; at += ENTRY) {
      const place = placeAt(products, at)
      if (SEEN[place] !== (1 << last) - 1) continue
      SEEN[place] = FOUND
      found.push(block * LISTING_BLOCK + place)
    }
  }
  return found.sort((a, b) => a - b)
}

function markPlaces(products: string, bit: number): void {
  for (let at = 0; at < products.length; at += ENTRY) {
    const place = placeAt(products, at)
    SEEN[place] = (SEEN[place] ?? 0) | bit
  }
}

/** Maximum number of terms per product. */
const TERMS_LIMIT = 40
/** Maximum number of characters per term. */
const LETTERS_LIMIT = 32
/** Maximum number of terms per query. */
export const QUERY_TERMS_LIMIT = 6

/** Splits a text into folded terms without accents, so that "kase" finds "Käse". */
function termsIn(text: string): string[] {
  const folded = normalForm(foldText(normalForm(text, 'NFKD')), 'NFD').replaceAll(/\p{M}/gu, '')
  return (folded.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => [...word].slice(0, LETTERS_LIMIT).join(''))
}

/** Distinct search terms of a product: from name, brand and EAN. */
export function searchTermsOf({
  name_lower,
  brand_lower,
  ean,
}: Pick<Row<'product'>, 'name_lower' | 'brand_lower' | 'ean'>): string[] {
  return [...new Set([ean, ...termsIn(name_lower), ...termsIn(brand_lower ?? '')])].slice(0, TERMS_LIMIT)
}

/** The search terms that are stored with a listing. */
export function termsOf({ words }: Pick<Row<'store_product'>, 'words'>): string[] {
  return words.trim().split(' ')
}

/** Distinct terms of a query. Each must be the prefix of a term of the product. */
export function queryTermsOf(q: string): string[] {
  return [...new Set(termsIn(q))].slice(0, QUERY_TERMS_LIMIT)
}

/** Maximum number of index rows that one step of a search reads for one term. */
const ROWS_LIMIT = 2_000
/** Character that sorts after all others. All words with a prefix sort before the text `prefix + LAST`. */
const LAST = '\u{10FFFF}'

/** A row of the search index. */
export type IndexRow = Pick<Row<'product_word'>, 'word' | 'block' | 'products'>

/**
 * The blocks after `after` up to and including `last`, with the texts of two words in each block that has both words.
 */
interface Window {
  readonly after: number
  readonly last: number
  readonly blocks: readonly { readonly block: number; readonly texts: readonly string[] }[]
}

interface TwoWords {
  storeId: string
  after: number
  word0: string
  word1: string
}

function rawQuery<R>(db: Db, query: ReturnType<typeof sql<R>>): Compilable<R> {
  return { compile: () => query.compile(db) }
}

// Joins the blocks to one text, because reading one row for each block would take longer.
const TEXTS = sql`string_agg(block || products, ';')`
function windowOf(blocks: number) {
  const query = prepared((db, p: TwoWords) =>
    rawQuery(
      db,
      sql<{ last: number | null; texts0: string | null; texts1: string | null }>`
        with first as (
          select block, products from product_word
          where store_id = ${p.storeId} and word = ${p.word0} and block > ${p.after} order by block limit ${sql.lit(blocks)})
        select (select max(block) from first) as last, (select ${TEXTS} from first) as texts0, (
          select ${TEXTS} from product_word
          where store_id = ${p.storeId} and word = ${p.word1} and block in (select block from first)) as texts1`,
    ),
  )
  return { blocks, query }
}

/** Frequent words have enough listings in the first blocks, so the first window is small. */
const FIRST_WINDOW = windowOf(4)
const LATER_WINDOW = windowOf(128)

/** Splits a text that the SQL expression `TEXTS` has joined into one text for each block number. */
function byBlock(texts: string | null | undefined): Map<number, string> {
  const found = new Map<number, string>()
  for (const text of texts ? texts.split(';') : []) {
    const end = text.indexOf(' ')
    found.set(Number(text.slice(0, end)), text.slice(end))
  }
  return found
}

/** Reads the index for two whole words, in ascending windows of blocks. */
export async function* windowsOf(db: Db, storeId: string, words: readonly [string, string]): AsyncGenerator<Window> {
  let [after, read] = [-1, 0]
  while (read < ROWS_LIMIT) {
    const { blocks: limit, query } = read === 0 ? FIRST_WINDOW : LATER_WINDOW
    const [row] = await query(db, { storeId, after, word0: words[0], word1: words[1] })
    const { last = null, texts0 = null, texts1 = null } = row ?? {}
    if (last === null) return
    const [first, second] = [byBlock(texts0), byBlock(texts1)]
    const both = [...first].filter(([block]) => second.has(block)).sort(([a], [b]) => a - b)
    const blocks = both.map(([block, text]) => ({ block, texts: [text, second.get(block) ?? ''] }))
    yield { after, last, blocks }
    if (first.size < limit) return
    ;[after, read] = [last, read + first.size]
  }
}

const textsOfWord = prepared((db, p: { storeId: string; word: string; after: number; last: number }) =>
  rawQuery(
    db,
    sql<{ texts: string | null }>`
      select ${TEXTS} as texts from product_word
      where store_id = ${p.storeId} and word = ${p.word} and block > ${p.after} and block <= ${p.last}`,
  ),
)

/** Texts of another word in the blocks of a window. */
export async function textsIn(
  db: Db,
  storeId: string,
  word: string,
  { after, last }: Window,
): Promise<ReadonlyMap<number, string>> {
  const [row] = await textsOfWord(db, { storeId, word, after, last })
  return byBlock(row?.texts)
}

const longerWord = prepared((db, p: { storeId: string; word: string; to: string }) =>
  db
    .selectFrom('product_word')
    .select('word')
    .where('store_id', '=', p.storeId)
    .where('word', '>', p.word)
    .where('word', '<', p.to)
    .limit(1),
)

/** True if the store has a longer word that begins with one of these terms. */
export async function beginLongerWords(db: Db, storeId: string, terms: readonly string[]): Promise<boolean> {
  for (const word of terms) {
    const [longer] = await longerWord(db, { storeId, word, to: word + LAST })
    if (longer) return true
  }
  return false
}

/**
 * One prepared query for each maximum number of rows. If this number were a parameter, SQLite would plan the query at
 * each run.
 */
const rowsAfter = [4, 32, 256, ROWS_LIMIT + 1].map((limit) => ({
  limit,
  query: prepared((db, p: { storeId: string; word: string; block: number; to: string }) =>
    db
      .selectFrom('product_word')
      .select(['word', 'block', 'products'])
      .where('store_id', '=', p.storeId)
      .where((eb) => eb(eb.refTuple('word', 'block'), '>', eb.tuple(p.word, p.block)))
      .where('word', '<', p.to)
      .orderBy('word')
      .orderBy('block')
      .limit(limit),
  ),
}))

/**
 * Index rows of the words that begin with `term`, in the order of the words and blocks. Stops after about `ROWS_LIMIT`.
 */
export async function* rowsBeginning(db: Db, storeId: string, term: string): AsyncGenerator<readonly IndexRow[]> {
  let [word, block] = [term, -1]
  for (const { limit, query } of rowsAfter) {
    const rows = await query(db, { storeId, word, block, to: term + LAST })
    yield rows
    const last = rows.at(-1)
    if (!last || rows.length < limit) return
    ;[word, block] = [last.word, last.block]
  }
}

/** All index rows of the words that begin with `term`; undefined if there are more than `ROWS_LIMIT`. */
export async function allRowsBeginning(
  db: Db,
  storeId: string,
  term: string,
): Promise<readonly IndexRow[] | undefined> {
  const rows = await rowsAfter.at(-1)?.query(db, { storeId, word: term, block: -1, to: term + LAST })
  return rows && rows.length <= ROWS_LIMIT ? rows : undefined
}
