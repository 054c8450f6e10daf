import { createHash, createHmac } from 'node:crypto'
import { assert } from '../assert.ts'
import { crockford } from '../base32.ts'
import { isIdOf } from '../ids.ts'
import { comparableIdentifier, type IdentifierKind } from '../item-identifiers.ts'
import { decode, encode, rfc8949EncodeOptions, Tagged } from 'cborg'

/** Encodes core deterministic CBOR (RFC 8949 §4.2.1): shortest forms, sorted keys, definite lengths. */
export function encodeCbor(value: unknown): Uint8Array {
  return encode(value, rfc8949EncodeOptions)
}

/** Decodes deterministic CBOR: maps as `Map`, `tag` as `Tagged`. Undefined for any other encoding. */
export function decodeCbor(bytes: Uint8Array, tag: number): unknown {
  const strict = {
    strict: true,
    useMaps: true,
    rejectDuplicateMapKeys: true,
    allowIndefinite: false,
    tags: Tagged.preserve(tag),
  }
  try {
    const value: unknown = decode(bytes, strict)
    return Buffer.compare(encodeCbor(value), bytes) === 0 ? value : undefined
  } catch {
    return undefined
  }
}

/**
 * Claims of a receipt token (CWT, RFC 8392). The claims are fixed when the purchase completes, so a reprint is the same
 * receipt.
 */
export interface ReceiptClaims {
  /** aud */
  storeId: string
  /** Seconds since 1970: completion + 24 h. */
  exp: number
  /** Identity of the receipt in every ledger, 16 bytes. */
  cti: Uint8Array
  /** Number of tagged units. */
  units: number
  /** 0–3 by the total (`riskClassOf`), or `SHOPPER_PRICED`. */
  riskClass: number
  policyVersion: number
  /** 4 bytes per unit to match its tag, sorted; absent above 32 units. */
  entries?: readonly Uint8Array[]
  /** Facts of the units in the order of the entries; absent if they do not fit the QR code. */
  facts?: readonly SignedFacts[]
  /** 4 bytes of the policy names that the numbers in `facts` count (see `numberFacts`); absent if `facts` has texts. */
  namesDigest?: Uint8Array
}

/** Facts about a unit that the rules of a policy need. If the item has no category or brand, the text is empty. */
export interface UnitFacts {
  category: string
  brand: string
  /** Price paid. */
  priceCent: number
}

/** Facts as the receipt has them: category and brand are both texts, or both numbers of names in the policy. */
interface SignedFacts {
  category: string | number
  brand: string | number
  priceCent: number
}

/**
 * CWT claim keys. The first two are registered; RFC 8392 leaves labels below −65536 to private use. All other facts
 * are the elements of one private array, because each private label takes 5 bytes.
 */
const CLAIM = { exp: 4, cti: 7, receipt: -65_537 } as const

const ENTRY_BYTES = 4
/** Maximum units with entries. Without them only staff release the goods, because no tag can be matched. */
export const MAX_ENTRIES = 32
const MAX_UNITS = 100_000
/**
 * Number of the receipt's own right, after those of its units: a barrier opens once for each receipt, also without
 * tagged goods (ADR gates).
 */
export const PASS = MAX_UNITS
/** Risk class of a receipt whose prices only the shopper's app states: it always needs staff. */
export const SHOPPER_PRICED = 4
const MAX_TEXT = 120
const DIGEST_BYTES = 4
/** Numbers per fact set: category, brand, price. */
const SET_SIZE = 3
const STORE_PREFIX = 'st_'
const NO_TAG = -1

/** Identity of a receipt: 128 bits of an HMAC of the purchase id. */
export function receiptIdentity(secret: Uint8Array, purchaseId: string): Uint8Array {
  return createHmac('sha256', secret).update(`untag/cti/1\0${purchaseId}`).digest().subarray(0, 16)
}

/**
 * Entry of a unit, of the till that sold, or of a lot (`lotKey`): the first 4 bytes of SHA-256 over cti, kind and comparable id, with a zero
 * byte between them.
 */
export function receiptEntry(cti: Uint8Array, kind: IdentifierKind | 'till' | 'lot', id: string): Uint8Array {
  const name = `\0${kind}\0${kind === 'till' || kind === 'lot' ? id : comparableIdentifier(kind, id)}`
  return createHash('sha256').update(cti).update(name).digest().subarray(0, ENTRY_BYTES)
}

/** Encodes the claims as deterministic CBOR with the labels of ADR receipts. */
export function encodeReceiptClaims(claims: ReceiptClaims): Uint8Array {
  const { exp, cti, units, riskClass, policyVersion, entries, facts, namesDigest } = claims
  const receipt: unknown[] = [storeBytes(claims.storeId), units, riskClass, policyVersion]
  if (entries) receipt.push(Buffer.concat(entries))
  if (entries && facts?.length) {
    const { sets, indexes } = factTable(facts)
    receipt.push(sets, indexes)
    if (namesDigest) receipt.push(namesDigest)
  }
  const map = new Map<number, unknown>([
    [CLAIM.exp, exp],
    [CLAIM.cti, cti],
    [CLAIM.receipt, receipt],
  ])
  return encodeCbor(map)
}

/** The 16 bytes of the UUID in a store id. */
function storeBytes(storeId: string): Uint8Array {
  const bytes = isIdOf('st', storeId) ? crockford.decode(storeId.slice(STORE_PREFIX.length)) : undefined
  assert(bytes, `not a store id: ${storeId}`)
  return bytes
}

