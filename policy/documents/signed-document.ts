import { readUntrustedJson } from '../untrusted-json.ts'
import type { DocumentKind } from './kinds.ts'
import { isSignedBy, signBytes, type KeyRing, type Signer, type VerificationKey } from './keys.ts'

/** Unverified claims of a document, as a hint only. Empty if the document has no readable claims. */
export function decodeUnverifiedClaims(jws: string): Record<string, unknown> {
  const claims = readUntrustedJson(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
  return typeof claims === 'object' && claims !== null ? (claims as Record<string, unknown>) : {}
}

/**
 * The only parser of signed documents. The parser checks in this order: length, three parts, header exactly {alg, kid,
 * typ}, key by `kid`, use and state of the key, signature, claims. The parser accepts one spelling of each document.
 * JWT libraries also accept padding, white space, repeated claims and 16 spellings of the last character of a
 * signature.
 */

/** Codes of rejected documents. docs/reference/errors.md describes them. */
export type DocumentErrorCode =
  | 'too_long'
  | 'malformed'
  | 'header_not_allowed'
  | 'wrong_kind'
  | 'unknown_key'
  | 'key_revoked'
  | 'bad_signature'
  | 'not_canonical'
  | 'claims_invalid'
  | 'wrong_audience'
  | 'life_too_long'
  | 'issued_in_future'
  | 'expired'

declare const verifiedBrand: unique symbol
/** A value with a verified signature. Only this file creates such values. */
export type Verified<T> = T & { readonly [verifiedBrand]: true }

/** Claims that every document has. Times are seconds since 1970. */
interface CommonClaims {
  aud: string
  iat: number
  exp: number
}

type OpenedDocument<T> =
  | { ok: true; claims: Verified<T & CommonClaims>; key: VerificationKey }
  | { ok: false; fault: DocumentErrorCode; detail: string }

export interface DocumentExpectation {
  keys: KeyRing
  /** Required audience. */
  audience: string
  /** Trusted time, seconds since 1970. If absent, the times are not checked. */
  now?: number
  /** True if the real time may be later than `now`. An `iat` after `now` is then accepted. */
  nowIsLowerBound?: boolean
}

/** Tolerance for an issuer's clock that is ahead, s. */
export const ISSUED_AHEAD_TOLERANCE = 5

const SIGNATURE_LENGTH = 86 // 64 bytes in base64url

function refuse(fault: DocumentErrorCode, detail: string): { ok: false; fault: DocumentErrorCode; detail: string } {
  return { ok: false, fault, detail }
}

/** Decodes canonical base64url; undefined for other texts. */
function decodePart(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, 'base64url')
  return bytes.toString('base64url') === part ? bytes : undefined
}

