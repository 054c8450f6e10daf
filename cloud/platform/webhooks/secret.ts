import type { Randomness } from '../../../policy/platform.ts'
import type { Sealer } from '../authority/sealing.ts'
import { createHmac } from 'node:crypto'

/** Secrets that sign deliveries. Secrets are shown once and stored sealed. */

/** Shorter secrets can be found by brute force from one delivery. */
const STRONG_MIN = 16
export const SECRET_MAX = 128
const PREFIX = 'whsec_'
/** Error texts for `isSecret` and `isStrongSecret`. */
export const SECRET_RULE = `must be 1 to ${SECRET_MAX} visible characters`
export const STRONG_SECRET_RULE = `must be ${STRONG_MIN} to ${SECRET_MAX} visible characters, and base64 after ${PREFIX}`

/** Makes a secret: `whsec_` and 256 random bits in base64 (Standard Webhooks). */
export function newSecret(random: Randomness): string {
  return `${PREFIX}${Buffer.from(random.bytes(32)).toString('base64')}`
}

/**
 * True if a text can be the secret of a webhook. Weak secrets are allowed, because a secret protects only the
 * merchant's own receiver.
 */
export function isSecret(text: string): boolean {
  return text.length <= SECRET_MAX && /^[\x21-\x7e]+$/.test(text)
}

/**
 * True if a secret is strong enough for requests that the cloud trusts: it has at least 16 characters. If it starts
 * with `whsec_`, valid base64 must follow.
 */
export function isStrongSecret(text: string): boolean {
  if (text.length < STRONG_MIN || !isSecret(text)) return false
  return (
    !text.startsWith(PREFIX) ||
    /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text.slice(PREFIX.length))
  )
}

/** Warnings about a secret that a merchant chose. */
export function secretWarnings(secret: string | undefined): string[] {
  if (secret === undefined) return []
  return [
    ...(secret.length < STRONG_MIN
      ? [
          `the secret is short, so it can be found from one delivery: use ${STRONG_MIN} characters or more, or leave it out to get a generated one`,
        ]
      : []),
    ...(secret.startsWith(PREFIX) && !innerKey(secret)
      ? [
          `the text after ${PREFIX} is not base64: the whole text is the key of webhook-signature, and other libraries may reject it`,
        ]
      : []),
  ]
}

/**
 * Key of the Standard Webhooks signature: the decoded base64 after `whsec_`, or the UTF-8 bytes of a secret in another
 * form. `verifyWebhook` in client/ derives the key in the same way.
 */
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

/** Seals a secret for storage; the result is bound to its webhook. */
export function sealSecret(sealer: Sealer, webhookId: string, secret: string): string {
  return sealer.seal(Buffer.from(secret), `webhook/${webhookId}`)
}

/** Opens the sealed secret of a webhook. */
export function openSecret(sealer: Sealer, webhookId: string, sealed: string): string {
  return sealer.open(sealed, `webhook/${webhookId}`).toString('utf8')
}

/** Valid secrets: one, or two while a rolled secret still signs. */
export interface Secrets {
  readonly current: string
  readonly old?: string | undefined
}

/**
 * Signature headers of a delivery (ADR webhooks). `X-Untag-Signature` signs the body only. The Standard Webhooks headers
 * also sign id and time, so that receivers can detect replays. `sentS` is the time of the attempt, s since 1970.
 */
export function signatureHeaders(
  delivery: { id: string; sentS: number; body: string },
  { current, old }: Secrets,
): Record<string, string> {
  const { id, sentS, body } = delivery
  const signed = `${id}.${sentS}.${body}`
  const secrets = old === undefined ? [current] : [current, old]
  return {
    'webhook-id': id,
    'webhook-timestamp': String(sentS),
    'webhook-signature': secrets
      .map((secret) => `v1,${hmac(standardKey(secret), signed).toString('base64')}`)
      .join(' '),
    'x-untag-signature': hmac(Buffer.from(old ?? current), body).toString('hex'),
  }
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest()
}
