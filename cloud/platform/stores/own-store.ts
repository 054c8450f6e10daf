import { knownCaller, maySee, isAtLeast, type KnownCaller, type Package, PACKAGES } from '../foundation/caller.ts'
import { Failure, invalid, notFound } from '../foundation/failure.ts'
import { needsPackage, type Call } from '../operations/operation.ts'
import { packageTooLow } from '../operations/perform.ts'
import type { Db } from '../persistence/database.ts'
import type { Row, Schema } from '../persistence/schema.ts'
import { findStore, LISTED_COLUMNS, listStores, type ListedStore } from './queries.ts'
import { z } from 'zod'
import { sql, type RawBuilder, type SelectQueryBuilder, type SqlBool } from 'kysely'
import { toPage } from '../operations/paging.ts'

/** Maximum number of ids per query. */
const IDS_PER_QUERY = 1_000

/** Like `ownStore`, for many ids. Returns the stores in the order of the ids. */
export async function ownStores(call: Call, storeIds: readonly string[]): Promise<ListedStore[]> {
  const caller = knownCaller(call.caller)
  const byId = new Map<string, ListedStore>()
  for (let i = 0; i < storeIds.length; i += IDS_PER_QUERY) {
    const rows = await call.db
      .selectFrom('store')
      .select(LISTED_COLUMNS)
      .where('store_id', 'in', storeIds.slice(i, i + IDS_PER_QUERY))
      .execute()
    for (const row of rows) byId.set(row.store_id, row)
  }
  const stores = storeIds.map((id) => {
    return visibleStore(caller, byId.get(id))
  })
  for (const store of stores) enterStore(call, store)
  return stores
}

function visibleStore<S extends ListedStore>(caller: KnownCaller, store: S | undefined): S {
  if (!store || !maySee(caller, store)) throw notFound('store')
  return store
}

/** Names the store as concerned by the call. Throws 403 if its package is too low. */
function enterStore(call: Call, store: ListedStore): void {
  const caller = knownCaller(call.caller)
  if (needsPackage(call.operation, caller.mode) && !isAtLeast(store.package as Package, call.operation.minimumPackage))
    throw packageTooLow(call.operation, store.package, 'store')
  call.concerns(store.store_id)
}

/**
 * Finds a store by id. Throws 404 if the store is unknown or the caller may not see it. Throws 403 if the package of
 * the store is too low for the operation.
 */
export async function ownStore(call: Call, storeId: string): Promise<Row<'store'>> {
  const store = visibleStore(knownCaller(call.caller), await findStore(call.db, storeId))
  enterStore(call, store)
  return store
}

/** Finds the store with this id. If `storeId` is undefined, finds the caller's only store (ADR requests). */
export async function ownStoreOrOnly(call: Call, storeId: string | undefined): Promise<Row<'store'>> {
  if (storeId !== undefined) return ownStore(call, storeId)
  const caller = knownCaller(call.caller)
  if (caller.kind === 'agent') return ownStore(call, caller.storeId)
  const stores = (await listStores(call.db, caller.tenant, 500)).filter((store) => maySee(caller, store))
  const [only] = stores
  if (only && stores.length === 1) return ownStore(call, only.store_id)
  throw invalid('storeId', `is required, because this key has ${stores.length} stores`, 'missing')
}

/**
 * Finds the store of an object that the request identifies by its own id. If the caller may not see the store, throws
 * 404 for the object.
 */
export async function ownStoreOf(call: Call, storeId: string, what: string): Promise<Row<'store'>> {
  try {
    return await ownStore(call, storeId)
  } catch (error) {
    throw error instanceof Failure && error.code === 'not-found' ? notFound(what) : error
  }
}

/** Stores that a listing reads: one store, or all stores of a tenant. */
export type StoreScope =
  | { readonly storeId: string }
  | {
      readonly tenant: string
      /** Only stores with one of these packages; undefined for all stores. */
      readonly packages: readonly Package[] | undefined
    }

/**
 * Scopes that a listing reads: the store `storeId` if given, else the stores of the key, or the whole tenant. Skips
 * stores whose package is too low. Throws 403 if `storeId` names such a store.
 */
