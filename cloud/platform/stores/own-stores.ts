import { knownCaller, maySee } from '../foundation/caller.ts'
import { notFound } from '../foundation/failure.ts'
import { needsPackage } from '../operations/needs-package.ts'
import type { Call } from '../operations/operation.ts'
import { isAtLeast, type Package } from '../foundation/packages.ts'
import { packageTooLow } from '../operations/perform.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'

/** Maximum number of ids per query. */
const IDS_PER_QUERY = 1_000

/** Like `ownStore`, for many ids. Returns the stores in the order of the ids. */
export async function ownStores(call: Call, storeIds: readonly string[]): Promise<StoreRow[]> {
  const caller = knownCaller(call.caller)
  const byId = new Map<string, StoreRow>()
  for (let i = 0; i < storeIds.length; i += IDS_PER_QUERY) {
    const rows = await call.db
      .selectFrom('store')
      .selectAll()
      .where('store_id', 'in', storeIds.slice(i, i + IDS_PER_QUERY))
      .execute()
    for (const row of rows) byId.set(row.store_id, row)
  }
  const stores = storeIds.map((id) => {
    const store = byId.get(id)
    if (!store || !maySee(caller, store)) throw notFound('store')
    return store
  })
  for (const store of stores) {
    if (
      needsPackage(call.operation, caller.mode) &&
      !isAtLeast(store.package as Package, call.operation.minimumPackage)
    )
      throw packageTooLow(call.operation, store.package, 'store')
  }
  return stores
}
