import type { KnownCaller } from '../../platform/foundation/caller.ts'
import { Failure, invalid } from '../../platform/foundation/failure.ts'
import type { CheckoutLine } from '../../shop/purchases/schema.ts'
import type { PricedLine } from './priced-line.ts'

/** Prices that a till sets with `priceReason`, and coupons (ADR 0008). */

/** Only the merchant's own systems sell at another price than the store's (ADR 0008). */
export function assertMaySetPrices(lines: readonly CheckoutLine[], { kind }: KnownCaller): void {
  const n = lines.findIndex((line) => line.priceReason !== undefined)
  if (kind === 'secret' || n < 0) return
  throw new Failure('permission-denied', `items[${n}].priceReason: only secret keys can set the price of a line`, {
    reason: 'secret_keys_only',
  })
}

/** Replaces the price of the store by the price of the till, and keeps it as the list price. */
export function setPrice({ priceReason, priceUnit }: CheckoutLine, line: PricedLine | undefined): void {
  if (!line || priceReason === undefined || priceUnit === undefined) return
  line.listPriceCent = line.priceOrigin === 'client' ? null : line.priceCent
  line.priceCent = priceUnit
  line.priceReason = priceReason
  line.priceOrigin = 'client'
  // The label's price of a kilogram no longer explains the price of the line.
  if (line.weighed) line.weighed.kgPriceCent = null
}

/** Throws 400 if coupons exceed the goods of a VAT rate: the tax of this rate would be negative. */
export function assertNotNegative(lines: readonly PricedLine[]): void {
  for (const rate of [7, 19]) {
    const goods = lines.reduce((sum, line) => sum + (line.vat === rate ? line.priceCent * line.quantity : 0), 0)
    const deposits = lines.reduce(
      (sum, { deposit, quantity }) => sum + (deposit?.vat === rate ? deposit.cent * quantity : 0),
      0,
    )
    if (goods + deposits < 0)
      throw invalid('items', `the coupons exceed the goods with ${rate} % VAT: lower the coupons`, 'coupon_too_high')
  }
}

/** Throws 400 if the price of a line contradicts its other fields. */
export function assertPriceFields(line: CheckoutLine, path: string): void {
  const { priceUnit, priceReason, ean, productId, tagIds, epcs, tagUids, serialNumber, lot, expiry, serial } = line
  if (priceReason !== undefined && priceUnit === undefined)
    throw invalid(`${path}.priceUnit`, 'is required with priceReason', 'missing')
  if (priceUnit === undefined || priceUnit >= 0) return
  if (priceReason !== 'coupon') throw invalid(`${path}.priceUnit`, 'may be negative only with priceReason "coupon"')
  const goods = [ean, productId, tagIds, epcs, tagUids, serialNumber, lot, expiry, serial]
  if (goods.some((field) => field !== undefined))
    throw invalid(path, 'is a coupon and sells nothing: remove EAN, product and tags')
}
