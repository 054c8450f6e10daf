import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PROVIDERS } from '../../../../cloud/sales/payments/providers.ts'
import { ProviderFault } from '../../../../cloud/sales/payments/provider.ts'
import { simulatedPsp } from '../../../../simulators/services/psp.ts'
import { PSP_NAMES } from '../../../../simulators/services/psp-books.ts'

const PAYPAL_HEADERS: Readonly<Record<string, string>> = {
  'paypal-transmission-id': '1',
  'paypal-transmission-time': '2',
  'paypal-transmission-sig': '3',
  'paypal-auth-algo': 'SHA256withRSA',
  'paypal-cert-url': 'https://api.paypal.com/v1/notifications/certs/CERT-1',
}

it('of PayPal are sent back to it unchanged, so that it checks the event that counts', async () => {
  const event = `{"event_type":"PAYMENT.CAPTURE.REFUNDED", "summary":"$& $' $\` $$", "resource":{"id":"1JU","status":"COMPLETED"}}`
  const sent: string[] = []
  const { paypal } = PROVIDERS
  const config = paypal.config.parse({ clientId: 'client-id', clientSecret: 'client-secret', webhookId: '1JE' })
  const connection = paypal.connect(
    config,
    async ({ body = '' }) => {
      sent.push(body)
      return { status: 200, headers: {}, json: { access_token: 'token', verification_status: 'SUCCESS' } }
    },
    () => 0,
  )
  const header = (name: string) => PAYPAL_HEADERS[name]
  const known = async () => true
  await connection.readNotification({
    header,
    body: event,
    nowMs: 0,
    isOurs: known,
    isOurCharge: known,
    isOurRefund: known,
  })
  expect(sent.at(-1)).toMatch(/^\{"auth_algo"/)
  expect(sent.at(-1)?.endsWith(`,"webhook_event":${event}}`)).toBe(true)
})

/** Random notifications must have no effect if the provider is not queried or does not know the payment. */
describe.each(PSP_NAMES)('forged notifications in the name of %s', (name) => {
  const headers = fc.dictionary(
    fc.constantFrom(
      'webhook-id',
      'webhook-timestamp',
      'webhook-signature',
      'stripe-signature',
      'x-gcs-signature',
      'paypal-transmission-id',
      'paypal-transmission-time',
      'paypal-transmission-sig',
      'paypal-auth-algo',
      'paypal-cert-url',
    ),
    fc.oneof(
      fc.string(),
      fc.constantFrom(
        'v1,AAAA',
        't=1700000000,v1=00',
        '1700000000',
        'https://api.paypal.com/v1/notifications/certs/CERT-1',
        'https://api.paypal.com.example/x',
      ),
    ),
  )
  const words = fc.constantFrom(
    'id',
    'session',
    'session_id',
    'payload',
    'checkout_id',
    'notificationItems',
    'NotificationRequestItem',
    'amount',
    'value',
    'currency',
    'success',
    'eventCode',
    'additionalData',
    'hmacSignature',
    'type',
    'event_type',
    'resource',
    'data',
    'object',
    'payment',
    'refund',
    'status',
    'merchantId',
    'sessionId',
    'PAID',
    'AUTHORISATION',
    'CHECKOUT.ORDER.APPROVED',
    'COMPLETED',
    'true',
  )
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      words,
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      tie('array'),
      tie('object'),
    ),
    array: fc.array(tie('value'), { maxLength: 3 }),
    object: fc.dictionary(words, tie('value'), { maxKeys: 6 }),
  }))
  const bodies = fc.oneof(
    fc.string(),
    value.map((each) => JSON.stringify(each)),
    fc.string().map((id) => `id=${id}`),
  )

  const NOW_MS = 1_700_000_000_000

  /** Connects to a provider without payments. `queried` contains the addresses of all requests. */
  async function connected() {
    const psp = await simulatedPsp({ dialect: name, notifyUrl: () => '', nowMs: () => NOW_MS })
    const provider = PROVIDERS[name]
    const config = provider.config.parse(psp.config())
    await psp.close()
    const queried: string[] = []
    const answer = async ({ url }: { url: string }) => {
      queried.push(url)
      return { status: 404, headers: {}, json: {} }
    }
    return { queried, baseUrl: psp.baseUrl, connection: provider.connect(config, answer, () => NOW_MS) }
  }

  it('have no effect, or cause a query', async () => {
    const { queried, baseUrl, connection } = await connected()
    await fc.assert(
      fc.asyncProperty(headers, bodies, fc.boolean(), async (sentHeaders, body, isOurs) => {
        const read = await connection
          .readNotification({
            header: (header) => sentHeaders[header],
            body,
            nowMs: NOW_MS,
            isOurs: async () => isOurs,
            isOurRefund: async () => isOurs,
            isOurCharge: async () => isOurs,
          })
          .catch((error: unknown) => {
            if (!(error instanceof ProviderFault)) throw error
            return undefined
          })
        expect(read ?? []).toEqual([])
      }),
      { numRuns: 300 },
    )
    for (const url of queried) expect(url.startsWith(baseUrl)).toBe(true)
  })

  it('cause no query about unknown payments', async () => {
    const { queried, connection } = await connected()
    const order = { id: '5O190127TN364715T', purchase_units: [{ custom_id: 'pay_made_up' }] }
    const events = [
      { event_type: 'CHECKOUT.ORDER.APPROVED', resource: order },
      {
        event_type: 'PAYMENT.CAPTURE.COMPLETED',
        resource: { custom_id: 'pay_made_up', supplementary_data: { related_ids: { order_id: order.id } } },
      },
      {
        event_type: 'PAYMENT.CAPTURE.REFUNDED',
        resource: { id: '1JU08902781691411', status: 'COMPLETED', custom_id: 'ref_made_up' },
      },
      { event_type: 'CUSTOMER.DISPUTE.CREATED', resource: {} },
    ]
    const bodies = [
      ...events.map((event) => JSON.stringify(event)),
      'id=tr_made_up',
      '{"session":{"session_id":"made-up"}}',
      '{"id":"made-up"}',
      '{"payload":{"checkout_id":"made-up"}}',
    ]
    for (const body of bodies) {
      const notification = {
        header: (header: string) => PAYPAL_HEADERS[header],
        body,
        nowMs: NOW_MS,
        isOurs: async () => false,
        isOurRefund: async () => false,
        isOurCharge: async () => false,
      }
      expect((await connection.readNotification(notification)) ?? []).toEqual([])
    }
    expect(queried).toEqual([])
  })
})
