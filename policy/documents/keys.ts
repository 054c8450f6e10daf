import { createHash, createPrivateKey, createPublicKey, sign, verify, type KeyObject } from 'node:crypto'
import type { Randomness } from '../platform.ts'

/** Uses of keys. A key has exactly one use (RFC 8725 §3.11, explicit typing). */
export const KEY_USES = ['root', 'token', 'receipt', 'policy', 'freshness', 'agent'] as const
export type KeyUse = (typeof KEY_USES)[number]

/** next: published, not signing yet · active: signs · retiring: only verifies · retired, revoked: rejected. */
export const KEY_STATES = ['next', 'active', 'retiring', 'retired', 'revoked'] as const
export type KeyState = (typeof KEY_STATES)[number]

/** Public key as published (RFC 8037); `x` is base64url. */
interface PublicJwk {
  kty: 'OKP'
  crv: 'Ed25519'
  x: string
}

export interface KeyRecord {
  /** First 8 characters of the RFC 7638 thumbprint. */
  kid: string
  alg: 'EdDSA'
  x: string
  use: KeyUse
  /** Issuer of the documents that this key signs: an account and mode, an agent, or the installation. */
  iss: string
  state: KeyState
}

/** A key record with the parsed public key. */
export interface VerificationKey extends KeyRecord {
  readonly publicKey: KeyObject
}

/** Keys by `kid`. A Map, so that a received `kid` cannot name an object property. */
export type KeyRing = ReadonlyMap<string, VerificationKey>

export interface Signer {
  readonly kid: string
  readonly privateKey: KeyObject
}

/** Public key as JWK (RFC 8037). `x`: 43 characters base64url. */
export function publicJwk(x: string): PublicJwk {
  return { kty: 'OKP', crv: 'Ed25519', x }
}

/** RFC 7638 thumbprint of an Ed25519 public key, 32 bytes. */
export function thumbprint(x: string): Buffer {
  return createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest()
}

/** Key id: the first 8 characters of the RFC 7638 thumbprint. */
export function keyId(x: string): string {
  return thumbprint(x).toString('base64url').slice(0, 8)
}

/** Parses the public key. Throws if `x` is no Ed25519 key. */
export function verificationKey(record: KeyRecord): VerificationKey {
  return { ...record, publicKey: createPublicKey({ key: { ...publicJwk(record.x) }, format: 'jwk' }) }
}

/** Parses each key once and indexes the keys by id. */
export function keyRing(records: Iterable<KeyRecord>): KeyRing {
  return new Map([...records].map((r) => [r.kid, verificationKey(r)]))
}

interface NewKey {
  x: string
  /** PKCS #8, DER. */
  secret: Buffer
}

/** Creates an Ed25519 key from 32 random bytes (RFC 8032 §5.1.5). */
export function newKey(random: Randomness): NewKey {
  const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
  const secret = Buffer.concat([pkcs8Prefix, random.bytes(32)])
  const jwk = createPublicKey(createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' })).export({ format: 'jwk' })
  return { x: jwk.x as string, secret }
}

/** Creates a signer. `x`: public key, base64url; `secret`: private key, PKCS #8 DER. */
export function createSigner(x: string, secret: Buffer): Signer {
  return { kid: keyId(x), privateKey: createPrivateKey({ key: secret, format: 'der', type: 'pkcs8' }) }
}

/** Signs with Ed25519 (RFC 8032); returns 64 bytes. */
export function signBytes(message: Uint8Array, by: Signer): Buffer {
  return sign(null, message, by.privateKey)
}

/** Verifies pure Ed25519 (RFC 8032). False for a signature of another length. */
export function isSignedBy(message: Uint8Array, signature: Uint8Array, publicKey: KeyObject): boolean {
  return signature.length === 64 && verify(null, message, publicKey, signature)
}

const P = 2n ** 255n - 19n
/** y-coordinates of the eight points of small order (RFC 7748 §7, libsodium's list), sign bit cleared. */
const SMALL_ORDER_Y = new Set([
  0n,
  1n,
  P - 1n,
  littleEndian(Buffer.from('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05', 'hex')),
  littleEndian(Buffer.from('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a', 'hex')),
])

/**
 * Returns why a public key must be rejected; undefined if the key is safe. OpenSSL accepts keys of small order and
 * non-canonical keys. With such a key, one signature fits many messages.
 */
export function publicKeyWeakness(x: string): string | undefined {
  const bytes = Buffer.from(x, 'base64url')
  if (bytes.length !== 32 || bytes.toString('base64url') !== x) return 'not 32 bytes in canonical base64url'
  const y = littleEndian(bytes) & (2n ** 255n - 1n)
  if (y >= P) return 'not in canonical form'
  if (SMALL_ORDER_Y.has(y)) return 'a point of small order'
  return undefined
}

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt('0x' + Buffer.from(bytes).reverse().toString('hex'))
}
