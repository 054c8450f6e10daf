import { z } from 'zod'
import { Euros, Id, VatRate, lines, text, ProductCodeText } from '../../platform/operations/fields.ts'
import type { ProductRow } from '../../platform/persistence/tables/stores.ts'
import { Ean } from './ean.ts'

const Grams = z.number().min(0).max(200).describe('g')

/** Nutrition values per 100 g or 100 ml. */
export const Nutrition = z.strictObject({
  calories: z.number().min(0).max(2_000).describe('kcal').optional(),
  fat: Grams.optional(),
  saturatedFat: Grams.optional(),
  carbohydrates: Grams.optional(),
  sugar: Grams.optional(),
  protein: Grams.optional(),
  fiber: Grams.optional(),
  salt: Grams.optional(),
  nutriScore: z.enum(['A', 'B', 'C', 'D', 'E']).optional(),
  per: z.enum(['100g', '100ml']).default('100g'),
  source: z.enum(['merchant', 'reference', 'community']).optional(),
  confidence: z.number().min(0).max(1).optional(),
})
export type Nutrition = z.output<typeof Nutrition>

const Flags = z.strictObject({
  requiresHumanVerification: z.boolean().describe('Staff must check the age of the buyer.'),
})
const ImageAddress = z.url({ protocol: /^https?$/ }).max(2_048)

/** Product as the API returns it. */
export const Product = z.strictObject({
  productId: z.string(),
  ean: z.string(),
  name: z.string(),
  price: z.number().describe('EUR; the price of the store if the request names one.'),
  oldPrice: z.number().optional(),
  vat: VatRate,
  storeId: z.string().optional(),
  brand: z.string().optional(),
  category: z.string().optional(),
  unit: z.string().optional(),
  description: z.string().optional(),
  imageUrl: z.string().optional(),
  media: z.strictObject({ snapshot: z.string() }).optional(),
  weight: z.string().optional(),
  isOrganic: z.boolean().optional(),
  isVegan: z.boolean().optional(),
  allergens: z.array(z.string()).optional(),
  deposit: z.number().optional().describe('EUR for one piece. The deposit is a separate line of a purchase.'),
  depositVat: VatRate.optional().describe('VAT rate of the deposit, if it differs from the product’s.'),
  nutrition: Nutrition.optional(),
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
const OPTIONAL_FIELDS = {
  oldPrice: Euros,
  brand: text(120),
  category: text(120),
  unit: text(40),
  description: lines(300),
  imageUrl: ImageAddress,
  weight: text(40),
  isOrganic: z.boolean(),
  isVegan: z.boolean(),
  allergens: z.array(text(80)).max(50),
  deposit: Euros.describe('EUR for one piece, in addition to the price. The deposit is a separate line of a purchase.'),
  depositVat: VatRate.describe('Default: the product’s.'),
  nutrition: Nutrition,
}

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
export interface PricedProduct extends ProductRow {
  store_id: string | null
  /** Time of the store's last price change, ms; 0 without a store. */
  priced_ms: number
}
