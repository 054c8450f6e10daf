import { z } from 'zod'
import { sql, type RawBuilder, type SqlBool } from 'kysely'
import { knownCaller, maySee } from '../foundation/caller.ts'
import { needsPackage, type Call } from '../operations/operation.ts'
import { toPage } from '../operations/paging.ts'
import { isAtLeast, PACKAGES, type Package } from '../foundation/packages.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { ownStore } from './own-store.ts'

/** One range of an index that a list reads: a single store, or a whole tenant. */
export type StoreScope =
  | { readonly storeId: string }
  | {
      readonly tenant: string
      /** Only stores with one of these packages; undefined: all stores. */
      readonly packages: readonly Package[] | undefined
    }

/**
 * What a list with an optional `storeId` reads: this store, else each store that the key is bound to, else the whole
 * tenant. Stores whose package does not include the operation are left out; if one is named, the answer is 403.
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

/** The condition that rows of this table are in the scope. */
export function inScope(table: 'agent' | 'protection_exception', scope: StoreScope): RawBuilder<SqlBool> {
  const store = sql.ref(`${table}.store_id`)
  if ('storeId' in scope) return sql<SqlBool>`${store} = ${scope.storeId}`
  const own = sql<SqlBool>`${sql.ref(`${table}.tenant`)} = ${scope.tenant}`
  if (!scope.packages) return own
  const packages = sql.join(scope.packages.map((name) => sql.lit(name)))
  // As a join, the planner could leave the order of the index, and sort all rows of the tenant.
  return sql<SqlBool>`${own} AND (SELECT package FROM store WHERE store.store_id = ${store}) IN (${packages})`
}

/** The stores with these ids, of any tenant. */
export async function storesById({ db }: Pick<Call, 'db'>, ids: readonly string[]): Promise<Map<string, StoreRow>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('store')
    .selectAll()
    .where('store_id', 'in', [...ids])
    .execute()
  return new Map(rows.map((row) => [row.store_id, row]))
}

/** `total` of a list counts this far: counting more would read more than a page is worth. */
export const TOTAL_LIMIT = 10_000

/** `total` of such a list. */
export const Total = z.int().describe(`Matching rows of all pages; ${TOTAL_LIMIT} stands for that many or more.`)

/** Describes a `storeId` that may be left out. */
export const ALL_STORES =
  'Without `storeId` all stores of the account are listed that the key may see. Stores whose package is too low are left out.'

/** Rows of one scope in the order of the list, at most limit + 1, and how many there are, at most `TOTAL_LIMIT`. */
export interface ScopePage<R> {
  rows: R[]
  total: number
}

/** One page of all scopes together. Each scope is read by its own index, so no query sorts more than a page. */
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
