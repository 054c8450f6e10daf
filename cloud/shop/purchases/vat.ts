/** Gross cents of a line and its VAT rate in percent. */
export interface GrossAmount {
  cent: number
  rate: number
}

export type VatBreakdown = Record<string, { net: number; tax: number }>

/**
 * Calculates VAT per rate from gross sums: tax = gross × rate / (100 + rate), rounded half up (ADR 0005). Rounding each
 * line would change the total of most baskets.
 */
export function vatBreakdown(amounts: readonly GrossAmount[]): VatBreakdown {
  const gross = new Map<number, number>()
  for (const { cent, rate } of amounts) gross.set(rate, (gross.get(rate) ?? 0) + cent)
  const rates = [...gross].sort(([a], [b]) => a - b)
  return Object.fromEntries(
    rates.map(([rate, cent]) => {
      const tax = Math.floor((2 * cent * rate + 100 + rate) / (2 * (100 + rate)))
      return [String(rate), { net: cent - tax, tax }]
    }),
  )
}
