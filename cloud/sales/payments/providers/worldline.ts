import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { secretsEqual } from '../../../../policy/secrets-equal.ts'
import { readUntrustedJson } from '../../../../policy/untrusted-json.ts'
import {
  paymentProvider,
  ProviderFault,
  readAnswer,
  type Notice,
  type Notification,
  type RefundNotice,
  type SendToProvider,
} from '../provider.ts'
import { BaseUrl, Credential, PageUrl, PathName } from './shared-fields.ts'

/**
 * Worldline Direct, Hosted Checkout Page (API v2), with immediate capture. https://docs.direct.worldline-solutions.com
 */

const Config = z.strictObject({
  merchantId: PathName.describe('The PSPID.'),
  apiKeyId: Credential,
  secretApiKey: Credential,
  webhookSecret: Credential.describe('Secret key of the webhooks, not of the API.'),
  baseUrl: BaseUrl.optional().describe('Default https://payment.direct.worldline-solutions.com.'),
})

const WorldlineId = z.string().regex(/^[A-Za-z0-9_-]{1,100}$/)
const AmountOfMoney = z.object({ amount: z.int().min(0), currencyCode: z.string().max(3) })
const References = z.object({ merchantReference: z.string().max(200).nullish() })
const Payment = z.object({
  id: WorldlineId,
  status: z.string(),
  paymentOutput: z.object({ amountOfMoney: AmountOfMoney.nullish(), references: References.nullish() }).nullish(),
})
const Refund = z.object({
  id: WorldlineId,
  status: z.string().nullish(),
  refundOutput: z.object({ amountOfMoney: AmountOfMoney.nullish(), references: References.nullish() }).nullish(),
})
const CreatedCheckout = z.object({ hostedCheckoutId: WorldlineId, redirectUrl: PageUrl })
const Checkout = z.object({
  status: z.string(),
  createdPaymentOutput: z.object({ payment: Payment.nullish() }).nullish(),
})
const Event = z.object({
  merchantId: z.string(),
  created: z.string().max(60).nullish(),
  payment: Payment.nullish(),
  refund: Refund.nullish(),
})

const RefundList = z.object({ refunds: z.array(Refund).max(1_000).nullish() })

const REFUND_FAILS = new Set(['REJECTED', 'CANCELLED', 'REJECTED_CREDIT'])

interface SignedRequest {
  readonly method: string
  /** Path with the query string. */
  readonly path: string
  readonly date: string
  readonly contentType?: string
  /** Headers that start with X-GCS are signed. */
  readonly headers: Readonly<Record<string, string>>
}

/**
 * `Authorization` header: `GCS v1HMAC:{key}:` and HMAC-SHA256 in base64 over method, type, date, X-GCS headers and
 * path.
 */
export function worldlineAuthorization(
  { method, path, date, contentType = '', headers }: SignedRequest,
  { apiKeyId, secretApiKey }: { apiKeyId: string; secretApiKey: string },
): string {
  const own = Object.entries(headers)
    .map(([name, value]) => [name.toLowerCase(), value.trim()] as const)
    .filter(([name]) => name.startsWith('x-gcs'))
    .sort(([a], [b]) => (a < b ? -1 : 1))
  const text = [method, contentType, date, ...own.map(([name, value]) => `${name}:${value}`), path, ''].join('\n')
  return `GCS v1HMAC:${apiKeyId}:${createHmac('sha256', secretApiKey).update(text).digest('base64')}`
}

/** Ignores declined payments, because the shopper may try again on the same page. */
function paidNotices({ id, status, paymentOutput }: z.output<typeof Payment>, sessionId: string | null): Notice[] {
  const paymentId = paymentOutput?.references?.merchantReference ?? null
  if (status !== 'CAPTURED') return []
  const amount = paymentOutput?.amountOfMoney
  return [
    {
      sessionId,
      paymentId,
      state: 'paid',
      amountCent: amount?.amount ?? null,
      currency: amount?.currencyCode ?? null,
      chargeId: id,
    },
  ]
}

