import { sql } from 'kysely'
import type { Randomness } from '../../policy/platform.ts'
import type { Db } from '../persistence/database.ts'
import { policyOf } from '../protection/store-documents/parsed-policy.ts'
import type { PurchaseRow, ShoppingSessionRow } from '../persistence/tables/purchases.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'

/**
 * Each checkout may be selected at random for a spot check. The check is then due until staff approve a basket.
 * Meanwhile all checkouts of this session and shopper need approval, so that the shopper cannot avoid the check by a
 * new checkout. A repeated checkout is a new random selection, so it may be selected although the first checkout was
 * not.
 */

/** Time for which a spot check stays due for the same shopper in other sessions, ms. */
const DUE_MS = 24 * 3_600_000

/** Contains a literal, because SQLite would not use the partial index with a parameter. */
const IS_DUE = sql<boolean>`spot_check_due = 1`

/** Shopper at a checkout. */
export interface Shopper {
  session: ShoppingSessionRow
  userId: string | null
}

/** True if the basket is selected at random, or if an earlier spot check is still due. */
export async function needsSpotCheck(
  db: Db,
  store: StoreRow,
  shopper: Shopper,
  { random, nowMs }: { random: Randomness; nowMs: number },
): Promise<boolean> {
  const { spotCheckRate } = policyOf(store)
  const [a = 0, b = 0, c = 0] = random.bytes(3)
  if (spotCheckRate === 0) return false
  const isPicked = (a * 65_536 + b * 256 + c) / 16_777_216 < spotCheckRate
  const isDue = isPicked || shopper.session.spot_check_due === 1 || (await isDueFor(db, shopper, nowMs))
  // Writes the row even if no check is due, so that concurrent checkouts of a session conflict.
  await db
    .updateTable('shopping_session')
    .set({ spot_check_due: isDue ? 1 : 0 })
    .where('session_id', '=', shopper.session.session_id)
    .execute()
  return isDue
}

async function isDueFor(db: Db, { session, userId }: Shopper, nowMs: number): Promise<boolean> {
  if (userId === null) return false
  const due = await dueOf(db, session.tenant, session.store_id, userId)
    .where('created_ms', '>', nowMs - DUE_MS)
    .limit(1)
    .execute()
  return due.length > 0
}

/** Ends the due spot checks of this shopper after staff approved a basket. */
export async function clearSpotCheck(
  db: Db,
  { tenant, store_id: storeId, session_id: sessionId, user_id: userId }: PurchaseRow,
): Promise<void> {
  const others = userId === null ? [] : await dueOf(db, tenant, storeId, userId).execute()
  const sessionIds = [sessionId, ...others.map((session) => session.session_id)]
  await db
    .updateTable('shopping_session')
    .set({ spot_check_due: 0 })
    .where('session_id', 'in', sessionIds)
    .where(IS_DUE)
    .execute()
}

function dueOf(db: Db, tenant: string, storeId: string, userId: string) {
  const due = db.selectFrom('shopping_session').select('session_id').where(IS_DUE)
  return due.where('tenant', '=', tenant).where('user_id', '=', userId).where('store_id', '=', storeId)
}
