import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { verifyWebhook } from '../../../clients/typescript/webhook.ts'

/* The example of the Standard Webhooks specification (standard-webhooks.md, "Signature scheme"). */
const EXAMPLE = {
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  timestamp: '1614265330',
  body: '{"test": 2432232314}',
  signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
}
const exampleHeaders = {
  'webhook-id': EXAMPLE.id,
  'webhook-timestamp': EXAMPLE.timestamp,
  'webhook-signature': EXAMPLE.signature,
}
const now = () => Number(EXAMPLE.timestamp) * 1_000

const BODY = JSON.stringify({
  id: 'whe_1',
  event: 'product.created',
  type: 'product.created',
  timestamp: '2026-11-20T09:00:00.000Z',
  data: { name: 'Grüße' },
})
const plain = (secret: string, body = BODY) => createHmac('sha256', secret).update(body).digest('hex')
const standard = (key: Buffer, id: string, at: string, body = BODY) =>
  `v1,${createHmac('sha256', key).update(`${id}.${at}.${body}`).digest('base64')}`

describe('verifyWebhook', () => {
  it('accepts the example that Standard Webhooks publishes', async () => {
    expect(await verifyWebhook(EXAMPLE.body, exampleHeaders, EXAMPLE.secret, { now })).toEqual({ test: 2_432_232_314 })
    expect(
      await verifyWebhook(Buffer.from(EXAMPLE.body), new Headers(exampleHeaders), EXAMPLE.secret, { now }),
    ).toEqual({ test: 2_432_232_314 })
  })

  it('accepts signatures of node:crypto in both header families', async () => {
    for (const secret of ['whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQ=', 'plain secret ü']) {
      const key = secret.startsWith('whsec_') ? Buffer.from(secret.slice(6), 'base64') : Buffer.from(secret)
      const at = EXAMPLE.timestamp
      const event = await verifyWebhook(
        BODY,
        { 'Webhook-Id': 'm', 'Webhook-Timestamp': at, 'Webhook-Signature': standard(key, 'm', at) },
        secret,
        { now },
      )
      expect(event.data['name']).toBe('Grüße')
      expect((await verifyWebhook(BODY, { 'X-Untag-Signature': plain(secret) }, secret)).event).toBe('product.created')
    }
  })

  it('accepts either secret during a rotation', async () => {
    const [old, next] = [Buffer.from('old'), Buffer.from('new')]
    const headers = {
      'webhook-id': 'm',
      'webhook-timestamp': EXAMPLE.timestamp,
      'webhook-signature': `v2,x ${standard(old, 'm', EXAMPLE.timestamp)} ${standard(next, 'm', EXAMPLE.timestamp)}`,
    }
    for (const secret of ['old', 'new']) expect((await verifyWebhook(BODY, headers, secret, { now })).id).toBe('whe_1')
    await expect(verifyWebhook(BODY, headers, 'other', { now })).rejects.toMatchObject({ code: 'bad_signature' })
  })

  it('rejects old, future, altered and unsigned deliveries', async () => {
    const check = (changes: Record<string, string | undefined>, body = EXAMPLE.body, at = now()) =>
      verifyWebhook(body, { ...exampleHeaders, ...changes }, EXAMPLE.secret, { now: () => at })
    expect(await check({}, EXAMPLE.body, now() + 5 * 60_000)).toBeDefined()
    await expect(check({}, EXAMPLE.body, now() + 5 * 60_000 + 1)).rejects.toMatchObject({ code: 'too_old' })
    await expect(check({}, EXAMPLE.body, now() - 5 * 60_000 - 1)).rejects.toMatchObject({ code: 'too_old' })
    await expect(check({ 'webhook-timestamp': 'now' })).rejects.toMatchObject({ code: 'too_old' })
    await expect(check({ 'webhook-timestamp': String(Number(EXAMPLE.timestamp) + 1) })).rejects.toMatchObject({
      code: 'bad_signature',
    })
    await expect(check({ 'webhook-id': 'other' })).rejects.toMatchObject({ code: 'bad_signature' })
    await expect(check({}, `${EXAMPLE.body} `)).rejects.toMatchObject({ code: 'bad_signature' })
    await expect(check({ 'webhook-id': undefined })).rejects.toMatchObject({ code: 'no_signature' })
    for (const signature of ['', 'v1', 'v1,', 'v1,!!!', 'v1a,AAAA', EXAMPLE.signature.slice(3)])
      await expect(check({ 'webhook-signature': signature })).rejects.toMatchObject({ code: 'bad_signature' })
    await expect(verifyWebhook(BODY, {}, 's')).rejects.toMatchObject({ code: 'no_signature' })
    for (const signature of ['', 'zz', plain('other'), plain('s').slice(2)])
      await expect(verifyWebhook(BODY, { 'x-untag-signature': signature }, 's')).rejects.toMatchObject({
        code: 'bad_signature',
      })
    await expect(verifyWebhook('[', { 'x-untag-signature': plain('s', '[') }, 's')).rejects.toMatchObject({
      code: 'not_json',
    })
  })

  it('does not fall back to the header without a time', async () => {
    const headers = { ...exampleHeaders, 'x-untag-signature': plain(EXAMPLE.secret, EXAMPLE.body) }
    await expect(
      verifyWebhook(EXAMPLE.body, headers, EXAMPLE.secret, { now: () => now() + 3_600_000 }),
    ).rejects.toMatchObject({ code: 'too_old' })
  })
})
