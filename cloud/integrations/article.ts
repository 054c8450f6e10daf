import { asPrice, asVat } from '../catalogue/import/product-of-row.ts'
import { checkRow, refuseUpc, rowErrors } from '../catalogue/row-errors.ts'
import type { Upsert } from '../catalogue/upsert-products.ts'
import { CLEARED_BY_NULL } from './mapping.ts'
import { printable, type SyncError } from './sync-error.ts'

/** Text fields of a product. Some systems send numbers in them. */
const TEXTS = ['ean', 'barcode', 'name', 'category', 'unit', 'brand', 'description', 'imageUrl', 'weight'] as const
const PRICES = ['price', 'oldPrice', 'deposit'] as const
const VATS = ['vat', 'depositVat'] as const
const UNCHANGED_FIELDS = ['isOrganic', 'isVegan', 'allergens', 'nutrition', 'tagged', 'flags'] as const

/** Converts a mapped article to a product, or lists its errors. */
export function productOfArticle(
  record: unknown,
  index: number,
  takesUpc: boolean,
): { upsert: Upsert } | { errors: SyncError[] } {
  const article =
    typeof record === 'object' && record !== null && !Array.isArray(record)
      ? (record as Record<string, unknown>)
      : undefined
  if (!article)
    return {
      errors: [
        {
          dataType: 'articles',
          index,
          ean: null,
          externalId: null,
          field: '',
          code: 'invalid',
          message: 'the article is not a JSON object',
        },
      ],
    }
  const raw: Record<string, unknown> = {}
  for (const name of TEXTS) raw[name] = asText(article[name])
  for (const name of PRICES)
    raw[name] = typeof article[name] === 'string' ? asPrice(article[name].trim()) : article[name]
  for (const name of VATS) {
    const vat = article[name]
    raw[name] = typeof vat === 'string' || typeof vat === 'number' ? asVat(vat) : vat
  }
  for (const name of UNCHANGED_FIELDS) raw[name] = article[name]
  for (const name of Object.keys(raw))
    if (raw[name] === undefined || raw[name] === null || raw[name] === '') delete raw[name]
  const externalId = printable(article['externalProductId'])
  const errors = rowErrors()
  const product = checkRow(raw, { index }, errors)
  const takenBack = Object.fromEntries(
    CLEARED_BY_NULL.filter((name) => article[name] === null).map((name) => [name, null]),
  )
  if (product && !refuseUpc(product.ean, takesUpc, { index }, errors))
    return { upsert: { product: { ...product, ...takenBack }, pos: { posProductId: externalId } } }
  return {
    errors: errors.listed.map(({ ean, field, code, message }) => ({
      dataType: 'articles',
      index,
      ean,
      externalId,
      field,
      code,
      message,
    })),
  }
}

function asText(value: unknown): unknown {
  if (typeof value === 'string') return value.trim()
  // Many systems store EANs as numbers. `toFixed` formats long numbers without an exponent.
  return typeof value === 'number' && Number.isSafeInteger(value) ? value.toFixed(0) : value
}
