import { createHmac } from 'node:crypto'
import { secretsEqual } from '../../../../policy/secrets-equal.ts'
import { standardKey } from '../../../platform/webhooks/secret.ts'
import type { Notification } from '../provider.ts'
import { z } from 'zod'

/** Fields that several providers share. */

/** Address of the provider's test system or of a simulator. */
export const BaseUrl = z
  .string()
  .max(1_000)
  .transform((url) => url.replace(/\/+$/, ''))

/** API key or account name. Visible characters only, because the value is sent in headers. */
export const Credential = z.string().regex(/^[\x21-\x7e]{1,500}$/, 'must be 1 to 500 visible characters')

/** Path segment. */
export const PathName = z
  .string()
  .regex(/^[A-Za-z0-9_.-]{1,100}$/, 'must be letters, digits, dots, dashes and underscores')

/** Page to which the shopper is redirected. */
export const PageUrl = z
  .string()
  .max(4_000)
  .refine(
    (url) => /^https?:\/\//.test(url) && URL.canParse(url),
    'must be a web address that starts with https:// or http://',
  )

/** Amount in the form `49.90`. */
export const Decimal = z.string().regex(/^\d{1,9}(?:\.\d{1,2})?$/)

/** Formats cents as `49.90`. */
export function decimalOf(cent: number): string {
  return (cent / 100).toFixed(2)
}

/** Converts EUR, as number or text, to whole cents. */
export function centOf(euros: number | string): number {
  return Math.round(Number(euros) * 100)
}

/** HTTP Basic credentials. */
export function basicOf(name: string, secret: string): string {
  return `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}`
}

type SignedNotification = Pick<Notification, 'header' | 'body' | 'nowMs'>

/** Maximum difference between the time of a signature and now, s. Standard Webhooks and Stripe recommend this value. */
const TOLERANCE_S = 300

/** Verifies a Standard Webhooks signature; one valid signature in the header suffices. */
export function isStandardSigned({ header, body, nowMs }: SignedNotification, secret: string): boolean {
  const id = header('webhook-id')
  const time = header('webhook-timestamp')
  if (id === undefined || time === undefined || !isRecent(time, nowMs)) return false
  const expected = createHmac('sha256', standardKey(secret)).update(`${id}.${time}.${body}`).digest()
  const signatures = (header('webhook-signature') ?? '').slice(0, 2_000).split(' ')
  return signatures.some(
    (signature) => signature.startsWith('v1,') && secretsEqual(expected, Buffer.from(signature.slice(3), 'base64')),
  )
}

/** Verifies a Stripe signature: `t=…,v1=…`, HMAC-SHA256 in hex over `t.body`. */
export function isStripeSigned({ header, body, nowMs }: SignedNotification, secret: string): boolean {
  const parts = (header('stripe-signature') ?? '')
    .slice(0, 2_000)
    .split(',')
    .map((part) => part.trim())
  const time = parts.find((part) => part.startsWith('t='))?.slice(2)
  if (time === undefined || !isRecent(time, nowMs)) return false
  const expected = createHmac('sha256', secret).update(`${time}.${body}`).digest()
  return parts.some((part) => part.startsWith('v1=') && secretsEqual(expected, Buffer.from(part.slice(3), 'hex')))
}

/** Signed fields of an Adyen notification item. */
interface AdyenItem {
  readonly pspReference: string
  readonly originalReference?: string | null | undefined
  readonly merchantAccountCode: string
  readonly merchantReference?: string | null | undefined
  readonly amount: { readonly value: number; readonly currency: string }
  readonly eventCode: string
  readonly success: string
  readonly additionalData?: Readonly<Record<string, unknown>> | null | undefined
}

/**
 * Verifies an Adyen signature: HMAC-SHA256 in base64 with a hex key, over the fields joined by colons without escaping.
 */
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
  return typeof signature === 'string' && secretsEqual(expected, Buffer.from(signature.slice(0, 200), 'base64'))
}

/** Verifies a Worldline signature: `X-GCS-Signature`, HMAC-SHA256 in base64 over the body. */
export function isWorldlineSigned({ header, body }: Pick<Notification, 'header' | 'body'>, secret: string): boolean {
  const expected = createHmac('sha256', secret).update(body).digest()
  return secretsEqual(expected, Buffer.from((header('x-gcs-signature') ?? '').slice(0, 200), 'base64'))
}

function isRecent(seconds: string, nowMs: number): boolean {
  return /^\d{1,12}$/.test(seconds) && Math.abs(nowMs / 1_000 - Number(seconds)) <= TOLERANCE_S
}
