import { scrypt } from 'node:crypto'
import { promisify } from 'node:util'
import type { Verifier } from '../../../policy/documents/store-documents.ts'
import { DERIVED_KEY_BYTES, type KeyDerivation } from '../../../policy/operator-verifiers.ts'
import { sharedSlots } from '../../foundation/shared-slots.ts'

/** Each derivation keeps a core busy. More concurrent derivations would delay requests of gates and tills. */
export const withDerivationSlot = sharedSlots(
  { atWork: 2, atWorkOfOne: 1, waiting: 20, waitingOfOne: 10 },
  { text: 'too many operators are being registered: try again', retryAfter: 1 },
)

const derive = promisify<string, Uint8Array, number, { N: number; r: number; p: number }, Buffer>(scrypt)

/** Derives the verifier of a secret that can be guessed, such as a PIN. Runs outside the main thread. */
export async function deriveVerifier(secret: string, how: KeyDerivation): Promise<Verifier> {
  const { salt, n, r, p } = how
  const key = await derive(secret, Buffer.from(salt, 'base64url'), DERIVED_KEY_BYTES, { N: n, r, p })
  return { ...how, key: key.toString('base64url') }
}
