import { foldText } from '../../../policy/fold-text.ts'
import { normalForm } from '../../../policy/normal-form.ts'
import type { ProductRow } from '../../platform/persistence/tables/stores.ts'

/** Maximum number of terms per product. */
const TERMS_LIMIT = 40
/** Maximum number of characters per term. */
const LETTERS_LIMIT = 32
/** Maximum number of terms per query. */
export const QUERY_TERMS_LIMIT = 6

/** Splits a text into folded terms without accents, so that "kase" finds "Käse". */
function termsIn(text: string): string[] {
  const folded = normalForm(foldText(normalForm(text, 'NFKD')), 'NFD').replaceAll(/\p{M}/gu, '')
  return (folded.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => [...word].slice(0, LETTERS_LIMIT).join(''))
}

/** Distinct search terms of a product: from name, brand and EAN. */
export function searchTermsOf({
  name_lower,
  brand_lower,
  ean,
}: Pick<ProductRow, 'name_lower' | 'brand_lower' | 'ean'>): string[] {
  return [...new Set([ean, ...termsIn(name_lower), ...termsIn(brand_lower ?? '')])].slice(0, TERMS_LIMIT)
}

/** Distinct terms of a query. Each must be the prefix of a term of the product. */
export function queryTermsOf(q: string): string[] {
  return [...new Set(termsIn(q))].slice(0, QUERY_TERMS_LIMIT)
}
