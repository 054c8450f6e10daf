import type { TransactionData } from '../purchases/schema.ts'

/** What has become of a receipt's purchase since: stands beside what was sold, and changes nothing of it. */
export interface RefundSummary {
  isCancelled: boolean
  /** Whether anything of it is still the buyer's. */
  hasGoods: boolean
  isReturned(itemLineId: string): boolean
  refundedCent: number
  remainingCent: number
  /** On its way; null where only that is known. */
  pendingCent: number | null
  failedCent: number
}

/** What buyer and staff should see beside a receipt. */
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
  // What was tried again since is told of once, as it ended.
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
    // What went back in another way is not missing any more.
    failedCent: Math.min(sum(failed), Math.max(0, totalCent - refundedCent - pendingCent)),
  }
}

type Refund = TransactionData['refunds'][number]

/** Those of one moment stand in any order: then one that has not failed is the later one. */
function isLater(other: Refund, refund: Refund, isBehind: boolean): boolean {
  return other.status === 'failed' ? isBehind : other.createdAt >= refund.createdAt
}

function isRetryOf(later: Refund, { kind, amountCent, itemLineIds }: Refund): boolean {
  return later.kind === kind && later.amountCent === amountCent && String(later.itemLineIds) === String(itemLineIds)
}

function sum(refunds: readonly Refund[]): number {
  return refunds.reduce((cents, refund) => cents + refund.amountCent, 0)
}
