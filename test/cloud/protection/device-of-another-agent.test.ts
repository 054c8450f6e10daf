import { afterAll, beforeAll, expect, it } from 'vitest'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

onEveryDatabase('a device of another agent of the store', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  it('is unknown to an agent that asks for a token, even with an operator of the store', async () => {
    const { storeId, devices } = shop
    const [product] = shop.products
    const [owner, other] = [await enrolTestAgent(shop), await enrolTestAgent(shop)]
    const { operatorId } = await shop.ok('registerOperator', { storeId, name: 'Frau Jensen' })
    for (const deviceId of [devices.self_checkout_detacher, devices.cabinet_unlocker])
      expect((await owner.call('reportDeviceHeartbeat', { deviceId })).status).toBe(200)

    const { epc } = await shop.newItem(product)
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const detach = { deviceId: devices.self_checkout_detacher, protectionAction: 'detach_hard_tag', epc }
    await shop.newItem(product, { tagId: `case-${kind}`, protectionTechnology: 'mechanical_lock' })
    const open = {
      deviceId: devices.cabinet_unlocker,
      protectionAction: 'unlock_fixture',
      tagId: `case-${kind}`,
      operatorId,
    }
    for (const input of [detach, open])
      expect((await other.call('verifyProtectedItem', input)).body).toMatchObject({
        authorized: false,
        reason: 'device_unknown',
      })
    expect((await owner.call('verifyProtectedItem', detach)).body).toMatchObject({ authorized: true })
  })
})
