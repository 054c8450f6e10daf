import { createHmac } from 'node:crypto'
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
 * Adyen: Checkout API v71, payment links and refunds, and standard webhooks. Sources:
 * https://docs.adyen.com/api-explorer/Checkout/71 and https://docs.adyen.com/development-resources/webhooks. Adyen
 * sends no notification for an expired link. The first state of a refund is `received`.
 */

const ACCOUNT = 'UntagShopECOM'

interface Wish {
  merchantAccount: string
  reference: string
  amount: { value: number; currency: string }
  expiresAt: string
}

const LINK_STATES = {
  open: 'active',
  approved: 'active',
  paid: 'completed',
  cancelled: 'active',
  expired: 'expired',
} as const

function shown({ id, reference, amountCent, paidCent, currency, status }: SimulatedSession, desk: PspDesk): object {
  return {
    id,
    reference,
    url: `${desk.baseUrl}/pay/${id}`,
    status: LINK_STATES[status],
    amount: { value: status === 'paid' ? paidCent : amountCent, currency },
    merchantAccount: ACCOUNT,
  }
}

function error(status: number, errorCode: string, message: string): PspAnswer {
  return { status, body: { status, errorCode, message, errorType: 'validation' } }
}

interface Event {
  eventCode: string
  success: boolean
  pspReference: string
  originalReference: string
  merchantReference: string
  amount: { value: number; currency: string }
}

function signed(
  { eventCode, success, pspReference, originalReference, merchantReference, amount }: Event,
  desk: PspDesk,
) {
  const payload = `${pspReference}:${originalReference}:${ACCOUNT}:${merchantReference}:${amount.value}:${amount.currency}:${eventCode}:${success}`
  const hmacSignature = createHmac('sha256', Buffer.from(desk.secret, 'hex')).update(payload).digest('base64')
  const item = {
    additionalData: { hmacSignature },
    amount,
    eventCode,
    eventDate: new Date(desk.nowMs()).toISOString(),
    merchantAccountCode: ACCOUNT,
    merchantReference,
    ...(originalReference !== '' && { originalReference }),
    pspReference,
    success: String(success),
  }
  return {
    body: JSON.stringify({ live: 'false', notificationItems: [{ NotificationRequestItem: item }] }),
    headers: JSON_TYPE,
  }
}

export const ADYEN: PspDialect = {
  example: {
    apiKey: 'AQEyhmfxK4nMaRxDw0m',
    secret: '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056',
  },
  keyHeader: 'idempotency-key',
  keyLifeMs: 7 * 24 * 3_600_000,
  configOf: ({ baseUrl, apiKey, secret }) => ({ baseUrl, apiKey, merchantAccount: ACCOUNT, hmacKey: secret }),
  isAllowed: ({ headers }, { apiKey }) => headers['x-api-key'] === apiKey,
  errorOf: (status) => ({
    status,
    errorCode: '000',
    message: 'HTTP Status Response - Unauthorized',
    errorType: 'security',
  }),
  answer({ method, path, body }, key, desk) {
    const linkId = idIn(path, /^\/v71\/paymentLinks\/([^/]+)$/)
    if (method === 'GET' && linkId !== undefined) {
      const link = desk.sessions.get(linkId)
      return link ? { status: 200, body: shown(link, desk) } : error(404, '704', 'Payment link not found')
    }
    const { merchantAccount, reference = '', amount, expiresAt } = jsonOf<Wish>(body)
    if (merchantAccount !== ACCOUNT) return error(403, '901', 'Invalid Merchant Account')
    if (!amount || !Number.isInteger(amount.value)) return error(422, '100', 'Required field "amount" is not provided.')
    if (path === '/v71/paymentLinks') {
      if (expiresAt === undefined || !(Date.parse(expiresAt) > desk.nowMs()))
        return error(422, '171', 'expiresAt must be in the future')
      const number = desk.next()
      const made = desk.open({
        id: `PL${number}ABCDEF`,
        reference,
        amountCent: amount.value,
        currency: amount.currency,
        key,
        charge: `PSP${number}XYZ`,
      })
      return { status: 201, body: shown(made, desk) }
    }
    const charge = idIn(path, /^\/v71\/payments\/([^/]+)\/refunds$/)
    const session = [...desk.sessions.values()].find((each) => each.charge === charge)
    if (charge === undefined || !session) return error(404, '167', 'Original pspReference required for this operation')
    const refund = desk.refundPayment(session, amount.value, { id: `RF${desk.next()}XYZ`, key })
    if (!refund) return error(422, '137', 'Invalid amount specified')
    return {
      status: 201,
      body: {
        merchantAccount,
        paymentPspReference: charge,
        pspReference: refund.id,
        reference,
        status: 'received',
        amount,
      },
    }
  },
  notificationOf(session, desk) {
    if (session.status === 'expired') return undefined
    const { reference: merchantReference, charge: pspReference, currency } = session
    const success = session.status === 'paid'
    return signed(
      {
        eventCode: 'AUTHORISATION',
        success,
        pspReference,
        originalReference: '',
        merchantReference,
        amount: { value: success ? session.paidCent : session.amountCent, currency },
      },
      desk,
    )
  },
  disputeNotificationOf(dispute, session, desk) {
    const eventCode = dispute.status === 'failed' ? 'CHARGEBACK_REVERSED' : 'CHARGEBACK'
    const { charge: originalReference, reference: merchantReference, currency } = session
    const amount = { value: dispute.amountCent, currency }
    return signed(
      { eventCode, success: true, pspReference: dispute.id, originalReference, merchantReference, amount },
      desk,
    )
  },
  refundNotificationOf(refund, session, desk) {
    const amount = { value: refund.amountCent, currency: session.currency }
    const merchantReference = refund.key === '' ? session.reference : refund.key
    const about = { pspReference: refund.id, originalReference: session.charge, merchantReference, amount }
    return signed(
      refund.status === 'failed'
        ? { ...about, eventCode: 'REFUND_FAILED', success: true }
        : { ...about, eventCode: 'REFUND', success: true },
      desk,
    )
  },
}
