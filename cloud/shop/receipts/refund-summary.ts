import type { TransactionData } from '../purchases/schema.ts'

/**
 * What happened to a purchase after its receipt was issued. Refund data that is shown beside the receipt, because the
 * receipt never changes.
 */
export interface RefundSummary {
  isCancelled: boolean
  /** True if the buyer still owns at least one piece. */
  hasGoods: boolean
  /** Number of returned pieces of a line. */
  returnedOf(item: TransactionData['items'][number]): number
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
  const returned = new Map<string, number>()
  for (const { itemLineId, quantity } of effective.flatMap((refund) => refund.lines ?? []))
    returned.set(itemLineId, quantity + (returned.get(itemLineId) ?? 0))
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
    hasGoods:
      !isCancelled && items.some((item) => item.priceUnit >= 0 && (returned.get(item.itemLineId) ?? 0) < item.quantity),
    returnedOf: ({ itemLineId, quantity }) => (isCancelled ? quantity : (returned.get(itemLineId) ?? 0)),
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

function isRetryOf(later: Refund, { kind, amountCent, lines }: Refund): boolean {
  return later.kind === kind && later.amountCent === amountCent && JSON.stringify(later.lines) === JSON.stringify(lines)
}

function sum(refunds: readonly Refund[]): number {
  return refunds.reduce((cents, refund) => cents + refund.amountCent, 0)
}