const REFUND_ACCEPTED = new Set(['REFUND_REQUESTED', 'REFUNDED'])
/** The bank took the money of a captured payment back. */
const TAKEN_BACK = new Set(['CHARGEBACKED', 'REVERSED'])

/** The id of a refund is that of its payment with another number: `3136405348_1` belongs to `3136405348_0`. */
function refundNotices({ id, status, refundOutput }: z.output<typeof Refund>, created: number | null): RefundNotice[] {
  const state = REFUND_ACCEPTED.has(status ?? '') ? 'done' : REFUND_FAILS.has(status ?? '') ? 'failed' : undefined
  const reference = refundOutput?.references?.merchantReference ?? null
  const amount = refundOutput?.amountOfMoney
  const movement = {
    kind: 'refund' as const,
    sessionId: null,
    paymentId: reference,
    chargeId: id.replace(/_\d+$/, '_0'),
    amountCent: amount?.amount ?? null,
    currency: amount?.currencyCode ?? null,
    rank: created === null ? null : 2 * created + (state === 'failed' ? 1 : 0),
  }
  return state ? [{ refundRef: id, refundId: reference, state, movement }] : []
}

/** An entry of the list of refunds. Refunds in another state, such as `CREATED`, are accepted, as in `refund`. */
function listedNotice(refund: z.output<typeof Refund>): RefundNotice {
  const refundId = refund.refundOutput?.references?.merchantReference ?? null
  return refundNotices(refund, null)[0] ?? { refundRef: refund.id, refundId, state: 'done' }
}

/** Worldline does not say how much a bank took back. */
function takenBackNotices({ id, status, paymentOutput }: z.output<typeof Payment>): Notice[] {
  if (!TAKEN_BACK.has(status)) return []
  const paymentId = paymentOutput?.references?.merchantReference ?? null
  const names = { sessionId: null, paymentId, chargeId: id }
  const movement = { kind: 'dispute' as const, ...names, amountCent: null, currency: null, rank: null }
  return [{ refundRef: `${id}/${status}`, refundId: null, state: 'done', movement }]
}

const LIVE_URL = 'https://payment.direct.worldline-solutions.com'

