import type { Db } from '../persistence/database.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { DEFAULT_IN_STORE_CODES, readLabel, type Label } from '../stores/in-store-code.ts'
import { findProduct } from './queries.ts'
import type { PricedProduct } from './schema.ts'

/** The layouts that a store's scales print. */
export function layoutsOf({ in_store_codes }: Pick<StoreRow, 'in_store_codes'>): readonly string[] {
  return in_store_codes === null ? DEFAULT_IN_STORE_CODES : (JSON.parse(in_store_codes) as string[])
}

/** What a barcode turns out to be: a product, and where a scale printed it what its label says. */
export interface Scanned {
  product: PricedProduct
  label?: Label
}

/**
 * The product that a store sells under a barcode, or whose scale's label it is. A product with that very EAN comes first: a shop
 * may number ordinary goods in the same range.
 */
export async function scannedProduct(db: Db, store: StoreRow, barcode: string): Promise<Scanned | undefined> {
  const product = await findProduct(db, store.tenant, { ean: barcode }, store.store_id)
  const label = readLabel(barcode, layoutsOf(store))
  if (product) return label?.value === 0 && label.ean === barcode ? { product, label } : { product }
  if (!label || label.value === 0) return undefined
  const labelled = await findProduct(db, store.tenant, { ean: label.ean }, store.store_id)
  return labelled && { product: labelled, label }
}
