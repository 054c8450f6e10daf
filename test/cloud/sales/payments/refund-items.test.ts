import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { receiptText } from '../../../../cloud/shop/receipts/receipt-text.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'

inFullSizeOnEveryDatabase('payments in the sandbox', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const release = (epc: string, purchaseId: string) =>
    shop.ok('verifyProtectedItem', {
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      epc,
      purchaseId,
    })
  const itemStatus = async (epc: string) =>
    (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus

  const created = async (transactionId: string) => {
    const rows = await shop.cloud.db.database.reads
      .selectFrom('outbox_event')
      .select('data')
      .where('type', '=', 'payment.created')
      .execute()
    return rows.map(({ data }) => JSON.parse(data)).filter((data: Json) => data.transactionId === transactionId)
  }

  it('are announced once, when the payment opens, as in live mode', async () => {
    const { storeId } = shop
    await shop.ok('registerWebhook', { url: 'https://merchant.example/hooks', events: ['payment.created'] })
    const start = async () => {
      const { sessionId } = await shop.ok('checkIn', { storeId })
      return shop.ok('startCheckout', { sessionId, items: [{ ean: shop.products[0].ean, quantity: 1 }] })
    }
    const { transactionId, total } = await start()
    await shop.ok('processPayment', { transactionId })
    await shop.ok('processPayment', { transactionId })
    const announced = { transactionId, storeId, amountCent: Math.round(total * 100), currency: 'EUR' }
    expect(await created(transactionId)).toEqual([announced])

    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
    await shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, spotCheckRate: 1 } })
    const checked = await start()
    expect(checked).toMatchObject({ status: 'CREATED', awaitingApproval: true })
    expect(await created(checked.transactionId)).toEqual([])
    await shop.ok('approveCheckout', { transactionId: checked.transactionId, operatorId: 'Kasse 7' })
    expect(await created(checked.transactionId)).toHaveLength(1)
    await shop.ok('updateProtectionPolicy', { storeId, policy })
  })

  it('refunded lines: their items are returned and cannot be released; other items can', async () => {
    const [first, second] = shop.products
    const [back, unreturned] = [await shop.newItem(first), await shop.newItem(second)]
    const bought = await shop.buy([
      { ean: first.ean, quantity: 1, epcs: [back.epc] },
      { ean: second.ean, quantity: 1, epcs: [unreturned.epc] },
    ])
    const { transactionId } = bought
    expect(await release(back.epc, transactionId)).toMatchObject({ authorized: true })
    const line = bought.items.find((item: Json) => item.productId === first.productId)
    const answer = await shop.ok('refundPayment', { transactionId, lines: [{ itemLineId: line.itemLineId }] })
    expect(answer).toMatchObject({
      status: 'SUCCESS',
      refund: { amount: first.price, status: 'done', lines: [{ itemLineId: line.itemLineId, quantity: 1 }] },
    })
    expect(await Promise.all([back, unreturned].map(({ epc }) => itemStatus(epc)))).toEqual(['returned', 'paid'])
    expect(await release(back.epc, transactionId)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    const grant = await release(unreturned.epc, transactionId)
    expect(grant).toMatchObject({ authorized: true })
    // The purchase becomes UNLOADED although an item was returned.
    await shop.ok('redeemProtectionAuthorization', {
      authorizationToken: grant.authorizationToken,
      deviceId: shop.devices.self_checkout_detacher,
      redemptionId: transactionId,
      outcome: 'confirmed',
    })
    expect(await shop.ok('fetchPurchase', { transactionId })).toMatchObject({
      status: 'SUCCESS',
      securityTagStatus: 'deactivated',
    })
  })

  it('name the field and the remedy of an unknown line, tag or item', async () => {
    const [product] = shop.products
    const { epc } = await shop.newItem(product)
    const bought = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const [{ itemLineId }] = bought.items
    const purchaseId = bought.transactionId
    const UNKNOWN = '303400000000000000000099'
    const refused = async (operation: string, fields: Json) => {
      const { status, body } = await shop.call(operation, fields)
      return [status, body.details?.[0]?.path, body.error]
    }
    expect(await refused('refundPayment', { purchaseId, lines: [{ itemLineId: 'line_x' }] })).toEqual([
      404,
      'lines[0].itemLineId',
      expect.stringContaining('fetchPurchase lists the lines'),
    ])
    expect(await refused('refundPayment', { purchaseId, lines: [{ itemLineId, epcs: [UNKNOWN] }] })).toEqual([
      400,
      'lines[0].epcs[0]',
      expect.stringContaining('is not registered in this store: check the tag, or register it'),
    ])
    const { storeId } = shop
    expect(await refused('updateItemStatus', { storeId, epc: UNKNOWN, itemStatus: 'returned' })).toEqual([
      404,
      'epc',
      expect.stringContaining('no such item: check the identifier'),
    ])
  })

  it('are shown in all forms of the purchase, in the unit of each form', async () => {
    const [shirt, scarf] = shop.products
    const bought = await shop.buy([
      { ean: shirt.ean, quantity: 2 },
      { ean: scarf.ean, quantity: 1 },
    ])
    const { transactionId, receipt } = bought
    expect([bought.refunded, bought.refunds, receipt.refundedCent, receipt.refunds]).toEqual([0, [], 0, []])
    const lines = [{ itemLineId: bought.items[1].itemLineId, quantity: 1 }]
    const { refund, ...answer } = await shop.ok('refundPayment', {
      transactionId,
      lines,
      reason: 'an internal note',
    })
    const euros = {
      refundId: refund.refundId,
      kind: 'part',
      amount: scarf.price,
      status: 'done',
      lines,
      createdAt: expect.stringMatching(/Z$/),
      completedAt: expect.stringMatching(/Z$/),
    }
    const { amount: _, ...rest } = euros
    const cent = Math.round(scarf.price * 100)
    const cents = { ...rest, amountCent: cent, createdAt: expect.any(Number), completedAt: expect.any(Number) }
    const api = { total: bought.total, refunded: scarf.price, refunds: [euros] }
    const data = {
      totalCent: receipt.totalCent,
      vatBreakdown: receipt.vatBreakdown,
      tse: receipt.tse,
      receiptUrl: receipt.receiptUrl,
      refundedCent: cent,
      refunds: [cents],
    }
    const bearer = { authorization: `Bearer ${shop.key}` }
    const { token } = await shop.ok('generateReceiptQR', { purchaseId: transactionId })
    expect(answer).toMatchObject({ ...api, receipt: data })
    expect(await shop.ok('fetchPurchase', { transactionId })).toMatchObject({ ...api, receipt: data })
    expect((await shop.cloud.get(`/api/v1/fetchPurchase?transactionId=${transactionId}`, bearer)).body).toMatchObject(
      data,
    )
    expect((await shop.cloud.get(`/api/v1/getReceiptFromToken?token=${token}`)).body).toMatchObject(data)
    expect((await shop.ok('fetchPurchaseHistory', { limit: 1 })).purchases[0]).toMatchObject({ transactionId, ...api })
    expect((await shop.cloud.get('/api/v1/fetchPurchaseHistory?limit=1', bearer)).body.data[0]).toMatchObject({
      id: transactionId,
      refundedCent: cent,
    })
    // Refunds the rest of the purchase. The reason is an internal note and must not be shown.
    const cancelled = await shop.ok('markPurchaseCancelled', { purchaseId: transactionId })
    expect(cancelled).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
      refunded: bought.total,
      refunds: [{ kind: 'part' }, { kind: 'whole', status: 'done' }],
    })
    expect(cancelled.receipt).toMatchObject({
      refundStatus: 'done',
      refundedCent: receipt.totalCent,
      totalCent: receipt.totalCent,
      tse: receipt.tse,
    })
    expect(JSON.stringify(cancelled)).not.toContain('an internal note')
  })

  it('bind no unit of a refunded line', async () => {
    const [product] = shop.products
    const bought = await shop.buy([{ ean: product.ean, quantity: 2 }])
    const { transactionId } = bought
    await shop.ok('refundPayment', { transactionId, lines: [{ itemLineId: bought.items[0].itemLineId }] })
    const other = await shop.newItem(product)
    expect((await release(other.epc, transactionId)).authorized).toBe(false)
    expect(await itemStatus(other.epc)).toBe('sellable')
  })

  it('open the test page, and are refunded as a whole without a provider', async () => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const { transactionId, checkoutUrl, total } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: shop.products[0].ean, quantity: 1 }],
    })
    expect(await shop.call('refundPayment', { transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'purchase_not_refundable' },
    })
    expect(await shop.ok('processPayment', { transactionId })).toMatchObject({
      checkoutUrl,
      amount: total,
      status: 'PENDING_PAYMENT',
    })
    await shop.ok('completeTestCheckout', { transactionId })
    expect(await shop.ok('refundPayment', { transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
      refund: { amount: total, status: 'done' },
    })
    expect(await shop.call('processPayment', { transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'checkout_ended' },
    })
  })

  describe('of some pieces of a line', () => {
    const detacher = () => shop.devices.self_checkout_detacher
    const releases = async (transactionId: string) =>
      shop.ok('verifySecurityTagDeactivation', { deviceId: shop.devices.pos_deactivator, purchaseId: transactionId })
    const refund = (transactionId: string, line: Json, more: Json = {}) =>
      shop.call('refundPayment', { transactionId, lines: [line], ...more })
    const redeem = (grant: Json, redemptionId: string) =>
      shop.ok('redeemProtectionAuthorization', {
        authorizationToken: grant.authorizationToken,
        deviceId: detacher(),
        redemptionId,
        outcome: 'confirmed',
      })

    it('return the named tags; the others stay paid and can come back later', async () => {
      const [product] = shop.products
      const items = await Promise.all([1, 2, 3].map(() => shop.newItem(product)))
      const [back = '', kept = '', later = ''] = items.map(({ epc }) => epc)
      const bought = await shop.buy([{ ean: product.ean, quantity: 3, epcs: [back, kept, later] }])
      const { transactionId } = bought
      const [{ itemLineId }] = bought.items
      // Nobody can know which of three different tags came back.
      expect(await refund(transactionId, { itemLineId, quantity: 1 })).toMatchObject({
        status: 400,
        body: { details: [{ path: 'lines[0]', code: 'tags_missing' }] },
      })
      expect((await refund(transactionId, { itemLineId, epcs: [back] })).body).toMatchObject({
        status: 'SUCCESS',
        refunded: product.price,
        refund: { amount: product.price, status: 'done', lines: [{ itemLineId, quantity: 1 }] },
      })
      expect(await Promise.all([back, kept, later].map(itemStatus))).toEqual(['returned', 'paid', 'paid'])
      expect(await release(back, transactionId)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
      const grant = await release(kept, transactionId)
      expect(grant).toMatchObject({ authorized: true })
      await redeem(grant, `kept ${transactionId}`)
      expect(await refund(transactionId, { itemLineId, epcs: [back] })).toMatchObject({
        status: 409,
        body: { reason: 'already_refunded' },
      })
      // The customer comes back without the tag that was taken off, and then with the last piece.
      expect((await refund(transactionId, { itemLineId, quantity: 1 })).body).toMatchObject({
        refund: { amount: product.price },
      })
      expect(await Promise.all([back, kept, later].map(itemStatus))).toEqual(['returned', 'returned', 'paid'])
      expect((await refund(transactionId, { itemLineId })).body).toMatchObject({ refunded: bought.total })
      expect(await itemStatus(later)).toBe('returned')
      expect(await refund(transactionId, { itemLineId })).toMatchObject({ status: 409 })
    })

    it('end one right for each piece without a known tag', async () => {
      const [product] = shop.products
      const bought = await shop.buy([{ ean: product.ean, quantity: 3 }])
      const { transactionId } = bought
      const [{ itemLineId }] = bought.items
      expect(await releases(transactionId)).toMatchObject({ deactivationAuthorized: true, itemCount: 3 })
      expect(await refund(transactionId, { itemLineId, quantity: 4 })).toMatchObject({ status: 409 })
      expect((await refund(transactionId, { itemLineId, quantity: 1 })).status).toBe(200)
      expect(await releases(transactionId)).toMatchObject({ deactivationAuthorized: true, itemCount: 2 })
      // The tag on the goods shows that they are not released, so its right ends.
      const { epc } = await shop.newItem(product)
      expect((await refund(transactionId, { itemLineId, epcs: [epc] })).body).toMatchObject({
        refund: { amount: product.price },
      })
      expect([await itemStatus(epc), (await releases(transactionId)).itemCount]).toEqual(['sellable', 1])
      const other = await shop.newItem(shop.products[1])
      expect(await refund(transactionId, { itemLineId, epcs: [other.epc] })).toMatchObject({
        status: 400,
        body: { details: [{ path: 'lines[0].epcs[0]' }] },
      })
      expect(
        await shop.call('refundPayment', { transactionId, lines: [{ itemLineId }, { itemLineId, quantity: 1 }] }),
      ).toMatchObject({ status: 400, body: { details: [{ path: 'lines[1]', code: 'repeated' }] } })
    })

    it('pay what was paid for each piece, to the cent', async () => {
      const ean = newEan()
      await shop.ok('insertProduct', { storeId: shop.storeId, ean, name: 'Limo', price: 1.1, vat: 19, deposit: 0.25 })
      const bought = await shop.buy([
        { ean, quantity: 3 },
        { name: 'Gutschein', priceUnit: -100, quantity: 1, vat: 19, priceReason: 'coupon' },
      ])
      const { transactionId, total } = bought
      const [goods, deposit] = bought.items
      expect([Math.round(goods.paid * 100) + Math.round(deposit.paid * 100), total]).toEqual([305, 3.05])
      const amounts: number[] = []
      for (const expected of [1, 2, 3]) {
        const { body } = await refund(transactionId, { itemLineId: goods.itemLineId, quantity: 1 })
        amounts.push(Math.round(body.refund.amount * 100))
        expect(body.refund.lines).toHaveLength(2)
        expect(body.refund.lines).toEqual(
          expect.arrayContaining([goods, deposit].map(({ itemLineId }: Json) => ({ itemLineId, quantity: 1 }))),
        )
        expect(body.refunds).toHaveLength(expected)
      }
      expect(Math.max(...amounts) - Math.min(...amounts)).toBeLessThanOrEqual(2)
      expect(amounts.reduce((sum, cent) => sum + cent, 0)).toBe(305)
    })

    it('name the goods of a refund that named none, without paying again', async () => {
      const [product] = shop.products
      const [one, two] = [await shop.newItem(product), await shop.newItem(product)]
      const bought = await shop.buy([{ ean: product.ean, quantity: 2, epcs: [one.epc, two.epc] }])
      const { transactionId } = bought
      const [{ itemLineId }] = bought.items
      const { refund: paid } = await shop.ok('refundPayment', { transactionId, amount: product.price })
      expect(await itemStatus(one.epc)).toBe('paid')
      const name = (more: Json = {}) =>
        refund(transactionId, { itemLineId, epcs: [one.epc] }, { refundId: paid.refundId, ...more })
      expect(await name({ amount: 1 })).toMatchObject({ status: 400, body: { details: [{ path: 'refundId' }] } })
      expect((await name()).body).toMatchObject({
        refunded: product.price,
        refunds: [{ refundId: paid.refundId, lines: [{ itemLineId, quantity: 1 }] }],
      })
      expect([await itemStatus(one.epc), await itemStatus(two.epc)]).toEqual(['returned', 'paid'])
      expect(await name()).toMatchObject({ status: 409 })
      expect((await refund(transactionId, { itemLineId })).body).toMatchObject({ refunded: bought.total })
    })

    it('are shown as pieces on every form of the receipt, at gates and at agents', async () => {
      const [product] = shop.products
      const [one, two] = [await shop.newItem(product), await shop.newItem(product)]
      const bought = await shop.buy([{ ean: product.ean, quantity: 2, epcs: [one.epc, two.epc] }])
      const { transactionId } = bought
      const [{ itemLineId }] = bought.items
      await refund(transactionId, { itemLineId, epcs: [one.epc] })
      const { token } = await shop.ok('generateReceiptQR', { purchaseId: transactionId })
      const { body } = await shop.cloud.get(`/api/v1/getReceiptFromToken?token=${token}`)
      expect(body.refunds).toMatchObject([{ lines: [{ itemLineId, quantity: 1 }] }])
      expect(receiptText(body)).toContain('  1 zurückgegeben')
      const gate = async (epc: string) =>
        (
          await shop.ok('verifyProtectedItem', {
            deviceId: shop.devices.exit_gate,
            protectionAction: 'authorize_exit',
            epc,
          })
        ).reason
      expect([await gate(one.epc), await gate(two.epc)]).toEqual(['item_not_paid', undefined])
      // Agents without a connection refuse exactly the right of the returned piece.
      const denied = await shop.cloud.db.database.reads.selectFrom('deny_entry').select('body').execute()
      const { cti } = await shop.cloud.db.database.reads
        .selectFrom('purchase')
        .select('cti')
        .where('purchase_id', '=', transactionId)
        .executeTakeFirstOrThrow()
      const rights = denied.map((row) => JSON.parse(row.body)).filter((entry) => entry.cti === cti)
      expect(rights.map(({ kind, rightClass, ordinals }) => [kind, rightClass, ordinals.length])).toEqual([
        ['right', 'release', 1],
        ['right', 'exit', 1],
        ['right', 'open', 1],
      ])
    })
  })
})
