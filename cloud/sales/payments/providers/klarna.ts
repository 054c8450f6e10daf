import { z } from 'zod'
import { readUntrustedJson } from '../../../../policy/untrusted-json.ts'
import {
  paymentProvider,
  ProviderFault,
  readAnswer,
  type Notice,
  type Notification,
  type PaidSession,
  type PaymentNotice,
  type ProviderConnection,
  type RefundNotice,
  type RefundRequest,
  type SendToProvider,
  type Session,
  type SessionRequest,
} from '../provider.ts'
import { BaseUrl, basicOf, Credential, PageUrl } from './shared-fields.ts'

/**
 * Klarna Hosted Payment Page (https://docs.klarna.com, Payments v1, HPP v1, Order Management v1) with immediate
 * capture. Notifications are not signed and contain only a session id, so the connector queries the session and its
 * order.
 */

const Config = z.strictObject({
  username: Credential,
  password: Credential,
  country: z
    .string()
    .regex(/^[A-Z]{2}$/)
    .optional()
    .describe('Country of the purchase; default DE.'),
  baseUrl: BaseUrl.optional().describe('Default https://api.klarna.com.'),
})

const KlarnaId = z.string().regex(/^[A-Za-z0-9-]{1,100}$/)
const PaymentSession = z.object({ session_id: KlarnaId })
const Page = z.object({ session_id: KlarnaId, redirect_url: PageUrl })
const PageState = z.object({ session_id: KlarnaId, status: z.string(), order_id: KlarnaId.nullish() })
const Order = z.object({
  order_id: KlarnaId,
  captured_amount: z.int(),
  purchase_currency: z.string(),
  merchant_reference1: z.string().max(255).nullish(),
  refunds: z
    .array(
      z.object({
        refund_id: KlarnaId,
        refunded_amount: z.int().min(0),
        reference: z.string().max(255).nullish(),
      }),
    )
    .nullish(),
})
const Body = z.object({ session: z.object({ session_id: KlarnaId }) })

/** Countries with the page in German; English elsewhere. */
const GERMAN = new Set(['DE', 'AT', 'CH'])
/** After FAILED and BACK the shopper may try again. */
const ENDED = new Set(['CANCELLED', 'DISABLED', 'TIMEOUT'])

export const klarna = paymentProvider({
  name: 'klarna',
  guide: {
    setUp: 'Nothing: it is sent with each payment, without VAT. `country` is `DE` by default.',
    notifications: 'only the session that it requests after a notification',
    cancellation: 'at once',
    repeatedRefund: 'the list of refunds',
    reports: "nothing: check your account for failures, and Klarna's portal for disputes",
    uses: 'Hosted Payment Page v1, Payments v1, Order Management v1',
    documentation: 'docs.klarna.com',
    comparedWith: 'nothing',
  },
  config: Config,
  addressOf: ({ baseUrl }) => baseUrl ?? 'https://api.klarna.com',
  connect: (config, send) => new Klarna(config, send),
})

class Klarna implements ProviderConnection {
  readonly #config: z.output<typeof Config>
  readonly #send: SendToProvider
  readonly #baseUrl: string
  readonly #headers: Record<string, string>

  constructor(config: z.output<typeof Config>, send: SendToProvider) {
    const { username, password, baseUrl = 'https://api.klarna.com' } = config
    this.#config = config
    this.#send = send
    this.#baseUrl = baseUrl
    this.#headers = { authorization: basicOf(username, password), accept: 'application/json' }
  }

