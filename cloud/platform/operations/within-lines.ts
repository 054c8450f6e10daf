import { sql } from 'kysely'
import type { Db } from '../persistence/database.ts'
import { toPage, type Page } from './paging.ts'

/**
 * Maximum number of lines of a page, beyond those of its first purchase or order. To read and write a line takes about
 * 20 µs, in which no other request runs. A purchase may have 500 lines, so that a limit of purchases limits no page.
 */
export const LINES_AT_ONCE = 2_000

/** Lines, by the column that names their purchase or order. */
const PARENTS = { purchase_line: 'purchase_id', pickup_order_line: 'order_id' } as const
type Lines = keyof typeof PARENTS

/** The first of these purchases or orders that have at most `LINES_AT_ONCE` lines together; at least one. */
export async function withinLines<L extends Lines, P extends Readonly<Record<(typeof PARENTS)[L], string>>>(
  db: Db,
  table: L,
  parents: readonly P[],
): Promise<P[]> {
  if (parents.length === 0) return []
  const idOf = (parent: P) => parent[PARENTS[table]]
  const column = sql.ref<string>(PARENTS[table])
  const counted = await db
    .selectFrom(table as Lines)
    .select([column.as('id'), sql<number>`count(*)`.as('count')])
    .where(column, 'in', parents.map(idOf))
    .groupBy(column)
    .execute()
  const counts = new Map(counted.map(({ id, count }) => [id, Number(count)]))
  let lines = 0
  const over = parents.findIndex((parent, index) => {
    lines += counts.get(idOf(parent)) ?? 0
    return index > 0 && lines > LINES_AT_ONCE
  })
  return parents.slice(0, over === -1 ? parents.length : over)
}

/** A page of purchases or orders that ends early if they have many lines. Expects limit + 1 rows, as `toPage`. */
export async function toPageWithinLines<L extends Lines, P extends Readonly<Record<(typeof PARENTS)[L], string>>>(
  db: Db,
  table: L,
  rows: readonly P[],
  page: Pick<Page, 'limit'>,
): Promise<{ items: P[]; nextCursor?: string }> {
  const whole = toPage(rows, (row) => row[PARENTS[table]], page)
  const items = await withinLines(db, table, whole.items)
  const last = items.at(-1)
  return items.length < whole.items.length && last ? { items, nextCursor: last[PARENTS[table]] } : whole
}
