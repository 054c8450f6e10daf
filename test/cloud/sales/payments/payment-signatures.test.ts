import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { Stripe } from 'stripe'
import { isAdyenSigned } from '../../../../cloud/sales/payments/providers/adyen.ts'
import { isStandardSigned } from '../../../../cloud/sales/payments/providers/custom.ts'
import { isStripeSigned } from '../../../../cloud/sales/payments/providers/stripe.ts'
import { isWorldlineSigned, worldlineAuthorization } from '../../../../cloud/sales/payments/providers/worldline.ts'

const AT_S = 1_700_000_000
const BODY = '{"id":"evt_1","object":"event"}'
const notification = (headers: Record<string, string>, nowMs = AT_S * 1_000, body = BODY) => ({
  header: (name: string) => headers[name],
  body,
  nowMs,
})

describe('Stripe’s signature', () => {
  const SECRET = 'whsec_test_secret'
  // printf '1700000000.{"id":"evt_1","object":"event"}' | openssl dgst -sha256 -hmac whsec_test_secret
  const V1 = '0c8670ed117751cc551a20e35839447075c42800ea3cf3e8a2fbda99cd1e6edd'
  const signed = (header: string, nowMs?: number, body?: string) =>
    isStripeSigned(notification({ 'stripe-signature': header }, nowMs, body), SECRET)

  it('is HMAC-SHA256 in hex over the time, a dot and the body', () => {
    expect(signed(`t=${AT_S},v1=${V1}`)).toBe(true)
    expect(signed(`t=${AT_S},v1=${'0'.repeat(64)},v1=${V1},v0=${V1}`)).toBe(true)
  })

  it('agrees with Stripe’s own library', () => {
    const header = Stripe.webhooks.generateTestHeaderString({ payload: BODY, secret: SECRET, timestamp: AT_S })
    expect(header).toBe(`t=${AT_S},v1=${V1}`)
    expect(signed(header)).toBe(true)
    expect(Stripe.webhooks.constructEvent(BODY, header, SECRET, 300, undefined, AT_S * 1_000)).toMatchObject({
      id: 'evt_1',
    })
    expect(() => Stripe.webhooks.constructEvent(`${BODY} `, header, SECRET, 300, undefined, AT_S * 1_000)).toThrow(
      /signature/,
    )
  })

  it('is valid for five minutes in both directions', () => {
    for (const [seconds, good] of [
      [300, true],
      [301, false],
      [-300, true],
      [-301, false],
    ] as const)
      expect([seconds, signed(`t=${AT_S},v1=${V1}`, (AT_S + seconds) * 1_000)]).toEqual([seconds, good])
  })

  it('is invalid after any change', () => {
    const wrong = [
      '',
      't=1',
      `v1=${V1}`,
      `t=${AT_S + 1},v1=${V1}`,
      `t=${AT_S},v0=${V1}`,
      `t=${AT_S},v1=${V1.slice(2)}`,
      `t=${AT_S},v1=`,
      `t=x,v1=${V1}`,
      `t=${AT_S},v1=${V1.replace(/^./, (c) => (c === '0' ? '1' : '0'))}`,
    ]
    expect(wrong.filter((header) => signed(header))).toEqual([])
    expect(signed(`t=${AT_S},v1=${V1}`, AT_S * 1_000, `${BODY} `)).toBe(false)
    expect(isStripeSigned(notification({ 'stripe-signature': `t=${AT_S},v1=${V1}` }), `${SECRET}x`)).toBe(false)
  })
})

describe('the signature of Standard Webhooks', () => {
  const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const sign = (id: string, body: string) => new Webhook(SECRET).sign(id, new Date(AT_S * 1_000), body)
  const signed = (headers: Record<string, string>, nowMs?: number, body?: string) =>
    isStandardSigned(
      notification({ 'webhook-id': 'msg_1', 'webhook-timestamp': String(AT_S), ...headers }, nowMs, body),
      SECRET,
    )

  it('agrees with the reference implementation, alone or among other signatures', () => {
    expect(signed({ 'webhook-signature': sign('msg_1', BODY) })).toBe(true)
    expect(signed({ 'webhook-signature': `v1,AAAA v2,x ${sign('msg_1', BODY)}` })).toBe(true)
  })

  it('is invalid for another id, body or time, and after its time limit', () => {
    const header = { 'webhook-signature': sign('msg_1', BODY) }
    expect([
      signed({ ...header, 'webhook-id': 'msg_2' }),
      signed(header, undefined, '{}'),
      signed({ ...header, 'webhook-timestamp': String(AT_S + 1) }),
      signed(header, (AT_S + 301) * 1_000),
      signed({}),
    ]).toEqual([false, false, false, false, false])
  })
})

