import type { PricedProduct } from '../catalogue/schema.ts'
import type { PurchaseLineRow } from '../../platform/persistence/tables/purchases.ts'

/** Deposit on a container. A deposit is a separate line of a purchase and never tagged (ADR 0008). */
export interface Deposit {
  cent: number
  vat: 7 | 19
}

const NAME = 'Pfand'

/**
 * Deposit on one piece of a product; undefined if there is none. The VAT rate of the deposit is the product's rate,
 * unless the merchant sets another rate.
 */
export function depositOf({ deposit_cent, deposit_vat, vat }: PricedProduct): Deposit | undefined {
  return deposit_cent === null || deposit_cent === 0
    ? undefined
    : { cent: deposit_cent, vat: (deposit_vat ?? vat) as 7 | 19 }
}

/** Builds the deposit line that follows the line of the goods. */
export function depositLine(
  goods: PurchaseLineRow,
  deposit: Deposit,
  made: { lineId: string; lineNo: number },
): PurchaseLineRow {
  return {
    ...goods,
    line_id: made.lineId,
    line_no: made.lineNo,
    name: NAME,
    ean: null,
    product_id: null,
    price_cent: deposit.cent,
    list_price_cent: null,
    price_reason: null,
    vat: deposit.vat,
    brand: null,
    serial_number: null,
    tagged: 0,
    deposit_of: goods.line_id,
    barcode: null,
    weight_grams: null,
    kg_price_cent: null,
    lot: null,
    expiry: null,
    serial: null,
  }
}
