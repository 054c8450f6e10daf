import { z } from 'zod'
import { readUntrustedJson } from '../../../../policy/untrusted-json.ts'
import {
  paymentProvider,
  ProviderFault,
  readAnswer,
  type Notice,
  type Notification,
  type PaymentNotice,
  type ProviderConnection,
  type RefundNotice,
  type RefundRequest,
  type SendToProvider,
  type Session,
  type SessionRequest,
} from '../provider.ts'
import { BaseUrl, basicOf, centOf, Credential, Decimal, decimalOf, PageUrl } from './shared-fields.ts'

/**
 * PayPal Orders v2 and Payments v2 (https://developer.paypal.com/api/rest). The shopper approves an order. A
 * notification or query then captures the order. PayPal verifies notifications (`verify-webhook-signature`).
 */

const Config = z.strictObject({
  clientId: Credential,
  clientSecret: Credential,
  webhookId: z.string().regex(/^[A-Za-z0-9]{1,50}$/, 'must be the id of the webhook in the developer dashboard'),
  baseUrl: BaseUrl.optional().describe('Default https://api-m.paypal.com.'),
})

const PayPalId = z.string().regex(/^[A-Za-z0-9-]{1,60}$/)
const Money = z.object({ currency_code: z.string(), value: Decimal })
const Token = z.object({ access_token: z.string().max(4_000) })
const Capture = z.object({ id: PayPalId, status: z.string(), amount: Money })
const Order = z.object({
  id: PayPalId,
  status: z.string(),
  purchase_units: z
    .array(
      z.object({
        custom_id: z.string().max(200).nullish(),
        payments: z.object({ captures: z.array(Capture).nullish() }).nullish(),
      }),
    )
    .nullish(),
  links: z.array(z.object({ rel: z.string(), href: PageUrl })).nullish(),
})
type Order = z.output<typeof Order>
const Refund = z.object({
  id: PayPalId,
  status: z.string().nullish(),
  custom_id: z.string().max(200).nullish(),
  amount: Money.nullish(),
  links: z.array(z.object({ rel: z.string(), href: z.string().max(2_000) })).nullish(),
})
const Dispute = z.object({
  dispute_id: PayPalId,
  dispute_amount: Money.nullish(),
  disputed_transactions: z.array(z.object({ seller_transaction_id: PayPalId.nullish() })).nullish(),
})
const Refusal = z.object({ details: z.array(z.object({ issue: z.string() })).nullish() })
const Verdict = z.object({ verification_status: z.string() })
const Event = z.object({
  event_type: z.string(),
  create_time: z.string().max(60).nullish(),
  resource: z.unknown(),
})
type Event = z.output<typeof Event>
const OrderResource = z.object({
  id: PayPalId,
  purchase_units: z.array(z.object({ custom_id: z.string().max(200).nullish() })).nullish(),
})
const CaptureResource = z.object({
  custom_id: z.string().max(200).nullish(),
  supplementary_data: z.object({ related_ids: z.object({ order_id: PayPalId }) }),
})

/** Statuses of a capture whose money arrived, even if it was refunded later. */
const CAPTURED = new Set(['COMPLETED', 'PARTIALLY_REFUNDED', 'REFUNDED'])
/**
 * Issues of a capture for which the session stays open: the shopper has not finished, or must choose another payment
 * method.
 */
const STILL_OPEN = new Set(['ORDER_NOT_APPROVED', 'PAYER_ACTION_REQUIRED', 'INSTRUMENT_DECLINED'])
const REFUND_STATES: Readonly<Record<string, 'done' | 'failed'>> = {
  PENDING: 'done',
  COMPLETED: 'done',
  FAILED: 'failed',
  CANCELLED: 'failed',
}

function capturedOf({ id, purchase_units: units }: Order): PaymentNotice | undefined {
  const unit = units?.[0]
  const capture = unit?.payments?.captures?.find(({ status }) => CAPTURED.has(status))
  return (
    capture && {
      sessionId: id,
      paymentId: unit?.custom_id ?? null,
      state: 'paid',
      amountCent: centOf(capture.amount.value),
      currency: capture.amount.currency_code,
      chargeId: capture.id,
    }
  )
}

/** Order id and payment id of an event. */
function orderOf({
  event_type: type,
  resource,
}: z.output<typeof Event>): { id: string; paymentId: string | null } | undefined {
  const order = type.startsWith('CHECKOUT.ORDER.') ? OrderResource.safeParse(resource).data : undefined
  if (order) return { id: order.id, paymentId: order.purchase_units?.[0]?.custom_id ?? null }
  const capture = type.startsWith('PAYMENT.CAPTURE.') ? CaptureResource.safeParse(resource).data : undefined
  return capture && { id: capture.supplementary_data.related_ids.order_id, paymentId: capture.custom_id ?? null }
}

/** PayPal reverses a capture itself, for example after a chargeback. */
const REVERSED = 'PAYMENT.CAPTURE.REVERSED'

