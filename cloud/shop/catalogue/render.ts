import { foldText } from '../../../policy/fold-text.ts'
import { eurosOf, iso, definedFields } from '../../platform/operations/fields.ts'
import type { ProductRow, StoreProductRow } from '../../platform/persistence/tables/stores.ts'
import { searchTermsOf } from './search-terms.ts'
import type { Nutrition, PricedProduct, Product } from './schema.ts'

/** Increase this with each change of the product document. The next start then rebuilds all stored documents. */
export const DOCUMENT_VERSION = '1'

/** Price of a product in one store. */
export type Listing = Pick<StoreProductRow, 'store_id' | 'product_id' | 'price_cent' | 'old_price_cent' | 'updated_ms'>

/** A listing that is stored, or is about to be stored. */
export type NumberedListing = Listing & Pick<StoreProductRow, 'listing_no'>

/** Converts a row to the API form. */
export function toProduct(row: PricedProduct): Product {
  const flag = (value: number | null) => (value === null ? null : value === 1)
  return {
    productId: row.product_id,
    ...definedFields({ storeId: row.store_id }),
    ean: row.ean,
    name: row.name,
    price: eurosOf(row.price_cent),
    ...definedFields({ oldPrice: row.old_price_cent === null ? null : eurosOf(row.old_price_cent) }),
    vat: row.vat as 7 | 19,
    ...definedFields({
      brand: row.brand,
      category: row.category,
      unit: row.unit,
      description: row.description,
      imageUrl: row.image_url,
      media: row.media_snapshot === null ? null : { snapshot: row.media_snapshot },
      weight: row.weight,
      isOrganic: flag(row.is_organic),
      isVegan: flag(row.is_vegan),
      allergens: row.allergens === null ? null : (JSON.parse(row.allergens) as string[]),
      deposit: row.deposit_cent === null ? null : eurosOf(row.deposit_cent),
      depositVat: row.deposit_vat as 7 | 19 | null,
      nutrition: row.nutrition === null ? null : (JSON.parse(row.nutrition) as Nutrition),
    }),
    tagged: row.tagged === 1,
    flags: { requiresHumanVerification: row.requires_human_verification === 1 },
    fromPos: row.from_pos === 1,
    posProductId: row.pos_product_id,
    nameLower: row.name_lower,
    ...definedFields({ brandLower: row.brand_lower }),
    createdAt: iso(row.created_ms),
    updatedAt: iso(Math.max(row.updated_ms, row.priced_ms)),
  }
}

/** Adds the price of one store to a product row. */
export function pricedAt(product: ProductRow, listing: Listing): PricedProduct {
  const { store_id, price_cent, old_price_cent, updated_ms } = listing
  return { ...product, store_id, price_cent, old_price_cent, priced_ms: updated_ms }
}

/** Category by which listings are filtered and counted; null without a category. */
export function listedCategory({ category }: Pick<ProductRow, 'category'>): string | null {
  return foldText(category ?? '') || null
}

/** Builds the row of a product in a store, including the stored document. */
export function renderListing(product: ProductRow, listing: NumberedListing): StoreProductRow {
  const { store_id, product_id, price_cent, old_price_cent, updated_ms, listing_no } = listing
  const doc = JSON.stringify(toProduct(pricedAt(product, listing)))
  const words = ` ${searchTermsOf(product).join(' ')} `
  const category = listedCategory(product)
  return { store_id, product_id, price_cent, old_price_cent, updated_ms, category, doc, words, listing_no }
}
