import { keyId, keyRing, type KeyRing } from '../../../policy/documents/keys.ts'

/** The ring of the root alone, which signs the key sets. */
export function rootRing({ rootX }: { rootX: string }): KeyRing {
  return keyRing([{ kid: keyId(rootX), alg: 'EdDSA', x: rootX, use: 'root', iss: 'root', state: 'active' }])
}
