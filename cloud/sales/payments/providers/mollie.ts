import { z } from 'zod'
import {
  paymentProvider,
  ProviderFault,
  readAnswer,
  type Movement,
  type PaymentNotice,
  type RefundNotice,
} from '../provider.ts'
import { BaseUrl, centOf, decimalOf } from './shared-fields.ts'

/**
 * Mollie Payments (v2). Notifications are not signed and contain only a payment id, so the connector queries the
 * payment and its refunds. Idempotency keys expire after an hour, so the list of refunds shows earlier attempts.
 */

const Config = z.strictObject({
  apiKey: z.string().regex(/^(?:test|live)_[A-Za-z0-9]{8,200}$/, 'must be an API key: live_… or test_…'),
  baseUrl: BaseUrl.optional().describe('Default https://api.mollie.com.'),
})

const MollieId = z.string().regex(/^[A-Za-z0-9_]{1,100}$/)
const Amount = z.object({ value: z.string().regex(/^\d{1,9}\.\d{2}$/), currency: z.string() })
const Refund = z.object({ id: MollieId, status: z.string().nullish(), amount: Amount.nullish(), metadata: z.unknown() })
const Chargeback = z.object({ id: MollieId, amount: Amount.nullish(), reversedAt: z.string().nullish() })
const Payment = z.object({
  id: MollieId,
  status: z.string(),
  amount: Amount,
  _links: z.object({ checkout: z.object({ href: z.string().max(2_000) }).nullish() }).nullish(),
  _embedded: z
    .object({
      refunds: z.array(Refund).max(1_000).nullish(),
      chargebacks: z.array(Chargeback).max(1_000).nullish(),
    })
    .nullish(),
})
const REFUND_STATES: Readonly<Record<string, RefundNotice['state']>> = {
  queued: 'done',
  pending: 'done',
  processing: 'done',
  refunded: 'done',
  failed: 'failed',
  canceled: 'failed',
}

const ENDED = new Set(['failed', 'canceled', 'expired'])

function noticeOf({ id, status, amount }: z.output<typeof Payment>): PaymentNotice | undefined {
  const state = status === 'paid' ? 'paid' : ENDED.has(status) ? 'ended' : undefined
  return (
    state && {
      sessionId: id,
      paymentId: null,
      state,
      amountCent: centOf(amount.value),
      currency: amount.currency,
      chargeId: id,
    }
  )
}

const amountOf = (cent: number, currency: string) => ({ currency, value: decimalOf(cent) })

const Ours = z.object({ reference: z.string().max(100) })

/** Our refund id; null if the refund was created elsewhere or before refunds had ids. */
function ourIdOf(metadata: unknown): string | null {
  return Ours.safeParse(metadata).data?.reference ?? null
}

/** Refunds in an unknown state are accepted, as in `refund`, but not booked if the cloud did not request them. */
function refundNotices(payment: z.output<typeof Payment>): RefundNotice[] {
  const refunds = (payment._embedded?.refunds ?? []).map(({ id, status, amount, metadata }): RefundNotice => {
    const state = REFUND_STATES[status ?? '']
    const names = { refundRef: id, refundId: ourIdOf(metadata), state: state ?? 'done' }
    return { ...names, ...(state && { movement: movementOf('refund', payment.id, amount) }) }
  })
  const chargebacks = (payment._embedded?.chargebacks ?? []).map(({ id, amount, reversedAt }): RefundNotice => {
    const state = typeof reversedAt === 'string' ? 'failed' : 'done'
    return { refundRef: id, refundId: null, state, movement: movementOf('dispute', payment.id, amount) }
  })
  return [...refunds, ...chargebacks]
}

function movementOf(
  kind: Movement['kind'],
  sessionId: string,
  amount: z.output<typeof Amount> | null | undefined,
): Movement {
  return {
    kind,
    sessionId,
    paymentId: null,
    chargeId: null,
    amountCent: amount ? centOf(amount.value) : null,
    currency: amount?.currency ?? null,
    rank: null,
  }
}

export const mollie = paymentProvider({
  name: 'mollie',
  guide: {
    setUp: 'Nothing: it is sent with each payment.',
    notifications: 'only the payment that it requests after a notification',
    cancellation: 'at once',
    repeatedRefund: 'the list of refunds',
    reports: 'failures, refunds and disputes',
    uses: 'Payments v2',
    documentation: 'docs.mollie.com/reference',
    comparedWith: 'nothing',
  },
  config: Config,
  addressOf: ({ baseUrl }) => baseUrl ?? 'https://api.mollie.com',
  connect({ apiKey, baseUrl = 'https://api.mollie.com' }, send) {
    const headers = { authorization: `Bearer ${apiKey}`, accept: 'application/json' }
    const post = (path: string, key: string, body: object) =>
      send({
        url: `${baseUrl}${path}`,
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json', 'idempotency-key': key },
        body: JSON.stringify(body),
      })
    const find = async (sessionId: string) =>
      readAnswer(
        await send({ url: `${baseUrl}/v2/payments/${sessionId}?embed=refunds,chargebacks`, method: 'GET', headers }),
        Payment,
      )
    return {
      async createSession({ paymentId, amountCent, currency, returnUrl, notifyUrl, title }) {
        const request = {
          amount: amountOf(amountCent, currency),
          description: title,
          redirectUrl: returnUrl,
          webhookUrl: notifyUrl,
          metadata: { reference: paymentId },
        }
        const payment = readAnswer(await post('/v2/payments', paymentId, request), Payment)
        const url = payment._links?.checkout?.href
        if (url === undefined) throw new ProviderFault('the provider sent a payment without its page', false)
        return { sessionId: payment.id, url }
      },
      findSession: async (sessionId) => noticeOf(await find(sessionId)),
      findRefunds: async ({ sessionId }) => refundNotices(await find(sessionId)),
      async refund({ refundId, sessionId, amountCent, currency }) {
        const request = { amount: amountOf(amountCent, currency), metadata: { reference: refundId } }
        const { id, status } = readAnswer(await post(`/v2/payments/${sessionId}/refunds`, refundId, request), Refund)
        if (status === 'failed' || status === 'canceled')
          throw new ProviderFault(`the provider reported that the refund is ${status}`, true)
        return id
      },
      async readNotification({ body, isOurs }) {
        const id = new URLSearchParams(body.slice(0, 500)).get('id')
        // Querying only known sessions prevents attackers from causing requests with invented ids.
        if (id === null || !MollieId.safeParse(id).success || !(await isOurs(id))) return undefined
        const payment = await find(id)
        const paid = noticeOf(payment)
        return [...(paid ? [paid] : []), ...refundNotices(payment)]
      },
    }
  },
})
