import type { KeyObject } from 'node:crypto'
import { Tagged } from 'cborg'
import { isSignedBy, signBytes, type Signer } from '../documents/keys.ts'
import { decodeCbor, encodeCbor } from './deterministic-cbor.ts'

/** COSE_Sign1 (RFC 9052 §4.2) with Ed25519: protected header exactly {alg, kid}, empty unprotected map. */

const TAG = 18
const HEADER_ALG = 1
const HEADER_KID = 4
const ALG_EDDSA = -8

export interface CoseSign1 {
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
