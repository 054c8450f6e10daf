import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'

const HOUR_MS = 3_600_000

/** A request with `occurredAt` over five minutes ago is judged by the state of that time (ADR 0009). */
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
  const later = () => forward(HOUR_MS)
  /** Returns the current time and moves the clock an hour forward. */
  function moment(): string {
    const at = now()
    later()
    return at
  }
  const item = (epc: string, occurredAt: string, more: Json = {}) =>
    shop.ok('verifyProtectedItem', {
      deviceId: detacher,
      protectionAction: 'detach_hard_tag',
      epc,
      occurredAt,
      ...more,
    })
  const line = ({ items }: Json, occurredAt: string) =>
    shop.ok('verifyProtectedItem', {
      deviceId: detacher,
      protectionAction: 'detach_hard_tag',
      itemLineId: items[0].itemLineId,
      occurredAt,
    })
  const whole = ({ transactionId }: Json, occurredAt: string) =>
    shop.ok('verifySecurityTagDeactivation', { deviceId: till, purchaseId: transactionId, occurredAt })
  async function bought(): Promise<{ epc: string; before: string; purchase: Json; after: string }> {
    const [p] = shop.products
    const { epc } = await shop.newItem(p)
    later()
    const before = moment()
    const purchase = await shop.buy([{ ean: p.ean, quantity: 1, epcs: [epc] }])
    later()
    return { epc, before, purchase, after: moment() }
  }
  const granted = { authorized: true, authorizationToken: null, itemStatus: 'paid' }

  it('is denied if it precedes the payment, by item, line and purchase', async () => {
    const { epc, before, purchase, after } = await bought()
    expect(await item(epc, before)).toMatchObject({
      authorized: false,
      reason: 'item_not_paid',
      itemStatus: 'sellable',
    })
    expect(await item(epc, before, { purchaseId: purchase.transactionId })).toMatchObject({
      authorized: false,
      reason: 'item_not_paid',
    })
    expect(await item(epc, after)).toMatchObject(granted)
    expect(await whole(purchase, before)).toMatchObject({
      deactivationAuthorized: false,
      reason: 'item_not_paid',
      status: 'PENDING_PAYMENT',
    })
    expect(await whole(purchase, after)).toMatchObject({
      deactivationAuthorized: true,
      authorizationToken: null,
      status: 'paid',
    })
    const unbound = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    later()
    expect(await line(unbound, before)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    expect(await line(unbound, moment())).toMatchObject({ authorized: true, authorizationToken: null })
    expect(await item(newEpc(), after)).toMatchObject({ authorized: false, reason: 'item_unknown' })
  })

  it('is granted if it precedes the return, whichever way the goods returned', async () => {
    for (const back of [
      ({ epc }: Json) => shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'returned' }),
      async ({ epc }: Json) => {
        for (const itemStatus of ['returned', 'sellable'])
          await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus })
      },
      ({ purchase }: Json) => shop.ok('markPurchaseCancelled', { transactionId: purchase.transactionId }),
      ({ purchase }: Json) =>
        shop.ok('refundPayment', { purchaseId: purchase.transactionId, itemLineIds: [purchase.items[0].itemLineId] }),
    ]) {
      const one = await bought()
      await back(one)
      later()
      const since = moment()
      expect([await item(one.epc, one.after), await item(one.epc, since)]).toMatchObject([
        granted,
        { authorized: false, reason: 'item_not_paid' },
      ])
      expect([await whole(one.purchase, one.after), await whole(one.purchase, since)]).toMatchObject([
        { deactivationAuthorized: true },
        { deactivationAuthorized: false },
      ])
    }
  })

  it('counts the redemptions up to its time', async () => {
    const { epc, after } = await bought()
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
    later()
    expect([await item(epc, after), await item(epc, moment())]).toMatchObject([
      granted,
      { authorized: false, reason: 'already_redeemed' },
    ])
  })

  it('accepts an item that was bound later, because this release may have bound it', async () => {
    const [p] = shop.products
    const { epc } = await shop.newItem(p)
    const purchase = await shop.buy([{ ean: p.ean, quantity: 1 }])
    const { transactionId: purchaseId } = purchase
    later()
    const at = moment()
    expect(await item(epc, at, { purchaseId })).toMatchObject({ authorized: true })
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
    later()
    expect(await item(epc, at, { purchaseId })).toMatchObject({ authorized: true, itemStatus: 'sellable' })
    expect(await item(epc, at)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    // Another purchase does not authorize the item.
    expect(
      await item(epc, at, { purchaseId: (await shop.buy([{ ean: p.ean, quantity: 1 }])).transactionId }),
    ).toMatchObject({ authorized: false })
  })

  it('uses the validity of the receipt at its time', async () => {
    const { epc, purchase, after } = await bought()
    const { url: receiptToken } = await shop.ok('generateReceiptQR', { purchaseId: purchase.transactionId })
    forward(30 * HOUR_MS)
    const over = moment()
    expect(await item(epc, after, { receiptToken })).toMatchObject(granted)
    expect(await item(epc, over, { receiptToken })).toMatchObject({ authorized: false, reason: 'token_expired' })
  })
})
