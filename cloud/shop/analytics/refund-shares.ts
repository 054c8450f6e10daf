import { prorate } from '../purchases/line-value.ts'
import { vatBreakdown, type GrossAmount } from '../purchases/vat.ts'

/** Gross amount of one VAT rate and the tax in it, cents. */
export interface TaxShare {
  rate: number
  cent: number
  tax: number
}

/** Sums lines by rate, as on the receipt. */
export function sharesOf(amounts: readonly GrossAmount[]): TaxShare[] {
  return Object.entries(vatBreakdown(amounts)).map(([rate, { net, tax }]) => ({
    rate: Number(rate),
    cent: net + tax,
    tax,
  }))
}

/** Amounts by VAT rate that remain after refunds. */
export function sharesLeft(sold: readonly TaxShare[], gone: readonly TaxShare[]): TaxShare[] {
  return sold.map(({ rate, cent, tax }) => {
    const back = gone.filter((share) => share.rate === rate)
    return { rate, cent: cent - sum(back.map((share) => share.cent)), tax: tax - sum(back.map((share) => share.tax)) }
  })
}

/**
 * Splits a refund by VAT rate: first over the named lines (`own`), then over the rest in proportion. The share of a
 * rate is at most its remaining amount. The tax of a share is the tax before the refund minus the tax of the remaining
 * amount. So the taxes of all refunds together equal the tax on the receipt.
 */
export function shareRefund(left: readonly TaxShare[], own: readonly TaxShare[], amountCent: number): TaxShare[] {
  const leftCents = left.map((share) => Math.max(0, share.cent))
  const ownCents = left.map((share, i) =>
    Math.max(0, Math.min(leftCents[i] ?? 0, own.find((o) => o.rate === share.rate)?.cent ?? 0)),
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

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
