import {
  jsonOf,
  type PspAnswer,
  type PspDesk,
  type PspDialect,
  type SimulatedRefund,
  type SimulatedSession,
} from '../psp-desk.ts'

/**
 * Mollie: Payments API v2 and its refunds. Source: https://docs.mollie.com/reference. A notification has only the id of
 * a payment.
 */

interface Wish {
  amount: { value: string; currency: string }
  metadata: { reference: string }
}

function amountOf(cent: number, currency: string) {
  return { value: (cent / 100).toFixed(2), currency }
}

function shownRefund(refund: SimulatedRefund, currency: string): object {
  return {
    resource: 'refund',
    id: refund.id,
    status: refund.status === 'done' ? 'refunded' : 'failed',
    amount: amountOf(refund.amountCent, currency),
    metadata: refund.reference === undefined ? null : { reference: refund.reference },
  }
}

function shown(session: SimulatedSession, desk: PspDesk, embedsRefunds = false): object {
  const { id, status, currency } = session
  const own = desk.refunds.filter((refund) => refund.sessionId === id)
  const refunds = own.filter(({ outside }) => outside !== 'dispute').map((refund) => shownRefund(refund, currency))
  const chargebacks = own
    .filter(({ outside }) => outside === 'dispute')
    .map(({ id: chargebackId, amountCent, status: state }) => ({
      resource: 'chargeback',
      id: chargebackId,
      amount: amountOf(amountCent, currency),
      paymentId: id,
      createdAt: '2026-11-20T09:00:00+00:00',
      reversedAt: state === 'failed' ? '2026-11-28T09:00:00+00:00' : null,
    }))
  return {
    resource: 'payment',
    id,
    status: status === 'cancelled' ? 'canceled' : status,
    amount: amountOf(status === 'paid' ? session.paidCent : session.amountCent, currency),
    _links: { checkout: { href: `${desk.baseUrl}/pay/${id}`, type: 'text/html' } },
    ...(embedsRefunds && { _embedded: { refunds, chargebacks } }),
  }
}

function error(status: number, title: string, detail: string): PspAnswer {
  return { status, body: { status, title, detail } }
}

const notification = (id: string) => ({
  body: `id=${id}`,
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
})

export const MOLLIE: PspDialect = {
  example: { apiKey: 'test_51abcdefgh', secret: '' },
  keyHeader: 'idempotency-key',
  keyLifeMs: 3_600_000,
  configOf: ({ baseUrl, apiKey }) => ({ baseUrl, apiKey }),
  isAllowed: ({ headers }, { apiKey }) => headers.authorization === `Bearer ${apiKey}`,
  errorOf: (status) => ({ status, title: 'Refused', detail: 'switched on' }),
  answer({ method, path, query, body }, key, desk) {
    const [, version, what, id, refunds] = path.split('/')
    if (version !== 'v2' || what !== 'payments') return error(404, 'Not Found', 'no such path')
    const session = id === undefined ? undefined : desk.sessions.get(id)
    if (id !== undefined && !session) return error(404, 'Not Found', `No payment exists with token ${id}.`)
    if (session && method === 'GET')
      return { status: 200, body: shown(session, desk, query.get('embed') === 'refunds,chargebacks') }
    const { amount, metadata } = jsonOf<Wish>(body)
    const amountCent = Math.round(Number(amount?.value) * 100)
    if (!session) {
      const made = desk.open({
        id: `tr_${desk.next()}`,
        reference: metadata?.reference ?? '',
        amountCent,
        currency: amount?.currency ?? '',
        key,
      })
      return { status: 201, body: shown(made, desk) }
    }
    const refund =
      refunds === 'refunds'
        ? desk.refundPayment(session, amountCent, {
            id: `re_${desk.next()}`,
            key,
            ...(metadata && { reference: metadata.reference }),
          })
        : undefined
    return refund
      ? { status: 201, body: shownRefund(refund, session.currency) }
      : error(422, 'Unprocessable Entity', 'The specified amount cannot be refunded')
  },
  notificationOf: (session) => notification(session.id),
  disputeNotificationOf: (_dispute, session) => notification(session.id),
  refundNotificationOf: (_refund, session) => notification(session.id),
}
