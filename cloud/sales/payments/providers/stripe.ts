import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { secretsEqual } from '../../../../policy/secrets-equal.ts'
import { readUntrustedJson } from '../../../../policy/untrusted-json.ts'
import {
  paymentProvider,
  ProviderFault,
  readAnswer,
  type Movement,
  type Notification,
  type PaymentNotice,
  type RefundNotice,
} from '../provider.ts'
import { BaseUrl, isRecent } from './shared-fields.ts'

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
const Event = z.object({
  type: z.string(),
  created: z.int().nullish(),
  data: z.object({ object: z.unknown() }),
})
const Moved = z.object({
  id: StripeId,
  status: z.string().nullish(),
  amount: z.int().min(0).nullish(),
  currency: z.string().nullish(),
  payment_intent: StripeId.nullish(),
})
const Refund = Moved.extend({ metadata: z.record(z.string(), z.string()).nullish() })
const RefundList = z.object({ data: z.array(Refund).max(100), has_more: z.boolean().nullish() })
const Dispute = Moved.extend({ balance_transactions: z.array(z.object({ amount: z.int() })).nullish() })

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
const REFUND_EVENTS = new Set(['refund.created', 'refund.failed', 'refund.updated', 'charge.refund.updated'])
const REFUND_STATES: Readonly<Record<string, RefundNotice['state']>> = {
  pending: 'done',
  succeeded: 'done',
  failed: 'failed',
  canceled: 'failed',
}

/** An entry of the list of refunds. Refunds in another state, such as `requires_action`, are accepted, as in `refund`. */
function listedNotice(refund: z.output<typeof Refund>): RefundNotice {
  const [notice] = refundNotices({ type: 'refund.updated', data: { object: refund } })
  return notice ?? { refundRef: refund.id, refundId: refund.metadata?.['refundId'] ?? null, state: 'done' }
}

function refundNotices({ created, data }: z.output<typeof Event>): RefundNotice[] {
  const refund = Refund.safeParse(data.object)
  const state = refund.success && REFUND_STATES[refund.data.status ?? '']
  if (!state) return []
  const refundId = refund.data.metadata?.['refundId'] ?? null
  return [{ refundRef: refund.data.id, refundId, state, movement: movementOf('refund', refund.data, created, state) }]
}

function movementOf(
  kind: Movement['kind'],
  { payment_intent: chargeId, amount, currency }: z.output<typeof Moved>,
  created: number | null | undefined,
  state: RefundNotice['state'],
): Movement {
  return {
    kind,
    sessionId: null,
    paymentId: null,
    chargeId: chargeId ?? null,
    amountCent: amount ?? null,
    currency: currency?.toUpperCase() ?? null,
    // Events have seconds; of two in the same second, the failure is the later one.
    rank: created === null || created === undefined ? null : 2 * created + (state === 'failed' ? 1 : 0),
  }
}

const DISPUTE_STATES: Readonly<Record<string, RefundNotice['state']>> = {
  won: 'failed',
  lost: 'done',
  prevented: 'failed',
  warning_closed: 'failed',
  warning_needs_response: 'open',
  warning_under_review: 'open',
}

/** A dispute holds the money from `funds_withdrawn` until `funds_reinstated`. Inquiries (`warning_…`) hold none. */
function disputeNotices({ type, created, data }: z.output<typeof Event>): RefundNotice[] {
  const dispute = Dispute.safeParse(data.object)
  if (!dispute.success) return []
  const { id, status, balance_transactions: moves } = dispute.data
  const cent = (moves ?? []).reduce((sum, { amount }) => sum + amount, 0)
  const held = type === 'charge.dispute.funds_withdrawn' || cent < 0 ? 'done' : 'open'
  const state = type === 'charge.dispute.funds_reinstated' ? 'failed' : (DISPUTE_STATES[status ?? ''] ?? held)
  return [{ refundRef: id, refundId: null, state, movement: movementOf('dispute', dispute.data, created, state) }]
}

export const stripe = paymentProvider({
  name: 'stripe',
  guide: {
    setUp:
      '`checkout.session.completed`, `.expired`, `.async_payment_succeeded`, `.async_payment_failed`; `refund.created`, `refund.failed`, `refund.updated`; `charge.dispute.*`',
    notifications: 'the signature of a notification',
    cancellation: 'when the page expires; until then it can still be paid',
    repeatedRefund: 'the list of refunds',
    reports: 'failures, refunds and disputes; the notice of a refund may arrive too early',
    uses: 'Checkout Sessions, Refunds (2024-06-20)',
    documentation: 'docs.stripe.com/api',
    comparedWith:
      "Stripe's own `stripe` package: its signature functions agree with ours, and its client works with the simulator",
  },
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
      /** A notice about a refund names only the payment intent, so it is lost if it arrives before the payment's. */
      async findRefunds({ sessionId, chargeId }) {
        const intent = chargeId ?? (await readSession(sessionId)).payment_intent
        if (!intent) return []
        const list = readAnswer(
          await send({ url: `${baseUrl}/v1/refunds?payment_intent=${intent}&limit=100`, method: 'GET', headers }),
          RefundList,
        )
        if (list.has_more === true) throw new ProviderFault('the payment has over 100 refunds', false)
        return list.data.map(listedNotice)
      },
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
        const event = Event.safeParse(readUntrustedJson(notification.body))
        if (!event.success) return []
        if (REFUND_EVENTS.has(event.data.type)) return refundNotices(event.data)
        if (event.data.type.startsWith('charge.dispute.')) return disputeNotices(event.data)
        const session = CheckoutSession.safeParse(event.data.data.object)
        if (!session.success) return []
        if (ENDS.has(event.data.type)) return [noticeOf(session.data, 'ended')]
        const outcome = COMPLETES.has(event.data.type) && outcomeOf(session.data)
        return outcome ? [outcome] : []
      },
    }
  },
})

/** Verifies a Stripe signature: `t=…,v1=…`, HMAC-SHA256 in hex over `t.body`. */
export function isStripeSigned(
  { header, body, nowMs }: Pick<Notification, 'header' | 'body' | 'nowMs'>,
  secret: string,
): boolean {
  const parts = (header('stripe-signature') ?? '')
    .slice(0, 2_000)
    .split(',')
    .map((part) => part.trim())
  const time = parts.find((part) => part.startsWith('t='))?.slice(2)
  if (time === undefined || !isRecent(time, nowMs)) return false
  const expected = createHmac('sha256', secret).update(`${time}.${body}`).digest()
  return parts.some((part) => part.startsWith('v1=') && secretsEqual(expected, Buffer.from(part.slice(3), 'hex')))
}
