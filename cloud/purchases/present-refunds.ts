import { eurosOf, iso, definedFields } from '../operations/fields.ts'
import { refundsOf } from './refund-queries.ts'
import type { Db } from '../persistence/database.ts'
import type { RefundRow } from '../persistence/tables/payments.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import type { Purchase, TransactionData } from './schema.ts'

/** What went back of a purchase, as it is shown beside it: the receipt itself stays what it was. */

type RefundInCents = TransactionData['refunds'][number]

/** The refunds to show beside a purchase. Nothing can have gone back of one that nobody has paid or ended. */
export async function refundsToShow(
  db: Db,
  { purchase_id, status }: Pick<PurchaseRow, 'purchase_id' | 'status'>,
): Promise<RefundRow[]> {
  return status === 'CREATED' || status === 'PENDING_PAYMENT' ? [] : refundsOf(db, purchase_id)
}

/** Those of many purchases, the oldest first. */
export async function refundsOfMany(db: Db, purchaseIds: readonly string[]): Promise<Map<string, RefundRow[]>> {
  const found = new Map<string, RefundRow[]>()
  if (purchaseIds.length === 0) return found
  const rows = await db
    .selectFrom('refund')
    .selectAll()
    .where('purchase_id', 'in', [...purchaseIds])
    .orderBy('created_ms')
    .orderBy('refund_id')
    .execute()
  for (const row of rows) {
    const known = found.get(row.purchase_id)
    if (known) known.push(row)
    else found.set(row.purchase_id, [row])
  }
  return found
}

/** Whether the money of a refund has gone, out of what the purchase was paid with: what came too late never was its own. */
export function isRefunded(refund: RefundRow): boolean {
  return refund.state === 'done' && refund.kind !== 'late'
}

/** What has gone back of a purchase, cents. */
export function refundedCent(refunds: readonly RefundRow[]): number {
  return refunds.filter(isRefunded).reduce((sum, refund) => sum + refund.amount_cent, 0)
}

/** For the transaction data form: cents and ms. Why it went back is the merchant's own note. */
export function toRefundInCents(refund: RefundRow): RefundInCents {
  return {
    refundId: refund.refund_id,
    kind: refund.kind,
    amountCent: refund.amount_cent,
    status: refund.state === 'held' || refund.state === 'due' ? 'pending' : refund.state,
    ...(refund.state === 'failed' && refund.in_doubt === 1 && { inDoubt: true as const }),
    ...(refund.line_ids !== null && { itemLineIds: JSON.parse(refund.line_ids) as string[] }),
    createdAt: refund.created_ms,
    ...definedFields({ completedAt: refund.state === 'done' ? refund.finished_ms : null }),
  }
}

/** For the API form: EUR and ISO 8601. */
export function toRefundInEuros(refund: RefundRow): Purchase['refunds'][number] {
  const { amountCent, createdAt, completedAt, ...shown } = toRefundInCents(refund)
  return {
    ...shown,
    amount: eurosOf(amountCent),
    createdAt: iso(createdAt),
    ...(completedAt !== undefined && { completedAt: iso(completedAt) }),
  }
}
