import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'

/** A repeated request of the same device gets the same token only while the decision still holds (ADR requests). */
inFullSizeOnEveryDatabase('the stored decision of a repeated request', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
  })
  afterAll(() => shop.stop())

  const detach = (fields: Json) =>
    shop.ok('verifyProtectedItem', {
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      ...fields,
    })
  const startCheckout = async (items: Json[]) => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'shopper-1' })
    return shop.ok('startCheckout', { sessionId, items })
  }
  const move = (epc: string, itemStatus: string) =>
    shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus })

  it('is replaced once the purchase in the request is paid', async () => {
    const product = shop.products[0]
    const { epc } = await shop.newItem(product)
    const { transactionId, items } = await startCheckout([{ ean: product.ean, quantity: 1 }])
    const names = [
      { epc, purchaseId: transactionId },
      { epc, itemLineId: items[0].itemLineId },
    ]
    for (const name of names) expect(await detach(name)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    await shop.ok('completeTestCheckout', { transactionId })
    for (const name of names) expect(await detach(name)).toMatchObject({ authorized: true })
  })

  it('is replaced once the tag is registered', async () => {
    const product = shop.products[0]
    const epc = newEpc()
    expect(await detach({ epc })).toMatchObject({ authorized: false, reason: 'item_unknown' })
    await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [{ epc, ean: product.ean }] })
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    expect(await detach({ epc })).toMatchObject({ authorized: true })
  })

  it('is replaced once staff end the hold, also for a whole purchase', async () => {
    const product = shop.products[0]
    const { epc } = await shop.newItem(product)
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const verify = () =>
      shop.ok('verifySecurityTagDeactivation', {
        purchaseId: purchase.transactionId,
        deviceId: shop.devices.pos_deactivator,
      })
    await move(epc, 'exception_hold')
    expect(await verify()).toMatchObject({ deactivationAuthorized: false, reason: 'item_not_paid' })
    await move(epc, 'paid')
    expect(await verify()).toMatchObject({ deactivationAuthorized: true })
  })

  it('is replaced once brand or store price change, also for goods that a till sold', async () => {
    const { storeId } = shop
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
    const withPolicy = (change: Json) =>
      shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, ...change } })
    const product = shop.products[0]
    const { epc } = await shop.newItem(product)
    await move(epc, 'paid')
    const refused = { authorized: false, reason: 'manual_assistance_required' }
    const setPrice = async (of: string, price: number) =>
      shop.ok('updateProduct', { storeId: of, productId: product.productId, price })
    await withPolicy({ requiresManualOverrideAboveValue: product.price })
    expect(await detach({ epc })).toMatchObject(refused)
    await setPrice(shop.otherStoreId, product.price + 1)
    await setPrice(storeId, product.price - 1)
    expect(await detach({ epc })).toMatchObject({ authorized: true })
    await setPrice(storeId, product.price)

    const { epc: second } = await shop.newItem(product)
    await move(second, 'paid')
    await withPolicy({ requiresStaffForBrand: [product.brand] })
    expect(await detach({ epc: second })).toMatchObject(refused)
    await shop.ok('updateProduct', { storeId, productId: product.productId, brand: 'Nobody' })
    expect(await detach({ epc: second })).toMatchObject({ authorized: true })
    await shop.ok('updateProduct', { storeId, productId: product.productId, brand: product.brand })
    await withPolicy({})
  })

  it('is replaced once the device becomes staff-assisted', async () => {
    const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const deviceId = shop.devices.self_checkout_detacher
    const verify = () => shop.ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId })
    expect(await verify()).toMatchObject({ authorizationToken: null, reason: 'tag_not_read' })
    await shop.ok('updateDevice', { deviceId, workflowType: 'staff_assisted' })
    expect((await verify()).authorizationToken).toBeTypeOf('string')
    await shop.ok('updateDevice', { deviceId, workflowType: null })
  })

  it('is replaced once the receipt has expired', async () => {
    const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const { token: receiptToken } = await shop.ok('generateReceiptQR', { purchaseId: purchase.transactionId })
    forward(20 * 3_600_000)
    expect(await shop.ok('verifySecurityTagDeactivation', { receiptToken })).toMatchObject({
      deactivationAuthorized: true,
    })
    forward(5 * 3_600_000)
    expect(await shop.ok('verifySecurityTagDeactivation', { receiptToken })).toMatchObject({
      deactivationAuthorized: false,
      reason: 'token_expired',
    })
  })
})
