import { createHmac } from 'node:crypto'
import { isSameSecret } from '../../../policy/same-secret.ts'
import { standardKey } from '../../webhooks/secret.ts'
import type { Notification } from '../provider.ts'

type SignedNotification = Pick<Notification, 'header' | 'body' | 'nowMs'>

/** How old a signature may be, or how far ahead, s: the bound that both schemes recommend. */
const TOLERANCE_S = 300

/** Whether a notification is signed as Standard Webhooks has it, by one of the signatures it names. */
export function isStandardSigned({ header, body, nowMs }: SignedNotification, secret: string): boolean {
  const id = header('webhook-id')
  const time = header('webhook-timestamp')
  if (id === undefined || time === undefined || !isRecent(time, nowMs)) return false
  const expected = createHmac('sha256', standardKey(secret)).update(`${id}.${time}.${body}`).digest()
  const signatures = (header('webhook-signature') ?? '').slice(0, 2_000).split(' ')
  return signatures.some(
    (signature) => signature.startsWith('v1,') && isSameSecret(expected, Buffer.from(signature.slice(3), 'base64')),
  )
}

/** Whether a notification is signed as Stripe does: `t=…,v1=…`, HMAC-SHA256 in hex over `t.body`. */
export function isStripeSigned({ header, body, nowMs }: SignedNotification, secret: string): boolean {
  const parts = (header('stripe-signature') ?? '')
    .slice(0, 2_000)
    .split(',')
    .map((part) => part.trim())
  const time = parts.find((part) => part.startsWith('t='))?.slice(2)
  if (time === undefined || !isRecent(time, nowMs)) return false
  const expected = createHmac('sha256', secret).update(`${time}.${body}`).digest()
  return parts.some((part) => part.startsWith('v1=') && isSameSecret(expected, Buffer.from(part.slice(3), 'hex')))
}

/** What of an item of Adyen's is signed. */
export interface AdyenItem {
  readonly pspReference: string
  readonly originalReference?: string | null | undefined
  readonly merchantAccountCode: string
  readonly merchantReference?: string | null | undefined
  readonly amount: { readonly value: number; readonly currency: string }
  readonly eventCode: string
  readonly success: string
  readonly additionalData?: Readonly<Record<string, unknown>> | null | undefined
}

/** Whether an item is signed as Adyen does: HMAC-SHA256 in base64, with a key in hex, over its fields with colons between them, nothing escaped. */
export function isAdyenSigned(item: AdyenItem, hmacKey: string): boolean {
  const signature = item.additionalData?.['hmacSignature']
  const { value, currency } = item.amount
  const fields = [
    item.pspReference,
    item.originalReference ?? '',
    item.merchantAccountCode,
    item.merchantReference ?? '',
    value,
    currency,
    item.eventCode,
    item.success,
  ]
  const expected = createHmac('sha256', Buffer.from(hmacKey, 'hex')).update(fields.join(':')).digest()
  return typeof signature === 'string' && isSameSecret(expected, Buffer.from(signature.slice(0, 200), 'base64'))
}

/** Whether a notification is signed as Worldline does: `X-GCS-Signature`, HMAC-SHA256 in base64 over the body. */
export function isWorldlineSigned({ header, body }: Pick<Notification, 'header' | 'body'>, secret: string): boolean {
  const expected = createHmac('sha256', secret).update(body).digest()
  return isSameSecret(expected, Buffer.from((header('x-gcs-signature') ?? '').slice(0, 200), 'base64'))
}

function isRecent(seconds: string, nowMs: number): boolean {
  return /^\d{1,12}$/.test(seconds) && Math.abs(nowMs / 1_000 - Number(seconds)) <= TOLERANCE_S
}
