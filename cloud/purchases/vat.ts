/** One line's share: gross cents and its rate in percent. */
export interface GrossAmount {
  cent: number
  rate: number
}

export type VatBreakdown = Record<string, { net: number; tax: number }>

/**
 * Prices are gross. Per rate, on the sum: tax = round half up(gross × rate / (100 + rate)), net = gross − tax
 * (decisions §5). Rounding line by line would give another total for most baskets.
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
