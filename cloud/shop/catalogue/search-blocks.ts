import { LISTING_BLOCK } from '../../platform/persistence/listing-numbers.ts'
import type { ProductWordRow } from '../../platform/persistence/tables/stores.ts'

/**
 * Texts of `product_word.products`: the listings of one block whose product has the word. Each listing is a space and
 * the last two base-64 digits of its number. The space lets SQL remove one listing with `replace`.
 */
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_'
const VALUES = new Uint8Array(128)
for (let i = 0; i < DIGITS.length; i++) VALUES[DIGITS.charCodeAt(i)] = i
/** Characters of one listing. */
const ENTRY = 3

/** Block of a listing number. */
export function blockOf(listingNo: number): number {
  return Math.floor(listingNo / LISTING_BLOCK)
}

/** Text of a listing in its block. */
export function entryOf(listingNo: number): string {
  const place = listingNo % LISTING_BLOCK
  return ` ${DIGITS[place >> 6]}${DIGITS[place & 63]}`
}

/** Reads the text at `at` and returns the place of that listing in its block. */
function placeAt(products: string, at: number): number {
  return ((VALUES[products.charCodeAt(at + 1)] ?? 0) << 6) | (VALUES[products.charCodeAt(at + 2)] ?? 0)
}

/** Numbers of the listings in a row of the index, ascending. */
export function listingsIn({ block, products }: Pick<ProductWordRow, 'block' | 'products'>): number[] {
  const found: number[] = []
  for (let at = 0; at < products.length; at += ENTRY) found.push(block * LISTING_BLOCK + placeAt(products, at))
  return found.sort((a, b) => a - b)
}

/**
 * One entry for each place of a block, with one bit for each term that the listing at this place has. All calls of
 * `listingsOfAll` share this array, because a new array would cost more than the rest of a search.
 */
const SEEN = new Uint8Array(LISTING_BLOCK)
/** Value in `SEEN` of a listing that is already in the result. */
const FOUND = 255

/**
 * Numbers of the listings of one block that have all these terms, ascending. `terms` contains the texts of each term;
 * at most 7 terms.
 */
export function listingsOfAll(block: number, terms: readonly (readonly string[])[]): number[] {
  const last = terms.length - 1
  SEEN.fill(0)
  for (let i = 0; i < last; i++) {
    for (const products of terms[i] ?? []) markPlaces(products, 1 << i)
  }
  const found: number[] = []
  for (const products of terms[last] ?? []) {
    for (let at = 0; at < products.length; at += ENTRY) {
      const place = placeAt(products, at)
      if (SEEN[place] !== (1 << last) - 1) continue
      SEEN[place] = FOUND
      found.push(block * LISTING_BLOCK + place)
    }
  }
  return found.sort((a, b) => a - b)
}

function markPlaces(products: string, bit: number): void {
  for (let at = 0; at < products.length; at += ENTRY) {
    const place = placeAt(products, at)
    SEEN[place] = (SEEN[place] ?? 0) | bit
  }
}
