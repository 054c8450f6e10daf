import { countRefund, taxesOf, unitsOf, type CountedRefund } from '../analytics/count-purchases.ts'
import { shareRefund, sharesLeft } from '../analytics/refund-shares.ts'
import { adjustEarnings } from '../loyalty/earn-automatically.ts'
import type { Call } from '../operations/operation.ts'
import type { RefundRow } from '../persistence/tables/payments.ts'
import type { PurchaseLineRow, PurchaseRow } from '../persistence/tables/purchases.ts'
import { readLines } from '../purchases/queries.ts'
import { refundsOf, updateRefund } from '../purchases/refund-queries.ts'
import { countsAgainstTotal, unrefundedCent } from '../purchases/refunds.ts'

/**
 * Updates the reports and the customer's loyalty points after a refund completed. Ignores refunds of late payments,
 * because such payments never belonged to the purchase.
 */
export async function bookRefund(call: Call, purchase: PurchaseRow, refund: RefundRow): Promise<void> {
  if (refund.kind === 'late' || refund.counted !== null) return
  const counted = await figuresOf(call, purchase, refund)
  await updateRefund(call.db, refund, { counted: JSON.stringify(counted) })
  await countRefund(call, purchase, counted, 1)
  await adjustPoints(call, purchase)
}

/** Reverses `bookRefund` for a refund that failed after it was completed. */
export async function unbookRefund(call: Call, purchase: PurchaseRow, refund: RefundRow): Promise<void> {
  if (refund.counted === null) return
  await updateRefund(call.db, refund, { counted: null })
  await countRefund(call, purchase, JSON.parse(refund.counted) as CountedRefund, -1)
  await adjustPoints(call, purchase)
}

async function figuresOf({ db }: Call, purchase: PurchaseRow, refund: RefundRow): Promise<CountedRefund> {
  const lines = await readLines(db, purchase.purchase_id)
  const refunds = await refundsOf(db, purchase.purchase_id)
  const before = refunds.flatMap((row) => (row.counted === null ? [] : [JSON.parse(row.counted) as CountedRefund]))
  const left = sharesLeft(
    taxesOf(lines),
    before.flatMap((counted) => counted.shares),
  )
  const own = linesOfRefund(lines, refund, refunds)
  const uncounted = own.filter((line) => !before.some((counted) => counted.lineIds.includes(line.line_id)))
  const shares = shareRefund(left, taxesOf(refund.kind === 'whole' ? uncounted : own), refund.amount_cent)
  // The reports subtract the purchase once, even if several refunds repay the rest.
  const isWhole = refund.kind === 'whole' && !before.some((counted) => counted.isWhole)
  return { shares, units: unitsOf(uncounted), lineIds: uncounted.map((line) => line.line_id), isWhole }
}

/**
 * Lines that a refund covers. A whole refund covers all lines, except lines of pending partial refunds. Partial refunds
 * subtract their lines when they complete.
 */
function linesOfRefund(
  lines: readonly PurchaseLineRow[],
  refund: RefundRow,
  refunds: readonly RefundRow[],
): PurchaseLineRow[] {
  if (refund.kind !== 'whole') return lines.filter((line) => lineIdsOf(refund).includes(line.line_id))
  const underWay = new Set(
    refunds.filter((row) => row.kind === 'part' && row.counted === null && countsAgainstTotal(row)).flatMap(lineIdsOf),
  )
  return lines.filter((line) => !underWay.has(line.line_id))
}

function lineIdsOf(refund: RefundRow): string[] {
  return JSON.parse(refund.line_ids ?? '[]') as string[]
}

async function adjustPoints(call: Call, purchase: PurchaseRow): Promise<void> {
  const { tenant, purchase_id: transactionId, total_cent: totalCent } = purchase
  await adjustEarnings(call, {
    tenant,
    transactionId,
    totalCent,
    remainingCent: unrefundedCent(purchase, await refundsOf(call.db, transactionId)),
  })
}
