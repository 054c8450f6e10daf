import { z } from 'zod'
import { isIdOf } from '../../../policy/ids.ts'
import { invalid, type Failure } from '../foundation/failure.ts'
import { sql } from 'kysely'
import type { Db } from '../persistence/database.ts'

const INVALID_CURSOR =
  'must be a nextCursor of this listing: send it unchanged, or leave it out to start at the beginning'

/**
 * Field for a cursor, the id of the last row of the previous page. That row may be deleted by now. Rejects texts of
 * another form: such a text would sort before or after all rows, so the page would be the whole list or empty.
 */
export function cursorField(prefix: string, isOtherForm: (text: string) => boolean = () => false) {
  return z
    .string()
    .refine((text) => isIdOf(prefix, text) || isOtherForm(text), INVALID_CURSOR)
    .describe('The `nextCursor` of the previous page.')
}

/** Error 400 for an invalid cursor, for listings that parse cursors of another form. */
export function invalidCursor(): Failure {
  return invalid('cursor', INVALID_CURSOR)
}

/** Paging by offset or by cursor; a request with both is invalid (ADR requests). */
export interface PageRequest {
  limit?: number | undefined
  offset?: number | undefined
  cursor?: string | undefined
}

export interface Page {
  limit: number
  offset: number
  /** Id of the last item of the previous page. */
  after: string | undefined
}

/**
 * Start and size of the page. Throws 400 for an offset together with a cursor. Expects a cursor that `cursorField`
 * validated.
 */
export function pageLimits({ limit, offset, cursor }: PageRequest, defaultLimit: number): Page {
  if (offset !== undefined && cursor !== undefined) throw invalid('cursor', 'use offset or cursor, not both')
  return { limit: limit ?? defaultLimit, offset: offset ?? 0, after: cursor }
}

/** Where to read on: after the last row that was read, or at the start of the page. */
export function pageAfter(page: Page, lastId: string | undefined): Pick<Page, 'offset' | 'after'> {
  return lastId === undefined ? page : { offset: 0, after: lastId }
}

/** Cuts a page out of a whole list that is sorted by id. */
export function slicePage<T>(
  all: readonly T[],
  idOf: (item: T) => string,
  page: Page,
): { items: T[]; nextCursor?: string } {
  const { after } = page
  const start = after === undefined ? page.offset : all.findIndex((item) => idOf(item) > after)
  if (start < 0) return { items: [] }
  return toPage(all.slice(start, start + page.limit + 1), idOf, page)
}

/** Expects limit + 1 rows; the extra row means that there is a next page. */
export function toPage<T>(
  rows: readonly T[],
  idOf: (item: T) => string,
  { limit }: Pick<Page, 'limit'>,
): { items: T[]; nextCursor?: string } {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return rows.length > limit && last !== undefined ? { items, nextCursor: idOf(last) } : { items }
}

/** Characters of the stored texts of a page, beyond those of its first row: to read and write them takes about 30 ms. */
const TEXT_AT_ONCE = 1_000_000

/** Rows of half a megabyte that a page reads at once. */
const ROWS_AT_ONCE = 20

/**
 * Reads a page of rows with texts that callers may make long, and ends it early by their length. It reads some rows,
 * then as many as fit by their mean length.
 *
 * @param atOnce Rows that it reads at once. Default: few, because they may be the longest ones.
 * @param read Reads at most `limit` rows after `last`; undefined: from the start of the page.
 */
export async function readPageWithinText<T>(
  read: (limit: number, last: T | undefined) => Promise<readonly T[]>,
  idOf: (row: T) => string,
  lengthOf: (row: T) => number,
  { limit }: Pick<Page, 'limit'>,
  atOnce = ROWS_AT_ONCE,
): Promise<{ items: T[]; nextCursor?: string }> {
  const rows: T[] = []
  /** Number of the rows before the first one that does not fit. */
  let fitting = 0
  let length = 0
  for (;;) {
    const byMean = length === 0 ? atOnce : Math.ceil(((TEXT_AT_ONCE - length) * rows.length) / length)
    // The extra row means that there is a next page.
    const wanted = Math.min(limit + 1 - rows.length, atOnce, Math.max(byMean, 1))
    const part = await read(wanted, rows.at(-1))
    for (const row of part) {
      rows.push(row)
      length += lengthOf(row)
      if (length <= TEXT_AT_ONCE || fitting === 0) fitting = rows.length
    }
    if (part.length < wanted || rows.length > limit || length > TEXT_AT_ONCE) break
  }
  return toPage(rows, idOf, { limit: Math.min(fitting, limit) })
}

/**
 * Maximum number of lines of a page, beyond those of its first purchase or order. To read and write a line takes about
 * 20 µs, in which no other request runs. A purchase may have 500 lines, so that a limit of purchases limits no page.
 */
const LINES_AT_ONCE = 2_000

/** Lines, by the column that names their purchase or order. */
const PARENTS = { purchase_line: 'purchase_id', pickup_order_line: 'order_id' } as const
/** What an answer names with the lines: it counts, too. */
const BESIDE = { purchase_line: 'refund', pickup_order_line: 'pickup_order_item' } as const
type Lines = keyof typeof PARENTS
const ROWS = sql<number>`count(*)`
/** A refund counts as the lines that it names, each of at least 50 characters. */
const COUNTS = {
  purchase_line: ROWS,
  pickup_order_line: ROWS,
  pickup_order_item: ROWS,
  refund: sql<number>`sum(1 + coalesce(length(lines), 0) / 50)`,
}

/**
 * The first of these purchases or orders that have at most `LINES_AT_ONCE` lines, refunds and reserved tags together; at
 * least one.
 */
export async function withinLines<L extends Lines, P extends Readonly<Record<(typeof PARENTS)[L], string>>>(
  db: Db,
  table: L,
  parents: readonly P[],
): Promise<P[]> {
  if (parents.length === 0) return []
  const idOf = (parent: P) => parent[PARENTS[table]]
  const column = sql.ref<string>(PARENTS[table])
  const counts = new Map<string, number>()
  for (const each of [table, BESIDE[table]]) {
    const counted = await db
      .selectFrom(each as Lines)
      .select([column.as('id'), COUNTS[each].as('count')])
      .where(column, 'in', parents.map(idOf))
      .groupBy(column)
      .execute()
    for (const { id, count } of counted) counts.set(id, (counts.get(id) ?? 0) + Number(count))
  }
  return firstWithin(parents, (parent) => counts.get(idOf(parent)) ?? 0, LINES_AT_ONCE)
}

/** The first of these rows whose sizes together are at most `limit`; at least one. */
export function firstWithin<T>(rows: readonly T[], sizeOf: (row: T) => number, limit: number): T[] {
  let size = 0
  const over = rows.findIndex((row, index) => {
    size += sizeOf(row)
    return index > 0 && size > limit
  })
  return rows.slice(0, over === -1 ? rows.length : over)
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
