import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

/** Separation of accounts, stores, test and live mode, and packages. */
inFullSizeOnEveryDatabase('API boundaries', (kind) => {
  let shop: Shop
  let strangerKey: string
  let stranger: Pick<Shop, 'storeId' | 'devices'>

  beforeAll(async () => {
    shop = await openShop(kind)
    strangerKey = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
    const { stores } = await shop.cloud.ok(strangerKey, 'fetchStores')
    const storeId = stores.find((s: Json) => s.securityTagMode === 'rfid').storeId
    const { devices } = await shop.cloud.ok(strangerKey, 'fetchDevices', { storeId })
    stranger = {
      storeId,
      devices: Object.fromEntries(devices.map((d: Json) => [d.deviceType, d.deviceId])) as Shop['devices'],
    }
  })
  afterAll(() => shop.stop())

  it('hide purchases, receipts, items, authorizations and devices from other accounts', async () => {
    const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const { epc } = await shop.newItem(shop.products[0])
    const grant = await shop.ok('verifySecurityTagDeactivation', {
      purchaseId: purchase.transactionId,
      deviceId: shop.devices.pos_deactivator,
    })
    const { url } = await shop.ok('generateReceiptQR', { purchaseId: purchase.transactionId })
    const ask = (name: string, body: Json) => shop.cloud.call(strangerKey, name, body)
    for (const [name, body] of [
      ['fetchPurchase', { transactionId: purchase.transactionId }],
      ['completeTestCheckout', { transactionId: purchase.transactionId }],
      ['markPurchaseCancelled', { purchaseId: purchase.transactionId }],
      ['generateReceiptQR', { purchaseId: purchase.transactionId }],
      ['verifySecurityTagDeactivation', { purchaseId: purchase.transactionId }],
      ['verifySecurityTagDeactivation', { receiptToken: url }],
      ['revokeProtectionAuthorization', { replayProtectedNonce: grant.replayProtectedNonce }],
      [
        'redeemProtectionAuthorization',
        {
          replayProtectedNonce: grant.replayProtectedNonce,
          deviceId: stranger.devices.pos_deactivator,
          redemptionId: 'r',
        },
      ],
      [
        'redeemProtectionAuthorization',
        { authorizationToken: grant.authorizationToken, deviceId: shop.devices.pos_deactivator, redemptionId: 'r' },
      ],
      ['fetchProtectedItem', { storeId: stranger.storeId, epc }],
      ['decommissionDevice', { deviceId: shop.devices.exit_gate }],
      ['fetchProtectionEvents', { storeId: shop.storeId }],
    ] as const) {
      expect([name, (await ask(name, body)).status]).toEqual([name, 404])
    }
    const verify = await ask('verifyProtectedItem', {
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      epc,
    })
    expect(verify.body).toMatchObject({ authorized: false, reason: 'device_unknown' })
    const item = await ask('verifyProtectedItem', {
      deviceId: stranger.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      epc,
    })
    expect(item.body).toMatchObject({ authorized: false, reason: 'item_unknown' })
  })

  it('hide other stores from a key that is bound to stores', async () => {
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    expect((await shop.cloud.ok(bound, 'fetchStores')).stores.map((s: Json) => s.storeId)).toEqual([shop.otherStoreId])
    expect((await shop.cloud.call(bound, 'fetchStore', { storeId: shop.storeId })).status).toBe(404)
    expect((await shop.cloud.call(bound, 'fetchDevices', { storeId: shop.storeId })).status).toBe(404)
  })

  it('separate test and live mode', async () => {
    const live = await shop.cloud.key('secret', 'live')
    expect((await shop.cloud.ok(live, 'fetchStores')).stores).toEqual([])
    expect((await shop.cloud.call(live, 'fetchStore', { storeId: shop.storeId })).status).toBe(404)
    expect((await shop.cloud.call(live, 'checkIn', { storeId: shop.storeId })).status).toBe(404)
  })

  it('check the package in live mode, and let test keys check in with any package', async () => {
    const poor = await shop.cloud.key('secret', 'live', { account: 'Poor', package: 'DISCOVER' })
    expect(await shop.cloud.call(poor, 'fetchProtectionPolicy', { storeId: 'st_x' })).toMatchObject({
      status: 403,
      body: { code: 'permission-denied', requiredUpgrade: 'GROW', currentPackage: 'DISCOVER' },
    })
    const test = await shop.cloud.key('secret', 'test', { account: 'Poor' })
    const { stores } = await shop.cloud.ok(test, 'fetchStores')
    expect((await shop.cloud.call(test, 'checkIn', { storeId: stores[0].storeId })).status).toBe(200)
  })

  it('suggest the correct name for a misspelt field', async () => {
    const answer = await shop.call('startCheckout', { sessionId: 'ses_x', items: [{ quantitty: 1, quantity: 1 }] })
    expect(answer.body.error).toContain('did you mean "quantity"?')
    expect(answer.body.details[0].path).toBe('items[0].quantitty')
  })

  it('return problem+json to clients that accept it', async () => {
    const answer = await shop.call('fetchStore', { storeId: 'st_x' }, { accept: 'application/problem+json' })
    expect(answer.headers.get('content-type')).toBe('application/problem+json')
    expect(answer.body).toMatchObject({ status: 404, title: 'not-found', code: 'not-found' })
  })

  it('return 404 for an unknown operation, and 401 first without a key', async () => {
    expect((await shop.call('openSesame')).status).toBe(404)
    expect((await shop.cloud.call(null, 'openSesame')).status).toBe(401)
    expect((await shop.cloud.get('/api/v1/registerDevice', { authorization: `Bearer ${shop.key}` })).status).toBe(404)
  })

  it('reject revoked and expired keys', async () => {
    const key = await shop.cloud.key('secret')
    const { database } = shop.cloud.db
    const { hashOfKey } = await import('../../../../cloud/platform/accounts/api-keys.ts')
    await database.write((db) =>
      db.updateTable('api_key').set({ expires_ms: 1 }).where('hash', '=', hashOfKey(key)).execute(),
    )
    expect((await shop.cloud.call(key, 'fetchStores')).status).toBe(401)
  })

  it('store no key, token or code in clear', async () => {
    const { code } = await shop.ok('createEnrolmentCode', { storeId: shop.storeId })
    const { code: setupCode } = await shop.ok('createSetupCode', { storeId: shop.storeId })
    const { badge } = await shop.ok('registerOperator', { storeId: shop.storeId, name: 'Herr Ohlsen', pin: '123456' })
    const { reads } = shop.cloud.db.database
    const tables = [
      'api_key',
      'enrolment_code',
      'setup_code',
      'operator',
      'idempotency',
      'audit_entry',
      'signing_key',
      'agent_session',
    ] as const
    const dump = JSON.stringify(await Promise.all(tables.map((t) => reads.selectFrom(t).selectAll().execute())))
    for (const secret of [shop.key, code, code.slice(0, 14), setupCode, badge, '123456'])
      expect(dump).not.toContain(secret)
  })

  it('leaves no error in the log', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
