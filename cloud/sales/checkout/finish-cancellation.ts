import type { Call } from '../../platform/operations/operation.ts'
import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { isTest } from '../../shop/purchases/present.ts'
import { updatePurchase } from '../../shop/purchases/queries.ts'
import { refundsOf } from '../../shop/purchases/refund-queries.ts'
import { emitRefunded } from './emit-refunded.ts'
import { insertRefund, refundableCent } from '../../shop/purchases/refunds.ts'
import { bookRefund } from './book-refund.ts'

/**
 * Ends a cancellation that needs no refund by a provider: in the sandbox, or if nothing remains to refund. Inserts a
 * completed refund, possibly of 0 cents, so that the reports subtract the purchase.
 */
export async function finishCancellation(call: Call, purchase: PurchaseRow): Promise<PurchaseRow> {
  const amountCent = isTest(purchase.tenant)
    ? refundableCent(purchase, await refundsOf(call.db, purchase.purchase_id))
    : 0
  const refund = await insertRefund(call, {
    purchase,
    payment: null,
    kind: 'whole',
    amountCent,
    state: 'done',
    lines: null,
    reason: purchase.cancel_reason ?? undefined,
  })
  await bookRefund(call, purchase, refund)
  if (amountCent > 0) emitRefunded(call, refund, undefined)
  return updatePurchase(call.db, purchase, { refund_status: 'done' })
}
