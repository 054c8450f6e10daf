import { paidByLine, prorate } from '../purchases/line-value.ts'
import { amountsOfPieces, piecesOf, sumPieces, type Pieces } from '../purchases/pieces.ts'
import { isRefunded } from '../purchases/present-refunds.ts'
import type { RefundRow } from '../persistence/tables/payments.ts'
import type { PurchaseLineRow } from '../persistence/tables/purchases.ts'
import type { CountedRefund } from './count-purchases.ts'
import { sharesOf, shareRefund } from './refund-shares.ts'

type Line = Pick<PurchaseLineRow, 'line_id' | 'price_cent' | 'quantity' | 'vat'>

/**
 * Distributes refunds over lines, cents. Each refund is split by VAT rate, in the same way as in the closings. Each
 * part goes first to the pieces that the refund names. The rest goes to the other goods with the same VAT rate, in
 * proportion to their remaining amounts.
 *
 * The shares add up to the refunded amount of the purchase, and per VAT rate to the amounts in the closings.
 */
export function refundedByLine(lines: readonly Line[], refunds: readonly RefundRow[]): Map<string, number> {
  const gone = new Map(lines.map((line) => [line.line_id, 0]))
  const paid = paidByLine(lines)
  const leftOf = (line: Line) => (paid.get(line.line_id) ?? 0) - (gone.get(line.line_id) ?? 0)
  /** Takes an amount from lines, in proportion to what is left of them, and at most `limits` of each. */
  const take = (cent: number, from: readonly Line[], limits?: ReadonlyMap<string, number>): number => {
    const lefts = from.map((line) => Math.min(leftOf(line), limits?.get(line.line_id) ?? Infinity))
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
  const back: Pieces[] = []
  // Refunds that name pieces are distributed first.
  for (const refund of refunds
    .filter(isRefunded)
    .toSorted((a, b) => Number(a.lines === null) - Number(b.lines === null))) {
    const counted = refund.counted === null ? undefined : (JSON.parse(refund.counted) as CountedRefund)
    const pieces = counted?.pieces ?? piecesOf(refund)
    const named = new Map(
      amountsOfPieces(pieces, lines, paid, sumPieces(back)).map(({ lineId, cent }) => [lineId, cent]),
    )
    back.push(...pieces)
    for (const { rate, cent } of counted?.shares ?? sharesBy(refund, lines, leftOf, named)) {
      const ofRate = lines.filter((line) => line.vat === rate)
      take(
        take(
          cent,
          ofRate.filter((line) => named.has(line.line_id)),
          named,
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
  named: ReadonlyMap<string, number>,
) {
  const amounts = (some: readonly Line[]) => sharesOf(some.map((line) => ({ cent: leftOf(line), rate: line.vat })))
  const own = lines.map((line) => ({ cent: named.get(line.line_id) ?? 0, rate: line.vat }))
  return shareRefund(amounts(lines), sharesOf(own), refund.amount_cent)
}