function isRefund(type: string): boolean {
  return type === 'PAYMENT.CAPTURE.REFUNDED' || type === REVERSED || type.startsWith('PAYMENT.REFUND.')
}

/** A refund or dispute of an event. A dispute moves no money: PayPal then reverses or refunds the capture. */
function movedBy({ event_type: type, create_time: time, resource }: Event): RefundNotice | undefined {
  const created = Date.parse(time ?? '')
  const about = { sessionId: null, paymentId: null, rank: Number.isNaN(created) ? null : created }
  const dispute = type.startsWith('CUSTOMER.DISPUTE.') ? Dispute.safeParse(resource).data : undefined
  if (dispute) {
    const chargeId = dispute.disputed_transactions?.[0]?.seller_transaction_id ?? null
    const movement = { ...about, kind: 'dispute' as const, chargeId, ...moneyOf(dispute.dispute_amount) }
    const state = type === 'CUSTOMER.DISPUTE.RESOLVED' ? 'failed' : 'open'
    return { refundRef: dispute.dispute_id, refundId: null, state, movement }
  }
  const refund = isRefund(type) ? Refund.safeParse(resource).data : undefined
  const state = type === REVERSED ? 'done' : REFUND_STATES[refund?.status ?? '']
  if (!refund || !state) return undefined
  const above = refund.links?.find(({ rel }) => rel === 'up')?.href.split('/captures/')[1]
  // Without a link to the capture, the resource is the capture itself, and how much of it was reversed is unknown.
  const money = above === undefined ? { amountCent: null, currency: null } : moneyOf(refund.amount)
  const kind = type === REVERSED ? ('dispute' as const) : ('refund' as const)
  const movement = { ...about, kind, chargeId: above ?? (type === REVERSED ? refund.id : null), ...money }
  const refundRef = above === undefined && type === REVERSED ? `${refund.id}/reversed` : refund.id
  return { refundRef, refundId: kind === 'refund' ? (refund.custom_id ?? null) : null, state, movement }
}

function moneyOf(money: z.output<typeof Money> | null | undefined) {
  return { amountCent: money ? centOf(money.value) : null, currency: money?.currency_code ?? null }
}

/** Signature fields of a notification for PayPal's verification; undefined if the fields cannot come from PayPal. */
function transmissionOf({ header }: Notification): Record<string, string> | undefined {
  const [id, time, sig, algo, cert] = ['id', 'time', 'sig']
    .map((name) => header(`paypal-transmission-${name}`))
    .concat(header('paypal-auth-algo'), header('paypal-cert-url'))
  if (!id || !time || !sig || !algo || !cert || [id, time, sig, algo, cert].some((text) => text.length > 1_000))
    return undefined
  const isTheirs =
    URL.canParse(cert) && new URL(cert).protocol === 'https:' && new URL(cert).hostname.endsWith('.paypal.com')
  return isTheirs
    ? { auth_algo: algo, cert_url: cert, transmission_id: id, transmission_sig: sig, transmission_time: time }
    : undefined
}

export const paypal = paymentProvider({
  name: 'paypal',
  guide: {
    setUp:
      '`CHECKOUT.ORDER.APPROVED`, `PAYMENT.CAPTURE.COMPLETED`, `PAYMENT.CAPTURE.REFUNDED`, `.REVERSED`, failed refunds and `CUSTOMER.DISPUTE.*`',
    notifications: "PayPal's confirmation of a notification",
    cancellation: 'when the shopper comes back',
    repeatedRefund: 'the idempotency key, for 45 days',
    reports: 'failures, refunds and disputes',
    uses: 'Orders v2 (2.13), Payments v2 (2.5), webhooks v1 (1.11)',
    documentation: 'paypal-rest-api-specifications',
    comparedWith: 'nothing',
  },
  config: Config,
  addressOf: ({ baseUrl }) => baseUrl ?? 'https://api-m.paypal.com',
  // Payments v2 stores request ids for 45 days.
  refundKeyMs: 45 * 24 * 3_600_000,
  connect: (config, send) => new PayPal(config, send),
})

const orderPath = (id: string) => `/v2/checkout/orders/${id}`

class PayPal implements ProviderConnection {
  readonly #config: z.output<typeof Config>
  readonly #send: SendToProvider
  readonly #baseUrl: string
  #token: Promise<string> | undefined

  constructor(config: z.output<typeof Config>, send: SendToProvider) {
    this.#config = config
    this.#send = send
    this.#baseUrl = config.baseUrl ?? 'https://api-m.paypal.com'
  }

  async createSession(request: SessionRequest): Promise<Session> {
    const order = readAnswer(
      await this.#call('POST', '/v2/checkout/orders', JSON.stringify(orderRequest(request)), request.paymentId),
      Order,
    )
    const page = order.links?.find(({ rel }) => rel === 'payer-action' || rel === 'approve')
    if (!page) throw new ProviderFault('the provider sent an order without its page', false)
    return { sessionId: order.id, url: page.href }
  }

