import { keyId, keyRing, type KeyRing } from '../../../policy/documents/keys.ts'

/** A key ring with the root key alone; the root signs key sets. */
export function rootRing({ rootX }: { rootX: string }): KeyRing {
  return keyRing([{ kid: keyId(rootX), alg: 'EdDSA', x: rootX, use: 'root', iss: 'root', state: 'active' }])
}
