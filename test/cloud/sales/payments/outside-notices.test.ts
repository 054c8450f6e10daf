import { createHmac } from 'node:crypto'
import { expect, it } from 'vitest'
import { PROVIDERS } from '../../../../cloud/sales/payments/providers.ts'
import type { RefundNotice } from '../../../../cloud/sales/payments/provider.ts'

/** Notifications in the form of the makers' documents, about money that moved without a request of the cloud. */

const NOW_MS = Date.parse('2026-11-20T09:00:00Z')
const HMAC = '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056'
const SECRET = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='

async function read(
  provider: 'adyen' | 'stripe' | 'paypal' | 'mollie' | 'worldline',
  config: object,
  sent: { body: string; headers?: Record<string, string> },
  answer: unknown = {},
): Promise<string[]> {
  const connection = PROVIDERS[provider].connect(
    PROVIDERS[provider].config.parse(config),
    async () => ({ status: 200, headers: {}, json: answer }),
    () => NOW_MS,
  )
  const notices = await connection.readNotification({
    header: (name) => sent.headers?.[name],
    body: sent.body,
    nowMs: NOW_MS,
    isOurs: async () => true,
    isOurRefund: async () => false,
    isOurCharge: async () => true,
  })
  return (notices ?? []).flatMap((notice) => ('refundRef' in notice ? [shown(notice)] : []))
}

function shown({ refundRef, state, movement }: RefundNotice): string {
  const { kind, chargeId, sessionId, amountCent, currency, rank } = movement ?? {}
  return [kind, state, refundRef, chargeId ?? sessionId, amountCent, currency, rank].join(' ')
}

it.each([
  ['REFUND', 'true', 'refund done 8835', 1],
  ['REFUND', 'false', 'refund failed 8835', 1],
  ['CANCEL_OR_REFUND', 'true', 'refund done 8835', 1],
  ['REFUND_FAILED', 'true', 'refund failed 8835', 2],
  ['REFUNDED_REVERSED', 'true', 'refund failed 8835', 2],
  ['NOTIFICATION_OF_CHARGEBACK', 'true', 'dispute open 8835', 0],
  ['REQUEST_FOR_INFORMATION', 'true', 'dispute open 8835', 0],
  ['CHARGEBACK', 'true', 'dispute done 8835', 1],
  ['CHARGEBACK_REVERSED', 'true', 'dispute failed 8835', 2],
  ['SECOND_CHARGEBACK', 'true', 'dispute done 8835', 3],
  ['PREARBITRATION_LOST', 'true', 'dispute done 8835', 3],
  ['PREARBITRATION_WON', 'true', 'dispute failed 8835', 4],
  ['CHARGEBACK', 'false', '', 0],
  ['REPORT_AVAILABLE', 'true', '', 0],
])('Adyen: %s with success %s', async (eventCode, success, expected, rank) => {
  const item = {
    eventCode,
    success,
    pspReference: '8835',
    originalReference: '9913',
    merchantReference: 'pay_1',
    merchantAccountCode: 'Shop',
    amount: { value: 1_999, currency: 'EUR' },
    eventDate: '2026-11-20T09:00:00+01:00',
    reason: 'Other fraud-Card Absent Environment',
  }
  const text = `8835:9913:Shop:pay_1:1999:EUR:${eventCode}:${success}`
  const hmacSignature = createHmac('sha256', Buffer.from(HMAC, 'hex')).update(text).digest('base64')
  const NotificationRequestItem = { ...item, additionalData: { hmacSignature, disputeStatus: 'Undefended' } }
  const body = JSON.stringify({ live: 'true', notificationItems: [{ NotificationRequestItem }] })
  const config = { apiKey: 'k', merchantAccount: 'Shop', hmacKey: HMAC }
  expect(await read('adyen', config, { body })).toEqual(expected === '' ? [] : [`${expected} 9913 1999 EUR ${rank}`])
})

const WITHDRAWN = { id: 'txn_1', object: 'balance_transaction', amount: -1_999, fee: 1_500, net: -3_499 }
it.each([
  ['charge.dispute.created', { status: 'warning_needs_response', balance_transactions: [] }, 'open', 0],
  ['charge.dispute.created', { status: 'needs_response', balance_transactions: [] }, 'open', 0],
  ['charge.dispute.funds_withdrawn', { status: 'needs_response', balance_transactions: [WITHDRAWN] }, 'done', 0],
  ['charge.dispute.updated', { status: 'under_review', balance_transactions: [WITHDRAWN] }, 'done', 0],
  ['charge.dispute.closed', { status: 'lost', balance_transactions: [WITHDRAWN] }, 'done', 0],
  ['charge.dispute.closed', { status: 'won', balance_transactions: [WITHDRAWN] }, 'failed', 1],
  ['charge.dispute.funds_reinstated', { status: 'under_review', balance_transactions: [WITHDRAWN] }, 'failed', 1],
])('Stripe: %s with %j', async (type, fields, state, later) => {
  const created = NOW_MS / 1_000
  const about = {
    id: 'du_1',
    object: 'dispute',
    amount: 1_999,
    currency: 'eur',
    charge: 'ch_1',
    payment_intent: 'pi_1',
  }
  const object = { ...about, reason: 'fraudulent', ...fields }
  const body = JSON.stringify({
    id: 'evt_1',
    object: 'event',
    api_version: '2024-06-20',
    created,
    type,
    data: { object },
  })
  const signature = createHmac('sha256', SECRET).update(`${created}.${body}`).digest('hex')
  const headers = { 'stripe-signature': `t=${created},v1=${signature}` }
  const config = { secretKey: 'sk_test_51abcdefgh', webhookSecret: SECRET }
  expect(await read('stripe', config, { body, headers })).toEqual([
    `dispute ${state} du_1 pi_1 1999 EUR ${2 * created + later}`,
  ])
})

