import { afterAll, beforeAll, expect, it } from 'vitest'
import { encodeSgtin, splitGtin14 } from '../../../../policy/gs1/sgtin.ts'
import { toGtin14 } from '../../../../policy/gs1/gtin.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'

/** One paid unit is one item. The first request decides which item. */
onEveryDatabase('units of a purchase and the items bound to them', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const verifyItem = (deviceId: string, body: Json) =>
    shop.ok('verifyProtectedItem', { deviceId, protectionAction: 'detach_hard_tag', ...body })
  const detach = (body: Json) => verifyItem(shop.devices.self_checkout_detacher, body)
  const verifyExit = (body: Json) =>
    shop.ok('verifyProtectedItem', { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit', ...body })
  const status = async (epc: string) => (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus
  const redeem = ({ replayProtectedNonce }: Json, deviceId = shop.devices.self_checkout_detacher) =>
    shop.call('redeemProtectionAuthorization', {
      replayProtectedNonce,
      deviceId,
      redemptionId: `red-${replayProtectedNonce}`,
      outcome: 'confirmed',
    })
  const newDetacher = async () =>
    (
      await shop.ok('registerDevice', {
        storeId: shop.storeId,
        deviceType: 'self_checkout_detacher',
        supportedTechnologies: ['uhf_rfid'],
      })
    ).deviceId as string

  async function buyTwoItems(quantity: number) {
    const [p] = shop.products
    const [a, b] = [await shop.newItem(p), await shop.newItem(p)]
    const { transactionId: purchaseId, items } = await shop.buy([{ ean: p.ean, quantity }])
    return { a: a.epc, b: b.epc, purchaseId, itemLineId: items[0].itemLineId }
  }

  it('two items get separate authorizations, and each gets the status of its own release', async () => {
    const { a, b, purchaseId } = await buyTwoItems(2)
    const [first, second] = [await detach({ epc: a, purchaseId }), await detach({ epc: b, purchaseId })]
    expect(second.replayProtectedNonce).not.toBe(first.replayProtectedNonce)
    // A repeated request returns the same authorization.
    expect((await detach({ epc: a, purchaseId })).replayProtectedNonce).toBe(first.replayProtectedNonce)
    expect((await redeem(second)).status).toBe(200)
    expect([await status(a), await status(b)]).toEqual(['sellable', 'paid'])
    expect((await redeem(first)).status).toBe(200)
    expect([await status(a), await status(b)]).toEqual(['paid', 'paid'])
  })

  it.each(['exception_hold', 'transfer_in_transit', 'reserved_bopis', 'other product'])(
    'revokes the token for an item of an unnamed unit at the move to %s',
    async (to) => {
      const { a, purchaseId } = await buyTwoItems(1)
      const token = await detach({ epc: a, purchaseId })
      const { storeId } = shop
      if (to === 'other product')
        await shop.ok('registerProtectedItems', { storeId, items: [{ epc: a, ean: shop.products[1].ean }] })
      else await shop.ok('updateItemStatus', { storeId, epc: a, itemStatus: to })
      expect(await redeem(token)).toMatchObject({ status: 409, body: { reason: 'token_revoked' } })
      expect(await status(a)).toBe(to === 'other product' ? 'sellable' : to)
    },
  )

  it.each(['epc', 'itemLineId'])('two devices get different free units, by %s', async (by) => {
    const { a, b, purchaseId, itemLineId } = await buyTwoItems(2)
    const namesOf = (epc: string) => (by === 'epc' ? { epc, purchaseId } : { itemLineId })
    const [one, other] = [await newDetacher(), await newDetacher()]
    // An unattended reader releases nothing by a line alone.
    if (by === 'itemLineId')
      for (const deviceId of [one, other]) await shop.ok('updateDevice', { deviceId, workflowType: 'staff_assisted' })
    const grant = await verifyItem(one, namesOf(a))
    expect(await verifyItem(other, namesOf(b))).toMatchObject({ authorized: true })
    expect((await redeem(grant, one)).status).toBe(200)
  })

  it('only the released item may leave', async () => {
    const { a, b, purchaseId } = await buyTwoItems(2)
    const [first, second] = [await detach({ epc: a, purchaseId }), await detach({ epc: b, purchaseId })]
    const gone = await verifyExit({ epc: b, purchaseId })
    for (const [grant, deviceId] of [[first], [second], [gone, shop.devices.exit_gate]] as const)
      expect((await redeem(grant, deviceId)).status).toBe(200)
    expect([await status(a), await status(b)]).toEqual(['paid', 'paid'])
    expect(await verifyExit({ epc: b, purchaseId })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await verifyExit({ epc: a, purchaseId })).toMatchObject({ authorized: true })
  })

  it('one unit releases one item: the later request replaces an unused authorization', async () => {
    const { a, b, purchaseId } = await buyTwoItems(1)
    const released = await detach({ epc: a, purchaseId })
    const left = await verifyExit({ epc: b, purchaseId })
    expect(left.authorized).toBe(true)
    expect(await redeem(released)).toMatchObject({ status: 409, body: { reason: 'token_revoked' } })
    expect((await redeem(left, shop.devices.exit_gate)).status).toBe(200)
    expect([await status(a), await status(b)]).toEqual(['sellable', 'paid'])
  })

  it('a unit whose item was released is not granted for another item at any device', async () => {
    const { a, b, purchaseId } = await buyTwoItems(1)
    expect((await redeem(await detach({ epc: a, purchaseId }))).status).toBe(200)
    expect(await verifyExit({ epc: b, purchaseId })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    expect(await detach({ epc: b, purchaseId })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
  })

  it('a purchase-wide authorization is not returned for one item, nor the reverse', async () => {
    const { a, purchaseId } = await buyTwoItems(2)
    const till = (
      await shop.ok('registerDevice', {
        storeId: shop.storeId,
        deviceType: 'pos_deactivator',
        supportedTechnologies: ['uhf_rfid'],
        canReadUhfRfid: true,
        canDetachHardTag: true,
      })
    ).deviceId as string
    const release = (body: Json) => verifyItem(till, body)
    const whole = await shop.ok('verifySecurityTagDeactivation', { purchaseId, deviceId: till })
    expect(whole).toMatchObject({ deactivationAuthorized: true, itemCount: 2 })
    const one = await release({ epc: a, purchaseId })
    expect(one).toMatchObject({ authorized: true, itemCount: 1 })
    const both = await shop.ok('verifySecurityTagDeactivation', { purchaseId, deviceId: till })
    expect(both).toMatchObject({ deactivationAuthorized: true, itemCount: 2 })
    expect((await redeem(one, till)).status).toBe(409)
    expect((await redeem(both, till)).status).toBe(200)
  })

  it('a purchase of another store releases nothing and is hidden from keys of this store', async () => {
    const [p] = shop.products
    const { epc } = await shop.newItem(p)
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.otherStoreId })
    const { transactionId, items } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: p.ean, quantity: 1 }],
    })
    await shop.ok('completeTestCheckout', { transactionId })
    const { token } = await shop.ok('generateReceiptQR', { purchaseId: transactionId })
    const elsewhere = { authorized: false, authorizationToken: null, reason: 'store_mismatch' }
    for (const names of [{ purchaseId: transactionId }, { receiptToken: token }]) {
      expect(await detach({ epc, ...names })).toMatchObject(elsewhere)
      expect(await verifyExit(names)).toMatchObject(elsewhere)
      for (const deviceId of [shop.devices.pos_deactivator, shop.devices.self_checkout_detacher])
        expect(await shop.ok('verifySecurityTagDeactivation', { deviceId, ...names })).toMatchObject({
          status: 'paid',
          deactivationAuthorized: false,
          authorizationToken: null,
          reason: 'store_mismatch',
        })
    }
    expect(await detach({ itemLineId: items[0].itemLineId })).toMatchObject(elsewhere)
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.storeId] })
    const exit = { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit', receiptToken: token }
    expect(await shop.cloud.ok(bound, 'verifyProtectedItem', exit)).toMatchObject(elsewhere)
    expect(await shop.cloud.call(bound, 'verifySecurityTagDeactivation', { receiptToken: token })).toMatchObject({
      status: 404,
    })
    const { events } = await shop.ok('fetchProtectionEvents', { storeId: shop.storeId, limit: 500 })
    expect(JSON.stringify(events)).not.toContain(transactionId)
    const other = await shop.newItem(p)
    expect(
      await shop.cloud.call(bound, 'verifyProtectedItem', {
        deviceId: shop.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        epc: other.epc,
        purchaseId: transactionId,
      }),
    ).toMatchObject({ status: 404 })
  })

  /** A new SGTIN of this product. */
  function newSgtin({ ean }: Json): string {
    const split = splitGtin14(toGtin14(ean) ?? '', 7)
    const encoded =
      split &&
      encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...split, serial: String(parseInt(newEpc().slice(-8), 16)) })
    if (!encoded?.ok) throw new Error(`no SGTIN of ${ean}`)
    return encoded.hex
  }

  it('a tag whose SGTIN belongs to another product is rejected, in either order of registration', async () => {
    const [shirt, scarf] = shop.products
    const register = (items: Json[]) => shop.ok('registerProtectedItems', { storeId: shop.storeId, items })
    const [good, wrong] = [newSgtin(shirt), newSgtin(shirt)]
    const { registered, errors } = await register([
      { epc: good, ean: shirt.ean },
      { epc: wrong, ean: scarf.ean },
      { epc: wrong, productId: scarf.productId },
      { epc: good, ean: scarf.ean },
      { tagId: good, ean: scarf.ean },
      { tagId: good, epc: newSgtin(shirt) },
      { tagId: good, ean: scarf.ean },
    ])
    expect(registered).toBe(3)
    expect(errors.map((e: Json) => [e.index, e.field, e.code])).toEqual(
      [1, 2, 3, 6].map((index) => [index, 'epc', 'item_mismatch']),
    )
    expect(errors[0].message).toBe(
      `epc: is an SGTIN of ${shirt.ean}, not of ${scarf.ean}: send the product of the tag, or encode the tag again`,
    )
    // The earlier registration remains, and updates without a product do not change the product.
    expect(await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc: good })).toMatchObject({ ean: shirt.ean })
    expect(
      await register([
        { epc: good, brand: 'Hafen' },
        { tagId: good, brand: 'Hafen' },
      ]),
    ).toMatchObject({ registered: 2, errors: [] })
  })

  it('startCheckout names the tag that does not fit and the reason', async () => {
    const [shirt, scarf] = shop.products
    const [mine, other, sold] = [await shop.newItem(shirt), await shop.newItem(scarf), await shop.newItem(shirt)]
    const tag = `HT-${other.epc}`
    await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [{ epc: other.epc, tagId: tag }] })
    await shop.buy([{ ean: shirt.ean, quantity: 1, epcs: [sold.epc] }])
    const line = { ean: shirt.ean, quantity: 3 }
    const cases: [Json, string, string][] = [
      [{ ...line, epcs: [mine.epc, other.epc] }, 'item_mismatch', 'items[1].epcs[1]'],
      [{ ...line, epcs: [mine.epc], tagIds: [tag] }, 'item_mismatch', 'items[1].tagIds[0]'],
      [{ ...line, epcs: [mine.epc, sold.epc] }, 'item_not_sellable', 'items[1].epcs[1]'],
      [{ quantity: 2, epcs: [mine.epc, other.epc] }, 'item_mismatch', 'items[1].epcs[1]'],
    ]
    for (const [purchaseLine, reason, path] of cases) {
      const { status, body } = await startCheckoutAsShopper([{ ean: scarf.ean, quantity: 1 }, purchaseLine])
      expect([status, body.reason, body.details]).toEqual([
        409,
        reason,
        [{ path, code: reason, message: expect.stringContaining(`${path}: `) }],
      ])
    }
    const { body } = await startCheckoutAsShopper([{ ...line, epcs: [other.epc] }])
    expect(body.error).toBe(`items[0].epcs[0]: is not a ${shirt.name} (${shirt.ean}): it is registered as ${scarf.ean}`)
  })

  async function startCheckoutAsShopper(items: Json[]) {
    const key = await shop.cloud.key('publishable')
    const { sessionId } = await shop.cloud.ok(key, 'checkIn', { storeId: shop.storeId })
    return shop.cloud.call(key, 'startCheckout', { sessionId, items })
  }

  it('a shopper’s app cannot lower the price of an item', async () => {
    const [p] = shop.products
    const dear = await shop.newItem(p)
    const [cheap, bare] = [newEpc(), newEpc()]
    const register = (items: Json[]) =>
      shop.ok('registerProtectedItems', {
        storeId: shop.storeId,
        items: items.map((item) => ({ ...item, protectionTechnology: 'uhf_rfid' })),
      })
    await register([
      { epc: cheap, price: 1 },
      { epc: bare, category: 'bekleidung' },
    ])
    const line = { name: 'x', vat: 19 }
    for (const epcs of [
      [cheap, dear.epc],
      [dear.epc, cheap],
      [cheap, bare],
    ]) {
      expect(await startCheckoutAsShopper([{ ...line, quantity: 2, epcs }])).toMatchObject({
        status: 409,
        body: { reason: 'item_mismatch' },
      })
    }
    expect(await startCheckoutAsShopper([{ ean: p.ean, quantity: 1, epcs: [cheap] }])).toMatchObject({
      status: 409,
      body: { reason: 'item_mismatch' },
    })
    expect(await startCheckoutAsShopper([{ ...line, priceUnit: 1, quantity: 1, epcs: [bare] }])).toMatchObject({
      status: 409,
      body: { reason: 'price_unknown' },
    })
    // The app pays the item's own price; only the shop's till may set a price.
    expect(await startCheckoutAsShopper([{ ...line, quantity: 1, epcs: [cheap] }])).toMatchObject({
      status: 200,
      body: { total: 1, items: [{ priceOrigin: 'item' }] },
    })
    expect(await shop.buy([{ ...line, priceUnit: 500, quantity: 1, epcs: [bare] }])).toMatchObject({
      total: 5,
      items: [{ priceOrigin: 'client' }],
    })
  })
})
