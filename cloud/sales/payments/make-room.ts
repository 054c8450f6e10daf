import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { updateRefund } from '../../shop/purchases/refund-queries.ts'
import { countsAgainstTotal, DOUBT } from '../../shop/purchases/refunds.ts'

/**
 * True if money that the provider paid, without our refund id, may be this refund: it was sent, and its result is unknown.
 * One that staff denied needs its id: they may have refunded its amount again.
 */
export function mayBe({ state, attempts, in_doubt: inDoubt, provider_ref: ref, outside }: Row<'refund'>): boolean {
  if (outside !== null || ref !== null) return false
  return (state === 'due' && attempts > 0) || (state !== 'done' && inDoubt === DOUBT.open)
}

/**
 * Makes refunds that were not sent yet smaller by what the provider paid instead of them. Returns false if the payment
 * has too little left nevertheless. `all`: the refunds of the purchase.
 */
export async function makeRoom(
  call: Call,
  all: readonly Row<'refund'>[],
  payment: Row<'payment'>,
  amountCent: number,
): Promise<boolean> {
  const counted = all.filter((refund) => refund.kind !== 'late' && countsAgainstTotal(refund))
  const leftCent = counted.reduce((left, refund) => left - refund.amount_cent, payment.amount_cent)
  const unsent = all.filter(
    (refund) =>
      refund.payment_id === payment.payment_id &&
      ['held', 'due'].includes(refund.state) &&
      refund.attempts === 0 &&
      !mayBe(refund),
  )
  const spare = unsent.reduce((sum, refund) => sum + refund.amount_cent, 0)
  let missing = Math.max(0, amountCent - leftCent)
  if (missing > spare) return false
  for (const refund of unsent) {
    const less = Math.min(missing, refund.amount_cent)
    if (less > 0) await updateRefund(call.db, refund, { amount_cent: refund.amount_cent - less })
    missing -= less
  }
  return true
}
