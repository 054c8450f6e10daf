import { createHmac } from 'node:crypto'
import {
  idIn,
  JSON_TYPE,
  type PspAnswer,
  type PspDesk,
  type PspDialect,
  type SimulatedRefund,
  type SimulatedSession,
} from '../psp-desk.ts'

/** Stripe: Checkout Sessions and Refunds with errors. Source: https://docs.stripe.com/api (version 2024-06-20). */

function shown(session: SimulatedSession, desk: PspDesk): object {
  const isPaid = session.status === 'paid'
  return {
    id: session.id,
    object: 'checkout.session',
    url: `${desk.baseUrl}/pay/${session.id}`,
    client_reference_id: session.reference,
    // Stripe's page stays open after a cancellation.
    status: isPaid ? 'complete' : session.status === 'expired' ? 'expired' : 'open',
    payment_status: isPaid ? 'paid' : 'unpaid',
    payment_intent: isPaid ? session.charge : null,
    amount_total: isPaid ? session.paidCent : session.amountCent,
    currency: session.currency.toLowerCase(),
  }
}

function shownRefund(refund: SimulatedRefund, session: SimulatedSession, refundId: string): object {
  return {
    id: refund.id,
    object: 'refund',
    amount: refund.amountCent,
    currency: session.currency.toLowerCase(),
    payment_intent: session.charge,
    status: refund.status === 'done' ? 'succeeded' : 'failed',
    metadata: refundId === '' ? {} : { refundId },
  }
}

function error(status: number, code: string, message: string): PspAnswer {
  return { status, body: { error: { type: 'invalid_request_error', code, message } } }
}

function signed(type: string, object: object, desk: PspDesk) {
  const seconds = String(Math.floor(desk.nowMs() / 1_000))
  const body = JSON.stringify({
    id: `evt_${desk.next()}`,
    object: 'event',
    created: Math.floor(desk.nowMs() / 1_000),
    type,
    data: { object },
  })
  return {
    body,
    headers: {
      ...JSON_TYPE,
      'stripe-signature': `t=${seconds},v1=${createHmac('sha256', desk.secret).update(`${seconds}.${body}`).digest('hex')}`,
    },
  }
}

export const STRIPE: PspDialect = {
  example: { apiKey: 'sk_test_51abcdefgh', secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=' },
  keyHeader: 'idempotency-key',
  keyLifeMs: 24 * 3_600_000,
  configOf: ({ baseUrl, apiKey, secret }) => ({ baseUrl, secretKey: apiKey, webhookSecret: secret }),
  isAllowed: ({ headers }, { apiKey }) => headers.authorization === `Bearer ${apiKey}`,
  errorOf: (status) => ({ error: { type: status >= 500 ? 'api_error' : 'invalid_request_error', message: 'refused' } }),
  answer({ method, path, query, body }, key, desk) {
    const sessionId = idIn(path, /^\/v1\/checkout\/sessions\/([^/]+)$/)
    if (method === 'GET' && sessionId !== undefined) {
      const session = desk.sessions.get(sessionId)
      return session
        ? { status: 200, body: shown(session, desk) }
        : error(404, 'resource_missing', `No such checkout.session: ${sessionId}`)
    }
    if (method === 'GET' && path === '/v1/refunds') {
      const paid = [...desk.sessions.values()].find((each) => each.charge === query.get('payment_intent'))
      const data = desk.refunds.flatMap((refund) =>
        paid && refund.sessionId === paid.id && refund.outside !== 'dispute'
          ? [shownRefund(refund, paid, refund.key)]
          : [],
      )
      return { status: 200, body: { object: 'list', has_more: false, data } }
    }
    const form = new URLSearchParams(body)
    if (path === '/v1/checkout/sessions') {
      const id = `cs_test_${desk.next()}`
      const price = 'line_items[0][price_data]'
      const amountCent = Number(form.get(`${price}[unit_amount]`)) * Number(form.get('line_items[0][quantity]'))
      if (!Number.isInteger(amountCent) || amountCent <= 0)
        return error(400, 'parameter_invalid_integer', 'Invalid integer')
      const currency = (form.get(`${price}[currency]`) ?? '').toUpperCase()
      return {
        status: 200,
        body: shown(
          desk.open({
            id,
            reference: form.get('client_reference_id') ?? '',
            amountCent,
            currency,
            key,
            charge: `pi_${id}`,
          }),
          desk,
        ),
      }
    }
    if (path !== '/v1/refunds') return error(404, 'resource_missing', 'Unrecognized request URL')
    const session = [...desk.sessions.values()].find((each) => each.charge === form.get('payment_intent'))
    const refund = desk.refundPayment(session, Number(form.get('amount')), { id: `re_${desk.next()}`, key })
    return session && refund
      ? { status: 200, body: shownRefund(refund, session, key) }
      : error(400, 'charge_already_refunded', 'Refund amount is greater than unrefunded amount')
  },
  notificationOf(session, desk) {
    if (session.status === 'cancelled') return undefined
    const type = session.status === 'paid' ? 'checkout.session.completed' : 'checkout.session.expired'
    return signed(type, shown(session, desk), desk)
  },
  outsideId: (_session, number) => `re_out${number}`,
  disputeNotificationOf({ id, amountCent, status }, { charge, currency }, desk) {
    const isWon = status === 'failed'
    const moved = { object: 'balance_transaction', amount: -amountCent, type: 'adjustment' }
    const dispute = {
      id: id.replace('re_', 'du_'),
      object: 'dispute',
      amount: amountCent,
      currency: currency.toLowerCase(),
      payment_intent: charge,
      reason: 'fraudulent',
      status: isWon ? 'won' : 'needs_response',
      balance_transactions: isWon ? [moved, { ...moved, amount: amountCent }] : [moved],
    }
    return signed(isWon ? 'charge.dispute.closed' : 'charge.dispute.funds_withdrawn', dispute, desk)
  },
  refundNotificationOf: (refund, session, desk) =>
    signed(
      refund.status === 'failed' ? 'refund.failed' : refund.outside ? 'refund.created' : 'refund.updated',
      shownRefund(refund, session, refund.key),
      desk,
    ),
}
