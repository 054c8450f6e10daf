import { createHash, createHmac } from 'node:crypto'
import type { IdentifierKind } from '../item-identifiers.ts'
import { decodeCbor, encodeCbor } from './deterministic-cbor.ts'

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
  /** 0–3, see `riskClass`. */
  riskClass: number
  policyVersion: number
  /** 4 bytes per unit to match its tag, sorted; absent above 32 units. */
  entries?: readonly Uint8Array[]
  /** Facts of the units in the order of the entries; absent if they do not fit the QR code. */
  facts?: readonly UnitFacts[]
}

/** Facts about a unit that the rules of a policy need. If the item has no category or brand, the text is empty. */
export interface UnitFacts {
  category: string
  brand: string
  /** Price paid. */
  priceCent: number
}

/** CWT claim keys. The first three labels are registered; RFC 8392 leaves labels below −65536 to private use. */
const CLAIM = {
  aud: 3,
  exp: 4,
  cti: 7,
  units: -65_537,
  riskClass: -65_538,
  policyVersion: -65_539,
  entries: -65_540,
  factSets: -65_541,
  factIndexes: -65_542,
} as const

const ENTRY_BYTES = 4
/** Maximum units with entries. Larger purchases need staff. */
export const MAX_ENTRIES = 32
const MAX_UNITS = 100_000
const MAX_TEXT = 120
const NO_TAG = -1

/** Identity of a receipt: 128 bits of an HMAC of the purchase id. */
export function receiptIdentity(secret: Uint8Array, purchaseId: string): Uint8Array {
  return createHmac('sha256', secret).update(`untag/cti/1\0${purchaseId}`).digest().subarray(0, 16)
}

/** Entry of a unit: the first 4 bytes of SHA-256 over cti, kind and id, with a zero byte between them. */
export function receiptEntry(cti: Uint8Array, kind: IdentifierKind, id: string): Uint8Array {
  return createHash('sha256').update(cti).update(`\0${kind}\0${id}`).digest().subarray(0, ENTRY_BYTES)
}

/** Encodes the claims as deterministic CBOR with the labels of ADR 0020. */
export function encodeReceiptClaims(claims: ReceiptClaims): Uint8Array {
  const map = new Map<number, unknown>([
    [CLAIM.aud, claims.storeId],
    [CLAIM.exp, claims.exp],
    [CLAIM.cti, claims.cti],
    [CLAIM.units, claims.units],
    [CLAIM.riskClass, claims.riskClass],
    [CLAIM.policyVersion, claims.policyVersion],
  ])
  if (claims.entries) map.set(CLAIM.entries, Buffer.concat(claims.entries))
  if (claims.facts?.length) {
    const { sets, indexes } = factTable(claims.facts)
    map.set(CLAIM.factSets, sets)
    map.set(CLAIM.factIndexes, indexes)
  }
  return encodeCbor(map)
}

/** Distinct fact sets in the order of their first unit, and the set number of each unit. */
function factTable(facts: readonly UnitFacts[]): { sets: [string, string, number][]; indexes: Uint8Array } {
  const numbers = new Map<string, number>()
  const sets: [string, string, number][] = []
  const indexes = facts.map(({ category, brand, priceCent }) => {
    const key = JSON.stringify([category, brand, priceCent])
    const number = numbers.get(key) ?? sets.push([category, brand, priceCent]) - 1
    numbers.set(key, number)
    return number
  })
  return { sets, indexes: packIndexes(indexes, sets.length) }
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
  if (!(map instanceof Map) || map.size !== sizeOf(map)) return undefined
  const count = (key: number, max: number) => {
    const value: unknown = map.get(key)
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max ? value : undefined
  }
  const storeId: unknown = map.get(CLAIM.aud)
  const cti: unknown = map.get(CLAIM.cti)
  const exp = count(CLAIM.exp, Number.MAX_SAFE_INTEGER)
  const units = count(CLAIM.units, MAX_UNITS)
  const riskClass = count(CLAIM.riskClass, 3)
  const policyVersion = count(CLAIM.policyVersion, Number.MAX_SAFE_INTEGER)
  if (typeof storeId !== 'string' || !(cti instanceof Uint8Array) || cti.length !== 16) return undefined
  if (exp === undefined || units === undefined || riskClass === undefined || policyVersion === undefined)
    return undefined
  const claims = { storeId, exp, cti, units, riskClass, policyVersion }
  if (!map.has(CLAIM.entries)) return claims
  const entries = splitEntries(map.get(CLAIM.entries))
  if (entries?.length !== units) return undefined
  if (!map.has(CLAIM.factSets)) return { ...claims, entries }
  const facts = readFacts(map.get(CLAIM.factSets), map.get(CLAIM.factIndexes), units)
  if (!facts) return undefined
  const whole = { ...claims, entries, facts }
  // Accepts only one encoding of each value: rejects repeated, unused and unordered sets.
  return Buffer.compare(encodeReceiptClaims(whole), payload) === 0 ? whole : undefined
}

/** Expected number of claims. Facts require entries. */
function sizeOf(map: Map<unknown, unknown>): number {
  if (!map.has(CLAIM.entries)) return 6
  return map.has(CLAIM.factSets) || map.has(CLAIM.factIndexes) ? 9 : 7
}

function readFacts(sets: unknown, indexes: unknown, units: number): UnitFacts[] | undefined {
  if (!Array.isArray(sets) || sets.length === 0 || sets.length > MAX_ENTRIES) return undefined
  if (!(indexes instanceof Uint8Array) || indexes.length > MAX_ENTRIES) return undefined
  const known = sets.map(readFactSet)
  const facts = unpackIndexes(indexes, units, sets.length).map((number) => known[number])
  return facts.every((each) => each !== undefined) ? facts : undefined
}

function readFactSet(set: unknown): UnitFacts | undefined {
  if (!Array.isArray(set) || set.length !== 3) return undefined
  const [category, brand, priceCent] = set as unknown[]
  if (!isShortText(category) || !isShortText(brand)) return undefined
  if (typeof priceCent !== 'number' || !Number.isSafeInteger(priceCent) || priceCent < 0) return undefined
  return { category, brand, priceCent }
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
