import { createHmac } from 'node:crypto'
import {
  idIn,
  JSON_TYPE,
  jsonOf,
  type PspDesk,
  type PspDialect,
  type SimulatedRefund,
  type SimulatedSession,
} from '../psp-desk.ts'

/** untag's own protocol (docs/guides/payments.md), signed as Standard Webhooks. */

interface Wish {
  reference: string
  amountCent: number
  currency: string
  sessionId: string
}

function shown(session: SimulatedSession, desk: PspDesk) {
  const { id, status, reference, currency } = session
  return {
    id,
    url: `${desk.baseUrl}/pay/${id}`,
    status,
    reference,
    amountCent: status === 'paid' ? session.paidCent : null,
    currency,
  }
}

function shownMoved(
  { id, key, status, outside, amountCent }: SimulatedRefund,
  session: SimulatedSession,
  desk: PspDesk,
) {
  return JSON.stringify({
    refundId: id,
    status: status === 'done' ? 'refunded' : 'failed',
    ...(key !== '' && { reference: key }),
    kind: outside ?? 'refund',
    sessionId: session.id,
    amountCent,
    currency: session.currency,
    at: desk.nowMs(),
  })
}

function signed(body: string, { secret, nowMs }: PspDesk) {
  const seconds = String(Math.floor(nowMs() / 1_000))
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  const signature = createHmac('sha256', key).update(`msg_1.${seconds}.${body}`).digest('base64')
  return {
    body,
    headers: {
      ...JSON_TYPE,
      'webhook-id': 'msg_1',
      'webhook-timestamp': seconds,
      'webhook-signature': `v1,${signature}`,
    },
  }
}

export const CUSTOM: PspDialect = {
  example: { apiKey: 'key-of-the-shop', secret: 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=' },
  keyHeader: 'idempotency-key',
  configOf: ({ baseUrl, apiKey, secret }) => ({ baseUrl, apiKey, webhookSecret: secret }),
  isAllowed: ({ headers }, { apiKey }) => headers.authorization === `Bearer ${apiKey}`,
  errorOf: () => ({ error: 'refused' }),
  answer({ method, path, body }, key, desk) {
    const sessionId = idIn(path, /^\/sessions\/([^/]+)$/)
    if (method === 'GET' && sessionId !== undefined) {
      const session = desk.sessions.get(sessionId)
      return session ? { status: 200, body: shown(session, desk) } : { status: 404, body: { error: 'no such session' } }
    }
    const wish = jsonOf<Wish>(body)
    if (path === '/sessions') {
      const made = desk.open({
        id: `cs_${desk.next()}`,
        reference: wish.reference ?? '',
        amountCent: wish.amountCent ?? 0,
        currency: wish.currency ?? '',
        key,
      })
      return { status: 200, body: shown(made, desk) }
    }
    if (path !== '/refunds') return { status: 404, body: { error: 'no such path' } }
    const refund: SimulatedRefund | undefined = desk.refundPayment(
      desk.sessions.get(wish.sessionId ?? ''),
      wish.amountCent ?? 0,
      { id: `re_${desk.next()}`, key },
    )
    return refund
      ? { status: 200, body: { id: refund.id, status: 'succeeded' } }
      : { status: 400, body: { error: 'nothing to refund' } }
  },
  notificationOf: (session, desk) =>
    signed(
      JSON.stringify({
        sessionId: session.id,
        ...shown(session, desk),
        ...(session.status === 'paid' && { chargeId: session.charge || session.id }),
      }),
      desk,
    ),
  disputeNotificationOf: (dispute, session, desk) => signed(shownMoved(dispute, session, desk), desk),
  refundNotificationOf: (refund, session, desk) => signed(shownMoved(refund, session, desk), desk),
}
