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
 * SumUp: Hosted Checkout, transactions and refunds. Sources: the OpenAPI description in
 * https://github.com/sumup/sumup-ts (2026-08) and https://developer.sumup.com/online-payments/webhooks. SumUp has no
 * idempotency keys. SumUp answers a repeated reference with 409, and executes a repeated refund again. SumUp sends no
 * notification about refunds.
 */

const MERCHANT = 'MH4H92C7'
const STATUS = { open: 'PENDING', approved: 'PENDING', paid: 'PAID', cancelled: 'FAILED', expired: 'EXPIRED' } as const

interface Wish {
  checkout_reference: string
  amount: number
  currency: string
  merchant_code: string
  hosted_checkout: { enabled: boolean }
}

function shown(session: SimulatedSession, desk: PspDesk): object {
  const isPaid = session.status === 'paid'
  return {
    id: session.id,
    checkout_reference: session.reference,
    amount: (isPaid ? session.paidCent : session.amountCent) / 100,
    currency: session.currency,
    merchant_code: MERCHANT,
    status: STATUS[session.status],
    hosted_checkout: { enabled: true },
    hosted_checkout_url: `${desk.baseUrl}/pay/${session.id}`,
    transactions: isPaid ? [{ id: session.charge, transaction_code: 'TEENSK4W2K', status: 'SUCCESSFUL' }] : [],
  }
}

function problem(status: number, title: string, detail: string): PspAnswer {
  return {
    status,
    body: {
      type: `https://developer.sumup.com/problem/${title.toLowerCase().replaceAll(' ', '-')}`,
      title,
      status,
      detail,
    },
  }
}

function eventsOf(session: SimulatedSession, desk: PspDesk): object[] {
  return desk.refunds
    .filter((refund) => refund.sessionId === session.id)
    .map(({ id, amountCent, outside }, n) => ({
      id: n + 1,
      foreign: id,
      type: outside === 'dispute' ? 'CHARGE_BACK' : 'REFUND',
      status: outside === 'dispute' ? 'SUCCESSFUL' : 'REFUNDED',
      amount: amountCent / 100,
    }))
}

export const SUMUP: PspDialect = {
  example: { apiKey: 'sup_sk_51abcdefgh', secret: '' },
  configOf: ({ baseUrl, apiKey }) => ({ baseUrl, apiKey, merchantCode: MERCHANT }),
  isAllowed: ({ headers }, { apiKey }) => headers.authorization === `Bearer ${apiKey}`,
  errorOf: (status) => ({ type: 'https://developer.sumup.com/problem/unauthorized', title: 'Refused', status }),
  answer({ method, path, query, body }, key, desk) {
    const all = [...desk.sessions.values()]
    const checkoutId = idIn(path, /^\/v0\.1\/checkouts\/([^/]+)$/)
    if (method === 'GET' && checkoutId !== undefined) {
      const session = desk.sessions.get(checkoutId)
      return session ? { status: 200, body: shown(session, desk) } : problem(404, 'Not Found', 'Resource not found')
    }
    if (method === 'GET' && path === '/v0.1/checkouts')
      return {
        status: 200,
        body: all.filter((each) => each.reference === query.get('checkout_reference')).map((each) => shown(each, desk)),
      }
    if (method === 'GET' && path === `/v2.1/merchants/${MERCHANT}/transactions`) {
      const session = all.find((each) => each.charge === query.get('id'))
      return session
        ? { status: 200, body: { id: session.charge, status: 'SUCCESSFUL', events: eventsOf(session, desk) } }
        : problem(404, 'Not Found', 'Transaction not found')
    }
    const wish = jsonOf<Wish>(body)
    if (path === '/v0.1/checkouts') {
      if (wish.merchant_code !== MERCHANT)
        return { status: 400, body: { message: 'Validation error', error_code: 'MISSING', param: 'merchant_code' } }
      if (all.some((each) => each.reference === wish.checkout_reference))
        return {
          status: 409,
          body: {
            error_code: 'DUPLICATED_CHECKOUT',
            message: 'Checkout with this checkout reference and pay to email already exists',
          },
        }
      const id = `4e425463-3e1b-431d-83fa-${String(desk.next()).padStart(12, '0')}`
      const amountCent = Math.round((wish.amount ?? 0) * 100)
      return {
        status: 201,
        body: shown(
          desk.open({
            id,
            reference: wish.checkout_reference ?? '',
            amountCent,
            currency: wish.currency ?? '',
            key,
            charge: `410fc44a-${id.slice(9)}`,
          }),
          desk,
        ),
      }
    }
    const charge = idIn(path, /^\/v1\.0\/merchants\/MH4H92C7\/payments\/([^/]+)\/refunds$/)
    const session = all.find((each) => each.charge === charge)
    if (charge === undefined || !session) return problem(404, 'Not Found', 'The identified transaction was not found.')
    const refund = desk.refundPayment(session, Math.round((wish.amount ?? 0) * 100), { id: `rf-${desk.next()}`, key })
    return refund
      ? { status: 201, body: {} }
      : problem(409, 'Conflict', 'The state of the transaction does not permit the operation.')
  },
  notificationOf: (session) => ({
    body: JSON.stringify({ event_type: 'CHECKOUT_STATUS_CHANGED', id: session.id }),
    headers: JSON_TYPE,
  }),
}
