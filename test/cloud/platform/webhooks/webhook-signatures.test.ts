import { Webhook } from 'standardwebhooks'
import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { EVENT_TYPES, describeEvents } from '../../../../cloud/platform/webhooks/event-types.ts'
import { verifyWebhook } from '../../../../clients/typescript/webhook.ts'
import {
  isSecret,
  isStrongSecret,
  newSecret,
  secretWarnings,
  signatureHeaders,
} from '../../../../cloud/platform/webhooks/secret.ts'
import { seededRandom } from '../../../verification/simulation/virtual/virtual-platform.ts'

describe('signatures', () => {
  // The example of the Standard Webhooks specification and its libraries.
  const EXAMPLE = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', sentS: 1_614_265_330, body: '{"test": 2432232314}' }
  const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

  it('match Standard Webhooks', () => {
    expect(signatureHeaders(EXAMPLE, { current: SECRET })).toMatchObject({
      'webhook-id': EXAMPLE.id,
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
  })

  it('cover the raw body with the whole secret in X-Untag-Signature (RFC 4231, test case 2)', () => {
    const { 'x-untag-signature': signature } = signatureHeaders(
      { id: 'x', sentS: 0, body: 'what do ya want for nothing?' },
      { current: 'Jefe' },
    )
    expect(signature).toBe('5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843')
    const own = signatureHeaders(EXAMPLE, { current: SECRET })['x-untag-signature']
    expect(own).toBe(createHmac('sha256', SECRET).update(EXAMPLE.body).digest('hex'))
  })

  it('use a secret without whsec_ unchanged', () => {
    const secret = 'ein-Geheimnis-das-keines-ist'
    const signed = createHmac('sha256', secret)
      .update(`${EXAMPLE.id}.${EXAMPLE.sentS}.${EXAMPLE.body}`)
      .digest('base64')
    expect(signatureHeaders(EXAMPLE, { current: secret })['webhook-signature']).toBe(`v1,${signed}`)
  })

  it('are both present during a roll, and X-Untag-Signature is the old one', () => {
    const both = signatureHeaders(EXAMPLE, { current: 'the-new-secret-of-today', old: SECRET })
    expect(both['webhook-signature']).toMatch(/^v1,\S+ v1,g0hM9SsE\+OTPJTGt\/tmIKtSyZlE3uFJELVlNIOLJ1OE=$/)
    expect(both['x-untag-signature']).toBe(signatureHeaders(EXAMPLE, { current: SECRET })['x-untag-signature'])
  })

  it('are verified by the library standardwebhooks', () => {
    const secret = newSecret(seededRandom(1))
    const body = '{"id":"whe_1","data":{"name":"Grüße"}}'
    const headers = signatureHeaders(
      { id: 'whe_1', sentS: Math.floor(Date.now() / 1_000), body },
      { current: newSecret(seededRandom(2)), old: secret },
    )
    expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
    expect(() => new Webhook(secret).verify(`${body} `, headers)).toThrow()
  })
})

describe('secrets', () => {
  it('are 256 random bits', () => {
    const secret = newSecret(seededRandom(3))
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(isSecret(secret)).toBe(true)
  })

  it.each([
    '',
    'x'.repeat(129),
    'with a space in it',
    'umläute-sind-keine',
    'whsec_no base64 at all',
    'line\nbreak-in-a-secret',
  ])('are not %j', (text) => {
    expect([isSecret(text), isStrongSecret(text)]).toEqual([false, false])
  })

  it.each(['x', 'short', 'x'.repeat(15), 'whsec_', 'whsec_abc$defghijklmnop', 'whsec_abcdefghijklm'])(
    'of a merchant may be weak, with a warning: %j',
    (text) => {
      expect([isSecret(text), isStrongSecret(text)]).toEqual([true, false])
      expect(secretWarnings(text)).not.toEqual([])
    },
  )

  // Standard base64 with and without padding, base64url, and invalid base64.
  it.each([
    'x',
    'whsec_',
    'whsec_abc$defghijklmnop',
    'whsec_abcde',
    'whsec_YWJj',
    'whsec_YWI',
    'whsec_YWI=',
    'whsec_YWI==',
    'whsec_YQ=',
    'whsec_a-b_',
    'whsec_=',
    'plain-secret-of-a-shop',
  ])('with %j make signatures that the client verifies', async (secret) => {
    const body = JSON.stringify({ id: 'whe_1', data: {} })
    const headers = signatureHeaders({ id: 'whe_1', sentS: 1_700_000_000, body }, { current: secret })
    expect(await verifyWebhook(body, { ...headers }, secret, { now: () => 1_700_000_000_000 })).toMatchObject({
      id: 'whe_1',
    })
  })
})

describe('events', () => {
  it.each([...EVENT_TYPES.values()].map((type) => [type.name, type] as const))('%s has a valid example', (_, type) => {
    expect(type.data.safeParse(type.example)).toMatchObject({ success: true })
    expect(JSON.stringify(type.data.safeParse({ ...type.example, email: 'a@b.example' }).error?.issues)).toContain(
      'email',
    )
  })

  it('are listed only if an operation sends them', () => {
    expect(Object.keys(describeEvents([]))).toEqual(
      expect.arrayContaining(['protection.action.completed', 'webhook.test']),
    )
    expect(Object.keys(describeEvents([]))).not.toContain('loyalty.enrollment')
    expect(Object.keys(describeEvents([{ emits: ['loyalty.enrollment'] }]))).toContain('loyalty.enrollment')
  })
})
