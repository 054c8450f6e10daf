import { createCipheriv, createDecipheriv, createHash, hkdfSync } from 'node:crypto'
import { assert } from '../../policy/assert.ts'
import type { Randomness } from '../../policy/platform.ts'

/**
 *   {key id}.{base64url of iv, ciphertext, tag}
 *
 * Keeps secrets that the cloud must be able to read again: AES-256-GCM, bound to the place they are kept in. Each text names its key,
 * so that keys can be changed: the newest seals, older ones still open. Where each is kept: sealed-columns.ts.
 */
export interface Sealer {
  /** `context` names the place (table, row); the same is needed to open. */
  seal(plain: Uint8Array, context: string): string
  /** Throws when the text was made with a key that is not there, or for another place. */
  open(sealed: string, context: string): Buffer
  /** Whether the text was made with the newest key. */
  isCurrent(sealed: string): boolean
}

export const KEY_BYTES = 32
const IV_BYTES = 12
const TAG_BYTES = 16

/** What a key is called in the texts that it seals: says nothing of the key. */
export function sealingKeyId(key: Uint8Array): string {
  return `k${createHash('sha256').update('untag/sealing-key/1').update(key).digest('hex').slice(0, 12)}`
}

/** AES-256-GCM under the first of these 32-byte keys; what the others have sealed can still be opened. */
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
      if (!key) throw new Error(`sealed with the key ${sealed.slice(0, dot)}, which is not there`)
      return openWith(key, sealed.slice(dot + 1), context)
    },
    isCurrent: (sealed) => sealed.startsWith(`${currentId}.`),
  }
}

/** Before keys had names, there was one: it is among these. */
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

/** A sealer whose key is a text that only the caller has: what it seals, we cannot read again without them. */
export function sealerFromText(secret: string, random: Randomness): Sealer {
  return sealer([new Uint8Array(hkdfSync('sha256', secret, 'untag/seal/1', '', KEY_BYTES))], random)
}
