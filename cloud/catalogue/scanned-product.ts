import type { Db } from '../persistence/database.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { DEFAULT_IN_STORE_CODES, readLabel, type Label } from '../stores/in-store-code.ts'
import { findProduct } from './queries.ts'
import type { PricedProduct } from './schema.ts'

/** Layouts of the in-store codes that the store's scales print. */
export function layoutsOf({ in_store_codes }: Pick<StoreRow, 'in_store_codes'>): readonly string[] {
  return in_store_codes === null ? DEFAULT_IN_STORE_CODES : (JSON.parse(in_store_codes) as string[])
}

/** Product of a barcode. `label` is set if a scale printed the barcode. */
export interface Scanned {
  product: PricedProduct
  label?: Label
}

/**
 * Finds the product that a store sells under a barcode or a scale's label. An exact EAN match wins over a label,
 * because shops may use the same number range for ordinary goods.
 */
export async function scannedProduct(db: Db, store: StoreRow, barcode: string): Promise<Scanned | undefined> {
  const product = await findProduct(db, store.tenant, { ean: barcode }, store.store_id)
  const label = readLabel(barcode, layoutsOf(store))
  if (product) return label?.value === 0 && label.ean === barcode ? { product, label } : { product }
  if (!label || label.value === 0) return undefined
  const labelled = await findProduct(db, store.tenant, { ean: label.ean }, store.store_id)
  return labelled && { product: labelled, label }
}
