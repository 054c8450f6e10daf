import { createCipheriv, createDecipheriv, hkdfSync } from 'node:crypto'
import type { Randomness } from '../../policy/platform.ts'

/** Keeps secrets that the cloud must be able to read again: AES-256-GCM, bound to the place they are kept in. */
export interface Sealer {
  /** `context` names the place (table, row); the same is needed to open. */
  seal(plain: Uint8Array, context: string): string
  /** Throws when the text was made with another key or for another place. */
  open(sealed: string, context: string): Buffer
}

const IV_BYTES = 12
const TAG_BYTES = 16

/** AES-256-GCM under this 32-byte key, bound to what the secret belongs to. */
export function sealer(key: Uint8Array, random: Randomness): Sealer {
  return {
    seal(plain, context) {
      const iv = random.bytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, iv).setAAD(Buffer.from(context))
      return Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]).toString('base64url')
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES)).setAAD(Buffer.from(context))
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()])
    },
  }
}

/** A sealer whose key is a text that only the caller has: what it seals, we cannot read again without them. */
export function sealerFromText(secret: string, random: Randomness): Sealer {
  return sealer(new Uint8Array(hkdfSync('sha256', secret, 'untag/seal/1', '', 32)), random)
}
