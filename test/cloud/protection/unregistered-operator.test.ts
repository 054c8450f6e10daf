import { afterAll, beforeAll, expect, it } from 'vitest'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

onEveryDatabase('approvals that an agent reports', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  it('count only of operators who are registered in its store', async () => {
    const { storeId } = shop
    const [product] = shop.products
    const detacher = shop.devices.self_checkout_detacher
    const cabinet = shop.devices.cabinet_unlocker
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
    await shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, requiresManualOverrideAboveValue: 0 } })
    const { operatorId: known } = await shop.ok('registerOperator', { storeId, name: 'Frau Jensen' })
    const agent = await enrolTestAgent(shop)
    await agent.call('reportDeviceHeartbeat', { deviceId: detacher })
    await agent.call('reportDeviceHeartbeat', { deviceId: cabinet })

    const detach = async (caller: 'agent' | 'merchant', operatorId: string) => {
      const { epc } = await shop.newItem(product)
      const { transactionId: purchaseId } = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
      const input = { deviceId: detacher, protectionAction: 'detach_hard_tag', epc, purchaseId, operatorId }
      return caller === 'agent'
        ? (await agent.call('verifyProtectedItem', input)).body
        : shop.ok('verifyProtectedItem', input)
    }
    expect(await detach('agent', 'op_invented')).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
      warnings: [expect.stringContaining('operatorId was ignored')],
    })
    expect(await detach('agent', known)).toMatchObject({ authorized: true })
    // Merchants may use staff numbers of their own.
    expect(await detach('merchant', 'clerk-7')).toMatchObject({ authorized: true })

    await shop.newItem(product, { tagId: `case-${kind}`, protectionTechnology: 'mechanical_lock' })
    const open = { deviceId: cabinet, protectionAction: 'unlock_fixture', tagId: `case-${kind}` }
    const { body: unpaid } = await agent.call('verifyProtectedItem', { ...open, operatorId: 'op_invented' })
    expect(unpaid).toMatchObject({ authorized: false, itemStatus: 'sellable' })
    expect(unpaid).not.toHaveProperty('token')
  })
})
