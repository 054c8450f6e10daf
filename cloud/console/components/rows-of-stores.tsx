import type { PageContext } from '../frame/page.ts'
import { storeName } from './all-stores.tsx'

/** Rows on a page of a list over all stores. */
const ROWS = 50
/** Lists of stores that a page reads one by one, at most. If they are short, the next page goes on after them. */
const LISTS_READ = 50

/** A row and its store. */
export type OfStore<R> = R & { readonly storeId: string }

/** A page of the rows of all stores. */
export interface RowsOfStores<R> {
  readonly rows: readonly OfStore<R>[]
  readonly nextCursor: string | undefined
}

/** A part of a list. `cursor`: where the list goes on. */
interface Part<R> {
  readonly rows: readonly R[]
  readonly nextCursor?: string | undefined
}

/** A list that is one part of a longer one. `name`: differs from those of the other lists, and has no dot. */
export interface NamedList<R> {
  readonly name: string
  /** Undefined if the role or the package of the store does not allow it. */
  read(about: { limit: number; cursor?: string }): Promise<Part<R> | undefined>
}

/** A list of one store. */
export interface ListOfStore<R> extends NamedList<R> {
  readonly storeId: string
}

/**
 * The page of these lists that the cursor of the address names, in their order. The cursor is the name of a list, and
 * the list's own cursor after a dot. `cursorName`: of the cursor in the address.
 */
export async function pageOfLists<R>(
  at: PageContext,
  lists: readonly NamedList<R>[],
  cursorName = 'cursor',
): Promise<{ rows: readonly R[]; nextCursor: string | undefined }> {
  const [first = '', ...inner] = (at.query.get(cursorName) ?? '').split('.')
  const from = Math.max(
    0,
    lists.findIndex(({ name }) => name === first),
  )
  let cursor = lists[from]?.name === first && inner.length > 0 ? inner.join('.') : undefined
  const rows: R[] = []
  for (const [n, { name, read }] of lists.slice(from).entries()) {
    if (rows.length === ROWS || n === LISTS_READ) return { rows, nextCursor: name }
    const found = await read({ limit: ROWS - rows.length, ...(cursor !== undefined && { cursor }) })
    rows.push(...(found?.rows ?? []))
    cursor = undefined
    if (found?.nextCursor !== undefined) return { rows, nextCursor: `${name}.${found.nextCursor}` }
  }
  return { rows, nextCursor: undefined }
}

/** `pageOfLists` of lists that each belong to a store. */
export function rowsOfLists<R>(at: PageContext, lists: readonly ListOfStore<R>[]): Promise<RowsOfStores<R>> {
  const named = lists.map(({ name, storeId, read }) => ({
    name,
    async read(about: { limit: number; cursor?: string }): Promise<Part<OfStore<R>> | undefined> {
      const found = await read(about)
      return found && { ...found, rows: found.rows.map((row) => ({ ...row, storeId })) }
    },
  }))
  return pageOfLists(at, named)
}

/** The rows of all stores, store by store, by name. */
export function rowsOfStores<R>(
  at: PageContext,
  read: (about: { storeId: string; limit: number; cursor?: string }) => Promise<Part<R> | undefined>,
): Promise<RowsOfStores<R>> {
  const lists = storesByName(at).map((storeId) => ({
    name: storeId,
    storeId,
    read: (about: { limit: number; cursor?: string }) => read({ storeId, ...about }),
  }))
  return rowsOfLists(at, lists)
}

/** Ids of the stores of the user, by their names. */
export function storesByName({ stores, language }: PageContext): string[] {
  return stores.toSorted((a, b) => a.tradingName.localeCompare(b.tradingName, language)).map(({ storeId }) => storeId)
}

/** A part of a list that an operation answers as a whole. The cursor is the place of the first row. */
export function partOf<R>(all: readonly R[], { limit, cursor }: { limit: number; cursor?: string }): Part<R> {
  const from = Number(cursor ?? 0)
  const next = from + limit
  return { rows: all.slice(from, next), ...(next < all.length && { nextCursor: String(next) }) }
}

/** The column with the store, while all stores are chosen. */
export function storeColumn(at: PageContext): { label: string; cell: (row: { storeId: string }) => string }[] {
  if (at.store) return []
  return [{ label: at.texts.frame.store, cell: ({ storeId }) => storeName(at, storeId) }]
}

/** Says on a list over all stores where things are added. */
export function ChooseToAdd({ at }: { at: PageContext }) {
  return at.store ? null : <p class="soft">{at.texts.frame.chooseToAdd}</p>
}
