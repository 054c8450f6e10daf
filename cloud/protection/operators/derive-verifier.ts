import { scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import type { Verifier } from '../../../policy/documents/store-documents.ts'
import { DERIVED_KEY_BYTES, type KeyDerivation } from '../../../policy/operator-verifiers.ts'
import { Failure } from '../../foundation/failure.ts'

/**
 * Maximum number of concurrent derivations. Each derivation keeps a core busy. More concurrent derivations would delay
 * requests of gates and tills.
 */
const AT_WORK_LIMIT = 2
let atWork = 0

/** Runs `work` if a derivation slot is free; throws 503 otherwise. */
export async function withDerivationSlot<T>(work: () => Promise<T>): Promise<T> {
  if (atWork >= AT_WORK_LIMIT)
    throw new Failure('unavailable', 'too many operators are being registered: try again', { retryAfter: 1 })
  atWork++
  try {
    return await work()
  } finally {
    atWork--
  }
}

const derive = promisify<string, Uint8Array, number, { N: number; r: number; p: number }, Buffer>(scrypt)

/** Derives the verifier of a secret that can be guessed, such as a PIN. Runs outside the main thread. */
export async function deriveVerifier(secret: string, how: KeyDerivation): Promise<Verifier> {
  const { salt, n, r, p } = how
  const key = await derive(secret, Buffer.from(salt, 'base64url'), DERIVED_KEY_BYTES, { N: n, r, p })
  return { ...how, key: key.toString('base64url') }
}
