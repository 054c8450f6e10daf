import { knownCaller, maySee } from '../foundation/caller.ts'
import { Failure, invalid, notFound } from '../foundation/failure.ts'
import { needsPackage } from '../operations/needs-package.ts'
import type { Call } from '../operations/operation.ts'
import { isAtLeast, type Package } from '../foundation/packages.ts'
import { packageTooLow } from '../operations/perform.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { findStore, listStores } from './queries.ts'

/**
 * Finds a store by id. Throws 404 if the store is unknown or the caller may not see it. Throws 403 if the package of
 * the store is too low for the operation.
 */
export async function ownStore(call: Call, storeId: string): Promise<StoreRow> {
  const caller = knownCaller(call.caller)
  const store = await findStore(call.db, storeId)
  if (!store || !maySee(caller, store)) throw notFound('store')
  if (
    needsPackage(call.operation, caller.mode) &&
    !isAtLeast(store.package as Package, call.operation.minimumPackage)
  ) {
    throw packageTooLow(call.operation, store.package, 'store')
  }
  return store
}

/** Finds the store with this id. If `storeId` is undefined, finds the caller's only store (ADR 0002). */
export async function ownStoreOrOnly(call: Call, storeId: string | undefined): Promise<StoreRow> {
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
export async function ownStoreOf(call: Call, storeId: string, what: string): Promise<StoreRow> {
  try {
    return await ownStore(call, storeId)
  } catch (error) {
    throw error instanceof Failure && error.code === 'not-found' ? notFound(what) : error
  }
}
