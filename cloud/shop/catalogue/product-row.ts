import { centsOf } from '../../platform/operations/fields.ts'
import type { ProductRow } from '../../platform/persistence/tables/stores.ts'
import type { ProductChanges, ProductInput } from './schema.ts'

/** Origin of a product that a POS sync wrote: the product's id in the POS. */
export interface PosOrigin {
  posProductId: string | null
}

/** Returns the columns for the product fields that are the same in all stores. Omits fields that are undefined. */
export function sharedColumns(stated: Omit<ProductChanges, 'price' | 'oldPrice'>): Partial<ProductRow> {
  const columns: Partial<ProductRow> = {}
  const set = <K extends keyof ProductRow>(name: K, value: ProductRow[K] | undefined) => {
    if (value !== undefined) columns[name] = value
  }
  const json = (value: object | null | undefined) =>
    value === null || value === undefined ? value : JSON.stringify(value)
  const flag = (value: boolean | null | undefined) => (value === null || value === undefined ? value : Number(value))
  set('name', stated.name)
  set('name_lower', stated.name?.toLowerCase())
  set('vat', stated.vat)
  set('brand', stated.brand)
  set('brand_lower', stated.brand === null ? null : stated.brand?.toLowerCase())
  set('category', stated.category)
  set('unit', stated.unit)
  set('description', stated.description)
  set('image_url', stated.imageUrl)
  set('weight', stated.weight)
  set('is_organic', flag(stated.isOrganic))
  set('is_vegan', flag(stated.isVegan))
  set('allergens', json(stated.allergens))
  set(
    'deposit_cent',
    stated.deposit === null || stated.deposit === undefined ? stated.deposit : centsOf(stated.deposit),
  )
  set('deposit_vat', stated.depositVat)
  set('nutrition', json(stated.nutrition))
  set('tagged', flag(stated.tagged) ?? undefined)
  set('requires_human_verification', flag(stated.flags?.requiresHumanVerification) ?? undefined)
  return columns
}

/** Converts prices from EUR to cents. Omits prices that are undefined. */
export function priceColumns({
  price,
  oldPrice,
}: Pick<ProductChanges, 'price' | 'oldPrice'>): Partial<Pick<ProductRow, 'price_cent' | 'old_price_cent'>> {
  return {
    ...(price !== undefined && { price_cent: centsOf(price) }),
    ...(oldPrice !== undefined && { old_price_cent: oldPrice === null ? null : centsOf(oldPrice) }),
  }
}

/** Columns that mark a product as written by a POS sync; no columns for other products. */
export function originColumns(pos: PosOrigin | undefined): Partial<ProductRow> {
  return pos ? { from_pos: 1, pos_product_id: pos.posProductId } : {}
}

/** Fields that a POS sync clears with null. */
type Clearable = 'oldPrice' | 'deposit' | 'depositVat'
/** Input of a new product. */
export type NewProduct = Omit<ProductInput, 'barcode' | Clearable> & Pick<ProductChanges, Clearable>

/** Builds the row of a new product. */
export function newProductRow(
  input: NewProduct,
  made: { productId: string; tenant: string; ean: string; nowMs: number; pos?: PosOrigin | undefined },
): ProductRow {
  const { price_cent = 0, old_price_cent: stated = null } = priceColumns(input)
  // A till may state an old price that is not above the price.
  const old_price_cent = stated !== null && stated < price_cent ? null : stated
  const blank = {
    brand: null,
    brand_lower: null,
    category: null,
    unit: null,
    description: null,
    image_url: null,
    weight: null,
    is_organic: null,
    is_vegan: null,
    allergens: null,
    nutrition: null,
    deposit_cent: null,
    deposit_vat: null,
    media_snapshot: null,
    from_pos: 0,
    pos_product_id: null,
    requires_human_verification: 0,
    tagged: 1,
  }
  return {
    product_id: made.productId,
    tenant: made.tenant,
    ean: made.ean,
    ...blank,
    price_cent,
    old_price_cent,
    name: input.name,
    name_lower: '',
    vat: input.vat,
    ...sharedColumns(input),
    ...originColumns(made.pos),
    created_ms: made.nowMs,
    updated_ms: made.nowMs,
  }
}

/** Merges columns into a product row. Returns `before` itself if nothing changes. */
export function changedRow(before: ProductRow, columns: Partial<ProductRow>, nowMs: number): ProductRow {
  const isSame = Object.entries(columns).every(([name, value]) => before[name as keyof ProductRow] === value)
  return isSame ? before : { ...before, ...columns, updated_ms: nowMs }
}
