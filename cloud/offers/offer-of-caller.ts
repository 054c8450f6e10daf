import { knownCaller } from '../foundation/caller.ts'
import { Failure, invalid, notFound } from '../foundation/failure.ts'
import type { Call } from '../operations/operation.ts'
import type { OfferGroupRow, OfferRow } from '../persistence/tables/offers.ts'
import { findGroup, readBranches } from './queries.ts'

export interface OfferOfCaller {
  group: OfferGroupRow
  /** All documents, in the order they were added in. */
  branches: OfferRow[]
  /** Those that were not taken out. */
  active: OfferRow[]
  /** The document that was named; by the group's id the first. */
  named: OfferRow
  /** Whose products and prices the named one stands for: another's, where it was taken out and has stayed as it was then. */
  priced: OfferRow
}

/** The one id out of `offerId` and `id`: 400 when they differ. */
export function offerIdOf({ offerId, id }: { offerId?: string | undefined; id?: string | undefined }): string {
  if (offerId !== undefined && id !== undefined && offerId !== id) throw invalid('id', 'differs from offerId')
  return offerId ?? id ?? ''
}

/** The caller's offer with all its branches: 404 for an unknown one, 403 where a key may touch only some of its stores. */
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

/** A key that is bound to stores may change an offer only when all branches are in them. */
export function assertMayChangeAllBranches(call: Call, storeIds: readonly string[], namedStoreId: string): void {
  const caller = knownCaller(call.caller)
  if (caller.kind === 'agent' || caller.storeIds === null) return
  const { storeIds: own } = caller
  if (!own.includes(namedStoreId)) throw notFound('offer')
  if (storeIds.every((id) => own.includes(id))) return
  throw new Failure('permission-denied', 'the offer has branches in stores that this key may not touch', {
    reason: 'offer_of_other_stores',
  })
}
