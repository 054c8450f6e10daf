import { sql, type Compilable } from 'kysely'
import type { Db } from '../../platform/persistence/database.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import type { ProductWordRow } from '../../platform/persistence/tables/stores.ts'

/** Maximum number of index rows that one step of a search reads for one term. */
export const ROWS_LIMIT = 2_000
/** Character that sorts after all others. All words with a prefix sort before the text `prefix + LAST`. */
const LAST = '\u{10FFFF}'

/** A row of the search index. */
export type IndexRow = Pick<ProductWordRow, 'word' | 'block' | 'products'>

/**
 * The blocks after `after` up to and including `last`, with the texts of two words in each block that has both words.
 */
export interface Window {
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
