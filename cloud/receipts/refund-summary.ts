import type { TransactionData } from '../purchases/schema.ts'

/**
 * What happened to a purchase after its receipt was issued. Refund data that is shown beside the receipt, because the
 * receipt never changes.
 */
export interface RefundSummary {
  isCancelled: boolean
  /** True if the buyer still owns at least one line. */
  hasGoods: boolean
  isReturned(itemLineId: string): boolean
  refundedCent: number
  remainingCent: number
  /** Pending refunds, cents; null if a refund is pending but its amount is unknown. */
  pendingCent: number | null
  failedCent: number
}

/** Summarises cancellation, returns and refunds for buyer and staff. */
export function refundSummaryOf({
  status,
  refundStatus,
  refunds,
  items,
  totalCent,
  refundedCent,
}: TransactionData): RefundSummary {
  const own = refunds.filter((refund) => refund.kind !== 'late')
  const effective = own.filter((refund) => refund.status !== 'failed')
  const returned = new Set(effective.flatMap((refund) => refund.itemLineIds ?? []))
  const isCancelled = status === 'CANCELLED'
  const pendingCent = sum(own.filter((refund) => refund.status === 'pending'))
  // A retried refund is counted once, by its last result.
  const failed = own.filter(
    (refund, i) =>
      refund.status === 'failed' &&
      !own.some((other, at) => isLater(other, refund, at > i) && isRetryOf(other, refund)),
  )
  return {
    isCancelled,
    hasGoods: !isCancelled && items.some((item) => !returned.has(item.itemLineId)),
    isReturned: (itemLineId) => isCancelled || returned.has(itemLineId),
    refundedCent,
    remainingCent: totalCent - refundedCent,
    pendingCent: pendingCent === 0 && isCancelled && refundStatus === 'pending' ? null : pendingCent,
    // Reduced by amounts that other refunds have repaid meanwhile.
    failedCent: Math.min(sum(failed), Math.max(0, totalCent - refundedCent - pendingCent)),
  }
}

type Refund = TransactionData['refunds'][number]

/**
 * The order of refunds with the same timestamp is undefined. Therefore a refund that has not failed is treated as the
 * later one.
 */
function isLater(other: Refund, refund: Refund, isBehind: boolean): boolean {
  return other.status === 'failed' ? isBehind : other.createdAt >= refund.createdAt
}

function isRetryOf(later: Refund, { kind, amountCent, itemLineIds }: Refund): boolean {
  return later.kind === kind && later.amountCent === amountCent && String(later.itemLineIds) === String(itemLineIds)
}

function sum(refunds: readonly Refund[]): number {
  return refunds.reduce((cents, refund) => cents + refund.amountCent, 0)
}
