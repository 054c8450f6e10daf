import { createHmac } from 'node:crypto'
import {
  idIn,
  JSON_TYPE,
  jsonOf,
  type PspAnswer,
  type PspDesk,
  type PspDialect,
  type SimulatedRefund,
  type SimulatedSession,
} from '../psp-desk.ts'

/**
 * Worldline Direct: Hosted Checkout Page and refunds of API v2, with authentication and webhooks. Source:
 * https://docs.direct.worldline-solutions.com/en/api-reference. Worldline sends no notification about an expired page.
 * This simulator supports only sales: a payment is CAPTURED at once.
 */

const MERCHANT = 'UntagShop'
const KEY_ID = '5e45c937b9db33ae'

interface Wish {
  order: { amountOfMoney: { amount: number; currencyCode: string }; references?: { merchantReference?: string } }
  amountOfMoney: { amount: number; currencyCode: string }
  hostedCheckoutSpecificInput: { returnUrl: string }
}

function shownPayment({ charge, reference, status, paidCent, amountCent, currency }: SimulatedSession): object {
  const isPaid = status === 'paid'
  return {
    id: charge,
    status: isPaid ? 'CAPTURED' : 'REJECTED',
    statusOutput: { statusCode: isPaid ? 9 : 2, statusCategory: isPaid ? 'COMPLETED' : 'UNSUCCESSFUL' },
    paymentOutput: {
      amountOfMoney: { amount: isPaid ? paidCent : amountCent, currencyCode: currency },
      references: { merchantReference: reference },
    },
  }
}

function shown(session: SimulatedSession): object {
  if (session.status === 'paid')
    return {
      status: 'PAYMENT_CREATED',
      createdPaymentOutput: { payment: shownPayment(session), paymentStatusCategory: 'SUCCESSFUL' },
    }
  return { status: session.status === 'open' ? 'IN_PROGRESS' : 'CANCELLED_BY_CONSUMER' }
}

function shownRefund(refund: SimulatedRefund, session: SimulatedSession, status: string): object {
  const refundOutput = {
    amountOfMoney: { amount: refund.amountCent, currencyCode: session.currency },
    references: { merchantReference: refund.key === '' ? session.reference : refund.key },
  }
  return { id: refund.id, status, refundOutput }
}

function stateOf({ status }: SimulatedRefund): 'REJECTED' | 'REFUNDED' {
  return status === 'failed' ? 'REJECTED' : 'REFUNDED'
}

function error(httpStatusCode: number, id: string, message: string): PspAnswer {
  return {
    status: httpStatusCode,
    body: {
      errorId: 'e',
      status: httpStatusCode,
      errors: [{ errorCode: '50001111', category: 'PAYMENT_PLATFORM_ERROR', httpStatusCode, id, message }],
    },
  }
}

function signed(type: string, content: object, desk: PspDesk) {
  const body = JSON.stringify({
    apiVersion: 'v1',
    id: `ev-${desk.next()}`,
    created: new Date(desk.nowMs()).toISOString(),
    merchantId: MERCHANT,
    type,
    ...content,
  })
  return {
    body,
    headers: {
      ...JSON_TYPE,
      'x-gcs-keyid': 'webhook-key',
      'x-gcs-signature': createHmac('sha256', desk.secret).update(body).digest('base64'),
    },
  }
}

export const WORLDLINE: PspDialect = {
  example: { apiKey: '6Kj5HT0MQKC6D8eb7W3lTg71kVKVDSt1', secret: 'webhook-secret-of-the-shop' },
  keyHeader: 'x-gcs-idempotence-key',
  keyLifeMs: 24 * 3_600_000,
  configOf: ({ baseUrl, apiKey, secret }) => ({
    baseUrl,
    merchantId: MERCHANT,
    apiKeyId: KEY_ID,
    secretApiKey: apiKey,
    webhookSecret: secret,
  }),
  isAllowed({ method, path, headers }, { apiKey, nowMs }) {
    const date = String(headers.date ?? '')
    if (!(Math.abs(Date.parse(date) - nowMs()) < 5 * 60_000)) return false
    const key = headers['x-gcs-idempotence-key']
    const own = key === undefined ? '' : `x-gcs-idempotence-key:${String(key)}\n`
    const text = `${method}\n${headers['content-type'] ?? ''}\n${date}\n${own}${path}\n`
    return (
      headers.authorization === `GCS v1HMAC:${KEY_ID}:${createHmac('sha256', apiKey).update(text).digest('base64')}`
    )
  },
  errorOf: (httpStatusCode) => ({
    errorId: 'e',
    errors: [{ errorCode: '9007', httpStatusCode, id: 'ACCESS_TO_MERCHANT_NOT_ALLOWED', message: 'refused' }],
  }),
  answer({ method, path, body }, key, desk) {
    const own = path.startsWith(`/v2/${MERCHANT}/`) ? path.slice(`/v2/${MERCHANT}`.length) : ''
    const checkoutId = idIn(own, /^\/hostedcheckouts\/([^/]+)$/)
    if (method === 'GET' && checkoutId !== undefined) {
      const session = desk.sessions.get(checkoutId)
      return session && session.status !== 'expired'
        ? { status: 200, body: shown(session) }
        : error(404, 'NOT_FOUND', 'no such hosted checkout')
    }
    const wish = jsonOf<Wish>(body)
    if (own === '/hostedcheckouts') {
      const { amountOfMoney, references } = wish.order ?? {}
      if (!amountOfMoney || amountOfMoney.amount <= 0 || !wish.hostedCheckoutSpecificInput?.returnUrl)
        return error(400, 'INVALID_VALUE', 'order.amountOfMoney')
      const id = `42${desk.next()}`
      desk.open({
        id,
        reference: references?.merchantReference ?? '',
        amountCent: amountOfMoney.amount,
        currency: amountOfMoney.currencyCode,
        key,
        charge: `30${id}_0`,
      })
      return { status: 201, body: { RETURNMAC: 'mac', hostedCheckoutId: id, redirectUrl: `${desk.baseUrl}/pay/${id}` } }
    }
    const charge = idIn(own, /^\/payments\/([^/]+)\/refunds?$/)
    const session = [...desk.sessions.values()].find((each) => each.charge === charge)
    if (!session) return error(404, 'UNKNOWN_PAYMENT_ID', 'no such payment')
    if (method === 'GET') {
      const refunds = desk.refunds.filter(({ sessionId }) => sessionId === session.id)
      return { status: 200, body: { refunds: refunds.map((each) => shownRefund(each, session, stateOf(each))) } }
    }
    const refund = desk.refundPayment(session, wish.amountOfMoney?.amount ?? 0, {
      id: `${charge?.replace('_0', '')}_${desk.next()}`,
      key,
    })
    return refund
      ? { status: 201, body: shownRefund(refund, session, 'REFUND_REQUESTED') }
      : error(400, 'ACTION_NOT_ALLOWED_ON_TRANSACTION', 'amount')
  },
  notificationOf: (session, desk) =>
    session.status === 'expired'
      ? undefined
      : signed(
          session.status === 'paid' ? 'payment.captured' : 'payment.rejected',
          { payment: shownPayment(session) },
          desk,
        ),
  outsideId: ({ charge }, number) => `${charge.replace('_0', '')}_${number}`,
  refundNotificationOf(refund, session, desk) {
    const status = stateOf(refund)
    return signed(`refund.${status.toLowerCase()}`, { refund: shownRefund(refund, session, status) }, desk)
  },
}
