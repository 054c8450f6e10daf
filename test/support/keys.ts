import {
  keyId,
  keyRing,
  newKey,
  createSigner,
  type KeyRecord,
  type KeyState,
  type KeyUse,
  type Signer,
} from '../../policy/documents/keys.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'

export interface TestKey {
  signer: Signer
  record: KeyRecord
}

/** Creates a key from a fixed seed, so that every run has the same key. */
export function testKey(use: KeyUse, options: { seed?: number; iss?: string; state?: KeyState } = {}): TestKey {
  const { x, secret } = newKey(seededRandom(options.seed ?? use.length * 1_000 + use.charCodeAt(0)))
  return {
    signer: createSigner(x, secret),
    record: { kid: keyId(x), alg: 'EdDSA', x, use, iss: options.iss ?? 'acc_1.test', state: options.state ?? 'active' },
  }
}

export function ringOf(...keys: TestKey[]) {
  return keyRing(keys.map((k) => k.record))
}
