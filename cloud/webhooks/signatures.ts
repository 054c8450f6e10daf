import { createHmac } from 'node:crypto'
import { standardKey } from './secret.ts'

/** The secrets that count now: during a roll there are two. */
export interface Secrets {
  readonly current: string
  readonly old?: string | undefined
}

/**
 * What receivers check a delivery by (decisions §12): `X-Untag-Signature` is over the body alone, the Standard Webhooks
 * headers also over id and time, so that a copy sent again later is noticed. `sentS`: the attempt, seconds since 1970.
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
