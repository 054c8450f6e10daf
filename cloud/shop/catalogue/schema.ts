import { z } from 'zod'
import { Euros, Id, VatRate, text, ProductCodeText } from '../../platform/operations/fields.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { Ean } from './ean.ts'
import { schemasOf } from './product-fields.ts'

const Flags = z.strictObject({
  requiresHumanVerification: z.boolean().describe('Staff must check the age of the buyer.'),
})

type Answers = ReturnType<typeof schemasOf<'answer'>>
const OPTIONAL_ANSWERS = Object.fromEntries(
  Object.entries(schemasOf('answer')).map(([name, schema]) => [name, schema.optional()]),
) as { [K in keyof Answers]: z.ZodOptional<Answers[K]> }

/** Product as the API returns it. */
export const Product = z.strictObject({
  productId: z.string(),
  ean: z.string(),
  name: z.string(),
  price: z.number().describe('EUR; the price of the store if the request names one.'),
  oldPrice: z.number().optional(),
  vat: VatRate,
  storeId: z.string().optional(),
  ...OPTIONAL_ANSWERS,
  media: z.strictObject({ snapshot: z.string() }).optional(),
  tagged: z.boolean().describe('True if its units carry a security tag in stores that use them.'),
  flags: Flags,
  fromPos: z.boolean().describe('True if a POS sync created it.'),
  posProductId: z.string().nullable().describe('Its id in the POS; null without a POS sync.'),
  nameLower: z.string(),
  brandLower: z.string().optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type Product = z.infer<typeof Product>

const Name = text(120).refine((name) => name.trim() !== '', 'must not be blank')

/** Fields that a request may omit, and that an update clears with null. */
const OPTIONAL_FIELDS = { oldPrice: Euros, ...schemasOf('request') }

type Fields = typeof OPTIONAL_FIELDS

function each<W>(wrap: (schema: z.ZodType) => unknown): W {
  return Object.fromEntries(Object.entries(OPTIONAL_FIELDS).map(([name, schema]) => [name, wrap(schema)])) as W
}

const WITH_DEFAULT = { tagged: z.boolean().describe('Default true.').optional(), flags: Flags.optional() }

/** Fields that a merchant sets. */
export const PRODUCT_FIELDS = {
  name: Name,
  price: Euros,
  vat: VatRate,
  ...each<{ [K in keyof Fields]: z.ZodOptional<Fields[K]> }>((schema) => schema.optional()),
  ...WITH_DEFAULT,
}

/** The same fields in an update. All are optional; null clears a field that a product may lack. */
export const PRODUCT_CHANGES = {
  name: Name.optional(),
  price: Euros.optional(),
  vat: VatRate.optional(),
  ...each<{ [K in keyof Fields]: z.ZodOptional<z.ZodNullable<Fields[K]>> }>((schema) => schema.nullable().optional()),
  ...WITH_DEFAULT,
}

/** EAN of a new product. A request may call it `ean` or `barcode`. */
export const BARCODE_FIELDS = { ean: Ean.optional(), barcode: Ean.describe('Another name of `ean`.').optional() }

/** Refuses an old price below the price, if a request states both. */
export function checkOldPrice(
  { price, oldPrice }: { price?: number | undefined; oldPrice?: number | null | undefined },
  context: z.core.$RefinementCtx,
): void {
  if (price !== undefined && typeof oldPrice === 'number' && oldPrice < price)
    context.addIssue({ code: 'custom', path: ['oldPrice'], message: 'must not be below price', input: oldPrice })
}

/** One row of a bulk import. */
export const ProductInput = z.strictObject({ ...BARCODE_FIELDS, ...PRODUCT_FIELDS }).superRefine(checkOldPrice)
export type ProductInput = z.output<typeof ProductInput>

export type ProductChanges = z.output<z.ZodObject<typeof PRODUCT_CHANGES>>

/**
 * Identifiers of a product in a request. If a request has several identifiers, all of them must identify the same
 * product.
 */
export const PRODUCT_NAMES = {
  productId: Id.optional(),
  id: Id.optional(),
  barcode: ProductCodeText.describe('Another name of `ean`.').optional(),
  ean: ProductCodeText.optional(),
}

/** Product row. If a query names a store, the row has the prices of that store. */
export interface PricedProduct extends Row<'product'> {
  store_id: string | null
  /** Time of the store's last price change, ms; 0 without a store. */
  priced_ms: number
}
