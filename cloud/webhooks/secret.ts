import type { Randomness } from '../../policy/platform.ts'
import type { Sealer } from '../authority/sealing.ts'

/** Secrets that deliveries are signed with: shown once, sealed wherever they are kept. */

/** Shorter ones can be guessed by whoever sees a delivery. */
const STRONG_MIN = 16
export const SECRET_MAX = 128
const PREFIX = 'whsec_'
/** What `isSecret` and `isStrongSecret` want, for people. */
export const SECRET_RULE = `must be 1 to ${SECRET_MAX} visible characters`
export const STRONG_SECRET_RULE = `must be ${STRONG_MIN} to ${SECRET_MAX} visible characters, and base64 after ${PREFIX}`

/** `whsec_` and 256 random bits in base64, as Standard Webhooks has it. */
export function newSecret(random: Randomness): string {
  return `${PREFIX}${Buffer.from(random.bytes(32)).toString('base64')}`
}

/** Whether a merchant's text can be the secret of a webhook: the receiver is the merchant's own, and so is the choice. */
export function isSecret(text: string): boolean {
  return text.length <= SECRET_MAX && /^[\x21-\x7e]+$/.test(text)
}

/** Whether it can be what we believe others by: nobody guesses it, and where it says base64 it is. */
export function isStrongSecret(text: string): boolean {
  if (text.length < STRONG_MIN || !isSecret(text)) return false
  return (
    !text.startsWith(PREFIX) ||
    /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text.slice(PREFIX.length))
  )
}

/** What is to be said of a secret that a merchant chose. */
export function secretWarnings(secret: string | undefined): string[] {
  if (secret === undefined) return []
  return [
    ...(secret.length < STRONG_MIN
      ? [
          `the secret is short: whoever sees a delivery can find it out; take ${STRONG_MIN} characters or more, or leave it out and have one made`,
        ]
      : []),
    ...(secret.startsWith(PREFIX) && !innerKey(secret)
      ? [
          `what stands behind ${PREFIX} is no base64: the whole text is the key of webhook-signature, and other libraries may refuse it`,
        ]
      : []),
  ]
}

/** The key of the Standard Webhooks signature: the base64 after `whsec_`, else the UTF-8 bytes. As verifyWebhook of client/ has it. */
export function standardKey(secret: string): Buffer {
  return innerKey(secret) ?? Buffer.from(secret)
}

function innerKey(secret: string): Buffer | undefined {
  const inner = secret.slice(PREFIX.length)
  if (!secret.startsWith(PREFIX) || !/^[A-Za-z0-9+/]+={0,2}$/.test(inner)) return undefined
  try {
    return Buffer.from(atob(inner), 'latin1')
  } catch {
    return undefined
  }
}

/** The secret as it is kept, bound to its webhook. */
export function sealSecret(sealer: Sealer, webhookId: string, secret: string): string {
  return sealer.seal(Buffer.from(secret), `webhook/${webhookId}`)
}

/** The secret that was kept for this webhook. */
export function openSecret(sealer: Sealer, webhookId: string, sealed: string): string {
  return sealer.open(sealed, `webhook/${webhookId}`).toString('utf8')
}
