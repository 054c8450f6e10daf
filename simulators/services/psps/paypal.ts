import { createSign, createVerify, generateKeyPairSync } from 'node:crypto'
import { crc32 } from 'node:zlib'
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
 * PayPal: Orders v2 (2.13), Payments v2 (2.5) and webhooks v1 (1.11). Source: the OpenAPI descriptions in
 * https://github.com/paypal/paypal-rest-api-specifications. PayPal signs `id|time|webhook id|CRC32 of the body` with
 * RSA and SHA-256. `verify-webhook-signature` checks the signature.
 */

const CLIENT = 'AeA1QIZXiflr1_-untag'
const TOKEN = 'A21AAFEpH4PsADK7qSS7pSRsgzfENtu'
let keys: ReturnType<typeof newKeys> | undefined

function newKeys() {
  return generateKeyPairSync('rsa', { modulusLength: 2_048 })
}

/** Generates the keys on first use, because generation is slow. */
function keysOf() {
  keys ??= newKeys()
  return keys
}

interface Wish {
  intent: string
  purchase_units: { custom_id: string; amount: { currency_code: string; value: string } }[]
  amount: { currency_code: string; value: string }
  custom_id: string
}

const money = (cent: number, currency_code: string) => ({ currency_code, value: (cent / 100).toFixed(2) })
const centsOf = (value: string | undefined) => Math.round(Number(value) * 100)

function shownCapture({ id, charge, paidCent, currency, reference }: SimulatedSession): object {
  return {
    id: charge,
    status: 'COMPLETED',
    amount: money(paidCent, currency),
    final_capture: true,
    custom_id: reference,
    supplementary_data: { related_ids: { order_id: id } },
  }
}

function shown(session: SimulatedSession, desk: PspDesk): object {
  const { id, reference, amountCent, currency, status } = session
  const isPaid = status === 'paid'
  return {
    id,
    intent: 'CAPTURE',
    status: isPaid ? 'COMPLETED' : status === 'approved' ? 'APPROVED' : 'PAYER_ACTION_REQUIRED',
    purchase_units: [
      {
        reference_id: reference,
        custom_id: reference,
        amount: money(amountCent, currency),
        ...(isPaid && { payments: { captures: [shownCapture(session)] } }),
      },
    ],
    links: [{ rel: 'payer-action', method: 'GET', href: `${desk.baseUrl}/pay/${id}` }],
  }
}

function shownRefund({ id, amountCent, key, status }: SimulatedRefund, { currency, charge }: SimulatedSession): object {
  return {
    id,
    status: status === 'done' ? 'COMPLETED' : 'FAILED',
    amount: money(amountCent, currency),
    ...(key !== '' && { custom_id: key }),
    links: [
      { href: `https://api.paypal.com/v2/payments/refunds/${id}`, rel: 'self', method: 'GET' },
      { href: `https://api.paypal.com/v2/payments/captures/${charge}`, rel: 'up', method: 'GET' },
    ],
  }
}

function error(status: number, name: string, issue: string): PspAnswer {
  return { status, body: { name, message: 'refused', debug_id: 'd', details: [{ issue, description: issue }] } }
}

const NOT_FOUND = error(404, 'RESOURCE_NOT_FOUND', 'INVALID_RESOURCE_ID')

function signed(event_type: string, resource_type: string, resource: object, desk: PspDesk) {
  const id = `69cd13f0-d67a-11e5-baa3-${String(desk.next()).padStart(12, '0')}`
  const time = new Date(desk.nowMs()).toISOString()
  const body = JSON.stringify({
    id: `WH-${id.slice(-6)}`,
    event_version: '1.0',
    create_time: time,
    resource_type,
    event_type,
    resource,
  })
  const signature = createSign('RSA-SHA256')
    .update(`${id}|${time}|${desk.secret}|${crc32(body)}`)
    .sign(keysOf().privateKey, 'base64')
  const transmission = {
    'paypal-transmission-id': id,
    'paypal-transmission-time': time,
    'paypal-transmission-sig': signature,
    'paypal-auth-algo': 'SHA256withRSA',
  }
  return {
    body,
    headers: {
      ...JSON_TYPE,
      ...transmission,
      'paypal-cert-url': 'https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-a5cafa77',
    },
  }
}

interface Question {
  transmission_id: string
  transmission_time: string
  transmission_sig: string
  webhook_id: string
  webhook_event: object
}

function isGenuine(body: string, { secret }: PspDesk): boolean {
  const {
    transmission_id: id,
    transmission_time: time,
    transmission_sig: signature = '',
    webhook_id: webhookId,
    webhook_event: event,
  } = jsonOf<Question>(body)
  const text = `${id}|${time}|${webhookId}|${crc32(JSON.stringify(event))}`
  return webhookId === secret && createVerify('RSA-SHA256').update(text).verify(keysOf().publicKey, signature, 'base64')
}

