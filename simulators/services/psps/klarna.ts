import {
  idIn,
  JSON_TYPE,
  jsonOf,
  type PspAnswer,
  type PspDesk,
  type PspDialect,
  type SimulatedSession,
} from '../psp-desk.ts'

/**
 * Klarna: Payments v1, Hosted Payment Page v1 and Order Management v1. Sources: https://docs.klarna.com/api and
 * https://docs.klarna.com/hosted-payment-page. Callbacks are not signed. The answer to a refund is 201, with the
 * refund's id in a header.
 */

const USERNAME = 'PK12345_abcdef'
const STATUS = {
  open: 'WAITING',
  approved: 'IN_PROGRESS',
  paid: 'COMPLETED',
  cancelled: 'CANCELLED',
  expired: 'TIMEOUT',
} as const

interface Wish {
  order_amount: number
  purchase_currency: string
  merchant_reference1: string
  order_lines: { total_amount: number }[]
  payment_session_url: string
  merchant_urls: { status_update: string }
  refunded_amount: number
}

function shown({ id, status, charge }: SimulatedSession, desk: PspDesk) {
  return {
    session_id: id,
    status: STATUS[status],
    updated_at: new Date(desk.nowMs()).toISOString(),
    ...(status === 'paid' && { order_id: charge }),
  }
}

function error(status: number, error_code: string, message: string): PspAnswer {
  return { status, body: { correlation_id: 'c', error_code, error_messages: [message] } }
}

/** Payment sessions for which no page was created yet. */
const begun = new WeakMap<PspDesk['sessions'], Map<string, Partial<Wish>>>()

function begunAt(desk: PspDesk): Map<string, Partial<Wish>> {
  const known = begun.get(desk.sessions) ?? new Map<string, Partial<Wish>>()
  begun.set(desk.sessions, known)
  return known
}

export const KLARNA: PspDialect = {
  example: { apiKey: 'klarna-password', secret: '' },
  keyHeader: 'klarna-idempotency-key',
  keyLifeMs: 24 * 3_600_000,
  configOf: ({ baseUrl, apiKey }) => ({ baseUrl, username: USERNAME, password: apiKey }),
  isAllowed: ({ headers }, { apiKey }) =>
    headers.authorization === `Basic ${Buffer.from(`${USERNAME}:${apiKey}`).toString('base64')}`,
  errorOf: (status) => ({
    correlation_id: 'c',
    error_code: status === 401 ? 'UNAUTHORIZED' : 'NOT_ALLOWED',
    error_messages: ['refused'],
  }),
  answer({ method, path, body }, key, desk) {
    const wish = jsonOf<Wish>(body)
    if (path === '/payments/v1/sessions') {
      const sum = (wish.order_lines ?? []).reduce((cent, line) => cent + line.total_amount, 0)
      if (!wish.order_amount || sum !== wish.order_amount) return error(400, 'BAD_VALUE', 'Bad value: order_amount')
      const id = `0b1d9815-165e-42e2-8867-${String(desk.next()).padStart(12, '0')}`
      begunAt(desk).set(id, wish)
      return { status: 200, body: { session_id: id, client_token: 'x' }, isQuick: true }
    }
    if (path === '/hpp/v1/sessions') {
      const payment = begunAt(desk).get(wish.payment_session_url?.split('/').at(-1) ?? '')
      if (!payment) return error(400, 'BAD_REQUEST', 'payment_session_url is invalid')
      const number = String(desk.next()).padStart(12, '0')
      const id = `a15b228c-02ad-11e9-8eb2-${number}`
      desk.open({
        id,
        reference: payment.merchant_reference1 ?? '',
        amountCent: payment.order_amount ?? 0,
        currency: payment.purchase_currency ?? '',
        key,
        charge: `93d644a2-43f3-11e9-b210-${number}`,
      })
      return {
        status: 201,
        body: {
          session_id: id,
          session_url: `${desk.baseUrl}/hpp/v1/sessions/${id}`,
          redirect_url: `${desk.baseUrl}/pay/${id}`,
        },
      }
    }
    const sessionId = idIn(path, /^\/hpp\/v1\/sessions\/([^/]+)$/)
    const page = desk.sessions.get(sessionId ?? '')
    if (method === 'GET' && sessionId !== undefined)
      return page ? { status: 200, body: shown(page, desk) } : error(404, 'NOT_FOUND', 'Session not found')
    const orderId = idIn(path, /^\/ordermanagement\/v1\/orders\/([^/]+)/)
    const session = [...desk.sessions.values()].find((each) => each.charge === orderId)
    if (!session) return error(404, 'NO_SUCH_ORDER', 'Order not found')
    if (method === 'GET') {
      const amounts = {
        order_amount: session.amountCent,
        captured_amount: session.paidCent,
        purchase_currency: session.currency,
        refunds: desk.refunds
          .filter(
            ({ sessionId, outside, status }) => sessionId === session.id && outside !== 'dispute' && status === 'done',
          )
          .map(({ id, amountCent, key: reference }) => ({
            refund_id: id,
            refunded_amount: amountCent,
            ...(reference !== '' && { reference }),
          })),
      }
      return {
        status: 200,
        body: {
          order_id: orderId,
          status: 'CAPTURED',
          fraud_status: 'ACCEPTED',
          merchant_reference1: session.reference,
          ...amounts,
        },
      }
    }
    const refund = desk.refundPayment(session, wish.refunded_amount ?? 0, {
      id: `4ba29b50-be7b-44f5-a492-${String(desk.next()).padStart(12, '0')}`,
      key,
    })
    if (!refund) return error(403, 'REFUND_NOT_ALLOWED', 'Refund amount exceeds the captured amount')
    return { status: 201, headers: { 'refund-id': refund.id, location: `${desk.baseUrl}${path}/${refund.id}` } }
  },
  notificationOf: (session, desk) => ({
    body: JSON.stringify({ event_id: `ev-${desk.next()}`, session: shown(session, desk) }),
    headers: JSON_TYPE,
  }),
}
