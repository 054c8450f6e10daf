import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const PIN = '471108'

/** An operator who is signed in at an agent releases paid goods offline, as online (ADR trusted-time). */
describe('an operator at an offline agent', () => {
  let store: TestStore
  let operatorId: string
  afterEach(() => store.stop())
  const { device, offline, synced, product } = atLanes(() => store)
  const ok = (operation: string, body: Json): Promise<Json> =>
    store.drive(store.shop.ok(operation, { storeId: store.shop.storeId, ...body }))

  beforeEach(async () => {
    store = await openStore()
    operatorId = (await ok('registerOperator', { name: 'Frau Petersen', pin: PIN })).operatorId
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
  })

  const setPolicy = async (fields: Json) => {
    const { policy } = await ok('fetchProtectionPolicy', {})
    await ok('updateProtectionPolicy', { policy: { ...policy, ...fields } })
    await store.until('the policy', () => {
      const now: Json = store.agent.trust.policy?.policy ?? {}
      return Object.entries(fields).every(([name, value]) => now[name] === value)
    })
  }
  const signIn = async (): Promise<Record<string, string>> => {
    const { body } = await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: PIN } })
    return { 'x-untag-operator': body.session }
  }
  const tagged = (name: Json, more: Json = {}) => ({
    deviceId: device('station'),
    protectionAction: 'deactivate_label',
    ...name,
    ...more,
  })
  const asStaff = async (name: Json, more: Json = {}) => store.authorize(tagged(name, more), await signIn())
  const isKnown = (tagId: string, status: string) =>
    store.until('the replica', () => store.agent.items.find('tagId', tagId)?.status === status)
  let numbers = 0
  const newItem = async (): Promise<{ tagId: string }> => {
    const tagId = `HT-${++numbers}`
    await ok('registerProtectedItems', { items: [{ tagId, ean: product().ean }] })
    return { tagId }
  }
  /** Goods that the till of the shop has sold. untag knows no purchase and no receipt. */
  const soldAtTill = async () => {
    const item = await newItem()
    await ok('updateItemStatus', { ...item, itemStatus: 'paid' })
    await isKnown(item.tagId, 'paid')
    return item
  }
  const soldWithReceipt = async () => {
    const item = await newItem()
    const { receipt, purchase } = await store.buy([{ ean: product().ean, quantity: 1, tagIds: [item.tagId] }])
    await isKnown(item.tagId, 'paid')
    return { ...item, receipt, purchase }
  }
  const online = async () => {
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    await synced()
  }
  const kinds = async (): Promise<string[]> =>
    ((await ok('fetchExceptions', {})).exceptions as Json[]).map(({ kind }) => kind as string)

  it('releases a paid tag without a receipt, once, and the cloud marks its right used', async () => {
    const [{ tagId }, unpaid] = [await soldAtTill(), await newItem()]
    await isKnown(unpaid.tagId, 'sellable')
    await offline()
    expect(await store.authorize(tagged({ tagId }))).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
      itemStatus: 'paid',
    })
    expect(await asStaff({ tagId: unpaid.tagId })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    expect(await asStaff({ tagId })).toMatchObject({
      authorized: true,
      offline: true,
      outcome: 'confirmed',
      itemStatus: 'paid',
    })
    expect(await asStaff({ tagId })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    await store.restart()
    expect(await asStaff({ tagId })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(1)
    await online()
    expect(await asStaff({ tagId })).toMatchObject({ authorized: false, offline: false, reason: 'already_redeemed' })
    expect(await kinds()).toEqual([])
  })

  it('uses the right of the purchase, also for its receipt', async () => {
    const { tagId, receipt, purchase } = await soldWithReceipt()
    await offline()
    expect(await asStaff({ tagId })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(await asStaff({ tagId, receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    await online()
    await store.until('the denial', () => store.agent.ledger.journal.waiting === 0)
    const { transactionId } = purchase
    const { securityTagStatus } = await store.drive(store.shop.ok('fetchPurchase', { transactionId }))
    expect(securityTagStatus).toBe('deactivated')
    await ok('updateItemStatus', { tagId, itemStatus: 'returned' })
    expect(await kinds()).toEqual([])
  })

  it('releases a tag once, however its number is typed', async () => {
    const { tagId, receipt } = await soldWithReceipt()
    await offline()
    expect(await asStaff({ tagId })).toMatchObject({ authorized: true })
    for (const typed of [tagId.toLowerCase(), ` ${tagId} `, tagId.replace('T', 't')]) {
      expect(await asStaff({ tagId: typed })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
      expect(await store.authorize(tagged({ tagId: typed }, { receipt }))).toMatchObject({
        authorized: false,
        reason: 'already_redeemed',
      })
    }
    expect(store.pulses('station')).toBe(1)
  })

  it('refuses a tag that was released with its receipt', async () => {
    const { tagId, receipt } = await soldWithReceipt()
    await offline()
    expect(await store.authorize(tagged({ tagId }, { receipt }))).toMatchObject({ authorized: true })
    expect(await asStaff({ tagId })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  })

  it('raises an exception if another device had used the right', async () => {
    const { tagId } = await soldWithReceipt()
    await offline()
    const deviceId = (
      await ok('registerDevice', { deviceType: 'pos_deactivator', name: 'Ohne Agent', workflowType: 'staff_assisted' })
    ).deviceId
    const answer = await ok('verifyProtectedItem', { deviceId, protectionAction: 'deactivate_label', tagId })
    const { authorizationToken } = answer
    expect(answer).toMatchObject({ authorized: true })
    const redemption = { authorizationToken, deviceId, redemptionId: `red-${tagId}`, outcome: 'confirmed' }
    await store.drive(store.shop.ok('redeemProtectionAuthorization', redemption))
    expect(await asStaff({ tagId })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    await online()
    expect(await kinds()).toContain('double_redeem')
  })

  it('releases the tag of goods that came back and were sold again', async () => {
    const { tagId } = await soldAtTill()
    await offline()
    expect(await asStaff({ tagId })).toMatchObject({ authorized: true })
    await online()
    for (const itemStatus of ['returned', 'sellable', 'paid']) {
      await ok('updateItemStatus', { tagId, itemStatus })
      await isKnown(tagId, itemStatus)
    }
    await offline()
    expect(await asStaff({ tagId })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    await online()
    expect(await kinds()).toEqual([])
  })

  it('is limited by the overrides of an hour', async () => {
    await setPolicy({ operatorOverridesPerHour: 1 })
    const [first, second] = [await soldAtTill(), await soldAtTill()]
    await offline()
    expect(await asStaff({ tagId: first.tagId })).toMatchObject({ authorized: true })
    expect(await asStaff({ tagId: second.tagId })).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    store.world.sleep(3_600_001)
    expect(await asStaff({ tagId: second.tagId })).toMatchObject({ authorized: true })
  })

  it.each([
    ['maxRiskClass', { maxRiskClass: 0 }],
    ['hardCount', { hardCount: 0 }],
    ['maxIsolatedSeconds', { maxIsolatedSeconds: 0 }],
    ['storeBound', { storeBound: 'deny' }],
  ])('approves a receipt above the limit %s of an isolated agent', async (_limit, limits) => {
    const { policy } = await ok('fetchProtectionPolicy', {})
    await store.shop.cloud.db.database.write((db) =>
      db
        .updateTable('store')
        .set({
          policy: JSON.stringify({
            ...policy,
            requiresManualOverrideAboveValue: null,
            operatorOverridesPerHour: 2,
            home: 'cloud',
            offline: { ...policy.offline, ...limits },
          }),
          document_version: 99,
        })
        .where('store_id', '=', store.shop.storeId)
        .execute(),
    )
    await store.until('the policy', () => store.agent.trust.policy?.ver === 99)
    const dear = store.shop.products.find((each) => each.price > 50 && each.price < 200)
    const receipts = []
    for (let n = 0; n < 3; n++) receipts.push((await store.buy([{ ean: dear.ean, quantity: 1 }])).receipt)
    await offline()
    const [receipt, second, third] = receipts
    expect(await store.authorize(tagged({ receipt }))).toMatchObject({ reason: 'limit_exceeded' })
    expect(await asStaff({ receipt })).toMatchObject({ authorized: true, offline: true })
    expect(await asStaff({ receipt: second })).toMatchObject({ authorized: true })
    // Each approval counts, and staff do not use up the number of receipts.
    expect(await asStaff({ receipt: third })).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    expect(store.agent.ledger.claims.isolatedCount).toBe(0)
  })
})
