import { MAX_CLOCK_SKEW_MS } from '../../platform/operations/idempotency.ts'
import { accountsDue, processDue } from '../../platform/operations/job-steps.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import { PAYMENT_MS } from './approval.ts'
import { cancelUnpaidPurchase } from './cancel-purchase.ts'

/**
 * Cancels purchases that were not paid in time, each in its own transaction. Several processes may run this at the same
 * time.
 */
export async function cancelOverduePurchases(database: Database, services: Services): Promise<boolean> {
  const nowMs = services.platform.clock.wall()
  await database.write((db) => capPaymentTimes(db, nowMs))
  return processDue(database, services, {
    job: 'unpaid purchases',
    accounts: (db) => accountsDue(db, 'purchase', 'payment_by_ms', nowMs),
    read: (db, account, page) => unpaidPurchases(db, account, nowMs, page),
    process: ({ purchase_id: purchaseId, tenant: holder }) =>
      database.write((db) => cancelOverdue(db, purchaseId, nowMs), { holder }),
  })
}

/**
 * Corrects payment deadlines that are later than possible, because a clock that was ahead wrote them. The full payment
 * time starts again now, because the shopper may be paying.
 */
async function capPaymentTimes(db: Db, nowMs: number): Promise<void> {
  await db
    .updateTable('purchase')
    .set({ payment_by_ms: nowMs + PAYMENT_MS })
    .where('payment_by_ms', '>', nowMs + PAYMENT_MS + MAX_CLOCK_SKEW_MS)
    .execute()
}

function unpaidPurchases(db: Db, tenant: string, nowMs: number, { limit, offset }: { limit: number; offset: number }) {
  const unpaid = db.selectFrom('purchase').select(['purchase_id', 'tenant']).where('tenant', '=', tenant)
  const late = unpaid.where('payment_by_ms', '<=', nowMs)
  return late.orderBy('payment_by_ms').orderBy('purchase_id').limit(limit).offset(offset).execute()
}

async function cancelOverdue(db: Db, purchaseId: string, nowMs: number): Promise<void> {
  const late = db
    .selectFrom('purchase')
    .selectAll()
    .where('purchase_id', '=', purchaseId)
    .where('payment_by_ms', '<=', nowMs)
  const purchase = await late.executeTakeFirst()
  if (purchase) await cancelUnpaidPurchase(db, purchase, { cancel_reason: 'not paid within 30 minutes' })
}
