import { describe, expect, it } from 'vitest'
import { Webhook } from 'standardwebhooks'
import { isStandardSigned, isStripeSigned } from '../../cloud/payments/providers/signed-notifications.ts'

const AT_S = 1_700_000_000
const BODY = '{"id":"evt_1","object":"event"}'
const notification = (headers: Record<string, string>, nowMs = AT_S * 1_000, body = BODY) => ({ header: (name: string) => headers[name], body, nowMs })

describe('Stripe’s signature', () => {
  const SECRET = 'whsec_test_secret'
  // printf '1700000000.{"id":"evt_1","object":"event"}' | openssl dgst -sha256 -hmac whsec_test_secret
  const V1 = '0c8670ed117751cc551a20e35839447075c42800ea3cf3e8a2fbda99cd1e6edd'
  const signed = (header: string, nowMs?: number, body?: string) => isStripeSigned(notification({ 'stripe-signature': header }, nowMs, body), SECRET)

  it('is HMAC-SHA256 in hex over the time, a dot and the body', () => {
    expect(signed(`t=${AT_S},v1=${V1}`)).toBe(true)
    expect(signed(`t=${AT_S},v1=${'0'.repeat(64)},v1=${V1},v0=${V1}`)).toBe(true)
  })

  it('counts for five minutes, both ways', () => {
    for (const [seconds, good] of [[300, true], [301, false], [-300, true], [-301, false]] as const) expect([seconds, signed(`t=${AT_S},v1=${V1}`, (AT_S + seconds) * 1_000)]).toEqual([seconds, good])
  })

  it('is nothing when a piece of it is another', () => {
    const wrong = ['', 't=1', `v1=${V1}`, `t=${AT_S + 1},v1=${V1}`, `t=${AT_S},v0=${V1}`, `t=${AT_S},v1=${V1.slice(2)}`, `t=${AT_S},v1=`, `t=x,v1=${V1}`, `t=${AT_S},v1=${V1.replace(/^./, (c) => (c === '0' ? '1' : '0'))}`]
    expect(wrong.filter((header) => signed(header))).toEqual([])
    expect(signed(`t=${AT_S},v1=${V1}`, AT_S * 1_000, `${BODY} `)).toBe(false)
    expect(isStripeSigned(notification({ 'stripe-signature': `t=${AT_S},v1=${V1}` }), `${SECRET}x`)).toBe(false)
  })
})

describe('the signature of Standard Webhooks', () => {
  const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const sign = (id: string, body: string) => new Webhook(SECRET).sign(id, new Date(AT_S * 1_000), body)
  const signed = (headers: Record<string, string>, nowMs?: number, body?: string) =>
    isStandardSigned(notification({ 'webhook-id': 'msg_1', 'webhook-timestamp': String(AT_S), ...headers }, nowMs, body), SECRET)

  it('is what the reference implementation makes, alone or among others', () => {
    expect(signed({ 'webhook-signature': sign('msg_1', BODY) })).toBe(true)
    expect(signed({ 'webhook-signature': `v1,AAAA v2,x ${sign('msg_1', BODY)}` })).toBe(true)
  })

  it('is nothing for another id, body, time, or later', () => {
    const header = { 'webhook-signature': sign('msg_1', BODY) }
    expect([signed({ ...header, 'webhook-id': 'msg_2' }), signed(header, undefined, '{}'), signed({ ...header, 'webhook-timestamp': String(AT_S + 1) }), signed(header, (AT_S + 301) * 1_000), signed({})]).toEqual([false, false, false, false, false])
  })
})
