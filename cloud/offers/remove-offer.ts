import type { Call } from '../operations/operation.ts'
import type { OfferOfCaller } from './offer-of-caller.ts'
import { deleteBranches, deleteGroup, dropUnusedLists } from './queries.ts'

/** Deletes an offer with all its documents. Returns the number of branches that were active before. */
export async function removeOffer(call: Call, { group, branches, active }: OfferOfCaller): Promise<number> {
  await deleteBranches(call.db, group.group_id)
  await deleteGroup(call.db, group.group_id)
  await dropUnusedLists(
    call.db,
    branches.map((row) => row.list_id),
  )
  call.changed(group.lead_id)
  call.afterCommit(call.services.offersChanged.notify)
  return active.length
}
