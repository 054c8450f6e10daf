import { hasDecimals } from '../../policy/decimals.ts'
import { centsOf } from '../operations/fields.ts'

/** Percentages are counted in ten-thousandths of a percent: whole numbers, so that half a cent is exactly half. */
const PERCENT_DECIMALS = 4
const UNITS_PER_PERCENT = 10 ** PERCENT_DECIMALS
const WHOLE = 100 * UNITS_PER_PERCENT

/** Whether a percentage has no more decimals than are counted. */
export function isCountable(percent: number): boolean {
  return hasDecimals(percent, PERCENT_DECIMALS)
}

/** How a clone's price differs from the original's; `value` in percent, or in EUR. */
export interface PriceAdjustment {
  type: 'percentage' | 'fixed'
  value: number
}

/** The adjusted price in whole cents, half up, never below 0. */
export function adjustPrice(priceCent: number, { type, value }: PriceAdjustment): number {
  if (type === 'fixed') return Math.max(0, priceCent + centsOf(value))
  return halfUp(priceCent * (WHOLE + Math.round(value * UNITS_PER_PERCENT)), WHOLE)
}

/** What is left of a price (cents) after a discount in percent; half up to a cent. */
export function discountedPrice(oldPriceCent: number, percent: number): number {
  return adjustPrice(oldPriceCent, { type: 'percentage', value: -percent })
}

/** By how many whole percent a price is below the old one, half up; 0 where it is not below. */
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

/** Exact while 2 · a + b stays below 2^53: prices reach 1e8 cents, factors 1.1e7. */
function halfUp(a: number, b: number): number {
  return Math.floor((2 * a + b) / (2 * b))
}
