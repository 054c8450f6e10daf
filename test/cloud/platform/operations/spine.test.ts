import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'

onEveryDatabase('the main path over the API', (kind) => {
  let cloud: TestCloud
  let key: string
  let store: Json
  let devices: Record<string, string>

  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    key = await cloud.key('secret')
    const { stores } = await cloud.ok(key, 'fetchStores')
    store = stores.find((s: Json) => s.securityTagMode === 'rfid')
    const list = await cloud.ok(key, 'fetchDevices', { storeId: store.storeId })
    devices = Object.fromEntries(list.devices.map((d: Json) => [d.deviceType, d.deviceId]))
  })
  afterAll(() => cloud.stop())

  it('buys goods, verifies the purchase and redeems the authorization', async () => {
    const { products } = await cloud.ok(key, 'fetchProducts', { storeId: store.storeId, category: 'bekleidung' })
    const tagged = products.find((p: Json) => p.tagged && p.price < 100) // below the price that needs staff
    const { sessionId } = await cloud.ok(key, 'checkIn', { storeId: store.storeId, userId: 'u1' })
    const purchase = await cloud.ok(key, 'startCheckout', { sessionId, items: [{ ean: tagged.ean, quantity: 2 }] })
    expect(purchase.status).toBe('PENDING_PAYMENT')
    await cloud.ok(key, 'completeTestCheckout', { transactionId: purchase.transactionId })
    const paid = await cloud.ok(key, 'fetchPurchase', { transactionId: purchase.transactionId })
    expect(paid).toMatchObject({ status: 'SUCCESS', securityTagStatus: 'pending' })
    const qr = await cloud.ok(key, 'generateReceiptQR', { purchaseId: purchase.transactionId })
    const receipt = await cloud.get(`/api/v1/getReceiptFromToken?token=${qr.token}`)
    expect(receipt.status).toBe(200)
    const grant = await cloud.ok(key, 'verifySecurityTagDeactivation', {
      receiptToken: qr.url,
      deviceId: devices['pos_deactivator'],
    })
    expect(grant).toMatchObject({ deactivationAuthorized: true, itemCount: 2, authorizationState: 'issued' })
    for (const step of [1, 2]) {
      const body = {
        authorizationToken: grant.authorizationToken,
        deviceId: devices['pos_deactivator'],
        redemptionId: `r${step}`,
      }
      expect(await cloud.ok(key, 'redeemProtectionAuthorization', body)).toMatchObject({
        authorizationState: 'redeemed',
        remaining: 2 - step,
      })
      await cloud.ok(key, 'redeemProtectionAuthorization', { ...body, outcome: 'confirmed' })
    }
    expect(await cloud.ok(key, 'fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
    const { events } = await cloud.ok(key, 'fetchProtectionEvents', { storeId: store.storeId })
    expect(events.map((e: Json) => e.type)).toContain('protection.action.completed')
    expect(cloud.errors).toEqual([])
  })
})
