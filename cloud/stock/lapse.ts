import type { Db } from '../persistence/database.ts'
import { endReservation, forgetLapsed, markLapsed, overdueReservations } from './queries.ts'

const AT_ONCE = 200
/** A lapsed reservation is remembered for as long as its checkout might still be paid. */
const REMEMBERED_MS = 7 * 86_400_000

/** Frees what was reserved for too long. Safe to run twice and in several processes: each row lapses once. */
export async function lapseReservations(db: Db, nowMs: number): Promise<void> {
  for (const row of await overdueReservations(db, nowMs, AT_ONCE)) {
    if (!(await markLapsed(db, row))) continue
    await endReservation(db, { storeId: row.store_id, productId: row.product_id, quantity: row.quantity }, false)
  }
  await forgetLapsed(db, nowMs - REMEMBERED_MS)
}
