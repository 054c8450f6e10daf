import type { Db } from '../persistence/database.ts'
import type { OfferDays } from './report.ts'
import type { OfStore } from './store-days.ts'

/** Where analytics and offers meet. Until this cloud keeps offers, any `offerId` is taken at its word and none is active. */

/** Raises or lowers the counters of the offer's branch document. */
export async function countOnOffer(_db: Db, _store: OfStore, _offerId: string, _change: { clicks?: number; favorites?: number }): Promise<void> {}

/** The offers of a store that held on any day from … to. */
export async function offersWithin(_db: Db, _storeId: string, _from: string, _to: string): Promise<OfferDays[]> {
  return []
}