/** Returns a function that sends signed requests. */
function signedCalls(
  { merchantId, apiKeyId, secretApiKey, baseUrl = LIVE_URL }: z.output<typeof Config>,
  send: SendToProvider,
  nowMs: () => number,
) {
  const prefix = new URL(baseUrl).pathname.replace(/\/$/, '')
  return async function call(method: 'GET' | 'POST', what: string, key?: string, body?: object) {
    const path = `/v2/${merchantId}/${what}`
    const date = new Date(nowMs()).toUTCString()
    const contentType = body === undefined ? '' : 'application/json'
    const own: Record<string, string> = key === undefined ? {} : { 'x-gcs-idempotence-key': key }
    const authorization = worldlineAuthorization(
      { method, path: `${prefix}${path}`, date, contentType, headers: own },
      { apiKeyId, secretApiKey },
    )
    const headers = { ...own, date, authorization, ...(body !== undefined && { 'content-type': contentType }) }
    return send({
      url: `${baseUrl}${path}`,
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  }
}

export const worldline = paymentProvider({
  name: 'worldline',
  guide: {
    setUp:
      '`payment.captured` and the events of refunds. Only captured payments count as paid. `merchantId` is the PSPID.',
    notifications: 'the signature of a notification',
    cancellation: 'when the shopper comes back',
    repeatedRefund: 'the list of refunds',
    reports: "failures and refunds; disputes without their amount: watch Worldline's portal",
    uses: 'Worldline Direct, Hosted Checkout Page, API v2',
    documentation: 'docs.direct.worldline-solutions.com, sdk-nodejs (2025-05)',
    comparedWith: 'vectors of that SDK for requests and webhooks',
  },
  config: Config,
  addressOf: ({ baseUrl }) => baseUrl ?? LIVE_URL,
  connect(config, send, nowMs) {
    const { merchantId, webhookSecret } = config
    const call = signedCalls(config, send, nowMs)
    const chargeOf = async (sessionId: string, chargeId: string | null) =>
      chargeId ??
      readAnswer(await call('GET', `hostedcheckouts/${sessionId}`), Checkout).createdPaymentOutput?.payment?.id
    return {
      async createSession({ paymentId, amountCent, currency, returnUrl, untilMs }) {
        const answer = await call('POST', 'hostedcheckouts', paymentId, {
          order: {
            amountOfMoney: { amount: amountCent, currencyCode: currency },
            references: { merchantReference: paymentId },
          },
          hostedCheckoutSpecificInput: {
            returnUrl,
            sessionTimeout: Math.max(1, Math.floor((untilMs - nowMs()) / 60_000)),
          },
          cardPaymentMethodSpecificInput: { authorizationMode: 'SALE' },
        })
        const { hostedCheckoutId, redirectUrl } = readAnswer(answer, CreatedCheckout)
        return { sessionId: hostedCheckoutId, url: redirectUrl }
      },
      async findSession(sessionId) {
        const answer = await call('GET', `hostedcheckouts/${sessionId}`)
        // Worldline deletes checkouts some time after their end.
        const isGone = answer.status === 404
        const checkout = isGone ? undefined : readAnswer(answer, Checkout)
        const payment = checkout?.createdPaymentOutput?.payment
        const [paid] = payment ? paidNotices(payment, sessionId) : []
        if (paid && 'sessionId' in paid) return paid
        const isOver = isGone || checkout?.status === 'CANCELLED_BY_CONSUMER'
        return isOver
          ? { sessionId, paymentId: null, state: 'ended', amountCent: null, currency: null, chargeId: null }
          : undefined
      },
      async findRefunds({ sessionId, chargeId }) {
        const known = await chargeOf(sessionId, chargeId)
        if (known === undefined) return []
        const { refunds } = readAnswer(await call('GET', `payments/${known}/refunds`), RefundList)
        return (refunds ?? []).map(listedNotice)
      },
      async refund({ refundId, sessionId, chargeId, amountCent, currency }) {
        const known = await chargeOf(sessionId, chargeId)
        if (known === undefined) throw new ProviderFault('the provider reports no payment for this page', true)
        const request = {
          amountOfMoney: { amount: amountCent, currencyCode: currency },
          references: { merchantReference: refundId },
        }
        const { id, status } = readAnswer(await call('POST', `payments/${known}/refund`, refundId, request), Refund)
        if (REFUND_FAILS.has(status ?? ''))
          throw new ProviderFault(`the provider reported that the refund is ${status}`, true)
        return id
      },
      async readNotification(notification) {
        if (!isWorldlineSigned(notification, webhookSecret)) return undefined
        const event = Event.safeParse(readUntrustedJson(notification.body))
        if (!event.success || event.data.merchantId !== merchantId) return []
        const { payment, refund } = event.data
        const created = Date.parse(event.data.created ?? '')
        // The signature covers the payment id, so the session id is not needed.
        return [
          ...(payment ? [...paidNotices(payment, null), ...takenBackNotices(payment)] : []),
          ...(refund ? refundNotices(refund, Number.isNaN(created) ? null : created) : []),
        ]
      },
    }
  },
})

/** Verifies a Worldline signature: `X-GCS-Signature`, HMAC-SHA256 in base64 over the body. */
export function isWorldlineSigned({ header, body }: Pick<Notification, 'header' | 'body'>, secret: string): boolean {
  const expected = createHmac('sha256', secret).update(body).digest()
  return secretsEqual(expected, Buffer.from((header('x-gcs-signature') ?? '').slice(0, 200), 'base64'))
}
