import type { Randomness } from '../../policy/platform.ts'
import type { Sealer } from '../authority/sealing.ts'

/** Secrets that deliveries are signed with: shown once, sealed wherever they are kept. */

export const SECRET_MIN = 16
export const SECRET_MAX = 128
const PREFIX = 'whsec_'
/** What `isSecret` wants, for people. */
export const SECRET_RULE = `must be ${SECRET_MIN} to ${SECRET_MAX} visible characters, and base64 after ${PREFIX}`

/** `whsec_` and 256 random bits in base64, as Standard Webhooks has it. */
export function newSecret(random: Randomness): string {
  return `${PREFIX}${Buffer.from(random.bytes(32)).toString('base64')}`
}

/** Whether a text can be a secret: 16 … 128 visible characters, and base64 where it says so. */
export function isSecret(text: string): boolean {
  if (text.length < SECRET_MIN || text.length > SECRET_MAX || !/^[\x21-\x7e]+$/.test(text)) return false
  return !text.startsWith(PREFIX) || /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text.slice(PREFIX.length))
}

/** The key of the Standard Webhooks signature: the base64 after `whsec_`, else the UTF-8 bytes. */
export function standardKey(secret: string): Buffer {
  return secret.startsWith(PREFIX) ? Buffer.from(secret.slice(PREFIX.length), 'base64') : Buffer.from(secret)
}

/** The secret as it is kept, bound to its webhook. */
export function sealSecret(sealer: Sealer, webhookId: string, secret: string): string {
  return sealer.seal(Buffer.from(secret), `webhook/${webhookId}`)
}

/** The secret that was kept for this webhook. */
export function openSecret(sealer: Sealer, webhookId: string, sealed: string): string {
  return sealer.open(sealed, `webhook/${webhookId}`).toString('utf8')
}
