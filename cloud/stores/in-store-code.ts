import { z } from 'zod'
import { checkDigit, hasValidCheckDigit } from '../../policy/gs1/gtin.ts'
import { priceCheckDigit } from '../../policy/gs1/price-check-digit.ts'

/**
 *   28 1027 5 00502 4      layout 28IIIIVPPPPPC
 *   │  │    │ │     └ check digit of the EAN-13
 *   │  │    │ └ price in cents (P) or weight in grams (W)
 *   │  │    └ price check digit of those (V), if the layout has one
 *   │  └ the store's own number of the item (I)
 *   └ prefix 20–29: restricted circulation, no meaning outside the company
 *
 * What a scale prints on the goods that it weighed (GS1 General Specifications §2.1.14). The product behind it is registered with
 * the same code at nothing: value and its check digit zero, the last digit that of the EAN-13. 2810270000000 for the one above.
 */
const SHAPE = /^(2\d{1,3})(I{1,8})(V?)(P{4,6}|W{4,6})C$/

/** Layouts of one store. */
const LAYOUTS_LIMIT = 20

/** How the codes of a store's scales are made up; the first that fits counts. */
export const InStoreCodes = z
  .array(
    z
      .string()
      .length(13)
      .regex(
        SHAPE,
        'must read like 28IIIIVPPPPPC: a prefix from 20, I for the item, V for a price check digit, P for cents or W for grams, C for the check digit',
      )
      .refine(
        (layout) => !layout.includes('V') || /[^PW](?:P{4,5}|W{4,5})C$/.test(layout),
        'a price check digit belongs to four or five digits',
      ),
  )
  .max(LAYOUTS_LIMIT)
  .refine((layouts) => new Set(layouts.map(prefixOf)).size === layouts.length, 'must not give one prefix two layouts')
  .describe(
    'Layouts of the EAN-13 codes that the store’s scales print, such as `28IIIIVPPPPPC` (price) and `29IIIIVWWWWWC` (weight). An empty list: none.',
  )

/** As German shops have it, where the store says nothing: 28 holds a price, 29 a weight, both with a price check digit. */
export const DEFAULT_IN_STORE_CODES: readonly string[] = ['28IIIIVPPPPPC', '29IIIIVWWWWWC']

/** What a label says. */
export interface Label {
  /** As it was scanned. */
  barcode: string
  /** The EAN under which the product is registered. */
  ean: string
  kind: 'price' | 'weight'
  /** Cents or grams; 0 stands for the product itself and no label. */
  value: number
  /** Whether both check digits fit; what does not was misread, and must not cost anybody anything. */
  isSound: boolean
}

function prefixOf(layout: string): string {
  return /^\d*/.exec(layout)?.[0] ?? ''
}

/** The label behind an EAN-13; undefined where no layout of the store fits, so that it is an ordinary code. */
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

/** What the goods behind a label cost, cents: its price, or its weight at a price per kg, half up to a cent. */
export function labelCent({ kind, value }: Label, kgPriceCent: number): number {
  return kind === 'price' ? value : Math.floor((value * kgPriceCent + 500) / 1_000)
}
