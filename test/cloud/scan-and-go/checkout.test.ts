import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { vatBreakdown } from '../../../cloud/purchases/vat.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { newEpc, openShop, type Shop } from '../../support/shop.ts'

onEveryDatabase('startCheckout', (kind) => {
  let shop: Shop
  let product: Json
  beforeAll(async () => {
    shop = await openShop(kind)
    product = shop.products[0]
  })
  afterAll(() => shop.stop())

  const start = async (items: Json[], key = shop.key) => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    return shop.cloud.call(key, 'startCheckout', { sessionId, items })
  }
  const priceOf = (p: Json) => Math.round(p.price * 100)

  it('uses catalogue prices instead of the client’s, and reports every difference', async () => {
    const good = await start([
      { ean: product.ean, quantity: 2 },
      { productId: shop.products[1].productId, quantity: 1, priceUnit: priceOf(shop.products[1]) },
    ])
    expect(good.body).toMatchObject({
      status: 'PENDING_PAYMENT',
      total: (priceOf(product) * 2 + priceOf(shop.products[1])) / 100,
      currency: 'EUR',
    })
    expect(good.body.receipt).toMatchObject({
      totalCent: priceOf(product) * 2 + priceOf(shop.products[1]),
      status: 'PENDING_PAYMENT',
    })
    const wrong = await start([
      { ean: product.ean, quantity: 1, priceUnit: 1 },
      { ean: shop.products[1].ean, quantity: 1 },
      { ean: shop.products[2].ean, quantity: 1, priceUnit: 2 },
    ])
    expect(wrong).toMatchObject({
      status: 409,
      body: { reason: 'price_changed', details: [{ path: 'items[0].priceUnit' }, { path: 'items[2].priceUnit' }] },
    })
  })

  it('prices an item by its registered product, else its registered price, else the line', async () => {
    const byProduct = await shop.newItem(product)
    expect((await start([{ quantity: 1, epcs: [byProduct.epc] }])).body).toMatchObject({
      total: product.price,
      items: [{ name: product.name }],
    })
    const byPrice = await shop.newItem({}, { price: 12.5 })
    expect((await start([{ name: 'Unikat', vat: 19, quantity: 1, epcs: [byPrice.epc] }])).body.total).toBe(12.5)
    const byLine = await shop.newItem({})
    expect(
      (await start([{ name: 'Unikat', vat: 19, priceUnit: 999, quantity: 1, epcs: [byLine.epc] }])).body.total,
    ).toBe(9.99)
    expect((await start([{ name: 'Unikat', vat: 19, quantity: 1, epcs: [byLine.epc] }])).status).toBe(400)
  })

  it.each<[string, (shop: Shop) => Promise<Json[]>, number, string]>([
    ['an unknown EAN', async () => [{ ean: '4000000000006', quantity: 1 }], 400, 'items[0].ean'],
    ['an unknown item', async () => [{ ean: product.ean, quantity: 1, epcs: [newEpc()] }], 400, 'items[0].epcs[0]'],
    ['an EPC that is none', async () => [{ ean: product.ean, quantity: 1, epcs: ['xyz'] }], 400, 'items[0].epcs[0]'],
    [
      'more items than the quantity',
      async () => [
        { ean: product.ean, quantity: 1, epcs: [(await shop.newItem(product)).epc, (await shop.newItem(product)).epc] },
      ],
      400,
      'items[0]',
    ],
    ['a line with no price', async () => [{ name: 'x', vat: 7, quantity: 1 }], 400, 'items[0].priceUnit'],
    ['a line with no name', async () => [{ priceUnit: 1, vat: 7, quantity: 1 }], 400, 'items[0].name'],
    ['a VAT that does not exist', async () => [{ name: 'x', priceUnit: 1, vat: 8, quantity: 1 }], 400, 'items[0].vat'],
    ['no quantity', async () => [{ ean: product.ean, quantity: 0 }], 400, 'items[0].quantity'],
    [
      'a fraction of a cent',
      async () => [{ name: 'x', priceUnit: 1.5, vat: 7, quantity: 1 }],
      400,
      'items[0].priceUnit',
    ],
    ['nothing', async () => [], 400, 'items'],
    ['501 lines', async () => Array.from({ length: 501 }, () => ({ ean: product.ean, quantity: 1 })), 400, 'items'],
  ])('rejects %s', async (_name, lines, status, path) => {
    const answer = await start(await lines(shop))
    expect(answer.status).toBe(status)
    expect(answer.body.details[0].path).toBe(path)
  })

  it('rejects an item of another product, a sold item, and an item that is named twice', async () => {
    const { epc } = await shop.newItem(product)
    expect(await start([{ ean: shop.products[1].ean, quantity: 1, epcs: [epc] }])).toMatchObject({
      status: 409,
      body: { reason: 'item_mismatch' },
    })
    expect((await start([{ ean: product.ean, quantity: 2, epcs: [epc, epc.toLowerCase()] }])).status).toBe(400)
    expect(
      (
        await start([
          { ean: product.ean, quantity: 1, epcs: [epc] },
          { ean: product.ean, quantity: 1, epcs: [epc] },
        ])
      ).status,
    ).toBe(400)
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    expect(await start([{ ean: product.ean, quantity: 1, epcs: [epc] }])).toMatchObject({
      status: 409,
      body: { reason: 'item_not_sellable' },
    })
  })

  it('rejects an SGTIN of another product even if the item is registered without a product', async () => {
    const { items } = {
      items: await shop.cloud.db.database.reads
        .selectFrom('protected_item')
        .select('epc')
        .where('store_id', '=', shop.storeId)
        .where('ean', '=', product.ean)
        .execute(),
    }
    const epc = items[0]?.epc
    await shop.cloud.db.database.write((db) =>
      db
        .updateTable('protected_item')
        .set({ product_id: null })
        .where('epc', '=', epc ?? '')
        .execute(),
    )
    expect(await start([{ ean: shop.products[1].ean, quantity: 1, epcs: [epc] }])).toMatchObject({
      status: 409,
      body: { reason: 'item_mismatch' },
    })
  })

  it('counts two identifiers of one item as one unit', async () => {
    const tagId = `HT-${newEpc()}`
    const { epc } = await shop.newItem(product, { tagId })
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc], tagIds: [tagId] }])
    expect(
      (await shop.ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId })).items[0],
    ).toMatchObject({ taggedUnits: 1 })
  })

  it('the first payment gets the item; the second purchase stays paid with an unbound unit and an exception', async () => {
    const { epc } = await shop.newItem(product)
    const line = { ean: product.ean, quantity: 1, epcs: [epc] }
    const [one, two] = [(await start([line])).body, (await start([line])).body]
    await shop.ok('completeTestCheckout', { transactionId: one.transactionId })
    expect(await shop.ok('completeTestCheckout', { transactionId: two.transactionId })).toMatchObject({
      status: 'SUCCESS',
    })
    const { events } = await shop.ok('fetchProtectionEvents', {
      storeId: shop.storeId,
      purchaseId: two.transactionId,
      type: 'protection.exception.raised',
    })
    expect(events).toEqual([expect.objectContaining({ reason: 'item_already_paid' })])
    const other = await shop.newItem(product)
    const detach = (body: Json) =>
      shop.ok('verifyProtectedItem', {
        deviceId: shop.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        ...body,
      })
    expect(await detach({ epc: other.epc, purchaseId: two.transactionId })).toMatchObject({ authorized: true })
  })

  it('releases nothing without staff if a shopper’s app set the price', async () => {
    const key = await shop.cloud.key('publishable')
    const { sessionId } = (await shop.cloud.call(key, 'checkIn', { storeId: shop.storeId })).body
    const cheap = await shop.cloud.call(key, 'startCheckout', {
      sessionId,
      items: [{ name: 'Mantel', priceUnit: 1, quantity: 1, vat: 19 }],
    })
    await shop.ok('completeTestCheckout', { transactionId: cheap.body.transactionId })
    const verify = (fields: Json = {}) =>
      shop.ok('verifySecurityTagDeactivation', {
        purchaseId: cheap.body.transactionId,
        deviceId: shop.devices.pos_deactivator,
        ...fields,
      })
    expect(await verify()).toMatchObject({ deactivationAuthorized: false, reason: 'manual_assistance_required' })
    expect(await verify({ operatorId: 'op-1' })).toMatchObject({ deactivationAuthorized: true })
  })

  it('shows a purchase to a publishable key only with its session', async () => {
    const key = await shop.cloud.key('publishable')
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const { transactionId } = await shop.ok('startCheckout', { sessionId, items: [{ ean: product.ean, quantity: 1 }] })
    expect((await shop.cloud.call(key, 'fetchPurchase', { transactionId })).status).toBe(404)
    expect((await shop.cloud.call(key, 'fetchPurchase', { transactionId, sessionId })).status).toBe(200)
  })

  it('supports the older forms over GET', async () => {
    const get = (path: string) => shop.cloud.get(`/api/v1/${path}`, { authorization: `Bearer ${shop.key}` })
    const stores = (await get('fetchStores?city=m%C3%BCnchen')).body
    expect(stores).toMatchObject({
      success: true,
      total: 1,
      data: [{ id: shop.storeId, name: { legal: expect.any(String) }, package: 'prime', mode: 'demo' }],
    })
    expect((await get(`fetchStore?storeId=${shop.storeId}`)).body).toMatchObject({
      id: shop.storeId,
      products: expect.any(Array),
    })
    const page = (await get(`fetchProducts?storeId=${shop.storeId}&limit=30`)).body
    expect(page.data).toHaveLength(30)
    const next = (await get(`fetchProducts?storeId=${shop.storeId}&limit=100&cursor=${page.nextCursor}`)).body
    expect(next.data.length + 30).toBe(page.total)
    expect((await get(`fetchProduct?storeId=${shop.storeId}&barcode=${product.ean}`)).body).toMatchObject({
      productId: product.productId,
      price: product.price,
    })
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
    expect((await get(`fetchPurchase?id=${purchase.transactionId}`)).body).toMatchObject({
      id: purchase.transactionId,
      totalCent: priceOf(product),
      items: [{ itemLineId: purchase.items[0].itemLineId }],
    })
    expect((await get('fetchProducts?limit=0')).status).toBe(400)
    expect((await get('fetchProducts?limits=10')).status).toBe(400)
  })

  it('logs no error', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})

describe('vatBreakdown', () => {
  it('adds up to the gross sum, and rounds half up per rate', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ cent: fc.nat(1_000_000), rate: fc.constantFrom(7, 19) }), { maxLength: 50 }),
        (amounts) => {
          const parts = vatBreakdown(amounts)
          for (const rate of [7, 19]) {
            const gross = amounts.filter((a) => a.rate === rate).reduce((sum, a) => sum + a.cent, 0)
            const { net, tax } = parts[String(rate)] ?? { net: 0, tax: 0 }
            expect(net + tax).toBe(gross)
            expect(tax).toBe(Math.round((gross * rate) / (100 + rate)))
          }
        },
      ),
    )
  })
})
