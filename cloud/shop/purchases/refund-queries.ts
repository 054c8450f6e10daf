import type { Db } from '../../platform/persistence/database.ts'
import { preparedRows } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { eurosOf, iso, definedFields } from '../../platform/operations/fields.ts'
import { toReturnedLines } from './line-value.ts'
import type { Purchase, TransactionData } from './schema.ts'

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

/** Converts refunds for display beside a purchase. The receipt itself never changes. */

type RefundInCents = TransactionData['refunds'][number]

/** Refunds to show beside a purchase. Skips the query for unpaid purchases, which have no refunds. */
export async function refundsToShow(
  db: Db,
  { purchase_id, status }: Pick<Row<'purchase'>, 'purchase_id' | 'status'>,
): Promise<Row<'refund'>[]> {
  return status === 'CREATED' || status === 'PENDING_PAYMENT' ? [] : (await refundsOf(db, purchase_id)).filter(isShown)
}

/** False for money that moved at the provider and came back, such as a dispute that was won. */
function isShown({ outside, state }: Row<'refund'>): boolean {
  return outside === null || state === 'done'
}

/** Refunds of many purchases, the oldest first. */
export async function refundsOfMany(db: Db, purchaseIds: readonly string[]): Promise<Map<string, Row<'refund'>[]>> {
  const found = new Map<string, Row<'refund'>[]>()
  if (purchaseIds.length === 0) return found
  const rows = await db
    .selectFrom('refund')
    .selectAll()
    .where('purchase_id', 'in', [...purchaseIds])
    .orderBy('created_ms')
    .orderBy('refund_id')
    .execute()
  for (const row of rows.filter(isShown)) {
    const known = found.get(row.purchase_id)
    if (known) known.push(row)
    else found.set(row.purchase_id, [row])
  }
  return found
}

/** True if the refund is completed and repays the purchase. A refund of a late payment does not repay the purchase. */
export function isRefunded(refund: Row<'refund'>): boolean {
  return refund.state === 'done' && refund.kind !== 'late'
}

/** Amount of completed refunds, cents. */
export function refundedCent(refunds: readonly Row<'refund'>[]): number {
  return refunds.filter(isRefunded).reduce((sum, refund) => sum + refund.amount_cent, 0)
}

/** Converts a refund to the transaction data form: cents and ms. Omits the reason, an internal note. */
export function toRefundInCents(refund: Row<'refund'>): RefundInCents {
  return {
    refundId: refund.refund_id,
    kind: refund.kind,
    amountCent: refund.amount_cent,
    status: refund.state === 'held' || refund.state === 'due' ? 'pending' : refund.state,
    ...(refund.state === 'failed' && refund.in_doubt === 1 && { inDoubt: true as const }),
    ...(refund.outside !== null && { outside: refund.outside }),
    ...(refund.lines !== null && { lines: toReturnedLines(refund) }),
    createdAt: refund.created_ms,
    ...definedFields({ completedAt: refund.state === 'done' ? refund.finished_ms : null }),
  }
}

/** Converts a refund to the API form: EUR and ISO 8601. */
export function toRefundInEuros(refund: Row<'refund'>): Purchase['refunds'][number] {
  const { amountCent, createdAt, completedAt, ...shown } = toRefundInCents(refund)
  return {
    ...shown,
    amount: eurosOf(amountCent),
    createdAt: iso(createdAt),
    ...(completedAt !== undefined && { completedAt: iso(completedAt) }),
  }
}
