import { base32 } from '../base32.ts'
import type { DocumentErrorCode } from '../documents/signed-document.ts'
import { type KeyRing, type Signer, isSignedBy, signBytes } from '../documents/keys.ts'
import { numberFacts, type NamingPolicy } from './policy-names.ts'
import {
  decodeReceiptClaims,
  encodeReceiptClaims,
  MAX_ENTRIES,
  type ReceiptClaims,
  type UnitFacts,
  decodeCbor,
  encodeCbor,
} from './receipt-claims.ts'
import type { KeyObject } from 'node:crypto'
import { Tagged } from 'cborg'

/** COSE_Sign1 (RFC 9052 §4.2) with Ed25519: protected header exactly {alg, kid}, empty unprotected map. */

const TAG = 18
const HEADER_ALG = 1
const HEADER_KID = 4
const ALG_EDDSA = -8

interface CoseSign1 {
  kid: string
  protectedHeader: Uint8Array
  payload: Uint8Array
  signature: Uint8Array
}

function toBeSigned(protectedHeader: Uint8Array, externalAad: Uint8Array, payload: Uint8Array): Uint8Array {
  return encodeCbor(['Signature1', protectedHeader, externalAad, payload])
}

/** Signs a tagged COSE_Sign1 with all headers protected. */
export function signCose(payload: Uint8Array, externalAad: Uint8Array, by: Signer): Uint8Array {
  const fields = new Map<number, unknown>([
    [HEADER_ALG, ALG_EDDSA],
    [HEADER_KID, Buffer.from(by.kid)],
  ])
  const protectedHeader = encodeCbor(fields)
  const signature = signBytes(toBeSigned(protectedHeader, externalAad, payload), by)
  return encodeCbor(new Tagged(TAG, [protectedHeader, new Map(), payload, signature]))
}

/** Parses a COSE_Sign1 of exactly this shape, without verification. Undefined for anything else. */
export function parseCose(bytes: Uint8Array): CoseSign1 | undefined {
  const tagged = decodeCbor(bytes, TAG)
  if (!(tagged instanceof Tagged) || !Array.isArray(tagged.value) || tagged.value.length !== 4) return undefined
  const [protectedHeader, unprotected, payload, signature] = tagged.value as unknown[]
  if (!(protectedHeader instanceof Uint8Array) || !(payload instanceof Uint8Array)) return undefined
  if (!(unprotected instanceof Map) || unprotected.size !== 0) return undefined
  if (!(signature instanceof Uint8Array) || signature.length !== 64) return undefined
  const fields = decodeCbor(protectedHeader, TAG)
  if (!(fields instanceof Map) || fields.size !== 2 || fields.get(HEADER_ALG) !== ALG_EDDSA) return undefined
  const kid: unknown = fields.get(HEADER_KID)
  if (!(kid instanceof Uint8Array)) return undefined
  return { kid: Buffer.from(kid).toString('latin1'), protectedHeader, payload, signature }
}

/** Verifies the signature over the Sig_structure with this external data. */
export function isCoseSignedBy(cose: CoseSign1, externalAad: Uint8Array, publicKey: KeyObject): boolean {
  return isSignedBy(toBeSigned(cose.protectedHeader, externalAad, cose.payload), cose.signature, publicKey)
}

/**
 * Receipt token in a QR code: COSE_Sign1 over CWT claims in deterministic CBOR, as upper-case Base32 in a URL.
 *
 *   HTTPS://SHOP.EXAMPLE/R/2KCE3IQBE4CE…
 */

const EXTERNAL_AAD = Buffer.from('untag-receipt-1')
const MAX_LENGTH = 1_024
const MAX_SCAN_LENGTH = 4_096

/** Lifetime of a receipt from completion, s. */
export const RECEIPT_LIFE = 24 * 3_600
/**
 * Tolerance between the clocks of cloud and agents (ADR trusted-time), s. The clock of an agent that was offline for days may
 * be some seconds behind.
 */
const AHEAD_TOLERANCE = 60

/**
 * Beginning of every token: tag, array, protected header up to the kid. This beginning contains no Y or Z, which
 * scanners with another keyboard layout swap.
 */
export const RECEIPT_PREFIX = '2KCE3IQBE4CE'

/** Signs a receipt. Returns the token that follows `/R/` in the QR code. */
export function signReceipt(claims: ReceiptClaims, by: Signer): string {
  return base32.encode(signCose(encodeReceiptClaims(claims), EXTERNAL_AAD, by))
}

/** URL in the QR code. Upper case fits the alphanumeric mode, and phones open such URLs. */
export function receiptAddress(origin: string, token: string): string {
  return `${origin.toUpperCase()}/R/${token}`
}

/** Capacity of a QR code of version 15, level M, alphanumeric mode (ISO/IEC 18004, table 7), characters. */
export const RECEIPT_QR_CHARACTERS = 600
/** Longest address that phones and scanners read from a code of 256 pixels, characters. */
const SMALL_QR_CHARACTERS = 400

/**
 * Signs a receipt whose URL at `origin` fits a QR code of version 15, level M. If the code would not be small, category
 * and brand are numbers of names in `policy`. Omits the unit facts if even these do not fit; the other claims always
 * fit.
 */
