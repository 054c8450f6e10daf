import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'

const HOUR_MS = 3_600_000

/** If `occurredAt` is over five minutes ago, the cloud decides by the state of that time (ADR releases). */
onEveryDatabase('a request about a past use', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let detacher: string
  let till: string
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    ;[detacher, till] = [shop.devices.self_checkout_detacher, shop.devices.pos_deactivator]
  })
  afterAll(() => shop.stop())

  const now = () => new Date(platform.clock.wall()).toISOString()
  const passHour = () => forward(HOUR_MS)
  /** Returns the current time and moves the clock an hour forward. */
  function timeBeforeHour(): string {
    const at = now()
    passHour()
    return at
  }
  const verifyItem = (epc: string, occurredAt: string, more: Json = {}) =>
    shop.ok('verifyProtectedItem', {
      deviceId: detacher,
      protectionAction: 'detach_hard_tag',
      epc,
      occurredAt,
      ...more,
    })
  const verifyLine = ({ items }: Json, occurredAt: string) =>
    shop.ok('verifyProtectedItem', {
      deviceId: till,
      protectionAction: 'deactivate_label',
      itemLineId: items[0].itemLineId,
      occurredAt,
    })
  const verifyPurchase = ({ transactionId }: Json, occurredAt: string) =>
    shop.ok('verifySecurityTagDeactivation', { deviceId: till, purchaseId: transactionId, occurredAt })
  async function buyItem(): Promise<{ epc: string; before: string; purchase: Json; after: string }> {
    const [p] = shop.products
    const { epc } = await shop.newItem(p)
    passHour()
    const before = timeBeforeHour()
    const purchase = await shop.buy([{ ean: p.ean, quantity: 1, epcs: [epc] }])
    passHour()
    return { epc, before, purchase, after: timeBeforeHour() }
  }
  const granted = { authorized: true, authorizationToken: null, itemStatus: 'paid' }

  it('is denied if it precedes the payment, by item, line and purchase', async () => {
    const { epc, before, purchase, after } = await buyItem()
    expect(await verifyItem(epc, before)).toMatchObject({
      authorized: false,
      reason: 'item_not_paid',
      itemStatus: 'sellable',
    })
    expect(await verifyItem(epc, before, { purchaseId: purchase.transactionId })).toMatchObject({
      authorized: false,
      reason: 'item_not_paid',
    })
    expect(await verifyItem(epc, after)).toMatchObject(granted)
    expect(await verifyPurchase(purchase, before)).toMatchObject({
      deactivationAuthorized: false,
      reason: 'item_not_paid',
      status: 'PENDING_PAYMENT',
    })
    expect(await verifyPurchase(purchase, after)).toMatchObject({
      deactivationAuthorized: true,
      authorizationToken: null,
      status: 'paid',
    })
    const unbound = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    passHour()
    expect(await verifyLine(unbound, before)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    expect(await verifyLine(unbound, timeBeforeHour())).toMatchObject({ authorized: true, authorizationToken: null })
    expect(await verifyItem(newEpc(), after)).toMatchObject({ authorized: false, reason: 'item_unknown' })
  })

  it('is granted if it precedes the return of the goods, for every kind of return', async () => {
    for (const back of [
      ({ epc }: Json) => shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'returned' }),
      async ({ epc }: Json) => {
        for (const itemStatus of ['returned', 'sellable'])
          await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus })
      },
      ({ purchase }: Json) => shop.ok('markPurchaseCancelled', { transactionId: purchase.transactionId }),
      ({ purchase }: Json) =>
        shop.ok('refundPayment', {
          purchaseId: purchase.transactionId,
          lines: [{ itemLineId: purchase.items[0].itemLineId }],
        }),
    ]) {
      const one = await buyItem()
      await back(one)
      passHour()
      const since = timeBeforeHour()
      expect([await verifyItem(one.epc, one.after), await verifyItem(one.epc, since)]).toMatchObject([
        granted,
        { authorized: false, reason: 'item_not_paid' },
      ])
      expect([await verifyPurchase(one.purchase, one.after), await verifyPurchase(one.purchase, since)]).toMatchObject([
        { deactivationAuthorized: true },
        { deactivationAuthorized: false },
      ])
    }
  })

  it('considers only redemptions up to its time', async () => {
    const { epc, after } = await buyItem()
    const { replayProtectedNonce } = await shop.ok('verifyProtectedItem', {
      deviceId: detacher,
      protectionAction: 'detach_hard_tag',
      epc,
    })
    await shop.ok('redeemProtectionAuthorization', {
      replayProtectedNonce,
      deviceId: detacher,
      redemptionId: `used-${kind}`,
      outcome: 'confirmed',
    })
    passHour()
    expect([await verifyItem(epc, after), await verifyItem(epc, timeBeforeHour())]).toMatchObject([
      granted,
      { authorized: false, reason: 'already_redeemed' },
    ])
  })

  it('accepts an item that was bound later, because this release may have bound it', async () => {
    const [p] = shop.products
    const { epc } = await shop.newItem(p)
    const purchase = await shop.buy([{ ean: p.ean, quantity: 1 }])
    const { transactionId: purchaseId } = purchase
    passHour()
    const at = timeBeforeHour()
    expect(await verifyItem(epc, at, { purchaseId })).toMatchObject({ authorized: true })
    const { replayProtectedNonce } = await shop.ok('verifyProtectedItem', {
      deviceId: detacher,
      protectionAction: 'detach_hard_tag',
      epc,
      purchaseId,
    })
    await shop.ok('redeemProtectionAuthorization', {
      replayProtectedNonce,
      deviceId: detacher,
      redemptionId: `bound-${kind}`,
      outcome: 'confirmed',
    })
    passHour()
    expect(await verifyItem(epc, at, { purchaseId })).toMatchObject({ authorized: true, itemStatus: 'sellable' })
    expect(await verifyItem(epc, at)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    // Another purchase does not authorize the item.
    expect(
      await verifyItem(epc, at, { purchaseId: (await shop.buy([{ ean: p.ean, quantity: 1 }])).transactionId }),
    ).toMatchObject({ authorized: false })
  })

  it('uses the validity of the receipt at its time', async () => {
    const { epc, purchase, after } = await buyItem()
    const { url: receiptToken } = await shop.ok('generateReceiptQR', { purchaseId: purchase.transactionId })
    forward(30 * HOUR_MS)
    const over = timeBeforeHour()
    expect(await verifyItem(epc, after, { receiptToken })).toMatchObject(granted)
    expect(await verifyItem(epc, over, { receiptToken })).toMatchObject({ authorized: false, reason: 'token_expired' })
  })
})