export async function ownScopes(call: Call, storeId: string | undefined): Promise<StoreScope[]> {
  if (storeId !== undefined) return [{ storeId: (await ownStore(call, storeId)).store_id }]
  const caller = knownCaller(call.caller)
  const { minimumPackage } = call.operation
  const needed =
    needsPackage(call.operation, caller.mode) && minimumPackage !== PACKAGES[0] ? minimumPackage : undefined
  const bound = caller.kind === 'agent' ? [caller.storeId] : caller.storeIds
  if (bound === null)
    return [{ tenant: caller.tenant, packages: needed && PACKAGES.filter((have) => isAtLeast(have, needed)) }]
  const stores = await storesById(call, bound)
  return bound.flatMap((id) => {
    const store = stores.get(id)
    if (!store || !maySee(caller, store) || (needed && !isAtLeast(store.package as Package, needed))) return []
    return [{ storeId: id }]
  })
}

/** SQL condition: rows of this table or subquery are in the scope. */
export function inScope(table: keyof Schema | 'alarm', scope: StoreScope): RawBuilder<SqlBool> {
  const store = sql.ref(`${table}.store_id`)
  if ('storeId' in scope) return sql<SqlBool>`${store} = ${scope.storeId}`
  const own = sql<SqlBool>`${sql.ref(`${table}.tenant`)} = ${scope.tenant}`
  if (!scope.packages) return own
  const packages = sql.join(scope.packages.map((name) => sql.lit(name)))
  // Uses a subquery, because with a join the planner could leave the index order and sort all rows.
  return sql<SqlBool>`${own} AND (SELECT package FROM store WHERE store.store_id = ${store}) IN (${packages})`
}

/** SQL condition: rows of this table are in one of the scopes, of which there is at least one. */
export function inScopes(table: keyof Schema, scopes: readonly StoreScope[]): RawBuilder<SqlBool> {
  const [first] = scopes
  if (first && (scopes.length === 1 || 'tenant' in first)) return inScope(table, first)
  const ids = scopes.flatMap((scope) => ('storeId' in scope ? [scope.storeId] : []))
  return sql<SqlBool>`${sql.ref(`${table}.store_id`)} IN (${sql.join(ids)})`
}

/** Stores of any tenant, by id. */
export async function storesById({ db }: Pick<Call, 'db'>, ids: readonly string[]): Promise<Map<string, ListedStore>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('store')
    .select(LISTED_COLUMNS)
    .where('store_id', 'in', [...ids])
    .execute()
  return new Map(rows.map((row) => [row.store_id, row]))
}

/** Maximum `total` of a listing. Counting further would cost more than reading the page. */
export const TOTAL_LIMIT = 10_000

/** Schema of `total`. */
export const Total = z.int().describe(`Matching rows on all pages; ${TOTAL_LIMIT} means that many or more.`)

/** Description of an optional `storeId`. */
export const ALL_STORES =
  'Without `storeId`, the list contains all stores of the account that the key may see, except stores whose ' +
  'package is too low.'

/** Number of the rows of a query. */
export async function countRows<T extends keyof Schema>(
  db: Db,
  query: SelectQueryBuilder<Schema, T, object>,
): Promise<number> {
  const { count } = await db
    .selectFrom(query.as('counted'))
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** How a listing reads one scope. */
export interface ScopeReader<R> {
  /** Ids in list order, at most `limit`. */
  ids(scope: StoreScope, limit: number): Promise<string[]>
  /** Number of all matching rows, at most `limit`. */
  count(scope: StoreScope, limit: number): Promise<number>
  /** Rows with these ids, in any order. */
  rows(ids: readonly string[]): Promise<R[]>
  idOf(row: R): string
  newestFirst: boolean
  limit: number
}

/**
 * Merges one page of all scopes. Reads the ids of each scope by its own index, so that no query sorts more than a page,
 * and whole rows of the merged page only: a user may have a hundred stores.
 */
export async function pageOfScopes<R>(
  scopes: readonly StoreScope[],
  reader: ScopeReader<R>,
): Promise<{ items: R[]; total: number; nextCursor?: string }> {
  const { limit, idOf } = reader
  const sign = reader.newestFirst ? -1 : 1
  let first: string[] = []
  let total = 0
  for (const scope of scopes) {
    const ids = await reader.ids(scope, limit + 1)
    first = [...first, ...ids].sort((a, b) => (a < b ? -sign : sign)).slice(0, limit + 1)
    if (total < TOTAL_LIMIT) total += await reader.count(scope, TOTAL_LIMIT - total)
  }
  const { items: ids, ...next } = toPage(first, (id) => id, { limit })
  const byId = new Map((await reader.rows(ids)).map((row) => [idOf(row), row]))
  return { items: ids.flatMap((id) => byId.get(id) ?? []), total, ...next }
}
