import { z } from 'zod'
import { checkDigit, hasValidCheckDigit, priceCheckDigit } from './gtin.ts'

/**
 *   28 1027 5 00502 4 ──── layout 28IIIIVPPPPPC
 *   │  │    │ │     └ check digit of the EAN-13
 *   │  │    │ └ price in cents (P) or weight in grams (W)
 *   │  │    └ check digit of the price or weight (V), if the layout has one
 *   │  └ the store's own item number (I)
 *   └ prefix 20–29: restricted circulation, no meaning outside the company
 *
 * Codes that scales print on weighed goods (GS1 General Specifications §2.1.14). The product is registered under the
 * same code with value 0 and a new last check digit: 2810270000000 for the example.
 */
const SHAPE = /^(2\d{1,3})(I{1,8})(V?)(P{4,6}|W{4,6})C$/

/** Maximum number of layouts per store. */
const LAYOUTS_LIMIT = 20

/** Layouts of the codes of a store's scales. */
export const InStoreCodes = z
  .array(
    z
      .string()
      .length(13)
      .regex(
        SHAPE,
        'must look like 28IIIIVPPPPPC: a prefix from 20, I for the item, V for a price check digit, P for cents or ' +
          'W for grams, C for the check digit',
      )
      .refine(
        (layout) => !layout.includes('V') || /[^PW](?:P{4,5}|W{4,5})C$/.test(layout),
        'can have a price check digit only with four or five digits of price or weight',
      ),
  )
  .max(LAYOUTS_LIMIT)
  .refine(
    (layouts) => new Set(layouts.map(prefixOf)).size === layouts.length,
    'must not contain two layouts with the same prefix',
  )
  .describe(
    'Layouts of the EAN-13 codes that the store’s scales print, such as `28IIIIVPPPPPC` (price) and ' +
      '`29IIIIVWWWWWC` (weight). An empty list disables them.',
  )

/** Usual layouts in Germany: 28 contains a price, 29 a weight, both with a price check digit. */
export const DEFAULT_IN_STORE_CODES: readonly string[] = ['28IIIIVPPPPPC', '29IIIIVWWWWWC']

/** Content of a scale's label. */
export interface Label {
  /** The scanned code. */
  barcode: string
  /** EAN under which the product is registered. */
  ean: string
  kind: 'price' | 'weight'
  /** Cents or grams; 0 for the registered product itself. */
  value: number
  /** False if a check digit is wrong. A code with a wrong check digit was misread and must not be priced. */
  isSound: boolean
}

function prefixOf(layout: string): string {
  return /^\d*/.exec(layout)?.[0] ?? ''
}

/** Reads an EAN-13 as a label. Returns undefined if no layout of the store matches. */
export function readLabel(barcode: string, layouts: readonly string[]): Label | undefined {
  if (!/^2\d{12}$/.test(barcode)) return undefined
  const layout = layouts.find((each) => barcode.startsWith(prefixOf(each)))
  const [, prefix = '', item = '', check = '', value = ''] = (layout !== undefined && SHAPE.exec(layout)) || []
  if (value === '') return undefined
  const valueAt = prefix.length + item.length + check.length
  const digits = barcode.slice(valueAt, valueAt + value.length)
  const base = barcode.slice(0, prefix.length + item.length).padEnd(12, '0')
  const guard = check === '' ? undefined : Number(barcode[valueAt - 1])
  return {
    barcode,
    ean: `${base}${checkDigit(base)}`,
    kind: value.startsWith('P') ? 'price' : 'weight',
    value: Number(digits),
    isSound: hasValidCheckDigit(barcode) && (guard === undefined || guard === priceCheckDigit(digits)),
  }
}

/** Price of the labelled goods, cents: the printed price, or weight × price per kg rounded half up. */
export function labelCent({ kind, value }: Label, kgPriceCent: number): number {
  return kind === 'price' ? value : Math.floor((value * kgPriceCent + 500) / 1_000)
}