export const PAYPAL: PspDialect = {
  example: { apiKey: 'EGnHDxD_qRPdaLdZz8iCr8N7', secret: '1JE4291016473214C' },
  keyHeader: 'paypal-request-id',
  keyLifeMs: 45 * 24 * 3_600_000,
  capturesLater: true,
  configOf: ({ baseUrl, apiKey, secret }) => ({ baseUrl, clientId: CLIENT, clientSecret: apiKey, webhookId: secret }),
  isAllowed({ path, headers }, { apiKey }) {
    const wanted =
      path === '/v1/oauth2/token' ? `Basic ${Buffer.from(`${CLIENT}:${apiKey}`).toString('base64')}` : `Bearer ${TOKEN}`
    return headers.authorization === wanted
  },
  errorOf: (status) =>
    status === 401
      ? { error: 'invalid_client', error_description: 'Client Authentication failed' }
      : { name: 'NOT_AUTHORIZED', message: 'refused', debug_id: 'd' },
  answer({ method, path, body }, key, desk) {
    if (path === '/v1/oauth2/token')
      return { status: 200, body: { access_token: TOKEN, token_type: 'Bearer', expires_in: 32_400 }, isQuick: true }
    if (path === '/v1/notifications/verify-webhook-signature')
      return {
        status: 200,
        body: { verification_status: isGenuine(body, desk) ? 'SUCCESS' : 'FAILURE' },
        isQuick: true,
      }
    const wish = jsonOf<Wish>(body)
    if (path === '/v2/checkout/orders') {
      const unit = wish.purchase_units?.[0]
      if (wish.intent !== 'CAPTURE' || !unit || !/^\d+\.\d{2}$/.test(unit.amount.value))
        return error(422, 'UNPROCESSABLE_ENTITY', 'DECIMAL_PRECISION')
      const id = `5O190127TN36471${desk.next()}T`
      return {
        status: 200,
        body: shown(
          desk.open({
            id,
            reference: unit.custom_id,
            amountCent: centsOf(unit.amount.value),
            currency: unit.amount.currency_code,
            key,
            charge: `3C679366${id}`,
          }),
          desk,
        ),
      }
    }
    const order = desk.sessions.get(idIn(path, /^\/v2\/checkout\/orders\/([^/]+)/) ?? '')
    if (path.startsWith('/v2/checkout/')) {
      if (!order || order.status === 'expired' || order.status === 'cancelled') return NOT_FOUND
      if (method === 'GET') return { status: 200, body: shown(order, desk) }
      if (order.status === 'paid') return error(422, 'UNPROCESSABLE_ENTITY', 'ORDER_ALREADY_CAPTURED')
      if (order.status !== 'approved') return error(422, 'UNPROCESSABLE_ENTITY', 'ORDER_NOT_APPROVED')
      desk.capture(order)
      return { status: 201, body: shown(order, desk) }
    }
    const charge = idIn(path, /^\/v2\/payments\/captures\/([^/]+)\/refund$/)
    const session = [...desk.sessions.values()].find((each) => each.charge === charge)
    if (!session) return NOT_FOUND
    const refund = desk.refundPayment(session, centsOf(wish.amount?.value), { id: `1JU08902781${desk.next()}`, key })
    return refund
      ? { status: 201, body: shownRefund(refund, session) }
      : error(422, 'UNPROCESSABLE_ENTITY', 'REFUND_AMOUNT_EXCEEDED')
  },
  notificationOf(session, desk) {
    if (session.status === 'expired' || session.status === 'cancelled') return undefined
    if (session.status === 'paid') return signed('PAYMENT.CAPTURE.COMPLETED', 'capture', shownCapture(session), desk)
    return signed('CHECKOUT.ORDER.APPROVED', 'checkout-order', shown(session, desk), desk)
  },
  // PayPal takes the money back by a reversal of the capture. It gives it back without a notice that names the reversal.
  disputeNotificationOf: (dispute, session, desk) =>
    dispute.status === 'failed'
      ? signed(
          'CUSTOMER.DISPUTE.RESOLVED',
          'dispute',
          {
            dispute_id: `PP-D-${dispute.id}`,
            disputed_transactions: [{ seller_transaction_id: session.charge }],
            dispute_amount: money(dispute.amountCent, session.currency),
            status: 'RESOLVED',
            dispute_outcome: { outcome_code: 'RESOLVED_SELLER_FAVOUR' },
          },
          desk,
        )
      : signed('PAYMENT.CAPTURE.REVERSED', 'refund', shownRefund(dispute, session), desk),
  refundNotificationOf: (refund, session, desk) =>
    signed(
      refund.status === 'failed' ? 'PAYMENT.REFUND.FAILED' : 'PAYMENT.CAPTURE.REFUNDED',
      'refund',
      shownRefund(refund, session),
      desk,
    ),
}
