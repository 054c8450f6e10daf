import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

/** A pick-up code opens only the locker of its order (ADR sales). */
onEveryDatabase('lockers of click and collect', (kind) => {
  let shop: Shop
  let numbers = 0
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const newLocker = async (fields: Json = {}): Promise<string> => {
    const device = { storeId: shop.storeId, deviceType: 'cabinet_unlocker', name: `Fach ${++numbers}`, ...fields }
    return (await shop.ok('registerDevice', device)).deviceId
  }
  const submit = async (fields: Json = {}) => {
    const order = await shop.ok('submitClickCollectOrder', {
      storeId: shop.storeId,
      userId: 'shopper-1',
      items: [{ productId: shop.products[0].productId, quantity: 1 }],
      ...fields,
    })
    await shop.ok('updateClickCollectStatus', { orderId: order.orderId, status: 'confirmed' })
    return order
  }
  const move = (orderId: string, fields: Json) => shop.call('updateClickCollectStatus', { orderId, ...fields })
  const inLocker = async (lockerDeviceId: string, fields: Json = { paid: true }): Promise<Json> => {
    const order = await submit(fields)
    const { status, body } = await move(order.orderId, { status: 'ready', lockerDeviceId })
    expect([status, body.lockerDeviceId]).toEqual([200, lockerDeviceId])
    return order
  }
  const unlock = (deviceId: string, pickupCode: string) =>
    shop.ok('verifyProtectedItem', { deviceId, protectionAction: 'unlock_fixture', pickupCode })
  const denied = (reason: string) => ({ authorized: false, reason, authorizationToken: null })

  it('opens the locker of the order, and no other cabinet', async () => {
    const [locker, other] = [await newLocker(), await newLocker()]
    const order = await inLocker(locker)
    await inLocker(other)
    expect(await unlock(other, order.pickupCode)).toMatchObject(denied('locker_mismatch'))
    expect(await unlock(await newLocker(), order.pickupCode)).toMatchObject(denied('locker_mismatch'))
    expect(await unlock(locker, 'ZZZZ-ZZZZ')).toMatchObject(denied('token_invalid'))
    const granted = await unlock(locker, `${order.pickupCode.slice(0, 4)}-${order.pickupCode.slice(4)}`.toLowerCase())
    expect(granted).toMatchObject({ authorized: true, itemCount: 1, itemStatus: 'reserved_bopis' })
    const { authorizationToken } = granted
    const redemption = { authorizationToken, deviceId: locker, redemptionId: `l-${kind}`, outcome: 'confirmed' }
    expect(await shop.ok('redeemProtectionAuthorization', redemption)).toMatchObject({
      authorizationState: 'redeemed',
    })
    // The pick-up needs its confirmation. Until then the customer may open the locker again.
    const { orders } = await shop.ok('fetchClickCollectOrders', { storeId: shop.storeId, status: 'ready' })
    expect(orders).toContainEqual(
      expect.objectContaining({ orderId: order.orderId, paid: true, lockerDeviceId: locker }),
    )
    expect(await unlock(locker, order.pickupCode)).toMatchObject({ authorized: true })
    await move(order.orderId, { status: 'picked_up', pickupCode: order.pickupCode })
    expect(await unlock(locker, order.pickupCode)).toMatchObject(denied('already_redeemed'))
    // The locker is free for the next order.
    const next = await inLocker(locker)
    expect(await unlock(locker, order.pickupCode)).toMatchObject(denied('already_redeemed'))
    expect(await unlock(locker, next.pickupCode)).toMatchObject({ authorized: true })
  })

  it('stays shut for the token of an order that left it or was recalled, also when the next order waits there', async () => {
    const redeem = (deviceId: string, authorizationToken: string) =>
      shop.call('redeemProtectionAuthorization', {
        authorizationToken,
        deviceId,
        redemptionId: `old-${kind}-${deviceId}`,
      })
    for (const status of ['cancelled', 'picked_up']) {
      const locker = await newLocker()
      const { orderId, pickupCode } = await inLocker(locker)
      const { authorizationToken } = await unlock(locker, pickupCode)
      expect((await move(orderId, { status })).status).toBe(200)
      const next = await inLocker(locker)
      expect((await redeem(locker, authorizationToken)).body).toMatchObject({ reason: 'token_revoked' })
      expect(await unlock(locker, next.pickupCode)).toMatchObject({ authorized: true })
    }
    const locker = await newLocker()
    const { pickupCode } = await inLocker(locker)
    const { authorizationToken } = await unlock(locker, pickupCode)
    const { recallId } = await shop.ok('recallProducts', { ean: shop.products[0].ean, reason: 'Glassplitter' })
    expect((await redeem(locker, authorizationToken)).body).toMatchObject({ reason: 'token_revoked' })
    await shop.ok('endRecall', { recallId })
  })

  it('keeps its workflow while an order waits, whether the device or its store would change it', async () => {
    const { storeId } = shop
    const locker = await newLocker()
    const { orderId } = await inLocker(locker)
    const refused = { status: 409, body: { reason: 'locker_in_use' } }
    const toSelfService = { storeId, workflowType: 'self_service' }
    expect(await shop.call('updateDevice', { deviceId: locker, workflowType: 'self_service' })).toMatchObject(refused)
    expect(await shop.call('updateStore', toSelfService)).toMatchObject(refused)
    const { orders } = await shop.ok('fetchClickCollectOrders', { storeId, status: 'ready' })
    for (const each of orders) await move(each.orderId, { status: 'cancelled' })
    expect(orders.map((each: Json) => each.orderId)).toContain(orderId)
    const { workflowType = null } = await shop.ok('fetchStore', { storeId })
    expect((await shop.call('updateStore', toSelfService)).status).toBe(200)
    // A device with a workflow of its own may not go back to that of the store meanwhile.
    const own = await newLocker({ workflowType: 'staff_assisted' })
    const waiting = await inLocker(own)
    expect(await shop.call('updateDevice', { deviceId: own, workflowType: null })).toMatchObject(refused)
    await move(waiting.orderId, { status: 'cancelled' })
    await shop.ok('updateStore', { storeId, workflowType })
  })

  it('stays shut for an order that is not paid, without a locker or cancelled', async () => {
    const locker = await newLocker()
    const unpaid = await inLocker(locker, {})
    expect(await unlock(locker, unpaid.pickupCode)).toMatchObject(denied('item_not_paid'))
    await move(unpaid.orderId, { status: 'cancelled' })
    expect(await unlock(locker, unpaid.pickupCode)).toMatchObject(denied('token_invalid'))
    const late = await submit()
    expect(await unlock(locker, late.pickupCode)).toMatchObject(denied('locker_mismatch'))
    expect((await move(late.orderId, { status: 'ready', paid: true, lockerDeviceId: locker })).body).toMatchObject({
      paid: true,
    })
    expect(await unlock(locker, late.pickupCode)).toMatchObject({ authorized: true })
  })

  it('opens whatever the policy lists, and is otherwise opened by staff only', async () => {
    const { storeId } = shop
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
    const strict = { ...policy, allowedActionsByCategory: { '*': {} }, requiresManualOverrideAboveValue: 0 }
    const locker = await newLocker()
    const tagId = `F-${kind}`
    await shop.newItem(shop.products[0], { tagId })
    const { orderId, pickupCode } = await submit({ paid: true })
    expect((await move(orderId, { status: 'ready', lockerDeviceId: locker, tagIds: [tagId] })).status).toBe(200)
    await shop.ok('updateProtectionPolicy', { storeId, policy: strict })
    expect(await unlock(locker, pickupCode)).toMatchObject({ authorized: true })
    await shop.ok('updateProtectionPolicy', { storeId, policy })
    const byTag = { deviceId: locker, protectionAction: 'unlock_fixture', tagId }
    expect(await shop.ok('verifyProtectedItem', byTag)).toMatchObject(denied('manual_assistance_required'))
    expect(await shop.ok('verifyProtectedItem', { ...byTag, operatorId: 'op_anna' })).toMatchObject({
      authorized: true,
    })
  })

  it('refuses devices that are no free locker of the store', async () => {
    const { orderId } = await submit()
    const elsewhere = await shop.ok('registerDevice', {
      storeId: shop.otherStoreId,
      deviceType: 'cabinet_unlocker',
      name: 'Fremd',
    })
    const gone = await newLocker()
    await shop.ok('decommissionDevice', { deviceId: gone })
    const taken = await newLocker()
    await inLocker(taken)
    const ready = (lockerDeviceId: string) => move(orderId, { status: 'ready', lockerDeviceId })
    for (const deviceId of ['dev_unknown', elsewhere.deviceId]) expect((await ready(deviceId)).status).toBe(404)
    for (const deviceId of [shop.devices.exit_gate, gone, taken, await newLocker({ workflowType: 'self_service' })]) {
      const { status, body } = await ready(deviceId)
      expect([status, body.reason]).toEqual([409, 'locker_unavailable'])
    }
    expect((await move(orderId, { status: 'preparing', lockerDeviceId: await newLocker() })).status).toBe(400)
    expect((await ready(await newLocker())).status).toBe(200)
  })

  it('accepts a code only to open a fixture, and without another subject', async () => {
    const locker = await newLocker()
    const { pickupCode } = await inLocker(locker)
    for (const fields of [{ protectionAction: 'verify_item_status' }, { epc: '3034F4E4E4424C800000000B' }]) {
      const request = { deviceId: locker, protectionAction: 'unlock_fixture', pickupCode, ...fields }
      const { status, body } = await shop.call('verifyProtectedItem', request)
      expect([status, body.details[0].path]).toEqual([400, 'pickupCode'])
    }
  })
})
