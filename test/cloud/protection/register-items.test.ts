import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { newEpc, openShop, type Shop } from '../../support/shop.ts'

/** Which fields a repeated registration of a tag may change. */
onEveryDatabase('registerProtectedItems', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const register = (item: Json, storeId = shop.storeId) => shop.ok('registerProtectedItems', { storeId, items: [item] })
  const codeOf = ({ errors }: Json) => errors.map((error: Json) => error.code)
  const fetchItem = (epc: string, storeId = shop.storeId) => shop.ok('fetchProtectedItem', { storeId, epc })
  const move = (epc: string, itemStatus: string) =>
    shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus })
  const verifyExit = (epc: string) =>
    shop.ok('verifyProtectedItem', { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit', epc })

  async function paidItem() {
    const [product] = shop.products
    const { epc } = await shop.newItem(product)
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    return { epc, product }
  }

  it('moves a tag of paid goods to another product only after it is sellable', async () => {
    const { epc, product } = await paidItem()
    const [, other] = shop.products
    expect(codeOf(await register({ epc, ean: other.ean, itemStatus: 'sellable' }))).toEqual(['item_status_differs'])
    expect(codeOf(await register({ epc, ean: product.ean, itemStatus: 'sellable' }))).toEqual(['item_status_differs'])
    expect(codeOf(await register({ epc, ean: other.ean }))).toEqual(['item_not_sellable'])
    expect(await fetchItem(epc)).toMatchObject({ itemStatus: 'paid', ean: product.ean })
    await move(epc, 'returned')
    expect(codeOf(await register({ epc, productId: other.productId }))).toEqual(['item_not_sellable'])
    await move(epc, 'sellable')
    expect(await register({ epc, ean: other.ean, itemStatus: 'sellable' })).toMatchObject({ registered: 1, errors: [] })
    expect(await fetchItem(epc)).toMatchObject({ itemStatus: 'sellable', ean: other.ean })
    expect(await verifyExit(epc)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
  })

  it('changes nothing when repeated, whatever the item’s status is', async () => {
    const { epc, product } = await paidItem()
    for (const item of [
      { epc, ean: product.ean },
      { epc, productId: product.productId, brand: 'Norddeich' },
      { epc },
    ]) {
      expect(await register(item)).toMatchObject({ registered: 1, errors: [] })
    }
    expect(await fetchItem(epc)).toMatchObject({ itemStatus: 'paid', ean: product.ean, brand: 'Norddeich' })
    const heldEpc = newEpc()
    for (let i = 0; i < 2; i++)
      expect(await register({ epc: heldEpc, itemStatus: 'exception_hold' })).toMatchObject({ registered: 1 })
    // An item on hold may be corrected.
    expect(await register({ epc: heldEpc, ean: product.ean })).toMatchObject({ registered: 1 })
  })

  it('judges a tag on other goods by the facts of these goods', async () => {
    const [product, other] = shop.products
    const own = { brand: 'Norddeich', category: 'hemden', price: 1, serialNumber: 'S-1' }
    const epc = newEpc()
    await register({ epc, ean: product.ean, ...own })
    expect(await fetchItem(epc)).toMatchObject(own)
    await register({ epc, ean: product.ean })
    expect(await fetchItem(epc)).toMatchObject(own)
    await register({ epc, ean: other.ean, brand: 'Elbtal' })
    const moved = await fetchItem(epc)
    expect(moved).toMatchObject({ ean: other.ean, brand: 'Elbtal' })
    for (const field of ['category', 'price', 'serialNumber']) expect(moved).not.toHaveProperty(field)
    await move(epc, 'transfer_in_transit')
    await register({ epc, ean: product.ean }, shop.otherStoreId)
    const received = await fetchItem(epc, shop.otherStoreId)
    expect(received.ean).toBe(product.ean)
    expect(received).not.toHaveProperty('brand')
  })

  it('moves goods that were sent to another store to that store', async () => {
    const { epc, product } = await paidItem()
    const { otherStoreId } = shop
    expect(codeOf(await register({ epc }, otherStoreId))).toEqual(['item_in_another_store'])
    await move(epc, 'returned')
    await move(epc, 'sellable')
    await move(epc, 'transfer_in_transit')
    const out = await verifyExit(epc)
    expect(out).toMatchObject({ authorized: true })
    expect(codeOf(await register({ epc, itemStatus: 'returned' }, otherStoreId))).toEqual(['illegal_move'])
    expect(await register({ epc, price: 12.5 }, otherStoreId)).toMatchObject({ registered: 1, errors: [] })
    expect(await fetchItem(epc, otherStoreId)).toMatchObject({
      itemStatus: 'sellable',
      storeId: otherStoreId,
      price: 12.5,
      ean: product.ean,
    })
    expect((await shop.call('fetchProtectedItem', { storeId: shop.storeId, epc })).status).toBe(404)
    expect(await verifyExit(epc)).toMatchObject({ authorized: false, reason: 'item_unknown' })
    const late = {
      replayProtectedNonce: out.replayProtectedNonce,
      deviceId: shop.devices.exit_gate,
      redemptionId: 'late',
    }
    expect(await shop.call('redeemProtectionAuthorization', late)).toMatchObject({
      status: 409,
      body: { reason: 'token_revoked' },
    })
    // After its arrival the item belongs to the other store.
    expect(codeOf(await register({ epc }))).toEqual(['item_in_another_store'])
    expect(await register({ epc }, otherStoreId)).toMatchObject({ registered: 1 })
  })

  it('marks no item paid in another store if its payment follows the transfer', async () => {
    const [product] = shop.products
    const { epc } = await shop.newItem(product)
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'shopper-1' })
    const { transactionId } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: product.ean, quantity: 1, epcs: [epc] }],
    })
    await move(epc, 'transfer_in_transit')
    await register({ epc }, shop.otherStoreId)
    expect(await shop.call('completeTestCheckout', { transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'item_already_paid' },
    })
    expect(await fetchItem(epc, shop.otherStoreId)).toMatchObject({ itemStatus: 'sellable' })
  })
})
