import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'

const NAMES = [
  '%00',
  'a%00b',
  '%00.json',
  '%ff',
  '%',
  '%ed%a0%80',
  '..%2f..',
  '%2e%2e',
  '__proto__',
  'constructor',
  '%F0%9F%98%80',
  'x'.repeat(3_000),
  '%20',
  "'",
  '%0d%0a',
  '2KCE3IQBE4CE%00',
  'a'.repeat(40),
]

/** Path parameters that a client without a key may send. */
inFullSizeOnEveryDatabase('URLs', (kind) => {
  let cloud: TestCloud
  beforeAll(async () => {
    cloud = await startTestCloud(kind)
  })
  afterAll(() => cloud.stop())

  it('with any invalid path parameter cause no internal error', async () => {
    const { app } = cloud.cloud
    const routes = app.routes.filter(({ path }) => path.includes(':'))
    expect(routes.map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        '/.well-known/jwks/:file',
        '/R/:token',
        '/images/:name',
        '/checkout/:id',
        '/z/:zoneId/:ticket',
        '/api/v1/notify/:provider/:storeId',
      ]),
    )
    for (const { path, method } of routes) {
      for (const name of NAMES) {
        for (const url of [path.replaceAll(/:\w+/g, name), path.replace(/:\w+/, 'stripe').replaceAll(/:\w+/g, name)]) {
          const init =
            method === 'POST'
              ? { method, body: '{}', headers: { 'content-type': 'application/json' } }
              : { method: 'GET' }
          const { status } = await app.request(
            `http://shop.example${url}?token=${name}&lang=${name}&storeId=${name}&nonce=${name}`,
            init,
          )
          expect([method, url.slice(0, 80), status < 500]).toEqual([method, url.slice(0, 80), true])
        }
      }
    }
    expect(cloud.errors).toEqual([])
  })
})
