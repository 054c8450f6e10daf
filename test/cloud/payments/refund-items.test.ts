import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'

onEveryDatabase('payments in the sandbox', (kind) => {
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
    const answer = await shop.ok('refundPayment', { transactionId, itemLineIds: [line.itemLineId] })
    expect(answer).toMatchObject({
      status: 'SUCCESS',
      refund: { amount: first.price, status: 'done', itemLineIds: [line.itemLineId] },
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

  it('are shown in all forms of the purchase, in the unit of each form', async () => {
    const [shirt, scarf] = shop.products
    const bought = await shop.buy([
      { ean: shirt.ean, quantity: 2 },
      { ean: scarf.ean, quantity: 1 },
    ])
    const { transactionId, receipt } = bought
    expect([bought.refunded, bought.refunds, receipt.refundedCent, receipt.refunds]).toEqual([0, [], 0, []])
    const itemLineIds = [bought.items[1].itemLineId]
    const { refund, ...answer } = await shop.ok('refundPayment', {
      transactionId,
      itemLineIds,
      reason: 'an internal note',
    })
    const euros = {
      refundId: refund.refundId,
      kind: 'part',
      amount: scarf.price,
      status: 'done',
      itemLineIds,
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
    await shop.ok('refundPayment', { transactionId, itemLineIds: [bought.items[0].itemLineId] })
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
})
