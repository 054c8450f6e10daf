import { sql } from 'kysely'
import type { Randomness } from '../../policy/platform.ts'
import { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { Db } from '../persistence/database.ts'
import type { PurchaseRow, ShoppingSessionRow } from '../persistence/tables/purchases.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'

/**
 *   not due ──a checkout is picked──▶ due ──staff approve a basket──▶ not due
 *
 * Each checkout may be picked, and once one is, all that follow wait for staff: so nothing is won by beginning again, with the same
 * basket or a smaller one. Who is told not to be picked and begins again is drawn for again.
 */

/** A check that was missed in a session of the same shopper before is due for so long, ms: whoever comes back another day begins anew. */
const DUE_MS = 24 * 3_600_000

/** Written out: with a parameter SQLite would not see that the index of these rows will do. */
const IS_DUE = sql<boolean>`spot_check_due = 1`

/** Who is at a checkout. */
export interface Shopper {
  session: ShoppingSessionRow
  userId: string | null
}

/** Whether staff must look at this basket: it is picked at random, or one before it was and nobody has looked since. */
export async function needsSpotCheck(
  db: Db,
  store: StoreRow,
  shopper: Shopper,
  { random, nowMs }: { random: Randomness; nowMs: number },
): Promise<boolean> {
  const { spotCheckRate } = ProtectionPolicy.parse(JSON.parse(store.policy))
  const [a = 0, b = 0, c = 0] = random.bytes(3)
  if (spotCheckRate === 0) return false
  const isPicked = (a * 65_536 + b * 256 + c) / 16_777_216 < spotCheckRate
  const isDue = isPicked || shopper.session.spot_check_due === 1 || (await isDueFor(db, shopper, nowMs))
  // Written either way: two checkouts of a session at once must not both go by what was there before.
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

/** Staff have looked at a basket of this shopper. */
export async function clearSpotCheck(
  db: Db,
  { tenant, store_id: storeId, session_id: sessionId, user_id: userId }: PurchaseRow,
): Promise<void> {
  const others = userId === null ? [] : await dueOf(db, tenant, storeId, userId).execute()
  const looked = [sessionId, ...others.map((session) => session.session_id)]
  await db
    .updateTable('shopping_session')
    .set({ spot_check_due: 0 })
    .where('session_id', 'in', looked)
    .where(IS_DUE)
    .execute()
}

function dueOf(db: Db, tenant: string, storeId: string, userId: string) {
  const due = db.selectFrom('shopping_session').select('session_id').where(IS_DUE)
  return due.where('tenant', '=', tenant).where('user_id', '=', userId).where('store_id', '=', storeId)
}
