import { processEach } from '../../platform/operations/process-each.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import { endReservation, deleteLapsed, markLapsed, overdueReservations } from './queries.ts'

/** Time for which a lapsed reservation stays stored, ms, because its checkout may still be paid. */
const LAPSED_RETENTION_MS = 7 * 86_400_000

/**
 * Releases reservations that have expired, each in its own transaction. Several processes may run this at the same
 * time, because each row lapses only once.
 */
export async function lapseReservations(database: Database, services: Services): Promise<void> {
  const nowMs = services.platform.clock.wall()
  await processEach(services, {
    job: 'stock reservations',
    read: (limit, failed) => overdueReservations(database.reads, nowMs, { limit, offset: failed }),
    process: (row) =>
      database.write(async (db) => {
        if (await markLapsed(db, row))
          await endReservation(db, { storeId: row.store_id, productId: row.product_id, quantity: row.quantity }, false)
      }),
  })
  await database.write((db) => deleteLapsed(db, nowMs - LAPSED_RETENTION_MS))
}
