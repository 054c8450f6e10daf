import { foldText } from '../../../policy/fold-text.ts'
import { eurosOf, iso } from '../../platform/operations/fields.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { searchTermsOf } from './search-queries.ts'
import { addFieldsOfRow, FIELD_NAMES } from './product-fields.ts'
import type { PricedProduct, Product } from './schema.ts'
import { z } from 'zod'
import { parseEpc } from '../../../policy/gs1/epc.ts'
import { isoDate, type ScannedItem } from '../../../policy/gs1/gs1-fields.ts'
import { readProductCode } from '../../../policy/gs1/product-code.ts'
import { isSerial } from '../../../policy/gs1/sgtin.ts'
import { invalid } from '../../platform/foundation/failure.ts'

/** Lot, expiry and serial of a unit of goods, as 2D codes and tags with EPC+ contain them (ADR items). */

export const UNIT_FIELDS = ['lot', 'expiry', 'serial'] as const
type UnitField = (typeof UNIT_FIELDS)[number]
export type UnitData = { readonly [field in UnitField]?: string }

const Gs1Text = z
  .string()
  .refine(isSerial, 'must be 1 to 20 of the characters A–Z a–z 0–9 ! " % & \' ( ) * + , - . / : ; < = > ? _')

/** Fields of a unit in a request. */
export const UnitInput = {
  lot: Gs1Text.optional().describe('Batch or lot (GS1 application identifier 10), if `ean` does not contain it.'),
  expiry: z.iso
    .date()
    .optional()
    .describe('Last day on which the unit may be sold (17), if `ean` does not contain it.'),
  serial: Gs1Text.optional().describe('Serial of GS1 (21), if neither `ean` nor the EPC contains it.'),
}

/** Fields of a unit in an answer. */
export const UnitOutput = {
  lot: z.string().optional(),
  expiry: z.string().optional(),
  serial: z.string().optional(),
}

/** What a request says about a unit, and in which fields. */
type Sources = { readonly [field in UnitField | 'ean']?: string | undefined } & { epc?: string | null | undefined }

/**
 * Lot, expiry and serial from the fields of a request, from its product code and from its EPC. Throws 400 if two of
 * them differ. `path`: path of the fields with a dot at its end.
 */
export function unitDataOf({ ean, epc, ...stated }: Sources, nowMs: number, path = ''): UnitData {
  const year = new Date(nowMs).getUTCFullYear()
  const code = ean === undefined ? undefined : readProductCode(ean)
  const contents = [
    ['ean', code?.ok ? contentOf(code.code, year) : {}],
    ['epc', epc ? contentOf(parseEpc(epc) ?? {}, year) : {}],
  ] as const
  const unit: { [field in UnitField]?: string } = {}
  for (const field of UNIT_FIELDS) {
    let [value, source] = [stated[field], field as string]
    for (const [name, content] of contents) {
      const read = content[field]
      if (read !== undefined && value !== undefined && read !== value)
        throw invalid(
          `${path}${source}`,
          `the ${field} is "${value}" here and "${read}" in ${name}: send what belongs to this unit`,
          'unit_differs',
        )
      if (value === undefined) [value, source] = [read, name]
    }
    if (value !== undefined) unit[field] = value
  }
  return unit
}

/** A date that does not exist is left out. */
function contentOf({ lot, expiry, serial }: Partial<ScannedItem>, year: number): Sources {
  return { lot, expiry: expiry === undefined ? undefined : isoDate(expiry, year), serial }
}

/**
 * Version of the product document, to increase with each change of its form. A new field changes it. The next start then
 * rebuilds all stored documents.
 */
export const DOCUMENT_VERSION = ['2', ...FIELD_NAMES].join(' ')

/** Price of a product in one store. */
type Listing = Pick<Row<'store_product'>, 'store_id' | 'product_id' | 'price_cent' | 'old_price_cent' | 'updated_ms'>

/** A listing that is stored, or is about to be stored. */
export type NumberedListing = Listing & Pick<Row<'store_product'>, 'listing_no'>

/** Converts a row to the API form. Sets the fields one by one, because each scan and each import pays for it. */
export function toProduct(row: PricedProduct): Product {
  const product: Partial<Product> = { productId: row.product_id }
  if (row.store_id !== null) product.storeId = row.store_id
  product.ean = row.ean
  product.name = row.name
  product.price = eurosOf(row.price_cent)
  if (row.old_price_cent !== null) product.oldPrice = eurosOf(row.old_price_cent)
  product.vat = row.vat as 7 | 19
  addFieldsOfRow(product, row)
  if (row.media_snapshot !== null) product.media = { snapshot: row.media_snapshot }
  product.tagged = row.tagged === 1
  product.flags = { requiresHumanVerification: row.requires_human_verification === 1 }
  product.fromPos = row.from_pos === 1
  product.posProductId = row.pos_product_id
  product.nameLower = row.name_lower
  if (row.brand_lower !== null) product.brandLower = row.brand_lower
  product.createdAt = iso(row.created_ms)
  product.updatedAt = iso(Math.max(row.updated_ms, row.priced_ms))
  return product as Product
}

/** The document of a product: its API form as JSON. */
export function documentOf(row: PricedProduct): string {
  return JSON.stringify(toProduct(row))
}

/** Adds the price of one store to a product row. */
export function pricedAt(product: Row<'product'>, listing: Listing): PricedProduct {
  const { store_id, price_cent, old_price_cent, updated_ms } = listing
  return { store_id, priced_ms: updated_ms, ...product, price_cent, old_price_cent }
}

/** Category by which listings are filtered and counted; null without a category. */
function listedCategory({ category }: Pick<Row<'product'>, 'category'>): string | null {
  return foldText(category ?? '') || null
}

/** Builds the row of a product in a store, including the stored document. */
export function renderListing(product: Row<'product'>, listing: NumberedListing): Row<'store_product'> {
  const { store_id, product_id, price_cent, old_price_cent, updated_ms, listing_no } = listing
  const doc = documentOf(pricedAt(product, listing))
  const words = ` ${searchTermsOf(product).join(' ')} `
  const category = listedCategory(product)
  return { store_id, product_id, price_cent, old_price_cent, updated_ms, category, doc, words, listing_no }
}
