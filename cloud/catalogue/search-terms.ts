import type { ProductRow } from '../persistence/tables/stores.ts'

/** Words of one product that are looked at, and letters of a word. */
const TERMS_LIMIT = 40
const LETTERS_LIMIT = 32
/** Words of a question that are looked at. */
export const QUERY_TERMS_LIMIT = 6

/** Lower case without accents, so that "kase" finds "Käse" as "käse" does. */
function termsIn(text: string): string[] {
  const folded = text.normalize('NFKD').toLowerCase().replaceAll('ß', 'ss').replaceAll(/\p{M}/gu, '')
  return (folded.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => [...word].slice(0, LETTERS_LIMIT).join(''))
}

/** The words by which a product is found: of its name, its brand, and its EAN. Each once. */
export function searchTermsOf({
  name_lower,
  brand_lower,
  ean,
}: Pick<ProductRow, 'name_lower' | 'brand_lower' | 'ean'>): string[] {
  return [...new Set([ean, ...termsIn(name_lower), ...termsIn(brand_lower ?? '')])].slice(0, TERMS_LIMIT)
}

/** The words of a question, each of which must begin a word of the product. */
export function queryTermsOf(q: string): string[] {
  return [...new Set(termsIn(q))].slice(0, QUERY_TERMS_LIMIT)
}

/** Words as they stand beside each of them, so that ` beginning` occurs where one of them begins so. */
export function joinTerms(words: readonly string[]): string {
  return words.map((word) => ` ${word}`).join('')
}
