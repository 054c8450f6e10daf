import { knownCaller, maySee, isAtLeast, type KnownCaller, type Package, PACKAGES } from '../foundation/caller.ts'
import { Failure, invalid, notFound } from '../foundation/failure.ts'
import { needsPackage, type Call } from '../operations/operation.ts'
import { packageTooLow } from '../operations/perform.ts'
import type { Row } from '../persistence/schema.ts'
import { findStore, listStores } from './queries.ts'
import { z } from 'zod'
import { sql, type RawBuilder, type SqlBool } from 'kysely'
import { toPage } from '../operations/paging.ts'

/** Maximum number of ids per query. */
const IDS_PER_QUERY = 1_000

/** Like `ownStore`, for many ids. Returns the stores in the order of the ids. */
export async function ownStores(call: Call, storeIds: readonly string[]): Promise<Row<'store'>[]> {
  const caller = knownCaller(call.caller)
  const byId = new Map<string, Row<'store'>>()
  for (let i = 0; i < storeIds.length; i += IDS_PER_QUERY) {
    const rows = await call.db
      .selectFrom('store')
      .selectAll()
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

function visibleStore(caller: KnownCaller, store: Row<'store'> | undefined): Row<'store'> {
  if (!store || !maySee(caller, store)) throw notFound('store')
  return store
}

/** Names the store as concerned by the call. Throws 403 if its package is too low. */
function enterStore(call: Call, store: Row<'store'>): void {
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
  const needed = needsPackage(call.operation, caller.mode) ? call.operation.minimumPackage : undefined
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

/** SQL condition: rows of this table are in the scope. */
export function inScope(table: 'agent' | 'protection_exception', scope: StoreScope): RawBuilder<SqlBool> {
  const store = sql.ref(`${table}.store_id`)
  if ('storeId' in scope) return sql<SqlBool>`${store} = ${scope.storeId}`
  const own = sql<SqlBool>`${sql.ref(`${table}.tenant`)} = ${scope.tenant}`
  if (!scope.packages) return own
  const packages = sql.join(scope.packages.map((name) => sql.lit(name)))
  // Uses a subquery, because with a join the planner could leave the index order and sort all rows.
  return sql<SqlBool>`${own} AND (SELECT package FROM store WHERE store.store_id = ${store}) IN (${packages})`
}

/** Stores of any tenant, by id. */
export async function storesById({ db }: Pick<Call, 'db'>, ids: readonly string[]): Promise<Map<string, Row<'store'>>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('store')
    .selectAll()
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

/** Rows of one scope in list order, at most limit + 1. `total` counts all matching rows up to `TOTAL_LIMIT`. */
export interface ScopePage<R> {
  rows: R[]
  total: number
}

/** Merges one page of all scopes. Reads each scope by its own index, so that no query sorts more than a page. */
export async function pageOfScopes<R>(
  scopes: readonly StoreScope[],
  read: (scope: StoreScope) => Promise<ScopePage<R>>,
  order: { idOf: (row: R) => string; newestFirst: boolean; limit: number },
): Promise<{ items: R[]; total: number; nextCursor?: string }> {
  const all: R[] = []
  let total = 0
  for (const scope of scopes) {
    const page = await read(scope)
    all.push(...page.rows)
    total += page.total
  }
  const sign = order.newestFirst ? -1 : 1
  all.sort((a, b) => (order.idOf(a) < order.idOf(b) ? -sign : sign))
  return { ...toPage(all, order.idOf, order), total: Math.min(total, TOTAL_LIMIT) }
}
