import { labelCent, readLabel, type Label } from '../../../policy/gs1/in-store-code.ts'
import { layoutsOf } from '../../shop/catalogue/scanned-product.ts'
import type { PricedProduct } from '../../shop/catalogue/schema.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { CheckoutLine } from '../../shop/purchases/schema.ts'

/** Data of a scale's label on a line. */
export interface WeighedLine {
  label: Label
  /** Price of a kilogram, cents; null if the label contains the price. */
  kgPriceCent: number | null
}

/**
 * Reads the scale's label of a line. Returns undefined if no scale priced the goods. Throws 400 if the label was
 * misread or is missing. Also throws 400 if the line names tags, because weighed goods never carry tags (ADR sales).
 */
export function weighedLine(
  store: Row<'store'>,
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
    throw invalid(`${path}.ean`, 'is a misread scale label: a check digit is wrong; scan it again', 'label_misread')
  if (line.tagIds ?? line.epcs ?? line.tagUids)
    throw invalid(
      path,
      'is sold by weight, and weighed goods carry no tags: remove the tags from the line',
      'weighed_item',
    )
  return { label: own, kgPriceCent: own.kind === 'weight' ? product.price_cent : null }
}

/** Label in the EAN of the weighed product; undefined if this EAN is not a label with value 0. */
function baseOf(store: Row<'store'>, product: PricedProduct): Label | undefined {
  const label = readLabel(product.ean, layoutsOf(store))
  return label?.value === 0 && label.ean === product.ean ? label : undefined
}

/** Price of a weighed line, cents. */
export function weighedCent({ label, kgPriceCent }: WeighedLine): number {
  return labelCent(label, kgPriceCent ?? 0)
}
