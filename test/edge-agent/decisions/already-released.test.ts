import { afterEach, expect, it } from 'vitest'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

let store: TestStore
afterEach(() => store.stop())
const { detach, leave, offline, synced, product } = atLanes(() => store)

/** Buys one named item. */
async function buyItem(): Promise<{ epc: string; receipt: string }> {
  const { epc } = await store.drive(store.shop.newItem(product()))
  const { receipt } = await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
  await store.until('the replica', () => store.agent.items.find('epc', epc)?.status === 'paid')
  return { epc, receipt }
}
const setStatus = (epc: string, itemStatus: string) =>
  store.drive(store.shop.ok('updateItemStatus', { storeId: store.shop.storeId, epc, itemStatus }))
async function exceptionKinds(): Promise<string[]> {
  await synced()
  const { exceptions } = await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId }))
  return (exceptions as Json[]).map(({ kind }) => kind as string)
}

it('makes the cloud raise an exception if its goods were on hold, and the agent could not know', async () => {
  store = await openStore()
  const { epc, receipt } = await buyItem()
  await offline()
  await setStatus(epc, 'exception_hold')
  expect(await leave({ receipt })).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
  store.network(true)
  expect(await exceptionKinds()).toContain('released_on_hold')
})

it('raises no exception if the hold came later, or had ended', async () => {
  store = await openStore()
  const { epc, receipt } = await buyItem()
  await setStatus(epc, 'exception_hold')
  await setStatus(epc, 'paid')
  await store.until('the replica', () => store.agent.items.find('epc', epc)?.status === 'paid')
  await offline()
  store.world.sleep(2_000)
  expect(await leave({ receipt })).toMatchObject({ authorized: true, offline: true })
  store.world.sleep(2_000)
  await setStatus(epc, 'exception_hold')
  store.network(true)
  expect(await exceptionKinds()).not.toContain('released_on_hold')
})

it('refuses a token for goods that are on hold now, with and without the tag', async () => {
  store = await openStore()
  const { epc } = await buyItem()
  const [deviceId, protectionAction] = [store.shop.devices.self_checkout_detacher, 'detach_hard_tag']
  const issued = await store.drive(store.shop.ok('verifyProtectedItem', { deviceId, protectionAction, epc }))
  const { authorizationToken } = issued
  expect(authorizationToken).toEqual(expect.any(String))
  await setStatus(epc, 'exception_hold')
  await store.until('the hold', () => store.agent.items.find('epc', epc)?.status === 'exception_hold')
  await store.until('the denial', () => store.agent.ledger.claims.isDenied(issued.replayProtectedNonce))
  await offline()
  for (const tag of [{}, { epc }])
    expect(await detach({ token: authorizationToken, ...tag })).toMatchObject({
      authorized: false,
      reason: 'token_revoked',
    })
})

it('releases offline what another device leased and did not use, once the lease was revoked', async () => {
  store = await openStore()
  const { epc, receipt } = await buyItem()
  const { storeId } = store.shop
  const ok = (operation: string, body: Json): Promise<Json> => store.drive(store.shop.ok(operation, body))
  const { deviceId } = await ok('registerDevice', {
    storeId,
    deviceType: 'self_checkout_detacher',
    name: 'Ohne Agent',
    workflowType: 'staff_assisted',
  })
  const request = { deviceId, protectionAction: 'detach_hard_tag', epc }
  const denials = () => store.agent.trust.heldVersions().deny?.[1] ?? 0
  const atFirst = denials()
  const { replayProtectedNonce } = await ok('verifyProtectedItem', request)
  await store.until('the lease', () => denials() > atFirst)
  await offline()
  // While the lease lives, the other device may release the unit.
  expect(await detach({ receipt, epc })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  store.network(true)
  await store.until('online', () => store.agent.link.isOnline)
  const before = denials()
  await ok('revokeProtectionAuthorization', { replayProtectedNonce })
  await store.until('the end of the lease', () => denials() > before)
  await offline()
  expect(await detach({ receipt, epc })).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
})

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
