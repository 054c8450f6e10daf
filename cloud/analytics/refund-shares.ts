import { vatBreakdown, type GrossAmount } from '../purchases/vat.ts'

/** What of one VAT rate is sold, or goes back: gross and the tax in it, cents. */
export interface TaxShare {
  rate: number
  cent: number
  tax: number
}

/** What lines come to by rate, as on their receipt. */
export function sharesOf(amounts: readonly GrossAmount[]): TaxShare[] {
  return Object.entries(vatBreakdown(amounts)).map(([rate, { net, tax }]) => ({
    rate: Number(rate),
    cent: net + tax,
    tax,
  }))
}

/** What is left of these after others went back. */
export function sharesLeft(sold: readonly TaxShare[], gone: readonly TaxShare[]): TaxShare[] {
  return sold.map(({ rate, cent, tax }) => {
    const back = gone.filter((share) => share.rate === rate)
    return { rate, cent: cent - sum(back.map((share) => share.cent)), tax: tax - sum(back.map((share) => share.tax)) }
  })
}

/**
 * An amount that goes back, by rate: first out of what the named lines cost (`own`), then out of the rest, in proportion. Never
 * more than is left of a rate. The tax that stays is the one of what stays, so that all refunds together are exactly the receipt.
 */
export function shareRefund(left: readonly TaxShare[], own: readonly TaxShare[], amountCent: number): TaxShare[] {
  const leftCents = left.map((share) => Math.max(0, share.cent))
  const ownCents = left.map((share, i) =>
    Math.min(leftCents[i] ?? 0, own.find((o) => o.rate === share.rate)?.cent ?? 0),
  )
  const first = prorate(Math.min(amountCent, sum(ownCents)), ownCents)
  const rest = leftCents.map((cent, i) => cent - (first[i] ?? 0))
  const second = prorate(Math.min(amountCent - sum(first), sum(rest)), rest)
  return left.flatMap(({ rate, cent, tax }, i) => {
    const back = (first[i] ?? 0) + (second[i] ?? 0)
    if (back === 0) return []
    const [rest] = sharesOf([{ cent: cent - back, rate }])
    return { rate, cent: back, tax: tax - (rest?.tax ?? 0) }
  })
}

/** Whole cents in proportion to these weights, none above its weight; the largest remainders get what rounding leaves. */
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
