import { REAL_PLATFORM } from './platform.ts'

/** Event of a webhook delivery. */
export interface WebhookEvent {
  id?: string
  event: string
  type: string
  timestamp: string
  data: Record<string, unknown>
}

type WebhookFault = 'no_signature' | 'bad_signature' | 'too_old' | 'not_json'

/** A rejected delivery. Answer the sender with 400. */
export class WebhookRefused extends Error {
  override name = 'WebhookRefused'
  readonly code: WebhookFault
  constructor(code: WebhookFault, message: string) {
    super(message)
    this.code = code
  }
}

interface VerifyOptions {
  /** Maximum difference between the time of the delivery and the receiver's clock, ms; 300,000 by default. */
  toleranceMs?: number
  now?: () => number
}

type HeaderSource = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

const TOLERANCE_MS = 5 * 60_000
const encoder = new TextEncoder()

/**
 * Verifies a webhook delivery and returns its event. If the delivery has `webhook-signature` (Standard Webhooks), this
 * function checks id, time and body. Otherwise the function checks `X-Untag-Signature`, which signs only the body, so
 * the age of the delivery is unknown. `rawBody` must be the received bytes, not JSON that was parsed and serialised
 * again. Throws `WebhookRefused`. Compares in constant time.
 *
 * @example
 * const event = await verifyWebhook(rawBody, headers, secret)
 * console.log(event.type)
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array,
  headers: HeaderSource,
  secret: string,
  options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const body = typeof rawBody === 'string' ? encoder.encode(rawBody) : rawBody
  const standard = headerOf(headers, 'webhook-signature')
  const plain = headerOf(headers, 'x-untag-signature')
  if (standard !== undefined) await verifyStandard(body, headers, standard, secret, options)
  else if (plain !== undefined) await verifyPlain(body, plain, secret)
  else throw new WebhookRefused('no_signature', 'the delivery carries no signature')
  return eventIn(body)
}

async function verifyStandard(
  body: Uint8Array,
  headers: HeaderSource,
  signatures: string,
  secret: string,
  options: VerifyOptions,
): Promise<void> {
  const id = headerOf(headers, 'webhook-id')
  const timestamp = headerOf(headers, 'webhook-timestamp')
  if (id === undefined || timestamp === undefined)
    throw new WebhookRefused('no_signature', 'webhook-id or webhook-timestamp is missing')
  const sentMs = /^\d{1,12}$/.test(timestamp) ? Number(timestamp) * 1_000 : Number.NaN
  const nowMs = (options.now ?? REAL_PLATFORM.now)()
  if (!(Math.abs(nowMs - sentMs) <= (options.toleranceMs ?? TOLERANCE_MS)))
    throw new WebhookRefused('too_old', 'the time of the delivery is too far from now: check the clock of this machine')
  const signed = joined(encoder.encode(`${id}.${timestamp}.`), body)
  const key = await importKey(standardKey(secret))
  // During a rotation of the secret, the header has two signatures, one for each secret.
  for (const signature of signatures.split(' ').slice(0, 8)) {
    const [version, value = ''] = signature.split(',', 2)
    const bytes = version === 'v1' ? base64(value) : undefined
    if (bytes && (await globalThis.crypto.subtle.verify('HMAC', key, bytes, signed))) return
  }
  throw new WebhookRefused('bad_signature', 'no signature of the delivery matches: check the webhook secret')
}

async function verifyPlain(body: Uint8Array<ArrayBufferLike>, signature: string, secret: string): Promise<void> {
  const bytes = /^[0-9a-f]{64}$/i.test(signature)
    ? Uint8Array.from(signature.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
    : undefined
  const key = await importKey(encoder.encode(secret))
  if (bytes && (await globalThis.crypto.subtle.verify('HMAC', key, bytes, new Uint8Array(body)))) return
  throw new WebhookRefused('bad_signature', 'the signature of the delivery does not match: check the webhook secret')
}

function importKey(bytes: Uint8Array<ArrayBuffer>) {
  return globalThis.crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
}

/** HMAC key: the base64 after `whsec_`, or the bytes of any other text (ADR webhooks). */
function standardKey(secret: string): Uint8Array<ArrayBuffer> {
  const inner = secret.startsWith('whsec_') ? base64(secret.slice(6)) : undefined
  return inner && inner.length > 0 ? inner : encoder.encode(secret)
}

function base64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined
  try {
    return Uint8Array.from(atob(text), (c) => c.charCodeAt(0))
  } catch {
    return undefined
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(a.length + b.length)
  bytes.set(a)
  bytes.set(b, a.length)
  return bytes
}

function headerOf(headers: HeaderSource, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return typeof found === 'string' ? found : found?.[0]
}

function eventIn(body: Uint8Array): WebhookEvent {
  try {
    const event: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
    if (typeof event === 'object' && event !== null) return event as WebhookEvent
  } catch {
    // The error below reports the cause.
  }
  throw new WebhookRefused('not_json', 'the body of the delivery is no JSON object')
}