  /** Captures an approved order. The order id acts as idempotency key, because PayPal captures an order once. */
  async findSession(id: string): Promise<PaymentNotice | undefined> {
    const found = await this.#call('GET', orderPath(id))
    // After some hours, PayPal deletes orders that the shopper has not approved.
    if (found.status === 404) return endedOf(id)
    const order = readAnswer(found, Order)
    if (order.status === 'VOIDED') return endedOf(id)
    if (order.status !== 'APPROVED') return capturedOf(order)
    const answer = await this.#call('POST', `${orderPath(id)}/capture`, '{}')
    const issue = answer.status === 422 ? (Refusal.safeParse(answer.json).data?.details?.[0]?.issue ?? '') : ''
    if (issue === 'ORDER_ALREADY_CAPTURED') return capturedOf(readAnswer(await this.#call('GET', orderPath(id)), Order))
    return STILL_OPEN.has(issue) ? undefined : capturedOf(readAnswer(answer, Order))
  }

  async refund({ refundId, sessionId, chargeId, amountCent, currency }: RefundRequest): Promise<string> {
    const captureId = chargeId ?? capturedOf(readAnswer(await this.#call('GET', orderPath(sessionId)), Order))?.chargeId
    if (!captureId) throw new ProviderFault('the provider reports no capture for this order', true)
    const request = { amount: { currency_code: currency, value: decimalOf(amountCent) }, custom_id: refundId }
    const { id, status } = readAnswer(
      await this.#call('POST', `/v2/payments/captures/${captureId}/refund`, JSON.stringify(request), refundId),
      Refund,
    )
    if (REFUND_STATES[status ?? ''] === 'failed')
      throw new ProviderFault(`the provider reported that the refund is ${status}`, true)
    return id
  }

  async readNotification(notification: Notification): Promise<readonly Notice[] | undefined> {
    const transmission = transmissionOf(notification)
    const event = Event.safeParse(readUntrustedJson(notification.body))
    if (!transmission || !event.success) return undefined
    const moved = movedBy(event.data)
    const order = moved || isRefund(event.data.event_type) ? undefined : orderOf(event.data)
    // A webhook reports all orders of an application, and only PayPal can verify its signature. The connector asks
    // PayPal only about orders that the cloud stored.
    const isOurs = order
      ? await notification.isOurs(order.id, order.paymentId)
      : moved
        ? (await notification.isOurRefund(moved.refundRef, moved.refundId)) ||
          (await notification.isOurCharge(moved.movement?.chargeId ?? ''))
        : false
    if (!isOurs) return []
    if (!(await this.#isGenuine(transmission, notification.body))) return undefined
    if (order) {
      const notice = await this.findSession(order.id)
      return notice ? [{ ...notice, paymentId: notice.paymentId ?? order.paymentId }] : []
    }
    return moved ? [moved] : []
  }

  async #isGenuine(transmission: Record<string, string>, event: string): Promise<boolean> {
    // The signature covers a checksum of the event, so the event must be sent back unchanged.
    const about = JSON.stringify({ ...transmission, webhook_id: this.#config.webhookId })
    const question = `${about.slice(0, -1)},"webhook_event":${event}}`
    const answer = await this.#call('POST', '/v1/notifications/verify-webhook-signature', question)
    return readAnswer(answer, Verdict).verification_status === 'SUCCESS'
  }

  async #newToken(): Promise<string> {
    const headers = {
      authorization: basicOf(this.#config.clientId, this.#config.clientSecret),
      'content-type': 'application/x-www-form-urlencoded',
    }
    return readAnswer(
      await this.#send({
        url: `${this.#baseUrl}/v1/oauth2/token`,
        method: 'POST',
        headers,
        body: 'grant_type=client_credentials',
      }),
      Token,
    ).access_token
  }

  async #call(method: 'GET' | 'POST', path: string, body?: string, key?: string) {
    this.#token ??= this.#newToken()
    const headers = {
      authorization: `Bearer ${await this.#token}`,
      prefer: 'return=representation',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(key !== undefined && { 'paypal-request-id': key }),
    }
    return this.#send({ url: `${this.#baseUrl}${path}`, method, headers, ...(body !== undefined && { body }) })
  }
}

function orderRequest({ paymentId, amountCent, currency, returnUrl, title }: SessionRequest) {
  const unit = {
    reference_id: paymentId,
    custom_id: paymentId,
    description: title.slice(0, 127),
    amount: { currency_code: currency, value: decimalOf(amountCent) },
  }
  const context = {
    return_url: returnUrl,
    cancel_url: returnUrl,
    user_action: 'PAY_NOW',
    shipping_preference: 'NO_SHIPPING',
  }
  return {
    intent: 'CAPTURE',
    purchase_units: [unit],
    payment_source: { paypal: { experience_context: context } },
  }
}

function endedOf(sessionId: string): PaymentNotice {
  return { sessionId, paymentId: null, state: 'ended', amountCent: null, currency: null, chargeId: null }
}
