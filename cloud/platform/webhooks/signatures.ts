import { createHmac } from 'node:crypto'
import { standardKey } from './secret.ts'

/** Valid secrets: one, or two while a rolled secret still signs. */
export interface Secrets {
  readonly current: string
  readonly old?: string | undefined
}

/**
 * Signature headers of a delivery (ADR 0031). `X-Untag-Signature` signs the body only. The Standard Webhooks headers
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
