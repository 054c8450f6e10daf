import { z } from 'zod'
import { sql, type RawBuilder, type SqlBool } from 'kysely'
import { knownCaller, maySee } from '../foundation/caller.ts'
import { needsPackage } from '../operations/needs-package.ts'
import type { Call } from '../operations/operation.ts'
import { toPage } from '../operations/paging.ts'
import { isAtLeast, PACKAGES, type Package } from '../foundation/packages.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { ownStore } from './own-store.ts'

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
export async function storesById({ db }: Pick<Call, 'db'>, ids: readonly string[]): Promise<Map<string, StoreRow>> {
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