  async createSession(request: SessionRequest): Promise<Session> {
    const payment = readAnswer(
      await this.#post('/payments/v1/sessions', sessionOf(request, this.#config.country ?? 'DE')),
      PaymentSession,
    )
    const { returnUrl, notifyUrl } = request
    const urls = {
      success: returnUrl,
      cancel: returnUrl,
      back: returnUrl,
      failure: returnUrl,
      error: returnUrl,
      status_update: notifyUrl,
    }
    const page = readAnswer(
      await this.#post('/hpp/v1/sessions', {
        payment_session_url: `${this.#baseUrl}/payments/v1/sessions/${payment.session_id}`,
        merchant_urls: urls,
        options: { place_order_mode: 'CAPTURE_ORDER' },
      }),
      Page,
    )
    return { sessionId: page.session_id, url: page.redirect_url }
  }

  async findSession(sessionId: string): Promise<PaymentNotice | undefined> {
    const { status, order_id: orderId } = readAnswer(await this.#get(`/hpp/v1/sessions/${sessionId}`), PageState)
    if (status === 'COMPLETED' && orderId) {
      const order = readAnswer(await this.#get(`/ordermanagement/v1/orders/${orderId}`), Order)
      if (order.captured_amount <= 0) return undefined
      return {
        sessionId,
        paymentId: order.merchant_reference1 ?? null,
        state: 'paid',
        amountCent: order.captured_amount,
        currency: order.purchase_currency,
        chargeId: orderId,
      }
    }
    return ENDED.has(status)
      ? { sessionId, paymentId: null, state: 'ended', amountCent: null, currency: null, chargeId: null }
      : undefined
  }

  /** Klarna sends no notifications about refunds, and reports no disputes here. The reference is our refund id. */
  async findRefunds({ sessionId, chargeId, currency }: PaidSession): Promise<RefundNotice[]> {
    const orderId = chargeId ?? (await this.findSession(sessionId))?.chargeId
    if (!orderId) return []
    const { refunds } = readAnswer(await this.#get(`/ordermanagement/v1/orders/${orderId}`), Order)
    return (refunds ?? []).map(({ refund_id: refundRef, refunded_amount: amountCent, reference }) => {
      const names = { sessionId, paymentId: null, chargeId: orderId }
      const movement = { kind: 'refund' as const, ...names, amountCent, currency, rank: null }
      return { refundRef, refundId: reference ?? null, state: 'done' as const, movement }
    })
  }

  async refund({ refundId, sessionId, chargeId, amountCent }: RefundRequest): Promise<string> {
    const orderId = chargeId ?? (await this.findSession(sessionId))?.chargeId
    if (!orderId) throw new ProviderFault('the provider reports no order for this page', true)
    const answer = await this.#post(
      `/ordermanagement/v1/orders/${orderId}/refunds`,
      { refunded_amount: amountCent, reference: refundId },
      { 'klarna-idempotency-key': refundId },
    )
    readAnswer(answer, z.unknown())
    return answer.headers['refund-id'] ?? answer.headers['location']?.split('/').at(-1) ?? refundId
  }

  async readNotification({ body, isOurs }: Notification): Promise<readonly Notice[] | undefined> {
    const read = Body.safeParse(readUntrustedJson(body))
    // Querying only known sessions prevents attackers from causing requests with invented ids.
    if (!read.success || !(await isOurs(read.data.session.session_id))) return undefined
    const notice = await this.findSession(read.data.session.session_id)
    if (notice?.state !== 'paid') return notice ? [notice] : []
    const { sessionId, chargeId, currency } = notice
    const paid = { sessionId: sessionId ?? '', chargeId, currency: currency ?? '', doneCents: [], outsideRefs: [] }
    return [notice, ...(await this.findRefunds(paid))]
  }

  #get(path: string) {
    return this.#send({ url: `${this.#baseUrl}${path}`, method: 'GET', headers: this.#headers })
  }

  #post(path: string, body: object, own: Record<string, string> = {}) {
    return this.#send({
      url: `${this.#baseUrl}${path}`,
      method: 'POST',
      headers: { ...this.#headers, ...own, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  }
}

/** Builds the body of the request for a Klarna session. */
function sessionOf({ paymentId, amountCent, currency, title }: SessionRequest, country: string) {
  const line = {
    name: title,
    quantity: 1,
    unit_price: amountCent,
    total_amount: amountCent,
    tax_rate: 0,
    total_tax_amount: 0,
  }
  return {
    intent: 'buy',
    purchase_country: country,
    purchase_currency: currency,
    locale: `${GERMAN.has(country) ? 'de' : 'en'}-${country}`,
    order_amount: amountCent,
    order_tax_amount: 0,
    order_lines: [line],
    merchant_reference1: paymentId,
  }
}
