import type { Db } from '../persistence/database.ts'
import { insertChunks } from '../persistence/insert-chunks.ts'
import { prepared } from '../persistence/prepared.ts'
import { preparedInsert } from '../persistence/prepared-insert.ts'
import type { ProductWordRow } from '../persistence/tables/stores.ts'
import { blockOf, entryOf } from './search-blocks.ts'

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
export class IndexChanges {
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
