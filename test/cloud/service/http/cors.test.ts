import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'

const ORIGIN = 'https://shop.hafenkante.example'

/** Response header that lets web pages of any origin read the response. */
const readable = (headers: Headers) => headers.get('access-control-allow-origin')

describe('web pages', () => {
  let cloud: TestCloud
  let secret: string
  let publishable: string
  beforeAll(async () => {
    cloud = await startTestCloud('sqlite')
    secret = await cloud.key('secret')
    publishable = await cloud.key('publishable')
  })
  afterAll(async () => {
    await cloud.stop()
    expect(cloud.errors).toEqual([])
  })
  const preflight = (operation: string, method = 'POST', on = cloud) =>
    Promise.resolve(
      on.cloud.app.request(`/api/v1/${operation}`, {
        method: 'OPTIONS',
        headers: {
          origin: ORIGIN,
          'access-control-request-method': method,
          'access-control-request-headers': 'authorization,content-type,idempotency-key',
        },
      }),
    )

  it('may call only operations of publishable keys and the public receipt, by preflight', async () => {
    const open: string[] = []
    for (const [name, { callers }] of OPERATION_TABLE) {
      const { status, headers } = await preflight(name)
      const isOpen = callers.includes('publishable') || name === 'getReceiptFromToken'
      if (isOpen) open.push(name)
      expect([name, status === 204, readable(headers)]).toEqual(isOpen ? [name, true, '*'] : [name, false, null])
      expect(headers.get('access-control-allow-credentials')).toBe(null)
    }
    expect(open).toContain('startCheckout')
    expect(open).not.toContain('createApiKey')
    const { headers } = await preflight('fetchStores')
    expect(headers.get('access-control-allow-methods')).toBe('POST, GET')
    expect(headers.get('access-control-allow-headers')?.toLowerCase().split(', ').sort()).toEqual([
      'authorization',
      'content-type',
      'idempotency-key',
    ])
    expect(readable((await preflight('fetchStorez')).headers)).toBe(null)
  })

  it('can read responses and errors of a publishable key, with their headers', async () => {
    const answer = await cloud.call(publishable, 'fetchStores', {}, { origin: ORIGIN })
    expect([answer.status, readable(answer.headers)]).toEqual([200, '*'])
    const shown = answer.headers.get('access-control-expose-headers')?.toLowerCase().split(', ')
    expect(shown?.sort()).toEqual([
      'idempotency-replayed',
      'ratelimit',
      'ratelimit-policy',
      'retry-after',
      'x-request-id',
    ])
    for (const [key, body, status] of [
      [publishable, { prise: 1 }, 400],
      [publishable, '{', 400],
      [publishable, { storeId: 'none' }, 404],
      ['untag_test_pk_gone', {}, 401],
      [null, {}, 401],
    ] as const) {
      const refused = await cloud.call(key, 'fetchStore', body)
      expect([refused.status, readable(refused.headers)]).toEqual([status, '*'])
    }
  })

  it('can read the public receipt in every format', async () => {
    for (const accept of ['application/json', 'text/html', 'text/plain']) {
      const answer = await cloud.get('/api/v1/getReceiptFromToken?token=NONE', { accept })
      expect([answer.status, readable(answer.headers)]).toEqual([404, '*'])
    }
  })

  it('get 429 when they exceed their rate', async () => {
    const limited = await startTestCloud('sqlite', { config: { rateLimit: 50, publishableRateLimit: 1 } })
    const key = await limited.key('publishable')
    const answers = []
    for (let i = 0; i < 5; i++) answers.push(await limited.call(key, 'fetchStores'))
    const last = answers.at(-1)
    expect([last?.status, last && readable(last.headers), last?.headers.get('retry-after')]).toEqual([429, '*', '1'])
    await limited.stop()
  })

  it('cannot read responses to secret keys or of operations for secret keys', async () => {
    for (const key of [secret, await cloud.key('admin'), 'untag_agent_x'])
      expect(readable((await cloud.call(key, 'fetchStores')).headers)).toBe(null)
    for (const key of [secret, publishable, null])
      expect(readable((await cloud.call(key, 'createApiKey', { kind: 'secret', name: 'x' })).headers)).toBe(null)
    expect(
      readable(
        (await cloud.get('/api/v1/getReceiptFromToken?token=NONE', { authorization: `Bearer ${secret}` })).headers,
      ),
    ).toBe(null)
  })
})
