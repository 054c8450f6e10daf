import type { PricedProduct } from '../catalogue/schema.ts'
import type { PurchaseLineRow } from '../persistence/tables/purchases.ts'

/** What is paid for a bottle beside what is in it: a line of its own, which never carries a tag (decisions §8, §13). */
export interface Deposit {
  cent: number
  vat: 7 | 19
}

const NAME = 'Pfand'

/** The deposit on one piece of a product. It is taxed as the product is, unless the merchant says otherwise. */
export function depositOf({ deposit_cent, deposit_vat, vat }: PricedProduct): Deposit | undefined {
  return deposit_cent === null || deposit_cent === 0
    ? undefined
    : { cent: deposit_cent, vat: (deposit_vat ?? vat) as 7 | 19 }
}

/** The line of a deposit, behind the line of its goods. */
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
    vat: deposit.vat,
    brand: null,
    serial_number: null,
    tagged: 0,
    deposit_of: goods.line_id,
    barcode: null,
    weight_grams: null,
    kg_price_cent: null,
  }
}

/** The lines of the deposits on these lines. */
export function depositsOn(lineIds: readonly string[], lines: readonly PurchaseLineRow[]): string[] {
  const named = new Set(lineIds)
  return lines.filter((line) => line.deposit_of !== null && named.has(line.deposit_of)).map((line) => line.line_id)
}