/** Distinct fact sets, joined, in the order of their first unit, and the set number of each unit. */
function factTable(facts: readonly SignedFacts[]): { sets: (string | number)[]; indexes: Uint8Array } {
  const numbers = new Map<string, number>()
  const sets: (string | number)[] = []
  const indexes = facts.map(({ category, brand, priceCent }) => {
    const key = JSON.stringify([category, brand, priceCent])
    const number = numbers.get(key) ?? numbers.size
    if (!numbers.has(key)) sets.push(category, brand, priceCent)
    numbers.set(key, number)
    return number
  })
  return { sets, indexes: packIndexes(indexes, numbers.size) }
}

/** Number of bits of an index; 0 for a single set. With whole bytes, 32 units would not fit the QR code. */
function indexBits(sets: number): number {
  return Math.ceil(Math.log2(sets))
}

/** Packs the indexes from the highest bit on, padded with zeros. */
function packIndexes(indexes: readonly number[], sets: number): Uint8Array {
  const width = indexBits(sets)
  if (width === 0) return new Uint8Array()
  const bits = indexes.map((index) => index.toString(2).padStart(width, '0')).join('')
  return Uint8Array.from(bits.match(/.{1,8}/g) ?? [], (byte) => Number.parseInt(byte.padEnd(8, '0'), 2))
}

function unpackIndexes(packed: Uint8Array, units: number, sets: number): number[] {
  const width = indexBits(sets)
  const bits = [...packed].map((byte) => byte.toString(2).padStart(8, '0')).join('')
  return Array.from({ length: units }, (_, n) =>
    width === 0 ? 0 : Number.parseInt(bits.slice(n * width, (n + 1) * width), 2),
  )
}

/** Decodes claims. Undefined if any claim is missing, unknown, out of range or not deterministic. */
export function decodeReceiptClaims(payload: Uint8Array): ReceiptClaims | undefined {
  const map = decodeCbor(payload, NO_TAG)
  if (!(map instanceof Map) || map.size !== 3) return undefined
  const exp: unknown = map.get(CLAIM.exp)
  const cti: unknown = map.get(CLAIM.cti)
  const receipt: unknown = map.get(CLAIM.receipt)
  if (!isCount(exp) || !(cti instanceof Uint8Array) || cti.length !== 16 || !Array.isArray(receipt)) return undefined
  const [store, units, riskClass, policyVersion, joined, ...factParts] = receipt as unknown[]
  if (!(store instanceof Uint8Array) || store.length !== 16) return undefined
  if (!isCount(units, MAX_UNITS) || !isCount(riskClass, SHOPPER_PRICED) || !isCount(policyVersion)) return undefined
  const claims = { storeId: STORE_PREFIX + crockford.encode(store), exp, cti, units, riskClass, policyVersion }
  if (receipt.length === 4) return claims
  const entries = splitEntries(joined)
  if (entries?.length !== units) return undefined
  if (factParts.length === 0) return { ...claims, entries }
  const facts = readFacts(factParts, units)
  if (!facts) return undefined
  const whole = { ...claims, entries, ...facts }
  // Accepts only one encoding of each value: rejects repeated, unused and unordered sets.
  return Buffer.compare(encodeReceiptClaims(whole), payload) === 0 ? whole : undefined
}

function isCount(value: unknown, max: number = Number.MAX_SAFE_INTEGER): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max
}

/** Reads the fact sets, the fact indexes, and the digest of the policy names if the sets have numbers. */
function readFacts(parts: readonly unknown[], units: number): Pick<ReceiptClaims, 'facts' | 'namesDigest'> | undefined {
  const [sets, indexes, namesDigest] = parts
  const isNumbered = namesDigest instanceof Uint8Array && namesDigest.length === DIGEST_BYTES
  if (parts.length !== (isNumbered ? 3 : 2) || !Array.isArray(sets) || sets.length % SET_SIZE !== 0) return undefined
  const count = sets.length / SET_SIZE
  if (count === 0 || count > MAX_ENTRIES || !(indexes instanceof Uint8Array)) return undefined
  if (indexes.length > MAX_ENTRIES) return undefined
  const known = Array.from({ length: count }, (_, n) =>
    readFactSet(sets.slice(n * SET_SIZE, (n + 1) * SET_SIZE), isNumbered ? isCount : isShortText),
  )
  const facts = unpackIndexes(indexes, units, count).map((number) => known[number])
  if (!facts.every((each) => each !== undefined)) return undefined
  return { facts, ...(isNumbered && { namesDigest }) }
}

function readFactSet(
  [category, brand, priceCent]: readonly unknown[],
  isName: (value: unknown) => value is string | number,
): SignedFacts | undefined {
  return isName(category) && isName(brand) && isCount(priceCent) ? { category, brand, priceCent } : undefined
}

function isShortText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TEXT
}

function splitEntries(joined: unknown): Uint8Array[] | undefined {
  if (!(joined instanceof Uint8Array) || joined.length % ENTRY_BYTES !== 0 || joined.length > MAX_ENTRIES * ENTRY_BYTES)
    return undefined
  return Array.from({ length: joined.length / ENTRY_BYTES }, (_, i) =>
    joined.subarray(i * ENTRY_BYTES, (i + 1) * ENTRY_BYTES),
  )
}
