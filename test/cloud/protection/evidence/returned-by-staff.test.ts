import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'

/** A status that staff set by hand ends the rights of the former purchase, so that the next buyer can use the item. */
inFullSizeOnEveryDatabase('items that staff move by hand', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const detach = (body: Json) =>
    shop.ok('verifyProtectedItem', {
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      ...body,
    })
  const status = async (epc: string) => (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus
  const move = (epc: string, itemStatus: string) =>
    shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus })
  const redeem = ({ replayProtectedNonce }: Json, redemptionId: string) =>
    shop.call('redeemProtectionAuthorization', {
      replayProtectedNonce,
      deviceId: shop.devices.self_checkout_detacher,
      redemptionId,
      outcome: 'confirmed',
    })
  const exceptionsOf = async ({ transactionId }: Json) =>
    ((await shop.ok('fetchExceptions', { storeId: shop.storeId })).exceptions as Json[])
      .filter((each) => each.purchaseId === transactionId)
      .map((each) => each.kind as string)

  async function buyItem() {
    const [p] = shop.products
    const { epc } = await shop.newItem(p)
    return { ean: p.ean, epc, purchase: await shop.buy([{ ean: p.ean, quantity: 1, epcs: [epc] }]) }
  }

  /** A buyer pays, staff return the item to the shelf, and another buyer pays for it. */
  async function soldAgain() {
    const { ean, epc, purchase: first } = await buyItem()
    await move(epc, 'returned')
    await move(epc, 'sellable')
    return { epc, first, second: await shop.buy([{ ean, quantity: 1, epcs: [epc] }]) }
  }

  it('appear in events with the operator and the reason', async () => {
    const { epc, purchase } = await buyItem()
    await shop.ok('updateItemStatus', {
      storeId: shop.storeId,
      epc,
      itemStatus: 'exception_hold',
      reason: 'torn label',
      operatorId: 'cashier-7',
    })
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'exception_hold', reason: 'once more' })
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'sellable', operatorId: 'cashier-8' })
    const { moves } = await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })
    const at = expect.any(String)
    const { transactionId: purchaseId } = purchase
    expect(moves).toEqual([
      { at, from: 'exception_hold', to: 'sellable', operatorId: 'cashier-8' },
      { at, from: 'paid', to: 'exception_hold', purchaseId, reason: 'torn label', operatorId: 'cashier-7' },
      { at, from: 'sellable', to: 'paid', purchaseId },
      { at, to: 'sellable' },
    ])
  })

  it('are found by their line if one item is bound to it', async () => {
    const { storeId } = shop
    const fetchBy = (names: Json) => shop.call('fetchProtectedItem', { storeId, ...names })
    const { epc, purchase } = await buyItem()
    const [{ itemLineId }] = purchase.items
    expect((await fetchBy({ itemLineId })).body).toMatchObject({
      epc,
      itemStatus: 'paid',
      itemLineId,
      purchaseId: purchase.transactionId,
    })
    expect((await fetchBy({ itemLineId, epc })).status).toBe(200)
    expect(await shop.ok('updateItemStatus', { storeId, itemLineId, itemStatus: 'returned' })).toMatchObject({
      epc,
      itemStatus: 'returned',
    })
    expect((await fetchBy({ itemLineId, epc: (await buyItem()).epc })).body).toMatchObject({
      code: 'invalid-argument',
      details: [{ path: 'itemLineId' }],
    })

    const [p] = shop.products
    const [one, two] = [await shop.newItem(p), await shop.newItem(p)]
    const both = (await shop.buy([{ ean: p.ean, quantity: 2, epcs: [one.epc, two.epc] }])).items[0].itemLineId
    expect(await fetchBy({ itemLineId: both })).toMatchObject({ status: 409, body: { reason: 'several_items' } })
    expect(await shop.call('updateItemStatus', { storeId, itemLineId: both, itemStatus: 'returned' })).toMatchObject({
      status: 409,
      body: { reason: 'several_items' },
    })
    expect((await fetchBy({ itemLineId: both, epc: two.epc })).body).toMatchObject({ epc: two.epc })

    const unbound = (await shop.buy([{ ean: p.ean, quantity: 1 }])).items[0].itemLineId
    for (const names of [{ itemLineId: unbound }, { itemLineId: 'nobody' }])
      expect((await fetchBy(names)).status).toBe(404)
    expect((await shop.call('fetchProtectedItem', { storeId: shop.otherStoreId, itemLineId })).status).toBe(404)
    // After the next sale the item belongs to another line.
    await shop.ok('updateItemStatus', { storeId, epc, itemStatus: 'sellable' })
    expect((await fetchBy({ itemLineId })).status).toBe(404)
  })

  it('stay with the next buyer after a late refund of the former purchase', async () => {
    const { epc, first, second } = await soldAgain()
    await shop.ok('refundPayment', {
      transactionId: first.transactionId,
      lines: [{ itemLineId: first.items[0].itemLineId }],
    })
    expect(await status(epc)).toBe('paid')
    expect(await detach({ epc, purchaseId: second.transactionId })).toMatchObject({ authorized: true })
  })

  it('stay with the next buyer after the former purchase is cancelled', async () => {
    const { epc, first } = await soldAgain()
    await shop.ok('markPurchaseCancelled', { transactionId: first.transactionId })
    expect(await status(epc)).toBe('paid')
    expect(await exceptionsOf(first)).toEqual([])
  })

  it('cannot be released by the former purchase, by its id or by its receipt', async () => {
    const { first } = await soldAgain()
    const { token } = await shop.ok('generateReceiptQR', { purchaseId: first.transactionId })
    for (const name of [{ purchaseId: first.transactionId }, { receiptToken: token }]) {
      expect(
        await shop.ok('verifySecurityTagDeactivation', { ...name, deviceId: shop.devices.pos_deactivator }),
      ).toMatchObject({ deactivationAuthorized: false })
    }
  })

  it.each(['unknown', 'failed'])(
    'leave nothing to release, even for staff, if an earlier release turns out %s',
    async (outcome) => {
      const { epc, ean, purchase } = await buyItem()
      const { pos_deactivator: deviceId } = shop.devices
      const verify = (more: Json = {}) =>
        shop.ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId, ...more })
      const { authorizationToken } = await verify()
      const claim = { authorizationToken, deviceId, redemptionId: `under-way-${outcome}` }
      await shop.ok('redeemProtectionAuthorization', claim)
      await move(epc, 'returned')
      await move(epc, 'sellable')
      await shop.buy([{ ean, quantity: 1, epcs: [epc] }])
      await shop.ok('redeemProtectionAuthorization', { ...claim, outcome })
      for (const more of [{}, { operatorId: 'op-1' }])
        expect(await verify(more)).toMatchObject({ deactivationAuthorized: false, reason: 'already_redeemed' })
    },
  )

  it.each(['returned', 'exception_hold'])(
    'are not released by an older token after their return through %s',
    async (way) => {
      const { epc } = await buyItem()
      const grant = await detach({ epc })
      await move(epc, way)
      await move(epc, 'sellable')
      expect(await redeem(grant, `late-${way}`)).toMatchObject({ status: 409, body: { reason: 'token_revoked' } })
    },
  )

  it('are not released by an older token if another system sold them', async () => {
    const { epc } = await shop.newItem(shop.products[0])
    await move(epc, 'paid')
    const grant = await detach({ epc })
    expect(grant.authorized).toBe(true)
    await move(epc, 'returned')
    expect(await redeem(grant, 'elsewhere')).toMatchObject({ status: 409, body: { reason: 'token_revoked' } })
    await move(epc, 'sellable')
    await move(epc, 'paid')
    expect(await detach({ epc })).toMatchObject({ authorized: true })
  })

  it('keep their purchase after a hold', async () => {
    const { epc, purchase } = await buyItem()
    await move(epc, 'exception_hold')
    expect(await detach({ epc })).toMatchObject({ authorized: false })
    await move(epc, 'paid')
    expect(await detach({ epc, purchaseId: purchase.transactionId })).toMatchObject({ authorized: true })
  })

  it('are not treated as released when the rest is cancelled if they were returned unreleased', async () => {
    const [p, q] = shop.products
    const purchase = await shop.buy([
      { ean: p.ean, quantity: 1 },
      { ean: q.ean, quantity: 1 },
    ])
    await shop.ok('refundPayment', {
      transactionId: purchase.transactionId,
      lines: [{ itemLineId: purchase.items[0].itemLineId }],
    })
    await shop.ok('markPurchaseCancelled', { transactionId: purchase.transactionId })
    expect(await exceptionsOf(purchase)).toEqual([])
  })

  it.each(['cancelled', 'picked_up'])(
    'stay reserved for their new order when their former order is %s',
    async (end) => {
      const ean = newEan()
      await shop.ok('insertProduct', {
        storeId: shop.storeId,
        ean,
        name: `Ding ${ean}`,
        price: 30,
        vat: 19,
        category: 'bekleidung',
        tagged: true,
      })
      const product = await shop.ok('fetchProduct', { storeId: shop.storeId, barcode: ean })
      const { epc } = await shop.newItem(product)
      const order = () =>
        shop.ok('submitClickCollectOrder', {
          storeId: shop.storeId,
          userId: 'u',
          items: [{ productId: product.productId, quantity: 1 }],
        })
      const first = await order()
      await move(epc, 'sellable')
      expect((await order()).items[0].reservedTags).toEqual([{ epc }])
      for (const to of end === 'cancelled' ? ['cancelled'] : ['confirmed', 'ready', 'picked_up'])
        await shop.ok('updateClickCollectStatus', { orderId: first.orderId, status: to })
      expect(await status(epc)).toBe('reserved_bopis')
    },
  )
})
