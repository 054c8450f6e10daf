import { createHmac } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createClient, verifyWebhook, type ClientOptions } from '../../../clients/typescript/client.ts'
import { tokenVerifier } from '../../../clients/typescript/verify-token.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { docstringExamples } from './docstring-examples.ts'

const EXAMPLES = [
  'clients/typescript/client.ts',
  'clients/typescript/verify-token.ts',
  'clients/typescript/webhook.ts',
].flatMap(docstringExamples)

let shop: Shop
beforeAll(async () => {
  shop = await openShop('sqlite')
})
afterAll(() => shop.stop())

async function tokenOfPaidItem() {
  const product = shop.products[0]
  const { epc } = await shop.newItem(product)
  await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
  const deviceId = shop.devices.self_checkout_detacher
  await shop.ok('updateDevice', { deviceId, supportsOfflineAuth: true })
  const request = { deviceId, protectionAction: 'detach_hard_tag', epc }
  const { authorizationToken: token } = await shop.ok('verifyProtectedItem', request)
  const { iss: issuer } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString()) as { iss: string }
  return { token, issuer, deviceId }
}

it('covers every public function of the client', () => {
  expect(EXAMPLES.map(({ name }) => name)).toEqual(['call', 'pages', 'createClient', 'tokenVerifier', 'verifyWebhook'])
})

it.each(EXAMPLES)('runs the example of $name', async ({ code }) => {
  const platform = {
    fetch: async (url: string, init: RequestInit) => shop.cloud.cloud.app.request(new URL(url).pathname, init),
  }
  const rawBody = JSON.stringify({ type: 'product.created' })
  const secret = 'secret'
  const printed: unknown[][] = []
  const scope = {
    createClient: (options: ClientOptions) => createClient({ ...options, platform }),
    client: createClient({ baseUrl: 'https://shop.example/api/v1', key: shop.key, platform }),
    key: shop.key,
    tokenVerifier: (options: Parameters<typeof tokenVerifier>[0]) => tokenVerifier({ ...options, platform }),
    ...(await tokenOfPaidItem()),
    verifyWebhook,
    rawBody,
    secret,
    headers: { 'x-untag-signature': createHmac('sha256', secret).update(rawBody).digest('hex') },
    console: { log: (...values: unknown[]) => printed.push(values) },
  }
  const run = new Function(...Object.keys(scope), `return (async () => {\n${code}\n})()`) as (
    ...values: unknown[]
  ) => Promise<void>
  await run(...Object.values(scope))
  expect(printed.length).toBeGreaterThan(0)
})
