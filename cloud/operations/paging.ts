import { z } from 'zod'
import { isIdOf } from '../../policy/ids.ts'
import { invalid, type Failure } from '../foundation/failure.ts'

const INVALID_CURSOR =
  'must be a nextCursor that this listing answered: send it as it came, or leave it out to begin at the beginning'

/**
 * The `nextCursor` of the page before, as it comes back: the id of a row, which may be gone by now. Anything else is refused:
 * it would stand before or behind all rows, and look like the beginning or the end of the list.
 */
export function cursorField(prefix: string, isOtherForm: (text: string) => boolean = () => false) {
  return z
    .string()
    .refine((text) => isIdOf(prefix, text) || isOtherForm(text), INVALID_CURSOR)
    .describe('The `nextCursor` of the page before.')
}

/** 400 for a cursor of another form than ids, which its listing has to read for itself. */
export function invalidCursor(): Failure {
  return invalid('cursor', INVALID_CURSOR)
}

/** Paging by offset or by cursor, never both (decisions §1). */
export interface PageRequest {
  limit?: number | undefined
  offset?: number | undefined
  cursor?: string | undefined
}

export interface Page {
  limit: number
  offset: number
  /** The id of the last item of the page before. */
  after: string | undefined
}

/** Limits of a page from what was asked. Throws 400 for an offset beside a cursor; whether that is one, `cursorOf` has seen. */
export function pageLimits({ limit, offset, cursor }: PageRequest, defaultLimit: number): Page {
  if (offset !== undefined && cursor !== undefined) throw invalid('cursor', 'use offset or cursor, not both')
  return { limit: limit ?? defaultLimit, offset: offset ?? 0, after: cursor }
}

/** The page out of everything, in the order of the ids. */
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

/** A page of which one row more than wanted was read: that there is one says that there is more. */
export function toPage<T>(
  rows: readonly T[],
  idOf: (item: T) => string,
  { limit }: Pick<Page, 'limit'>,
): { items: T[]; nextCursor?: string } {
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  return rows.length > limit && last !== undefined ? { items, nextCursor: idOf(last) } : { items }
}
