import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { DEFAULT_IN_STORE_CODES, readLabel, type Label } from '../../../policy/gs1/in-store-code.ts'
import { comparableCode } from './ean.ts'
import { findProduct, storeProductsWith, type FindByEan } from './queries.ts'
import type { PricedProduct } from './schema.ts'

/** Layouts of the in-store codes that the store's scales print. */
export function layoutsOf({ in_store_codes }: Pick<Row<'store'>, 'in_store_codes'>): string[] {
  return in_store_codes === null ? [...DEFAULT_IN_STORE_CODES] : (JSON.parse(in_store_codes) as string[])
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
export function scannedProduct(db: Db, store: Row<'store'>, barcode: string): Promise<Scanned | undefined> {
  return scannedIn(store, barcode, (ean) => findProduct(db, store.tenant, { ean }, store.store_id))
}

/**
 * Reads the products that a store sells under these barcodes and labels with one query. Returns a function like
 * `scannedProduct`.
 */
export async function scannedProducts(
  db: Db,
  store: Row<'store'>,
  barcodes: readonly string[],
): Promise<(barcode: string) => Promise<Scanned | undefined>> {
  const layouts = layoutsOf(store)
  const labelled = barcodes.flatMap((barcode) => readLabel(comparableCode(barcode), layouts)?.ean ?? [])
  const find = await storeProductsWith(db, store, [...barcodes, ...labelled])
  return (barcode) => scannedIn(store, barcode, find)
}

async function scannedIn(store: Row<'store'>, barcode: string, find: FindByEan): Promise<Scanned | undefined> {
  const product = await find(barcode)
  const ean = comparableCode(barcode)
  const label = readLabel(ean, layoutsOf(store))
  if (product) return label?.value === 0 && label.ean === ean ? { product, label } : { product }
  if (!label || label.value === 0) return undefined
  const labelled = await find(label.ean)
  return labelled && { product: labelled, label }
}
