import { isRefunded } from '../purchases/present-refunds.ts'
import type { RefundRow } from '../persistence/tables/payments.ts'
import type { PurchaseLineRow } from '../persistence/tables/purchases.ts'
import type { CountedRefund } from './count-purchases.ts'
import { prorate, sharesOf, shareRefund } from './refund-shares.ts'

type Line = Pick<PurchaseLineRow, 'line_id' | 'price_cent' | 'quantity' | 'vat'>

/**
 * Distributes refunds over lines, cents. Each refund is split by VAT rate, in the same way as in the closings. Each
 * part goes first to the lines that the refund names. The rest goes to the other lines with the same VAT rate, in
 * proportion to their remaining amounts.
 *
 * The shares add up to the refunded amount of the purchase, and per VAT rate to the amounts in the closings.
 */
export function refundedByLine(lines: readonly Line[], refunds: readonly RefundRow[]): Map<string, number> {
  const gone = new Map(lines.map((line) => [line.line_id, 0]))
  const leftOf = (line: Line) => line.price_cent * line.quantity - (gone.get(line.line_id) ?? 0)
  const take = (cent: number, from: readonly Line[]): number => {
    const lefts = from.map(leftOf)
    const taken = Math.min(
      cent,
      lefts.reduce((sum, each) => sum + each, 0),
    )
    for (const [i, part] of prorate(taken, lefts).entries()) {
      const line = from[i]
      if (line) gone.set(line.line_id, (gone.get(line.line_id) ?? 0) + part)
    }
    return cent - taken
  }
  // Refunds that name lines are distributed first.
  for (const refund of refunds
    .filter(isRefunded)
    .toSorted((a, b) => Number(a.line_ids === null) - Number(b.line_ids === null))) {
    const counted = refund.counted === null ? undefined : (JSON.parse(refund.counted) as CountedRefund)
    const named = new Set([...(JSON.parse(refund.line_ids ?? '[]') as string[]), ...(counted?.lineIds ?? [])])
    for (const { rate, cent } of counted?.shares ?? sharesBy(refund, lines, leftOf, named)) {
      const ofRate = lines.filter((line) => line.vat === rate)
      take(
        take(
          cent,
          ofRate.filter((line) => named.has(line.line_id)),
        ),
        ofRate,
      )
    }
  }
  return gone
}

/** Splits a refund by VAT rate, with the same calculation as the closings. */
function sharesBy(
  refund: RefundRow,
  lines: readonly Line[],
  leftOf: (line: Line) => number,
  named: ReadonlySet<string>,
) {
  const amounts = (some: readonly Line[]) => sharesOf(some.map((line) => ({ cent: leftOf(line), rate: line.vat })))
  return shareRefund(amounts(lines), amounts(lines.filter((line) => named.has(line.line_id))), refund.amount_cent)
}