describe('Adyen’s signature', () => {
  // Vectors: src/__tests__/hmacValidator.spec.ts of github.com/Adyen/adyen-node-api-library (MIT), 2026-08.
  const KEY = 'DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00'
  const FIELDS = {
    pspReference: 'pspReference',
    originalReference: 'originalReference',
    merchantAccountCode: 'merchantAccount',
    merchantReference: 'reference',
    amount: { currency: 'EUR', value: 1_000 },
    success: 'true',
  }
  const VECTORS = [
    {
      ...FIELDS,
      eventCode: 'REPORT_AVAILABLE',
      additionalData: { hmacSignature: 'ZNBPtI+oDyyRrLyD1XirkKnQgIAlFc07Vj27TeHsDRE=' },
    },
    {
      ...FIELDS,
      eventCode: 'EVENT',
      additionalData: { hmacSignature: 'ipnxGCaUZ4l8TUW75a71/ghd2Fe5ffvX0pV4TLTntIc=' },
    },
  ]

  it('agrees with Adyen’s published vectors', () => {
    expect(VECTORS.map((item) => isAdyenSigned(item, KEY))).toEqual([true, true])
  })

  it('is invalid after any change', () => {
    const [item] = VECTORS
    if (!item) throw new Error('no vector')
    const others = [
      { ...item, pspReference: 'x' },
      { ...item, originalReference: null },
      { ...item, merchantAccountCode: 'x' },
      { ...item, merchantReference: 'x' },
      { ...item, amount: { currency: 'EUR', value: 1_001 } },
      { ...item, amount: { currency: 'USD', value: 1_000 } },
      { ...item, eventCode: 'REFUND' },
      { ...item, success: 'false' },
      { ...item, additionalData: {} },
      { ...item, additionalData: null },
      { ...item, additionalData: { hmacSignature: '' } },
    ]
    expect(others.filter((other) => isAdyenSigned(other, KEY))).toEqual([])
    expect(isAdyenSigned(item, KEY.replace('D', 'E'))).toBe(false)
  })
})

describe('Worldline’s signatures', () => {
  // Vectors: __tests__/unit of github.com/wl-online-payments-direct/sdk-nodejs (MIT), 2025-05.
  const SECRET = 'hello+world'
  const SIGNATURE = '2S7doBj/GnJnacIjSJzr5fxGM5xmfQyFAwxv1I53ZEk='
  const BODY_OF_THEIRS = `{
  "apiVersion": "v1",
  "id": "8ee793f6-4553-4749-85dc-f2ef095c5ab0",
  "created": "2017-02-02T11:24:14.040+0100",
  "merchantId": "20000",
  "type": "payment.paid",
  "payment": {
    "id": "00000200000143570012",
    "paymentOutput": {
      "amountOfMoney": {
        "amount": 1000,
        "currencyCode": "EUR"
      },
      "references": {
        "paymentReference": "200001681810"
      },
      "paymentMethod": "bankTransfer",
      "bankTransferPaymentMethodSpecificOutput": {
        "paymentProductId": 11
      }
    },
    "status": "PAID",
    "statusOutput": {
      "isCancellable": false,
      "statusCategory": "COMPLETED",
      "statusCode": 1000,
      "statusCodeChangeDateTime": "20170202112414",
      "isAuthorized": true
    }
  }
}`
  const signed = (signature: string, body = BODY_OF_THEIRS, secret = SECRET) =>
    isWorldlineSigned({ header: (name) => ({ 'x-gcs-signature': signature })[name], body }, secret)

  it('of notifications agree with Worldline’s published vectors only', () => {
    expect(signed(SIGNATURE)).toBe(true)
    expect([
      signed(''),
      signed('AAAA'),
      signed(SIGNATURE, `${BODY_OF_THEIRS} `),
      signed(SIGNATURE, BODY_OF_THEIRS, 'hello+world!'),
    ]).toEqual([false, false, false, false])
  })

  it('of requests agree with Worldline’s published vectors', () => {
    const date = 'Fri, 06 Jun 2014 13:39:43 GMT'
    const pair = { apiKeyId: '5e45c937b9db33ae', secretApiKey: 'I42Zf4pVnRdroHfuHnRiJjJ2B6+22h0yQt/R3nZR8Xg=' }
    expect(worldlineAuthorization({ method: 'GET', path: '/v2/1/tokens/123456789', date, headers: {} }, pair)).toBe(
      'GCS v1HMAC:5e45c937b9db33ae:UpOoo/pmmj7tW03IbEcw2WtJURFCKL2/J6hqMc+1h1I=',
    )
    const headers = {
      'X-GCS-ServerMetaInfo': 'processed header value',
      'X-GCS-ClientMetaInfo': 'processed header value',
      'X-GCS-CustomerHeader': 'processed header value',
      'User-Agent': 'x',
    }
    const deletion = {
      method: 'DELETE',
      path: '/v2/1/tokens/123456789',
      date,
      contentType: 'application/json',
      headers,
    }
    expect(worldlineAuthorization(deletion, pair)).toBe(
      'GCS v1HMAC:5e45c937b9db33ae:TbiTwCCsGsyFFnfWt5Rreg0cGYJeTiofxjuZNSLUuGo=',
    )
  })
})
