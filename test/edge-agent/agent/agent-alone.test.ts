import { afterEach, describe, expect, it, vi } from 'vitest'
import { agentTopic } from '../../../policy/mqtt-topics.ts'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const HOUR = 3_600_000

describe('an agent without the cloud', () => {
  let store: TestStore
  afterEach(() => store.stop())
  const { device, release, leave, synced, offline, events, product } = atLanes(() => store)

  it('keeps its retry delays while the cloud does not answer, however many messages the broker sends', async () => {
    let tell: (topic: string, payload: string) => void = () => undefined
    const line = { publish: () => undefined, subscribe: () => undefined, close: () => undefined }
    store = await openStore({
      parts: {
        openLine: (options) => {
          tell = options.onMessage
          return Promise.resolve(line)
        },
      },
    })
    const asked = vi
      .spyOn(store.shop.cloud.cloud.app, 'request')
      .mockImplementation(() => Promise.reject(new Error('no answer')))
    await store.until('offline', () => !store.agent.link.isOnline)
    asked.mockClear()
    const topic = agentTopic(store.shop.storeId, store.identity.agentId, 'command')
    for (let n = 0; n < 600; n++) {
      tell(topic, 'look here')
      await store.world.advance(50)
    }
    // Half a minute, of which the pauses grow to 15 s.
    expect(asked.mock.calls.length).toBeLessThan(20)
    asked.mockRestore()
    await store.until('online', () => store.agent.link.isOnline)
  })

  it('works for 72 hours offline, and then delivers every row exactly once', async () => {
    store = await openStore()
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    await store.drive(
      store.shop.ok('updateProtectionPolicy', {
        storeId: store.shop.storeId,
        policy: { ...policy, requiresManualOverrideAboveValue: null },
      }),
    )
    await store.until('the policy', () => store.agent.trust.policy?.policy.requiresManualOverrideAboveValue === null)
    await offline()
    const bought: Json[] = []
    for (let hour = 0; hour < 72; hour += 6) {
      store.world.sleep(6 * HOUR)
      const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
      expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
      expect(await leave({ receipt })).toMatchObject({ authorized: true, offline: true })
      bought.push(purchase)
    }
    expect(store.agent.status().stage).toBe('stale')
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline, 120_000)
    await synced()
    for (const purchase of bought) {
      expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
        status: 'UNLOADED',
        securityTagStatus: 'deactivated',
      })
      expect(await events({ purchaseId: purchase.transactionId, type: 'protection.action.completed' })).toHaveLength(2)
      expect(await events({ purchaseId: purchase.transactionId, type: 'protection.device.offline' })).toHaveLength(2)
    }
    const raised = await events({ type: 'protection.exception.raised' })
    expect(raised.filter((e) => !['gate_alarm'].includes(e.reason))).toEqual([])
  })

  it('needs an operator for receipts after 80 hours offline', async () => {
    store = await openStore()
    const registered = await store.drive(
      store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }),
    )
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
    await offline()
    store.world.sleep(81 * HOUR)
    expect(store.agent.status().stage).toBe('expired')
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    expect(await leave({ receipt })).toMatchObject({ authorized: false, reason: 'policy_stale' })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
    const { body } = await store.local('/v1/operator', {
      method: 'POST',
      body: { operatorId: registered.operatorId, pin: '471108' },
    })
    expect(
      await store.authorize(
        { deviceId: device('station'), protectionAction: 'deactivate_label', receipt },
        { 'x-untag-operator': body.session },
      ),
    ).toMatchObject({ authorized: true })
  })

  it('limits isolated claims if another agent is the home', async () => {
    store = await openStore()
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    await store.shop.cloud.db.database.write((db) =>
      db
        .updateTable('store')
        .set({
          policy: JSON.stringify({
            ...policy,
            requiresManualOverrideAboveValue: null,
            home: 'cloud',
            offline: { ...policy.offline, hardCount: 2, maxRiskClass: 1 },
          }),
          document_version: 99,
        })
        .where('store_id', '=', store.shop.storeId)
        .execute(),
    )
    await store.until('the policy', () => store.agent.trust.policy?.ver === 99)
    const cheap = store.shop.products.find((p) => p.price < 100)
    const receipts = []
    for (let i = 0; i < 3; i++) receipts.push((await store.buy([{ ean: cheap.ean, quantity: 3 }])).receipt)
    const { receipt: dear } = await store.buy([{ ean: cheap.ean, quantity: 6 }])
    await offline()
    expect(await release(dear)).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    // Two receipts with all their units.
    for (const receipt of [0, 1, 0, 1, 0, 1])
      expect(await release(receipts[receipt] ?? '')).toMatchObject({ authorized: true })
    expect(await release(receipts[2] ?? '')).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    await store.restart()
    expect(await release(receipts[2] ?? '')).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    await synced()
    await offline()
    expect(await release(receipts[2] ?? '')).toMatchObject({ authorized: true })
  })
})
