import { ADJUSTMENT_EVENTS } from '../../shop/loyalty/earn-automatically.ts'
import { definedFields } from '../../platform/operations/fields.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { RefundRow } from '../../platform/persistence/tables/payments.ts'
import { toReturnedLines } from '../../shop/purchases/pieces.ts'

/** Events of refunds that complete, or fail after completion. */
export const REFUND_EVENTS = ['payment.refunded', ...ADJUSTMENT_EVENTS] as const

/** Emits `payment.refunded`. */
export function emitRefunded(call: Call, refund: RefundRow, provider: string | undefined): void {
  call.emit({
    type: 'payment.refunded',
    storeId: refund.store_id,
    data: definedFields({
      transactionId: refund.purchase_id,
      storeId: refund.store_id,
      refundId: refund.refund_id,
      provider,
      amountCent: refund.amount_cent,
      currency: refund.currency,
      lines: refund.lines === null ? undefined : toReturnedLines(refund),
    }),
  })
}
