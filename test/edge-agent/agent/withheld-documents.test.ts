import { afterEach, describe, expect, it } from 'vitest'
import type { OpenMqttLine } from '../../../edge-agent/link/wire/broker-line.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/**
 * The agent receives no announcements. The versions in receipts and tokens (`pv`, `kv`) show it that newer documents
 * exist.
 */
describe('an agent from which newer documents are withheld', () => {
  let store: TestStore
  afterEach(() => store.stop())

  /** A broker line that looks open and delivers no message. */
  const deaf: OpenMqttLine = () =>
    Promise.resolve({ publish: () => undefined, subscribe: () => undefined, close: () => undefined })
  const open = async () => {
    store = await openStore({ parts: { openLine: deaf } })
    await store.until('everything is here', () => !store.agent.trust.isBehind)
  }
  const item = () => ({ ean: store.shop.products[0].ean, quantity: 1 })
  const atStation = (shown: { receipt: string } | { token: string }) =>
    store.authorize({ deviceId: store.shop.devices.pos_deactivator, protectionAction: 'deactivate_label', ...shown })
  async function changeKey(use: string): Promise<void> {
    const admin = await store.shop.cloud.key('admin', 'live')
    await store.shop.cloud.ok(admin, 'rotateSigningKey', { mode: 'test', use, revoke: true })
  }

  it('accepts tokens of a new key', async () => {
    await open()
    await changeKey('token')
    const { receipt, purchase } = await store.buy([item()])
    expect(await atStation({ receipt })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    await changeKey('token')
    const { transactionId } = (await store.buy([item()])).purchase
    const deviceId = store.shop.devices.pos_deactivator
    const { authorizationToken: token } = await store.shop.ok('verifySecurityTagDeactivation', {
      purchaseId: transactionId,
      deviceId,
    })
    expect(await atStation({ token })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(purchase.transactionId).not.toBe(transactionId)
  })

  it('fetches the policy that a receipt names', async () => {
    await open()
    const { storeId } = store.shop
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId })
    await store.shop.ok('updateProtectionPolicy', {
      storeId,
      policy: { ...policy, requiresManualOverrideAboveValue: 400 },
    })
    const { receipt } = await store.buy([item()])
    const before = store.agent.status().policyVersion ?? 0
    const tag = { epc: 'E28000000000000000000001' }
    const deviceId = store.shop.devices.pos_deactivator
    expect(await store.authorize({ deviceId, protectionAction: 'deactivate_label', receipt, ...tag })).toMatchObject({
      authorized: false,
    })
    await store.until('the policy', () => (store.agent.status().policyVersion ?? 0) > before, 40)
  })

  it('decides offline by the limits of a stale policy', async () => {
    await open()
    const { storeId } = store.shop
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId })
    store.network(false)
    await store.until('offline', async () => {
      await atStation({ receipt: 'nothing' })
      return !store.agent.link.isOnline
    })
    expect(store.agent.status().stage).toBe('fresh')
    const before = await store.buy([item()])
    await store.shop.ok('updateProtectionPolicy', {
      storeId,
      policy: { ...policy, requiresManualOverrideAboveValue: 400 },
    })
    const after = await store.buy([item()])
    await atStation({ receipt: before.receipt })
    expect(store.agent.status()).toMatchObject({ stage: 'fresh', isOvertaken: false })
    await atStation({ receipt: after.receipt })
    expect(store.agent.status()).toMatchObject({ stage: 'stale', isOvertaken: true })
    store.network(true)
    await store.until('everything is here', () => store.agent.link.isOnline && store.agent.status().stage === 'fresh')
    expect(store.agent.status().isOvertaken).toBe(false)
  })
})