export function signReceiptForQr(
  origin: string,
  claims: ReceiptClaims & { facts?: readonly UnitFacts[] },
  policy: NamingPolicy,
  by: Signer,
): string {
  const { facts, ...bare } = claims
  const whole = signReceipt(claims, by)
  if (facts === undefined || receiptAddress(origin, whole).length <= SMALL_QR_CHARACTERS) return whole
  const numbered = signReceipt({ ...bare, ...numberFacts(facts, policy) }, by)
  return receiptAddress(origin, numbered).length <= RECEIPT_QR_CHARACTERS ? numbered : signReceipt(bare, by)
}

/**
 * Signs the receipt of a sale that a till reported to an agent (ADR till-sales). Its entries are the goods of the sale,
 * for recalls and holds, and no units: it has only its own right (`PASS`). A receipt of more than 32 goods has no entries.
 */
export function signSaleReceipt(
  claims: Omit<ReceiptClaims, 'units' | 'entries' | 'facts' | 'namesDigest'>,
  goods: readonly Uint8Array[],
  by: Signer,
): string {
  const entries = goods.length > MAX_ENTRIES ? undefined : goods
  return signReceipt({ units: entries?.length ?? 0, ...claims, ...(entries && { entries }) }, by)
}

/** `isOfAgent`: an agent signed it for a sale of a till (`signSaleReceipt`); `iss` is that agent. */
export type OpenedReceipt =
  | { ok: true; claims: ReceiptClaims; iss: string; isOfAgent: boolean }
  | { ok: false; fault: DocumentErrorCode; detail: string }

interface ReceiptExpectation {
  keys: KeyRing
  /** Keys of the agents whose receipts for sales of tills count. Absent: none. */
  agents?: KeyRing
  /** Required store. Absent if the caller finds the store from the receipt. */
  storeId?: string
  /** Trusted time, seconds since 1970. If absent, expiry is not checked (public receipt page). */
  now?: number
  /** True if the real time may be later than `now`. The maximum lifetime is then not checked. */
  nowIsLowerBound?: boolean
}

/** Extracts the last possible receipt token from a scanned text. */
export function extractReceiptToken(scanned: string): string | undefined {
  if (scanned.length > MAX_SCAN_LENGTH) return undefined
  const text = scanned.trim().toUpperCase()
  const start = text.lastIndexOf(RECEIPT_PREFIX)
  return start < 0 ? undefined : text.slice(start)
}

/** Unverified key and identity (hex) of the possible receipts in a text: as read, and with Y and Z swapped. */
export function claimedReceipts(scanned: string): { kid: string; cti: string }[] {
  const token = extractReceiptToken(scanned)
  if (token === undefined || token.length > MAX_LENGTH) return []
  return [token, swapYZ(token)].flatMap((text) => {
    const bytes = base32.decode(text)
    const cose = bytes && parseCose(bytes)
    const claims = cose && decodeReceiptClaims(cose.payload)
    return claims ? [{ kid: cose.kid, cti: Buffer.from(claims.cti).toString('hex') }] : []
  })
}

/**
 * Verifies a scanned receipt. Scanners set to the other keyboard layout (German or English) swap Y and Z; the signature
 * shows which reading is right.
 */
export function openReceipt(scanned: string, expected: ReceiptExpectation): OpenedReceipt {
  const token = extractReceiptToken(scanned)
  if (token === undefined) return refuse('malformed', 'no receipt token in the text')
  const asRead = openToken(token, expected)
  if (asRead.ok) return asRead
  const swapped = openToken(swapYZ(token), expected)
  return swapped.ok ? swapped : asRead
}

function swapYZ(text: string): string {
  return text.replace(/[YZ]/g, (c) => (c === 'Y' ? 'Z' : 'Y'))
}

function refuse(fault: DocumentErrorCode, detail: string): OpenedReceipt {
  return { ok: false, fault, detail }
}

function openToken(token: string, expected: ReceiptExpectation): OpenedReceipt {
  if (token.length > MAX_LENGTH) return refuse('too_long', `over ${MAX_LENGTH} characters`)
  const bytes = base32.decode(token)
  const cose = bytes && parseCose(bytes)
  if (!cose) return refuse('malformed', 'not a COSE_Sign1 in Base32')
  const agentKey = expected.agents?.get(cose.kid)
  const key = agentKey ?? expected.keys.get(cose.kid)
  if (!key) return refuse('unknown_key', `no key ${cose.kid}`)
  if (key.use !== (agentKey ? 'agent' : 'receipt')) return refuse('wrong_kind', `key ${key.kid} signs no receipts`)
  if (key.state === 'revoked' || key.state === 'retired') return refuse('key_revoked', `key ${key.kid} is ${key.state}`)
  if (!isCoseSignedBy(cose, EXTERNAL_AAD, key.publicKey)) return refuse('bad_signature', `not signed by ${key.kid}`)
  const claims = decodeReceiptClaims(cose.payload)
  if (!claims) return refuse('claims_invalid', 'the claims are not those of a receipt')
  if (expected.storeId !== undefined && claims.storeId !== expected.storeId)
    return refuse('wrong_audience', 'a receipt of another store')
  if (expected.now !== undefined) {
    if (!expected.nowIsLowerBound && claims.exp > expected.now + RECEIPT_LIFE + AHEAD_TOLERANCE)
      return refuse('life_too_long', 'expires later than any receipt may')
    if (expected.now >= claims.exp) return refuse('expired', 'over 24 hours old')
  }
  return { ok: true, claims, iss: key.iss, isOfAgent: agentKey !== undefined }
}
