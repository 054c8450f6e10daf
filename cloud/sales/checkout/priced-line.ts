import type { UnitData } from '../../shop/catalogue/unit-data.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import type { Deposit } from '../../shop/purchases/deposit.ts'
import type { PriceOrigin, PriceReason } from '../../shop/purchases/schema.ts'
import type { WeighedLine } from './weighed-line.ts'

/**
 * Priced line of a basket with the items that it names (ADR 0008). A line with a product (from `ean`, `productId` or
 * its items) has a price of the catalogue, an offer or a scale's label. A line with items without a product has the
 * registered price of these items. Any other line has the price that the client sent. A line with `priceReason` has the
 * price that the till sent.
 */
export interface PricedLine {
  name: string
  priceCent: number
  /** Price of the store, if a till set another price; else null. */
  listPriceCent: number | null
  priceReason: PriceReason | null
  quantity: number
  vat: 7 | 19
  ean: string | null
  productId: string | null
  category: string | null
  brand: string | null
  serialNumber: string | null
  priceOrigin: PriceOrigin
  /** True if the units of the line carry tags in stores that use tags. */
  tagged: boolean
  /** True if staff must check the buyer's age. */
  requiresHumanVerification: boolean
  /** Deposit for one piece. */
  deposit?: Deposit | undefined
  /** Set if a scale priced the goods. */
  weighed?: WeighedLine | undefined
  items: ProtectedItemRow[]
  /** What the line states or its items share. */
  unit: UnitData
}
