import { afterEach, expect, it } from 'vitest'
import { openStore, type TestStore } from '../../support/store.ts'

let store: TestStore
afterEach(() => store.stop())

it('denies a receipt that it released offline, even before the cloud has received the events', async () => {
  store = await openStore()
  const [product] = store.shop.products
  const { receipt } = await store.buy([{ ean: product.ean, quantity: 1 }])
  const request = { deviceId: store.shop.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt }
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
  expect(await store.authorize(request)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
  // The cloud does not answer the report, as if its database were slow.
  let fail = (): void => {}
  const hanging = new Promise<boolean>((resolve) => (fail = () => resolve(false)))
  store.onFetch((url) => (url.endsWith('/reportProtectionEvents') ? hanging : true))
  store.network(true)
  await store.until('online', () => store.agent.link.isOnline)
  for (let n = 0; n < 2; n++)
    expect(await store.authorize(request)).toMatchObject({
      authorized: false,
      offline: false,
      reason: 'already_redeemed',
    })
  expect(store.pulses('station')).toBe(1)
  fail()
})
