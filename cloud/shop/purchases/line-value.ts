import type { PurchaseLineRow } from '../../platform/persistence/tables/purchases.ts'
import type { GrossAmount } from './vat.ts'

/**
 * Price by which policies judge one unit of a line, cents: the higher of price and list price. A discount never makes
 * goods look cheap to a rule (ADR 0008).
 */
export function valueOf(line: Pick<PurchaseLineRow, 'price_cent' | 'list_price_cent'>): number {
  return Math.max(line.price_cent, line.list_price_cent ?? 0)
}

/** True for a line that lowers the total and sells nothing. */
export function isCoupon(line: Pick<PurchaseLineRow, 'price_cent'>): boolean {
  return line.price_cent < 0
}

/**
 * Amount paid for each line, cents. Coupons (negative amounts) lower the other lines of their VAT rate in proportion, and
 * are 0 themselves.
 */
export function afterCoupons(amounts: readonly GrossAmount[]): number[] {
  const paid = amounts.map(({ cent }) => Math.max(0, cent))
  for (const rate of new Set(amounts.flatMap((amount) => (amount.cent < 0 ? amount.rate : [])))) {
    const ofRate = amounts.flatMap((amount, i) => (amount.rate === rate ? i : []))
    const left = sum(ofRate.map((i) => amounts[i]?.cent ?? 0))
    const shares = prorate(
      left,
      ofRate.map((i) => paid[i] ?? 0),
    )
    for (const [n, i] of ofRate.entries()) paid[i] = shares[n] ?? 0
  }
  return paid
}

/** Amount paid for each line of a purchase after coupons, cents. */
export function paidByLine(
  lines: readonly Pick<PurchaseLineRow, 'line_id' | 'price_cent' | 'quantity' | 'vat'>[],
): Map<string, number> {
  const paid = afterCoupons(lines.map((line) => ({ cent: line.price_cent * line.quantity, rate: line.vat })))
  return new Map(lines.map((line, i) => [line.line_id, paid[i] ?? 0]))
}

/**
 * Splits whole cents in proportion to weights. A share is at most its weight. The largest remainders receive the cents
 * lost by rounding.
 */
export function prorate(cent: number, weights: readonly number[]): number[] {
  const total = sum(weights)
  if (total === 0) return weights.map(() => 0)
  const shares = weights.map((weight) => Math.floor((cent * weight) / total))
  const byRemainder = weights
    .map((weight, i) => ({ i, remainder: (cent * weight) % total }))
    .sort((a, b) => b.remainder - a.remainder || a.i - b.i)
  for (const { i } of byRemainder.slice(0, cent - sum(shares))) shares[i] = (shares[i] ?? 0) + 1
  return shares
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
