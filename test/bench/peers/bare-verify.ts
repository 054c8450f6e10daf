import { verify, type KeyObject } from 'node:crypto'
import type { KeyRing } from '../../../policy/documents/keys.ts'

/** Minimal verification of a token: only its signature. All inputs are decoded beforehand. */
export interface SignedBytes {
  readonly message: Buffer
  readonly signature: Buffer
  readonly key: KeyObject
}

/** Extracts message, signature and key of a token. */
export function signedBytes(token: string, keys: KeyRing): SignedBytes {
  const [header = '', claims = '', signature = ''] = token.split('.')
  const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string }
  const key = keys.get(kid)
  if (!key) throw new Error(`no key ${kid}`)
  return {
    message: Buffer.from(`${header}.${claims}`, 'latin1'),
    signature: Buffer.from(signature, 'base64url'),
    key: key.publicKey,
  }
}

export function bareVerify({ message, signature, key }: SignedBytes): void {
  if (!verify(null, message, key, signature)) throw new Error('a valid signature was rejected')
}
