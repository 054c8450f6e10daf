import { z } from 'zod'
import { paymentProvider, ProviderFault, readAnswer, type PaymentNotice, type RefundNotice } from '../provider.ts'
import { BaseUrl, parseJson } from './fields.ts'
import { isStripeSigned } from './signed-notifications.ts'

/** Stripe Checkout: Stripe's page with one line for the whole amount. */

const Config = z.strictObject({
  secretKey: z
    .string()
    .regex(/^(?:sk|rk)_(?:test|live)_[A-Za-z0-9]{8,250}$/, 'must be a secret or restricted key: sk_… or rk_…'),
  webhookSecret: z
    .string()
    .regex(/^whsec_[\x21-\x7e]{8,120}$/, 'must be the signing secret of the webhook endpoint: whsec_…'),
  accountId: z
    .string()
    .regex(/^acct_[A-Za-z0-9]{1,60}$/)
    .optional()
    .describe('The connected account that receives the payment.'),
  baseUrl: BaseUrl.optional().describe('Default https://api.stripe.com.'),
})

/** Version of Stripe's API for these schemas. */
const VERSION = '2024-06-20'
/**
 * Extra lifetime of the page, s. The cloud may repeat the request for a page later, and Stripe rejects each request
 * whose page expires in less than 30 minutes.
 */
const LONGER_S = 300

const StripeId = z.string().regex(/^[A-Za-z0-9_]{1,200}$/)
const CheckoutSession = z.object({
  id: StripeId,
  url: z.string().max(4_000).nullish(),
  client_reference_id: z.string().max(200).nullish(),
  status: z.string().nullish(),
  payment_status: z.string().nullish(),
  payment_intent: StripeId.nullish(),
  amount_total: z.int().nullish(),
  currency: z.string().nullish(),
})
type CheckoutSession = z.output<typeof CheckoutSession>
const Event = z.object({ type: z.string(), data: z.object({ object: z.unknown() }) })
const Refund = z.object({
  id: StripeId,
  status: z.string().nullish(),
  metadata: z.record(z.string(), z.string()).nullish(),
})

function noticeOf(session: CheckoutSession, state: PaymentNotice['state']): PaymentNotice {
  return {
    sessionId: session.id,
    paymentId: session.client_reference_id ?? null,
    state,
    amountCent: session.amount_total ?? null,
    currency: session.currency?.toUpperCase() ?? null,
    chargeId: session.payment_intent ?? null,
  }
}

/** With a bank debit, the session completes before the money arrives. Stripe sends `async_payment_succeeded` later. */
function outcomeOf(session: CheckoutSession): PaymentNotice | undefined {
  if (session.payment_status === 'paid') return noticeOf(session, 'paid')
  return session.status === 'expired' ? noticeOf(session, 'ended') : undefined
}

const ENDS = new Set(['checkout.session.expired', 'checkout.session.async_payment_failed'])
const COMPLETES = new Set(['checkout.session.completed', 'checkout.session.async_payment_succeeded'])

/** Banks may reject refunds days later. */
const REFUND_EVENTS = new Set(['refund.failed', 'refund.updated', 'charge.refund.updated'])
const REFUND_STATES: Readonly<Record<string, RefundNotice['state']>> = {
  succeeded: 'done',
  failed: 'failed',
  canceled: 'failed',
}

function refundNotices(object: unknown): RefundNotice[] {
  const refund = Refund.safeParse(object)
  const state = refund.success && REFUND_STATES[refund.data.status ?? '']
  return state ? [{ refundRef: refund.data.id, refundId: refund.data.metadata?.['refundId'] ?? null, state }] : []
}

export const stripe = paymentProvider({
  name: 'stripe',
  config: Config,
  addressOf: ({ baseUrl }) => baseUrl ?? 'https://api.stripe.com',
  connect({ secretKey, webhookSecret, accountId, baseUrl = 'https://api.stripe.com' }, send) {
    const headers = {
      authorization: `Bearer ${secretKey}`,
      'stripe-version': VERSION,
      ...(accountId !== undefined && { 'stripe-account': accountId }),
    }
    const post = (path: string, key: string, fields: Record<string, string>) =>
      send({
        url: `${baseUrl}${path}`,
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded', 'idempotency-key': key },
        body: new URLSearchParams(fields).toString(),
      })
    const readSession = async (sessionId: string) =>
      readAnswer(
        await send({ url: `${baseUrl}/v1/checkout/sessions/${sessionId}`, method: 'GET', headers }),
        CheckoutSession,
      )
    return {
      async createSession({ paymentId, amountCent, currency, returnUrl, title, untilMs }) {
        const answer = await post('/v1/checkout/sessions', paymentId, {
          mode: 'payment',
          client_reference_id: paymentId,
          success_url: returnUrl,
          cancel_url: returnUrl,
          expires_at: String(Math.floor(untilMs / 1_000) + LONGER_S),
          'line_items[0][quantity]': '1',
          'line_items[0][price_data][currency]': currency.toLowerCase(),
          'line_items[0][price_data][unit_amount]': String(amountCent),
          'line_items[0][price_data][product_data][name]': title,
        })
        const { id, url } = readAnswer(answer, CheckoutSession)
        if (!url) throw new ProviderFault('the provider sent a session without its page', false)
        return { sessionId: id, url }
      },
      findSession: async (sessionId) => outcomeOf(await readSession(sessionId)),
      async refund({ refundId, sessionId, chargeId, amountCent }) {
        const intent = chargeId ?? (await readSession(sessionId)).payment_intent
        if (!intent) throw new ProviderFault('the provider reports no payment for this session', true)
        const { id, status } = readAnswer(
          await post('/v1/refunds', refundId, {
            payment_intent: intent,
            amount: String(amountCent),
            'metadata[refundId]': refundId,
          }),
          Refund,
        )
        if (status === 'failed' || status === 'canceled')
          throw new ProviderFault(`the provider reported that the refund is ${status}`, true)
        return id
      },
      async readNotification(notification) {
        if (!isStripeSigned(notification, webhookSecret)) return undefined
        const event = Event.safeParse(parseJson(notification.body))
        if (!event.success) return []
        if (REFUND_EVENTS.has(event.data.type)) return refundNotices(event.data.data.object)
        const session = CheckoutSession.safeParse(event.data.data.object)
        if (!session.success) return []
        if (ENDS.has(event.data.type)) return [noticeOf(session.data, 'ended')]
        const outcome = COMPLETES.has(event.data.type) && outcomeOf(session.data)
        return outcome ? [outcome] : []
      },
    }
  },
})
