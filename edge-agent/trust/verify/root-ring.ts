import { keyId, keyRing, type KeyRing } from '../../../policy/documents/keys.ts'

/** Returns a key ring with only the root key, which verifies key sets. */
export function rootRing({ rootX }: { rootX: string }): KeyRing {
  return keyRing([{ kid: keyId(rootX), alg: 'EdDSA', x: rootX, use: 'root', iss: 'root', state: 'active' }])
}
