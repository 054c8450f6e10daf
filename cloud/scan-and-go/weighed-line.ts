import { labelCent, readLabel, type Label } from '../stores/in-store-code.ts'
import { layoutsOf } from '../catalogue/scanned-product.ts'
import type { PricedProduct } from '../catalogue/schema.ts'
import { invalid } from '../foundation/failure.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import type { CheckoutLine } from '../purchases/schema.ts'

/** Goods that a scale priced: what stands on their label. */
export interface WeighedLine {
  label: Label
  /** What a kilogram costs, cents; null where the label holds the price itself. */
  kgPriceCent: number | null
}

/**
 * What the label on a line's goods says; undefined for goods that no scale priced. Throws 400 for a label that was misread, for
 * weighed goods named without their label, whose price nobody knows, and for tags on them: they never carry any (decisions §8).
 */
export function weighedLine(
  store: StoreRow,
  product: PricedProduct,
  label: Label | undefined,
  line: CheckoutLine,
  path: string,
): WeighedLine | undefined {
  const own = label ?? baseOf(store, product)
  if (!own) return undefined
  if (own.value === 0)
    throw invalid(`${path}.ean`, 'is sold by weight: send the code that the scale printed', 'label_missing')
  if (!own.isSound)
    throw invalid(`${path}.ean`, 'is a label of a scale that was misread: its check digits do not fit', 'label_misread')
  if (line.tagIds ?? line.epcs ?? line.tagUids)
    throw invalid(path, 'is weighed, and weighed goods carry no tags', 'weighed_item')
  return { label: own, kgPriceCent: own.kind === 'weight' ? product.price_cent : null }
}

/** The label at nothing under which weighed goods are registered. */
function baseOf(store: StoreRow, product: PricedProduct): Label | undefined {
  const label = readLabel(product.ean, layoutsOf(store))
  return label?.value === 0 && label.ean === product.ean ? label : undefined
}

/** What a weighed line costs at a price per kg, cents. */
export function weighedCent({ label, kgPriceCent }: WeighedLine): number {
  return labelCent(label, kgPriceCent ?? 0)
}
