import { createAdminApiClient } from '@shopify/admin-api-client'
import { SquareClient } from 'square'
import { afterEach, describe, expect, it } from 'vitest'
import { shopifySystem } from '../../simulators/services/pos-shopify.ts'
import { squareSystem } from '../../simulators/services/pos-square.ts'
import { vendorGoods, type SimulatedVendor } from '../../simulators/services/vendor-server.ts'
import type { Json } from '../support/cloud.ts'

/** Tests the simulators with the vendors' own clients: the formats must be those of the real APIs. */
describe('simulated vendors with the vendors’ own clients', () => {
  let vendor: SimulatedVendor
  afterEach(() => vendor.close())
  const goods = vendorGoods(7)
  const eans = goods.products.map(({ ean }) => ean)

  it('Square lists its catalogue, executes an order once, and reports errors in its own form', async () => {
    vendor = await squareSystem({ goods })
    const client = new SquareClient({
      token: vendor.credentials['accessToken'] ?? '',
      baseUrl: vendor.baseUrl,
      maxRetries: 1,
    })
    const read: unknown[] = []
    for await (const object of await client.catalog.list({ types: 'ITEM' })) {
      const variation = object.type === 'ITEM' ? object.itemData?.variations?.[0] : undefined
      if (variation?.type === 'ITEM_VARIATION')
        read.push([variation.itemVariationData?.upc, variation.itemVariationData?.priceMoney?.amount])
    }
    expect(read).toEqual(goods.products.map(({ ean, priceCent }) => [ean, BigInt(priceCent)]))
    const order = {
      locationId: vendor.credentials['locationId'] ?? '',
      lineItems: [{ name: 'Schirm', quantity: '2', basePriceMoney: { amount: BigInt(999), currency: 'EUR' as const } }],
    }
    const made = await client.orders.create({ idempotencyKey: 'k1', order })
    expect((await client.orders.create({ idempotencyKey: 'k1', order })).order?.id).toBe(made.order?.id)
    expect([made.order?.totalMoney?.amount, vendor.written.length]).toEqual([BigInt(1_998), 1])
    const payment = {
      idempotencyKey: 'k2',
      sourceId: 'EXTERNAL',
      amountMoney: { amount: BigInt(1_998), currency: 'EUR' as const },
      orderId: made.order?.id ?? '',
      locationId: order.locationId,
      externalDetails: { type: 'OTHER', source: 'untag' },
    }
    const { payment: paid } = await client.payments.create(payment)
    expect(paid?.status).toBe('COMPLETED')
    const refund = (key: string, cents: number) =>
      client.refunds.refundPayment({
        idempotencyKey: key,
        paymentId: paid?.id ?? '',
        amountMoney: { amount: BigInt(cents), currency: 'EUR' },
        reason: 'untag ref_1',
      })
    const back = await refund('k4', 998)
    expect((await refund('k4', 998)).refund?.id).toBe(back.refund?.id)
    await expect(refund('k5', 1_001)).rejects.toMatchObject({ errors: [{ code: 'REFUND_AMOUNT_INVALID' }] })
    const listed = await client.payments.list({ locationId: order.locationId, total: BigInt(1_998) })
    expect(listed.data.map(({ id, refundIds }) => [id, refundIds])).toEqual([[paid?.id, [back.refund?.id]]])
    expect((await client.refunds.get({ refundId: back.refund?.id ?? '' })).refund?.reason).toBe('untag ref_1')
    await expect(
      client.orders.create({ idempotencyKey: 'k3', order: { ...order, locationId: 'x' } }),
    ).rejects.toMatchObject({ statusCode: 400, errors: [{ code: 'INVALID_VALUE', field: 'order.location_id' }] })
    vendor.faults.push('rate_limit')
    expect((await client.catalog.list({ types: 'TAX' })).data).toHaveLength(2)
    await expect(
      new SquareClient({ token: 'x', baseUrl: vendor.baseUrl, maxRetries: 0 }).catalog.list(),
    ).rejects.toMatchObject({ statusCode: 401 })
  })

  it('Shopify answers the selected fields, page by page, and reports errors as GraphQL', async () => {
    vendor = await shopifySystem({ goods })
    const here: typeof fetch = (url, init) =>
      fetch(String(url).replace('https://hafenkante.myshopify.com', vendor.baseUrl), init)
    const login = await here('https://hafenkante.myshopify.com/admin/oauth/access_token', {
      method: 'POST',
      body: new URLSearchParams({ grant_type: 'client_credentials', client_id: 'client', client_secret: 'secret' }),
    })
    const { access_token: accessToken } = (await login.json()) as { access_token: string }
    const clientOf = (token: string) =>
      createAdminApiClient({
        storeDomain: 'hafenkante.myshopify.com',
        apiVersion: '2026-07',
        accessToken: token,
        customFetchApi: (url, init) => here(url, init as RequestInit),
      })
    const client = clientOf(accessToken)
    const query =
      'query ($after: String) { productVariants(first: 50, after: $after) { nodes { id barcode product { title } } pageInfo { hasNextPage endCursor } } }'
    const read: string[] = []
    for (let after: string | null = null; ;) {
      const { data, errors, extensions }: Json = await client.request(query, { variables: { after } })
      expect(errors).toBeUndefined()
      expect(extensions).toMatchObject({ cost: { throttleStatus: { restoreRate: 50 } } })
      read.push(...data.productVariants.nodes.map((node: { barcode: string }) => node.barcode))
      if (!data.productVariants.pageInfo.hasNextPage) break
      after = data.productVariants.pageInfo.endCursor
    }
    expect(read).toEqual(eans)
    expect(
      (await client.request('{ productVariants(first: 1) { nodes { colour } } }')).errors?.graphQLErrors?.[0],
    ).toMatchObject({ message: expect.stringContaining("Field 'colour' doesn't exist") })
    const made: Json = await client.request(
      'mutation ($order: OrderCreateOrderInput!) { orderCreate(order: $order) { order { id } userErrors { message } } }',
      {
        variables: {
          order: {
            lineItems: [
              { title: 'Schirm', quantity: 2, priceSet: { shopMoney: { amount: '9.99', currencyCode: 'EUR' } } },
            ],
          },
        },
      },
    )
    const { id: orderId } = made.data.orderCreate.order
    const input = {
      orderId,
      transactions: [{ orderId, kind: 'REFUND', gateway: 'manual', amount: '9.99', parentId: `${orderId}/sale` }],
    }
    const refund = (directive: string): Promise<Json> =>
      client.request(
        `mutation ($input: RefundInput!) { refundCreate(input: $input) ${directive} { refund { id } userErrors { message } } }`,
        { variables: { input } },
      )
    expect((await refund('')).errors?.graphQLErrors?.[0].message).toContain('@idempotent')
    for (let i = 0; i < 2; i++)
      expect((await refund('@idempotent(key: "k1")')).data.refundCreate.refund.id).toContain(orderId)
    expect(vendor.written.map(({ kind }) => kind)).toEqual(['transactions', 'refunds'])
    vendor.faults.push('rate_limit')
    expect((await client.request(query)).errors?.graphQLErrors?.[0]).toMatchObject({
      extensions: { code: 'THROTTLED' },
    })
    expect((await clientOf('shpat_x').request(query)).errors?.networkStatusCode).toBe(401)
  })
})
