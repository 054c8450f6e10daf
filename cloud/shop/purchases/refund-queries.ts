import type { Db } from '../../platform/persistence/database.ts'
import { preparedRows } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/** The payment with which a purchase was paid. */
export function appliedPaymentOf(db: Db, purchaseId: string): Promise<Row<'payment'> | undefined> {
  return db
    .selectFrom('payment')
    .selectAll()
    .where('purchase_id', '=', purchaseId)
    .where('applied', '=', 1)
    .executeTakeFirst()
}

/** All refunds of a purchase, the oldest first. */
export const refundsOf = preparedRows((db, purchaseId: string) =>
  db.selectFrom('refund').selectAll().where('purchase_id', '=', purchaseId).orderBy('created_ms').orderBy('refund_id'),
)

/** Updates a refund if its state and number of attempts are unchanged. Returns undefined otherwise. */
export function updateRefund(
  db: Db,
  refund: Row<'refund'>,
  change: Partial<Row<'refund'>>,
): Promise<Row<'refund'> | undefined> {
  return db
    .updateTable('refund')
    .set(change)
    .where('refund_id', '=', refund.refund_id)
    .where('state', '=', refund.state)
    .where('attempts', '=', refund.attempts)
    .returningAll()
    .executeTakeFirst()
}
