import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { base32 } from '../../../../policy/base32.ts'
import { parseCose, extractReceiptToken } from '../../../../policy/receipts/receipt-token.ts'
import { decodeReceiptClaims } from '../../../../policy/receipts/receipt-claims.ts'
import { vatBreakdown } from '../../../../cloud/shop/purchases/line-value.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEan, newEpc, openShop, type Shop } from '../../../support/shop.ts'

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

  it('the first payment gets the item; the payment of another basket with it is refused at its start', async () => {
    const { epc } = await shop.newItem(product)
    const line = { ean: product.ean, quantity: 1, epcs: [epc] }
    const [one, two] = [(await start([line])).body, (await start([line])).body]
    // An open basket blocks nobody.
    await shop.ok('completeTestCheckout', { transactionId: two.transactionId })
    const refused = { status: 409, body: { reason: 'item_already_paid' } }
    const { transactionId } = one
    expect(await shop.call('completeTestCheckout', { transactionId })).toMatchObject(refused)
    expect(await shop.call('processPayment', { transactionId })).toMatchObject(refused)
    const page = await shop.cloud.get(`/checkout/${one.receipt.checkoutSessionId}?lang=en`)
    expect(page.text).toContain('sold meanwhile')
    expect(page.text).not.toContain('value="paid"')
    expect((await shop.ok('fetchPurchase', { transactionId })).status).toBe('PENDING_PAYMENT')
    expect(await shop.ok('completeTestCheckout', { transactionId, result: 'cancelled' })).toMatchObject({
      status: 'CANCELLED',
    })
  })

  it('a payment sells no item that is on other goods since the checkout', async () => {
    const [, other] = shop.products
    const { epc } = await shop.newItem(product)
    const bare = newEpc()
    const register = (items: Json[]) => shop.ok('registerProtectedItems', { storeId: shop.storeId, items })
    await register([{ epc: bare, price: 10 }])
    for (const [tag, line] of [
      [epc, { ean: product.ean, quantity: 1, epcs: [epc] }],
      [bare, { name: 'Gürtel', vat: 19, quantity: 1, epcs: [bare] }],
    ] as const) {
      const { transactionId } = (await start([line])).body
      await register([{ epc: tag, ean: other.ean }])
      expect(await shop.call('completeTestCheckout', { transactionId })).toMatchObject({
        status: 409,
        body: { reason: 'item_already_paid' },
      })
      expect(await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc: tag })).toMatchObject({
        itemStatus: 'sellable',
        ean: other.ean,
      })
    }
  })

  it('a new checkout of a session replaces the open one, which is CANCELLED and releases its stock', async () => {
    const { storeId } = shop
    const { productId, ean } = await shop.ok('insertProduct', {
      storeId,
      ean: newEan(),
      name: 'Letztes Stück',
      price: 5,
      vat: 19,
    })
    await shop.ok('setStock', { storeId, productId, quantity: 1 })
    const { sessionId } = await shop.ok('checkIn', { storeId })
    const checkout = () => shop.ok('startCheckout', { sessionId, items: [{ ean, quantity: 1 }] })
    const former = await checkout()
    const present = await checkout()
    const statusOf = async ({ transactionId }: Json) => (await shop.ok('fetchPurchase', { transactionId })).status
    expect([await statusOf(former), await statusOf(present)]).toEqual(['CANCELLED', 'PENDING_PAYMENT'])
    expect(await shop.call('completeTestCheckout', { transactionId: former.transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'checkout_ended' },
    })
    // A request that fails replaces nothing.
    expect((await shop.call('startCheckout', { sessionId, items: [{ ean, quantity: 2 }] })).status).toBe(409)
    expect(await statusOf(present)).toBe('PENDING_PAYMENT')
    await shop.ok('completeTestCheckout', { transactionId: present.transactionId })
    // The next basket of the session leaves the paid purchase as it is.
    await shop.ok('setStock', { storeId, productId, quantity: 1 })
    await checkout()
    expect(await statusOf(present)).toBe('SUCCESS')
  })

  it('leaves one open purchase of checkouts that start at the same time', async () => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const checkout = () => shop.ok('startCheckout', { sessionId, items: [{ ean: product.ean, quantity: 1 }] })
    const started = await Promise.all(Array.from({ length: 6 }, checkout))
    const statuses = await Promise.all(
      started.map(async ({ transactionId }) => (await shop.ok('fetchPurchase', { transactionId })).status),
    )
    expect(statuses.filter((status) => status !== 'CANCELLED')).toEqual(['PENDING_PAYMENT'])
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

  it('lets a shopper’s app neither rename goods of the catalogue nor act for another customer', async () => {
    const key = await shop.cloud.key('publishable')
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'customer-a' })
    const items = [{ ean: product.ean, quantity: 1, name: 'Designer coat, 2,999 EUR' }]
    const startedBy = async (caller: string) => {
      const { body } = await shop.cloud.call(caller, 'startCheckout', { sessionId, userId: 'customer-b', items })
      const row = await shop.cloud.db.database.reads
        .selectFrom('purchase')
        .innerJoin('purchase_line', 'purchase_line.purchase_id', 'purchase.purchase_id')
        .select(['user_id', 'name'])
        .where('purchase.purchase_id', '=', body.transactionId)
        .executeTakeFirstOrThrow()
      return [row.user_id, row.name]
    }
    expect(await startedBy(key)).toEqual(['customer-a', product.name])
    expect(await startedBy(shop.key)).toEqual(['customer-b', 'Designer coat, 2,999 EUR'])
  })

  it('shows a purchase to a publishable key only with its session', async () => {
    const key = await shop.cloud.key('publishable')
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const { transactionId } = await shop.ok('startCheckout', { sessionId, items: [{ ean: product.ean, quantity: 1 }] })
    expect((await shop.cloud.call(key, 'fetchPurchase', { transactionId })).status).toBe(404)
    expect((await shop.cloud.call(key, 'fetchPurchase', { transactionId, sessionId })).status).toBe(200)
    await shop.ok('completeTestCheckout', { transactionId })
    await shop.ok('refundPayment', { purchaseId: transactionId, amount: 0.01 })
    // Who paid money back concerns the merchant only.
    const shown = (await shop.cloud.call(key, 'fetchPurchase', { transactionId, sessionId })).body
    expect(shown.refunds).toHaveLength(1)
    expect(shown.refunds[0]).not.toHaveProperty('requestedBy')
    const { refunds } = await shop.ok('fetchPurchase', { transactionId })
    expect(refunds).toMatchObject([{ requestedBy: expect.stringMatching(/^key_/) }])
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
    const skipped = (await get(`fetchProducts?storeId=${shop.storeId}&limit=30&offset=10`)).body
    expect(skipped.data.slice(0, 20)).toEqual(page.data.slice(10))
    expect((await get('fetchStores?limit=1&offset=1')).body.data).toHaveLength(1)
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
    const both = `fetchProduct?storeId=${shop.storeId}&barcode=${product.ean}&id=${product.productId}`
    expect((await get(both)).status).toBe(400)
    expect((await get('fetchProducts?limit=0')).status).toBe(400)
    expect((await get('fetchProducts?limits=10')).status).toBe(400)
  })

  describe('prices that a till sets', () => {
    const at = (device: 'self_checkout_detacher' | 'exit_gate', protectionAction: string, body: Json) =>
      shop.ok('verifyProtectedItem', { deviceId: shop.devices[device], protectionAction, ...body })
    /** Cents of the line’s product, as fetchProducts shows it. */
    const listed = () => priceOf(product)

    it.each(['staff', 'markdown', 'coupon', 'till'])(
      '%s: the named tag comes off and the gate is silent',
      async (priceReason) => {
        const { epc } = await shop.newItem(product)
        const sold = await shop.buy([{ epcs: [epc], quantity: 1, priceUnit: 1234, priceReason }])
        expect(sold).toMatchObject({ status: 'SUCCESS', total: 12.34 })
        expect(sold.receipt.items[0]).toMatchObject({
          priceUnit: 1234,
          listPriceUnit: listed(),
          priceReason,
          priceOrigin: 'client',
        })
        expect(await at('self_checkout_detacher', 'detach_hard_tag', { epc })).toMatchObject({ authorized: true })
        expect(await at('exit_gate', 'authorize_exit', { epc })).toMatchObject({ authorized: true })
      },
    )

    it('sells a product by its EAN at the price of the till, also above the list price', async () => {
      const priceUnit = listed() + 500
      const sold = await shop.buy([{ ean: product.ean, quantity: 2, priceUnit, priceReason: 'till' }])
      expect(sold.receipt).toMatchObject({ totalCent: 2 * priceUnit, items: [{ listPriceUnit: listed() }] })
      const registered = await shop.newItem({}, { price: 12.5 })
      const line = { name: 'Unikat', vat: 19, epcs: [registered.epc], quantity: 1 }
      const unique = await shop.buy([{ ...line, priceUnit: 900, priceReason: 'markdown' }])
      expect(unique.receipt.items[0]).toMatchObject({ priceUnit: 900, listPriceUnit: 1250 })
    })

    it('judges the goods by the higher price: on receipts, at devices and for the agents', async () => {
      const { products } = await shop.ok('fetchProducts', { storeId: shop.storeId, limit: 500, category: 'bekleidung' })
      const dear = products.find((p: Json) => p.price > 300)
      const { epc } = await shop.newItem(dear)
      const sold = await shop.buy([{ epcs: [epc], quantity: 1, priceUnit: 100, priceReason: 'staff' }])
      expect(await at('self_checkout_detacher', 'detach_hard_tag', { epc })).toMatchObject({
        authorized: false,
        reason: 'manual_assistance_required',
      })
      const whole = await shop.buy([{ ean: dear.ean, quantity: 1 }])
      const claims = async ({ transactionId }: Json) => {
        const { url } = await shop.ok('generateReceiptQR', { purchaseId: transactionId })
        return decodeReceiptClaims(parseCose(base32.decode(extractReceiptToken(url) ?? '')!)!.payload)
      }
      const [cheap, full] = [await claims(sold), await claims(whole)]
      expect([cheap?.riskClass, cheap?.facts]).toEqual([full?.riskClass, full?.facts])
      expect(cheap?.facts?.[0]?.priceCent).toBe(priceOf(dear))
    })

    it('takes coupons off the total of a VAT rate, but never below zero', async () => {
      const coupon = { name: 'Gutschein', priceUnit: -500, quantity: 2, vat: 19, priceReason: 'coupon' }
      const sold = await shop.buy([{ ean: product.ean, quantity: 1 }, coupon])
      const totalCent = listed() - 1_000
      expect(sold.receipt).toMatchObject({ totalCent, vatBreakdown: vatBreakdown([{ cent: totalCent, rate: 19 }]) })
      const verified = await shop.ok('verifySecurityTagDeactivation', { purchaseId: sold.transactionId })
      expect(verified.items.map((item: Json) => item.taggedUnits)).toEqual([1, 0])
      const over = { ...coupon, priceUnit: -listed() }
      const refused = await start([{ ean: product.ean, quantity: 1 }, over])
      expect([refused.status, refused.body.details]).toEqual([
        400,
        [expect.objectContaining({ path: 'items', code: 'coupon_too_high' })],
      ])
      // Goods of 7 % do not pay for a coupon of 19 %.
      const other = { name: 'Buch', priceUnit: 100_000, quantity: 1, vat: 7 }
      expect((await start([{ ean: product.ean, quantity: 1 }, over, other])).status).toBe(400)
    })

    it.each<[string, Json, string]>([
      ['a reason without a price', { priceReason: 'staff' }, 'priceUnit'],
      ['a negative price of goods', { priceUnit: -1, priceReason: 'markdown' }, 'priceUnit'],
      ['a negative price without a reason', { name: 'x', vat: 19, priceUnit: -1 }, 'priceUnit'],
      ['an unknown reason', { priceUnit: 1, priceReason: 'gift' }, 'priceReason'],
    ])('rejects %s', async (_name, fields, path) => {
      const goods = 'name' in fields ? {} : { ean: product.ean }
      const answer = await start([
        { ean: product.ean, quantity: 9 },
        { ...goods, quantity: 1, ...fields },
      ])
      expect([answer.status, answer.body.details?.[0].path]).toEqual([400, `items[1].${path}`])
    })

    it('rejects a coupon that names goods', async () => {
      const coupon = { name: 'x', vat: 19, priceUnit: -1, priceReason: 'coupon', quantity: 1 }
      for (const names of [{ ean: product.ean }, { epcs: [(await shop.newItem(product)).epc] }])
        expect(
          (
            await start([
              { ean: product.ean, quantity: 9 },
              { ...coupon, ...names },
            ])
          ).status,
        ).toBe(400)
    })

    it('rejects a price reason from a shopper’s app, and another price without a reason from anyone', async () => {
      const publishable = await shop.cloud.key('publishable')
      const lines = [{ ean: product.ean, quantity: 1, priceUnit: 1, priceReason: 'staff' }]
      expect(await start(lines, publishable)).toMatchObject({ status: 403, body: { reason: 'secret_keys_only' } })
      expect(await start([{ ean: product.ean, quantity: 1, priceUnit: 1 }])).toMatchObject({ status: 409 })
    })

    it('refunds what was paid for a line after coupons', async () => {
      const sold = await shop.buy([
        { name: 'Hose', priceUnit: 5_000, quantity: 1, vat: 19 },
        { name: 'Hemd', priceUnit: 3_000, quantity: 1, vat: 19 },
        { name: 'Buch', priceUnit: 1_000, quantity: 1, vat: 7 },
        { name: 'Gutschein', priceUnit: -2_000, quantity: 1, vat: 19, priceReason: 'coupon' },
      ])
      const [trousers, shirt, book, coupon] = sold.items.map((item: Json) => item.itemLineId)
      const refund = (lineIds: string[]) =>
        shop.call('refundPayment', {
          purchaseId: sold.transactionId,
          lines: lineIds.map((itemLineId) => ({ itemLineId })),
        })
      expect((await refund([coupon])).status).toBe(400)
      // 50 + 30 EUR were bought for 60 EUR.
      expect(sold.items.map((item: Json) => item.paid)).toEqual([37.5, 22.5, 10, 0])
      expect((await refund([trousers])).body).toMatchObject({ refunded: 37.5 })
      expect((await refund([shirt, coupon])).body).toMatchObject({ refunded: 60 })
      const last = (await refund([book])).body
      expect(last).toMatchObject({ refunded: 70, total: 70 })
    })
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
