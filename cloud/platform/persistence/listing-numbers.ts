import { sql, type RawBuilder } from 'kysely'
import type { Db } from './database.ts'

/**
 * Each listing of a product in a store has a number (`store_product.listing_no`). The search index stores the listings
 * of one word in blocks of numbers.
 *
 * On PostgreSQL the sequence `listing_number` gives each connection a whole block (CACHE). So two connections that add
 * products at the same time write different rows of the search index. On SQLite, sqlite.ts implements
 * `nextval`.
 */
export const LISTING_BLOCK = 4_096

/** SQL for the number of a new listing. */
export const NEXT_LISTING_NUMBER: RawBuilder<number> = sql<number>`nextval('listing_number')`

/** Returns numbers for new listings. */
export async function takeListingNumbers(db: Db, count: number): Promise<number[]> {
  if (count === 0) return []
  const { rows } = await sql<{ no: number }>`
    with recursive wanted(i) as (select 1 union all select i + 1 from wanted where i < ${sql.lit(count)})
    select ${NEXT_LISTING_NUMBER} as no from wanted`.execute(db)
  return rows.map(({ no }) => no)
}

/** SQL for the highest number of all listings; null without listings. */
const HIGHEST = `
  select max(no) as highest from (
    select (select max(p.listing_no) from store_product as p where p.store_id = store.store_id) as no from store
  ) as numbers`

/** Returns a number above those of all listings. */
export async function firstFreeListingNumber(db: Db): Promise<number> {
  const { rows } = await sql.raw<{ highest: number | null }>(HIGHEST).execute(db)
  return (rows[0]?.highest ?? -1) + 1
}

/** SQL that raises the sequence of PostgreSQL to the first block above all copied listings. */
export const RAISE_LISTING_NUMBERS = `
  select setval('listing_number', (highest / ${LISTING_BLOCK} + 1) * ${LISTING_BLOCK}, false) from (${HIGHEST}) as listings
  where highest is not null`
