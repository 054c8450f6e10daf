import { knownCaller } from '../../platform/foundation/caller.ts'
import { Failure, invalid, notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { findGroup, readBranches } from './queries.ts'

/** Scope of an offer by its number of stores, from the specification. `stores` is the maximum number for a scope. */
const SCOPES = [
  { scope: 'LOCAL', stores: 1 },
  { scope: 'MULTI_STORE', stores: 10 },
  { scope: 'CITY_WIDE', stores: 30 },
  { scope: 'REGIONAL', stores: 100 },
] as const

export const OFFER_SCOPES = ['LOCAL', 'MULTI_STORE', 'CITY_WIDE', 'REGIONAL', 'NATIONAL'] as const
type OfferScope = (typeof OFFER_SCOPES)[number]

/** The scope of an offer with this number of stores. */
export function scopeOf(storeCount: number): OfferScope {
  return SCOPES.find(({ stores }) => storeCount <= stores)?.scope ?? 'NATIONAL'
}

export interface OfferOfCaller {
  group: Row<'offer_group'>
  /** All documents in order of creation. */
  branches: Row<'offer'>[]
  /** Documents of branches that are still in the offer. */
  active: Row<'offer'>[]
  /**
   * Document that the request identifies. For the id of a group, this is the
   * first active document.
   */
  named: Row<'offer'>
  /** Document with the products and prices: `named`, or another active document if `named` was removed. */
  priced: Row<'offer'>
}

/** Returns `offerId` or its synonym `id`. Throws 400 if the request contains both and they differ. */
export function offerIdOf({ offerId, id }: { offerId?: string | undefined; id?: string | undefined }): string {
  if (offerId !== undefined && id !== undefined && offerId !== id) throw invalid('id', 'differs from offerId')
  return offerId ?? id ?? ''
}

/**
 * Finds an offer with all its branches. Throws 404 if the offer is unknown. Throws 403 if the offer has branches in
 * stores that the key may not change.
 */
export async function offerOfCaller(call: Call, offerId: string): Promise<OfferOfCaller> {
  const caller = knownCaller(call.caller)
  const group = await findGroup(call.db, caller.tenant, offerId)
  if (!group) throw notFound('offer')
  const branches = await readBranches(call.db, group.group_id)
  const named = branches.find((row) => row.offer_id === offerId) ?? branches.find((row) => row.is_active === 1)
  if (!named) throw notFound('offer')
  const active = branches.filter((row) => row.is_active === 1)
  assertMayChangeAllBranches(
    call,
    active.map((row) => row.store_id),
    named.store_id,
  )
  const priced =
    named.is_active === 1 ? named : (active.find((row) => row.store_id === named.store_id) ?? active[0] ?? named)
  return { group, branches, active, named, priced }
}

/**
 * Throws 404 if the key is not bound to the named store. Throws 403 if the offer has branches in other stores to which
 * the key is not bound. Keys of the whole account may change all branches.
 */
export function assertMayChangeAllBranches(call: Call, storeIds: readonly string[], namedStoreId: string): void {
  const caller = knownCaller(call.caller)
  if (caller.kind === 'agent' || caller.storeIds === null) return
  const { storeIds: own } = caller
  if (!own.includes(namedStoreId)) throw notFound('offer')
  if (storeIds.every((id) => own.includes(id))) return
  throw new Failure('permission-denied', 'the offer has branches in stores that this key may not change', {
    reason: 'offer_of_other_stores',
  })
}
