import { scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import type { Verifier } from '../../../policy/documents/store-documents.ts'
import { KEY_BYTES, type Derivation } from '../../../policy/verifiers.ts'
import { Failure } from '../../foundation/failure.ts'

/** Requests that derive at a time: each keeps a core busy for a good while, which gates and tills should not wait for. */
const AT_WORK_LIMIT = 2
let atWork = 0

/** Does what derives keys when there is room for it; 503 when too many are at it. */
export async function withDerivationSlot<T>(work: () => Promise<T>): Promise<T> {
  if (atWork >= AT_WORK_LIMIT)
    throw new Failure('unavailable', 'too many PINs and cards are being taken; try again', { retryAfter: 1 })
  atWork++
  try {
    return await work()
  } finally {
    atWork--
  }
}

const derive = promisify<string, Uint8Array, number, { N: number; r: number; p: number }, Buffer>(scrypt)

/** The verifier of a secret that few values are likely of, made beside the work of everybody else. */
export async function deriveVerifier(secret: string, how: Derivation): Promise<Verifier> {
  const { salt, n, r, p } = how
  const key = await derive(secret, Buffer.from(salt, 'base64url'), KEY_BYTES, { N: n, r, p })
  return { ...how, key: key.toString('base64url') }
}
