import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'

let cloud: TestCloud
let key: string
const NO_KEY = null

beforeAll(async () => {
  cloud = await startTestCloud('sqlite')
  key = await cloud.key('secret')
})
afterAll(() => cloud.stop())

it.each([
  ['a successful response', 200, () => cloud.call(key, 'fetchStores')],
  ['an error response', 401, () => cloud.call(NO_KEY, 'fetchStores')],
  ['an unknown operation', 404, () => cloud.call(key, 'fetchNothing')],
  ['an unknown path', 404, () => cloud.get('/nothing')],
  ['a wrong method', 401, () => cloud.get('/api/v1/registerOperator')],
  ['an invalid field', 400, () => cloud.call(key, 'fetchStores', { citty: 'Hamburg' })],
  ['a body that is too large', 413, () => cloud.call(key, 'fetchStores', { city: 'x'.repeat(3_000_000) })],
  ['liveness', 200, () => cloud.get('/healthz')],
  ['readiness without a broker', 503, () => cloud.get('/readyz')],
  ['the time', 200, () => cloud.get('/api/v1/time?nonce=0123456789abcdef')],
])('%s is never cached, and forbids content type sniffing', async (_, status, send) => {
  const answer = await send()
  expect(answer.status).toBe(status)
  expect(answer.headers.get('content-type')).toContain('application/json')
  expect(answer.headers.get('cache-control')).toBe('no-store')
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
})
