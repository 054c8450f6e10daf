import { hasDecimals } from '../../../policy/decimals.ts'
import { centsOf } from '../../platform/operations/fields.ts'

/** Percentages are calculated in integer units of 0.0001 %, so that a result of exactly half a cent is rounded up. */
const PERCENT_DECIMALS = 4
const UNITS_PER_PERCENT = 10 ** PERCENT_DECIMALS
const WHOLE = 100 * UNITS_PER_PERCENT

/** True if the percentage has at most four decimals. */
export function isCountable(percent: number): boolean {
  return hasDecimals(percent, PERCENT_DECIMALS)
}

/** Price adjustment of a copied offer; `value` in percent or EUR. */
export interface PriceAdjustment {
  type: 'percentage' | 'fixed'
  value: number
}

/** Adjusted price in whole cents, rounded half up, at least 0. */
export function adjustPrice(priceCent: number, { type, value }: PriceAdjustment): number {
  if (type === 'fixed') return Math.max(0, priceCent + centsOf(value))
  return halfUp(priceCent * (WHOLE + Math.round(value * UNITS_PER_PERCENT)), WHOLE)
}

/** Price (cents) after a discount in percent, rounded half up. */
export function discountedPrice(oldPriceCent: number, percent: number): number {
  return adjustPrice(oldPriceCent, { type: 'percentage', value: -percent })
}

/** Discount in whole percent, rounded half up; 0 if the price is not below the old price. */
export function discountPercentOf({
  priceCent,
  oldPriceCent,
}: {
  priceCent: number
  oldPriceCent?: number | undefined
}): number {
  if (oldPriceCent === undefined || oldPriceCent <= priceCent) return 0
  return halfUp((oldPriceCent - priceCent) * 100, oldPriceCent)
}

/** Returns a / b, rounded half up. Exact while 2 · a + b is below 2^53: prices reach 1e8 cents, factors 1.1e7. */
function halfUp(a: number, b: number): number {
  return Math.floor((2 * a + b) / (2 * b))
}