/** Parses a JSON object. Accepts one spelling only: rejects spaces, repeated names and numbers such as `1.0`. */
function parseObject(part: string): Record<string, unknown> | DocumentErrorCode {
  const bytes = decodePart(part)
  if (!bytes) return 'malformed'
  const text = bytes.toString('utf8')
  const value = readUntrustedJson(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'malformed'
  return JSON.stringify(value) === text ? (value as Record<string, unknown>) : 'not_canonical'
}

interface Header {
  kid: string
  typ: string
}

/** Cache of parsed headers: a few keys sign all documents of a shop. */
const knownHeaders = new Map<string, Header>()
const KNOWN_HEADERS_LIMIT = 256
/** Maximum length of a header, characters. Headers of untag have about 70. */
const HEADER_LIMIT = 200

function readHeader(part: string): Header | DocumentErrorCode {
  const known = knownHeaders.get(part)
  if (known) return known
  if (part.length > HEADER_LIMIT) return 'header_not_allowed'
  const header = parseObject(part)
  if (typeof header === 'string') return header
  const { alg, kid, typ } = header
  if (Object.keys(header).length !== 3 || alg !== 'EdDSA') return 'header_not_allowed'
  if (typeof kid !== 'string' || !/^[A-Za-z0-9_-]{8}$/.test(kid) || typeof typ !== 'string') return 'header_not_allowed'
  if (knownHeaders.size >= KNOWN_HEADERS_LIMIT) knownHeaders.clear()
  const read = { kid, typ }
  knownHeaders.set(part, read)
  return read
}

/** Unverified `kid` of a document. Use it only to look up the key of an agent. */
export function claimedKeyId(text: string, kind: DocumentKind): string | undefined {
  if (text.length > kind.maxLength) return undefined
  const header = readHeader(text.slice(0, text.indexOf('.')))
  return typeof header === 'string' || header.typ !== kind.typ ? undefined : header.kid
}

/** Verifies a document of `kind`. The caller validates the claims beyond {aud, iat, exp}. */
export function openDocument<T extends object>(
  text: string,
  kind: DocumentKind,
  expected: DocumentExpectation,
): OpenedDocument<T> {
  if (text.length > kind.maxLength) return refuse('too_long', `over ${kind.maxLength} characters`)
  const first = text.indexOf('.')
  const second = text.indexOf('.', first + 1)
  if (first < 1 || second < first + 2 || text.indexOf('.', second + 1) >= 0)
    return refuse('malformed', 'not three parts')
  const header = readHeader(text.slice(0, first))
  if (typeof header === 'string') return refuse(header, 'the header is not exactly {alg, kid, typ}')
  if (header.typ !== kind.typ) return refuse('wrong_kind', `${header.typ} is not ${kind.typ}`)

  const key = expected.keys.get(header.kid)
  if (!key) return refuse('unknown_key', `no key ${header.kid}`)
  if (key.use !== kind.use) return refuse('wrong_kind', `key ${key.kid} signs no ${kind.typ}`)
  if (key.state === 'revoked' || key.state === 'retired') return refuse('key_revoked', `key ${key.kid} is ${key.state}`)

  if (text.length - second - 1 !== SIGNATURE_LENGTH) return refuse('bad_signature', 'not 64 bytes')
  const signature = decodePart(text.slice(second + 1))
  if (!signature) return refuse('malformed', 'the signature is not canonical base64url')
  if (!isSignedBy(Buffer.from(text.slice(0, second), 'latin1'), signature, key.publicKey)) {
    return refuse('bad_signature', `not signed by ${key.kid}`)
  }
  const claims = parseObject(text.slice(first + 1, second))
  if (typeof claims === 'string') return refuse(claims, 'the claims are not one canonical JSON object')
  const fault = checkCommonClaims(claims, kind, expected)
  return fault ?? { ok: true, claims: claims as Verified<T & CommonClaims>, key }
}

function checkCommonClaims(
  claims: Record<string, unknown>,
  kind: DocumentKind,
  { audience, now, nowIsLowerBound = false }: DocumentExpectation,
) {
  const { aud, iat, exp } = claims
  if (aud !== audience) return refuse('wrong_audience', `not for ${audience}`)
  if (!Number.isSafeInteger(iat) || !Number.isSafeInteger(exp))
    return refuse('claims_invalid', 'iat and exp must be whole seconds')
  const [issued, expires] = [iat as number, exp as number]
  if (issued < 0 || expires <= issued) return refuse('claims_invalid', 'exp must come after iat')
  if (expires - issued > kind.maxLife) return refuse('life_too_long', `lives over ${kind.maxLife} s`)
  if (now === undefined) return undefined
  if (!nowIsLowerBound && issued > now + ISSUED_AHEAD_TOLERANCE)
    return refuse('issued_in_future', `issued ${Math.round(issued - now)} s ahead`)
  if (now >= expires) return refuse('expired', `expired ${Math.round(now - expires)} s ago`)
  return undefined
}

/** Signs `claims` as a document of `kind`. */
export function signDocument<T extends object>(kind: DocumentKind, claims: T & CommonClaims, by: Signer): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const input = `${part({ alg: 'EdDSA', kid: by.kid, typ: kind.typ })}.${part(claims)}`
  return `${input}.${signBytes(Buffer.from(input), by).toString('base64url')}`
}
