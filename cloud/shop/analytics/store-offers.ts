import { findGroup, readBranches } from '../offers/queries.ts'
import { readSandboxId, storesNamedBy } from '../offers/sandbox-offers.ts'
import { notFound } from '../../platform/foundation/failure.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { isTest } from '../purchases/present.ts'
import { addDays, dayOf, startOfDay, type StoreKey } from './store-days.ts'
import type { OfferDays } from './report.ts'

/** Queries of the analytics area about offers. */

/** Maximum number of branch documents of a store in one report. */
const OFFERS_LIMIT = 10_000

/**
 * Returns the id of the store's branch document for any id of the offer. Throws 404 if the store is not in the offer.
 * The sandbox does not store offers, so a sandbox id itself contains the stores.
 */
export async function offerOfStore(db: Db, store: StoreKey, offerId: string): Promise<string> {
  if (isTest(store.tenant)) {
    const id = readSandboxId(store.tenant, offerId)
    if (!id || !(await storesNamedBy(db, store.tenant, id)).includes(store.store_id)) throw notFound('offer')
    return offerId
  }
  const group = await findGroup(db, store.tenant, offerId)
  const branch = group && (await readBranches(db, group.group_id)).find((row) => row.store_id === store.store_id)
  if (!branch) throw notFound('offer')
  return branch.offer_id
}

/** Increases or decreases a counter of a branch document. */
export async function changeOfferCounter(
  db: Db,
  offerId: string,
  column: 'click_count' | 'favorited_count',
  change: 1 | -1,
): Promise<void> {
  let query = db
    .updateTable('offer')
    .set((eb) => ({ [column]: eb(column, '+', change) }))
    .where('offer_id', '=', offerId)
  if (change < 0) query = query.where(column, '>', 0)
  await query.execute()
}

/** Validity of the store's offers that were active on any day from … to. */
export async function offersWithin(db: Db, storeId: string, from: string, to: string): Promise<OfferDays[]> {
  const rows = await db
    .selectFrom('offer')
    .select(['valid_from_ms', 'valid_to_ms'])
    .where('store_id', '=', storeId)
    .where('is_active', '=', 1)
    .where('valid_to_ms', '>', startOfDay(from))
    .where('valid_from_ms', '<', startOfDay(addDays(to, 1)))
    .limit(OFFERS_LIMIT)
    .execute()
  return rows.map((row) => ({ from: dayOf(row.valid_from_ms), to: dayOf(row.valid_to_ms - 1) }))
}
