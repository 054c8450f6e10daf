import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

/** The action `unlock_fixture` at cabinets without an agent. The right `open` of each paid unit is used once. */
inFullSizeOnEveryDatabase('unlock_fixture', (kind) => {
  let shop: Shop
  /** Cabinet at which shoppers pay first. */
  let cabinet: string
  let staffed: string
  let policy: Json
  let numbers = 0

  beforeAll(async () => {
    shop = await openShop(kind)
    const { storeId } = shop
    const device = { storeId, deviceType: 'cabinet_unlocker' }
    cabinet = (await shop.ok('registerDevice', { ...device, name: 'Vitrine', workflowType: 'self_service' })).deviceId
    staffed = (await shop.ok('registerDevice', { ...device, name: 'Tresen' })).deviceId
    policy = (await shop.ok('fetchProtectionPolicy', { storeId })).policy
    await setPolicy({})
  })
  afterAll(() => shop.stop())

  const setPolicy = (fields: Json) =>
    shop.ok('updateProtectionPolicy', {
      storeId: shop.storeId,
      policy: {
        ...policy,
        allowedActionsByCategory: {
          '*': { unlock_fixture: ['self_service', 'staff_assisted'], detach_hard_tag: ['self_service'] },
        },
        ...fields,
      },
    })
  const unlock = (subject: Json, fields: Json = {}) =>
    shop.ok('verifyProtectedItem', { deviceId: cabinet, protectionAction: 'unlock_fixture', ...subject, ...fields })
  const newOperator = () => ({ operatorId: `${kind}-cabinet-${++numbers}` })
  const newTag = async (): Promise<{ tagId: string }> => {
    const tagId = `${kind}-V-${++numbers}`
    await shop.newItem(shop.products[0], { tagId })
    return { tagId }
  }
  const paid = async (count = 1) => {
    const tags = []
    for (let n = 0; n < count; n++) tags.push(await newTag())
    const items = [{ ean: shop.products[0].ean, quantity: count, tagIds: tags.map(({ tagId }) => tagId) }]
    const { transactionId: purchaseId, items: lines } = await shop.buy(items)
    const { token } = await shop.ok('generateReceiptQR', { purchaseId })
    return { tags, tag: tags[0] ?? {}, purchaseId, receiptToken: token, itemLineId: lines[0].itemLineId }
  }
  const redeem = ({ authorizationToken }: Json, outcome = 'confirmed', deviceId = cabinet) =>
    shop.ok('redeemProtectionAuthorization', {
      authorizationToken,
      deviceId,
      redemptionId: `open-${kind}-${++numbers}`,
      outcome,
    })
  const GRANTED = { authorized: true, itemCount: 1 }
  const denied = (reason: string) => ({ authorized: false, reason, authorizationToken: null })
  const exceptions = async () =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId })).exceptions.map((each: Json) => each.kind)

  it.each(['tag', 'purchaseId', 'receiptToken', 'itemLineId'] as const)(
    'opens once for paid goods by %s',
    async (by) => {
      const bought: Json = await paid()
      const subject = by === 'tag' ? bought.tag : { [by]: bought[by] }
      const granted = await unlock(subject)
      expect(granted).toMatchObject(GRANTED)
      expect((await unlock(subject)).replayProtectedNonce).toBe(granted.replayProtectedNonce)
      expect(await redeem(granted)).toMatchObject({ authorizationState: 'redeemed' })
      for (const again of [bought.tag, { purchaseId: bought.purchaseId }, { itemLineId: bought.itemLineId }])
        expect(await unlock(again)).toMatchObject(denied('already_redeemed'))
      // The other rights of the unit are free.
      const detach = { deviceId: shop.devices.self_checkout_detacher, protectionAction: 'detach_hard_tag' }
      const release = await shop.ok('verifyProtectedItem', { ...detach, epc: undefined, ...bought.tag })
      expect(release).toMatchObject({ authorized: true })
    },
  )

  it('opens for each unit of a purchase, and again after a failed attempt', async () => {
    const { purchaseId, tags } = await paid(2)
    const granted = await unlock({ purchaseId })
    expect(granted).toMatchObject({ authorized: true, itemCount: 2 })
    await redeem(granted, 'failed')
    await redeem(granted)
    const rest = await unlock({ purchaseId })
    expect(rest).toMatchObject(GRANTED)
    await redeem(rest)
    expect(await unlock({ purchaseId })).toMatchObject(denied('already_redeemed'))
    for (const tag of tags) expect(await unlock(tag)).toMatchObject(denied('already_redeemed'))
  })

  it('opens for an item that another till has sold, and once more after its next sale', async () => {
    const tag = await newTag()
    const { storeId } = shop
    for (let n = 0; n < 2; n++) {
      await shop.ok('updateItemStatus', { storeId, ...tag, itemStatus: 'paid' })
      await redeem(await unlock(tag))
      expect(await unlock(tag)).toMatchObject(denied('already_redeemed'))
      for (const itemStatus of ['returned', 'sellable'])
        await shop.ok('updateItemStatus', { storeId, ...tag, itemStatus })
    }
  })

  it('binds an unnamed unit to the item that it opens', async () => {
    const tag = await newTag()
    const { transactionId: purchaseId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    expect(await unlock(tag)).toMatchObject(denied('item_not_paid'))
    const granted = await unlock({ ...tag, purchaseId })
    expect(granted).toMatchObject(GRANTED)
    expect((await redeem(granted)).authorizationState).toBe('redeemed')
    expect(await shop.ok('fetchProtectedItem', { storeId: shop.storeId, ...tag })).toMatchObject({
      itemStatus: 'paid',
      purchaseId,
    })
  })

  it('lets only staff open for goods that are not paid, and uses no right', async () => {
    const tag = await newTag()
    expect(await unlock(tag)).toMatchObject(denied('item_not_paid'))
    expect(await unlock(tag, { deviceId: staffed })).toMatchObject(denied('manual_assistance_required'))
    for (let n = 0; n < 2; n++) await redeem(await unlock(tag, newOperator()))
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'shopper-2' })
    const items = [{ ean: shop.products[0].ean, quantity: 1, tagIds: [tag.tagId] }]
    const { transactionId } = await shop.ok('startCheckout', { sessionId, items })
    expect(await unlock({ purchaseId: transactionId })).toMatchObject(denied('item_not_paid'))
    await shop.ok('completeTestCheckout', { transactionId })
    expect(await unlock({ purchaseId: transactionId })).toMatchObject(GRANTED)
  })

  it('lets staff open again, as an override that is counted', async () => {
    const { tag, purchaseId, itemLineId } = await paid()
    await redeem(await unlock(tag))
    await setPolicy({ operatorOverridesPerHour: 3 })
    const anna = newOperator()
    for (const subject of [tag, { purchaseId }, { itemLineId }]) {
      const again = await unlock(subject, anna)
      expect(again).toMatchObject(GRANTED)
      expect(await redeem(again)).toMatchObject({ authorizationState: 'redeemed' })
    }
    expect(await unlock(tag, anna)).toMatchObject(denied('limit_exceeded'))
    // A first opening by staff is routine and is not counted.
    const { tag: other } = await paid()
    expect(await unlock(other, anna)).toMatchObject(GRANTED)
    await setPolicy({})
    expect(await exceptions()).not.toContain('double_redeem')
  })

  it.each(['exception_hold', 'returned', 'cancelled', 'transfer_in_transit'] as const)(
    'stays shut for goods that are %s, also for staff',
    async (itemStatus) => {
      const { tag, purchaseId } = await paid()
      const { storeId } = shop
      await shop.ok('updateItemStatus', { storeId, ...tag, itemStatus: 'exception_hold' })
      if (itemStatus !== 'exception_hold') await shop.ok('updateItemStatus', { storeId, ...tag, itemStatus })
      for (const who of [{}, newOperator()])
        expect(await unlock({ ...tag, purchaseId }, who)).toMatchObject(denied('item_not_paid'))
    },
  )

  it('gives no more openings after a refund', async () => {
    const { tag, purchaseId } = await paid()
    const token = await unlock(tag)
    await shop.ok('markPurchaseCancelled', { transactionId: purchaseId })
    expect(await unlock(tag)).toMatchObject(denied('item_not_paid'))
    const late = await shop.call('redeemProtectionAuthorization', {
      authorizationToken: token.authorizationToken,
      deviceId: cabinet,
      redemptionId: `late-${kind}`,
    })
    expect(late.status).toBe(409)
  })
})