const CAPTURE = 'https://api.paypal.com/v2/payments/captures/9BT885563M275774M'
const MONEY = { currency_code: 'EUR', value: '19.99' }
it.each([
  [
    'PAYMENT.CAPTURE.REFUNDED',
    { id: '5510X', status: 'COMPLETED', amount: MONEY, links: [{ rel: 'up', href: CAPTURE }] },
    'refund done 5510X 9BT885563M275774M 1999 EUR',
  ],
  [
    'PAYMENT.CAPTURE.REVERSED',
    { id: '5510X', amount: MONEY, links: [{ rel: 'up', href: CAPTURE }] },
    'dispute done 5510X 9BT885563M275774M 1999 EUR',
  ],
  // The capture itself: how much of it was reversed is unknown.
  ['PAYMENT.CAPTURE.REVERSED', { id: '9BT8X', amount: MONEY }, 'dispute done 9BT8X/reversed 9BT8X  '],
  [
    'CUSTOMER.DISPUTE.CREATED',
    { dispute_id: 'PP-D-1', disputed_transactions: [{ seller_transaction_id: '9BT8X' }], dispute_amount: MONEY },
    'dispute open PP-D-1 9BT8X 1999 EUR',
  ],
])('PayPal: %s', async (event_type, resource, expected) => {
  const headers = {
    'paypal-transmission-id': '1',
    'paypal-transmission-time': '2',
    'paypal-transmission-sig': '3',
    'paypal-auth-algo': 'SHA256withRSA',
    'paypal-cert-url': 'https://api.paypal.com/v1/notifications/certs/CERT-1',
  }
  const body = JSON.stringify({ id: 'WH-1', create_time: '2026-11-20T09:00:00.000Z', event_type, resource })
  const answer = { access_token: 't', verification_status: 'SUCCESS' }
  const config = { clientId: 'c', clientSecret: 's', webhookId: 'W1' }
  expect(await read('paypal', config, { body, headers }, answer)).toEqual([`${expected} ${NOW_MS}`])
})

it('Mollie: refunds and chargebacks of a payment', async () => {
  const amount = { currency: 'EUR', value: '10.00' }
  const chargeback = { resource: 'chargeback', amount, paymentId: 'tr_1', createdAt: '2026-11-20T09:13:37+00:00' }
  const payment = {
    resource: 'payment',
    id: 'tr_1',
    status: 'paid',
    amount: { currency: 'EUR', value: '49.90' },
    _embedded: {
      refunds: [{ resource: 'refund', id: 're_1', amount, status: 'pending', metadata: null }],
      chargebacks: [
        { ...chargeback, id: 'chb_1', reversedAt: null },
        { ...chargeback, id: 'chb_2', reversedAt: '2026-11-28T09:00:00+00:00' },
      ],
    },
  }
  expect(await read('mollie', { apiKey: 'test_51abcdefgh' }, { body: 'id=tr_1' }, payment)).toEqual([
    'refund done re_1 tr_1 1000 EUR ',
    'dispute done chb_1 tr_1 1000 EUR ',
    'dispute failed chb_2 tr_1 1000 EUR ',
  ])
})

it.each([
  [
    {
      type: 'refund.refunded',
      refund: {
        id: '3136405348_2',
        status: 'REFUNDED',
        refundOutput: { amountOfMoney: { amount: 1_999, currencyCode: 'EUR' } },
      },
    },
    `refund done 3136405348_2 3136405348_0 1999 EUR ${2 * NOW_MS}`,
  ],
  [
    { type: 'payment.reversed', payment: { id: '3136405348_0', status: 'REVERSED' } },
    'dispute done 3136405348_0/REVERSED 3136405348_0   ',
  ],
])('Worldline: %j', async (content, expected) => {
  const event = { apiVersion: 'v1', id: 'ev', created: '2026-11-20T09:00:00.000+0000', merchantId: 'Shop', ...content }
  const body = JSON.stringify({ ...event, created: new Date(NOW_MS).toISOString() })
  const headers = {
    'x-gcs-keyid': 'k',
    'x-gcs-signature': createHmac('sha256', 'secret').update(body).digest('base64'),
  }
  const config = { merchantId: 'Shop', apiKeyId: 'k', secretApiKey: 's', webhookSecret: 'secret' }
  expect(await read('worldline', config, { body, headers })).toEqual([expected])
})
