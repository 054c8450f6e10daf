import { countRefund, taxesOf, unitsOf, type CountedRefund } from '../../shop/analytics/count-purchases.ts'
import { shareRefund, sharesLeft, sharesOf } from '../../shop/analytics/refund-shares.ts'
import { adjustEarnings } from '../../shop/loyalty/earn-automatically.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { RefundRow } from '../../platform/persistence/tables/payments.ts'
import type { PurchaseLineRow, PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { paidByLine } from '../../shop/purchases/line-value.ts'
import { amountsOfPieces, piecesOf, sumPieces, type Pieces } from '../../shop/purchases/pieces.ts'
import { readLines } from '../../shop/purchases/queries.ts'
import { refundsOf, updateRefund } from '../../shop/purchases/refund-queries.ts'
import { countsAgainstTotal, unrefundedCent } from '../../shop/purchases/refunds.ts'

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
  const gone = sumPieces(before.flatMap((counted) => counted.pieces))
  const pieces = refund.kind === 'whole' ? restOf(lines, gone, refunds) : piecesOf(refund)
  const own = sharesOf(amountsOfPieces(pieces, lines, paidByLine(lines), gone))
  const shares = shareRefund(left, own, refund.amount_cent)
  // The reports subtract the purchase once, even if several refunds repay the rest.
  const isWhole = refund.kind === 'whole' && !before.some((counted) => counted.isWhole)
  const back = sumPieces(pieces)
  return { shares, units: unitsOf(lines, (line) => back.get(line.line_id)?.quantity ?? 0), pieces, isWhole }
}

/**
 * Pieces of a whole refund: all that no counted refund returned, except those of pending partial refunds. Partial
 * refunds subtract their pieces when they complete.
 */
function restOf(
  lines: readonly PurchaseLineRow[],
  gone: ReadonlyMap<string, Pieces>,
  refunds: readonly RefundRow[],
): Pieces[] {
  const underWay = sumPieces(
    refunds.filter((row) => row.kind === 'part' && row.counted === null && countsAgainstTotal(row)).flatMap(piecesOf),
  )
  return lines.flatMap(({ line_id: itemLineId, quantity }) => {
    const left = quantity - (gone.get(itemLineId)?.quantity ?? 0) - (underWay.get(itemLineId)?.quantity ?? 0)
    return left > 0 ? [{ itemLineId, quantity: left, unitNos: [] }] : []
  })
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
