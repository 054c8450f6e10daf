import { createHash, createHmac } from 'node:crypto'
import type { IdentifierKind } from '../identifiers.ts'
import { decodeCbor, encodeCbor } from './deterministic-cbor.ts'

/** What a receipt token says (CWT claims, RFC 8392). All of it is fixed at completion: a reprint is the same receipt. */
export interface ReceiptClaims {
  /** aud */
  storeId: string
  /** Seconds since 1970: completion + 24 h. */
  exp: number
  /** 16 bytes: the receipt's identity in every ledger. */
  cti: Uint8Array
  /** How many tagged units were bought. */
  units: number
  /** 0–3, see `riskClass`. */
  riskClass: number
  policyVersion: number
  /** Per unit 4 bytes that a tag can be matched with, sorted; absent above 32 units. */
  entries?: readonly Uint8Array[]
}

/** CWT claim keys. The first three are registered; RFC 8392 leaves those below −65536 to private use. */
const CLAIM = {
  aud: 3,
  exp: 4,
  cti: 7,
  units: -65_537,
  riskClass: -65_538,
  policyVersion: -65_539,
  entries: -65_540,
} as const

const ENTRY_BYTES = 4
/** Above so many units a receipt carries no entries, and staff must look. */
export const MAX_ENTRIES = 32
const MAX_UNITS = 100_000
const NO_TAG = -1

/** The receipt's identity: 128 bits from an HMAC of the purchase. */
export function receiptIdentity(secret: Uint8Array, purchaseId: string): Uint8Array {
  return createHmac('sha256', secret).update(`untag/cti/1\0${purchaseId}`).digest().subarray(0, 16)
}

/** What a unit looks like in a receipt: the first 4 bytes of SHA-256(cti 0 kind 0 id). */
export function receiptEntry(cti: Uint8Array, kind: IdentifierKind, id: string): Uint8Array {
  return createHash('sha256').update(cti).update(`\0${kind}\0${id}`).digest().subarray(0, ENTRY_BYTES)
}

/** The claims as deterministic CBOR with the labels of contracts §2. */
export function encodeClaims(claims: ReceiptClaims): Uint8Array {
  const map = new Map<number, unknown>([
    [CLAIM.aud, claims.storeId],
    [CLAIM.exp, claims.exp],
    [CLAIM.cti, claims.cti],
    [CLAIM.units, claims.units],
    [CLAIM.riskClass, claims.riskClass],
    [CLAIM.policyVersion, claims.policyVersion],
  ])
  if (claims.entries) map.set(CLAIM.entries, Buffer.concat(claims.entries))
  return encodeCbor(map)
}

/** The claims, or undefined when anything is missing, unknown, out of range or not in deterministic form. */
export function decodeClaims(payload: Uint8Array): ReceiptClaims | undefined {
  const map = decodeCbor(payload, NO_TAG)
  if (!(map instanceof Map) || map.size !== (map.has(CLAIM.entries) ? 7 : 6)) return undefined
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
  return entries?.length === units ? { ...claims, entries } : undefined
}

function splitEntries(joined: unknown): Uint8Array[] | undefined {
  if (!(joined instanceof Uint8Array) || joined.length % ENTRY_BYTES !== 0 || joined.length > MAX_ENTRIES * ENTRY_BYTES)
    return undefined
  return Array.from({ length: joined.length / ENTRY_BYTES }, (_, i) =>
    joined.subarray(i * ENTRY_BYTES, (i + 1) * ENTRY_BYTES),
  )
}
