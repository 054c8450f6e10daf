import { createCipheriv, createDecipheriv, createHash, hkdfSync } from 'node:crypto'
import { assert } from '../../../policy/assert.ts'
import type { Randomness } from '../../../policy/platform.ts'

/**
 * Encrypts secrets that the cloud must read again, with AES-256-GCM. A sealed text can be opened only in its table and
 * row (see sealed-columns.ts). The form of a sealed text is `{key id}.{base64url of iv, ciphertext, tag}`. The key id
 * allows rotation: the newest key seals, and older keys still open their texts.
 */
export interface Sealer {
  /** `context` names table and row. `open` needs the same context. */
  seal(plain: Uint8Array, context: string): string
  /** Throws if the key is missing or the text was sealed with another context. */
  open(sealed: string, context: string): Buffer
  /** True if the newest key sealed the text. */
  isCurrent(sealed: string): boolean
}

export const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16

/** Name of a key in sealed texts; reveals nothing about the key. */
export function sealingKeyId(key: Uint8Array): string {
  return `k${createHash('sha256').update('untag/sealing-key/1').update(key).digest('hex').slice(0, 12)}`
}

/** Seals with the first of these 32-byte keys and opens with any of them. */
export function sealer(keys: readonly Uint8Array[], random: Randomness): Sealer {
  const [current] = keys
  assert(current && keys.every((key) => key.length === KEY_BYTES), 'sealing needs keys of 32 bytes')
  const byId = new Map(keys.map((key) => [sealingKeyId(key), key]))
  const currentId = sealingKeyId(current)
  return {
    seal(plain, context) {
      const iv = random.bytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', current, iv).setAAD(Buffer.from(context))
      return `${currentId}.${Buffer.concat([iv, cipher.update(plain), cipher.final(), cipher.getAuthTag()]).toString('base64url')}`
    },
    open(sealed, context) {
      const dot = sealed.indexOf('.')
      if (dot < 0) return openUnnamed(sealed, context, keys)
      const key = byId.get(sealed.slice(0, dot))
      if (!key)
        throw new Error(
          `sealed with the key ${sealed.slice(0, dot)}, which is missing: restore it from your backup of keys`,
        )
      return openWith(key, sealed.slice(dot + 1), context)
    },
    isCurrent: (sealed) => sealed.startsWith(`${currentId}.`),
  }
}

/** Opens a text of the first format, which has no key id. Tries each key. */
function openUnnamed(sealed: string, context: string, keys: readonly Uint8Array[]): Buffer {
  let fault: unknown
  for (const key of keys) {
    try {
      return openWith(key, sealed, context)
    } catch (error) {
      fault = error
    }
  }
  throw fault
}

function openWith(key: Uint8Array, sealed: string, context: string): Buffer {
  const bytes = Buffer.from(sealed, 'base64url')
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES)).setAAD(Buffer.from(context))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()])
}

/** Sealer with a key derived from a secret that only the caller has. The cloud does not store the secret. */
export function sealerFromText(secret: string, random: Randomness): Sealer {
  return sealer([new Uint8Array(hkdfSync('sha256', secret, 'untag/seal/1', '', KEY_BYTES))], random)
}
