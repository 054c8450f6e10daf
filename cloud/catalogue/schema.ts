import { z } from 'zod'
import { eurosOf, iso, present } from '../operations/fields.ts'
import type { ProductRow } from '../persistence/tables/stores.ts'

/** Product as it is answered. */
export const Product = z.strictObject({
  productId: z.string(),
  ean: z.string(),
  name: z.string(),
  price: z.number().describe('EUR, this store’s price where a store is asked for.'),
  oldPrice: z.number().optional(),
  vat: z.union([z.literal(7), z.literal(19)]),
  storeId: z.string().optional(),
  brand: z.string().optional(),
  category: z.string().optional(),
  unit: z.string().optional(),
  description: z.string().optional(),
  imageUrl: z.string().optional(),
  weight: z.string().optional(),
  isOrganic: z.boolean().optional(),
  isVegan: z.boolean().optional(),
  allergens: z.array(z.string()).optional(),
  tagged: z.boolean().describe('Whether its units carry a security tag, in stores that use them.'),
  flags: z.strictObject({ requiresHumanVerification: z.boolean() }),
  nameLower: z.string(),
  brandLower: z.string().optional(),
  createdAt: z.string(),
  updatedAt: z.string(),
})
export type Product = z.infer<typeof Product>

/** A product, with the price of one store when it was read for one. */
export interface PricedProduct extends ProductRow {
  store_id: string | null
}

/** A product as the API shows it. */
export function toProduct(row: PricedProduct): Product {
  const flag = (value: number | null) => (value === null ? null : value === 1)
  return {
    productId: row.product_id,
    ean: row.ean,
    name: row.name,
    price: eurosOf(row.price_cent),
    vat: row.vat as 7 | 19,
    ...present({
      oldPrice: row.old_price_cent === null ? null : eurosOf(row.old_price_cent),
      storeId: row.store_id,
      brand: row.brand,
      category: row.category,
      unit: row.unit,
      description: row.description,
      imageUrl: row.image_url,
      weight: row.weight,
      isOrganic: flag(row.is_organic),
      isVegan: flag(row.is_vegan),
      allergens: row.allergens === null ? null : (JSON.parse(row.allergens) as string[]),
      brandLower: row.brand_lower,
    }),
    tagged: row.tagged === 1,
    flags: { requiresHumanVerification: row.requires_human_verification === 1 },
    nameLower: row.name_lower,
    createdAt: iso(row.created_ms),
    updatedAt: iso(row.updated_ms),
  }
}
