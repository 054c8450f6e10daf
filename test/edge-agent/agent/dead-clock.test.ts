import { afterEach, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

/** Tests an agent on a machine without a battery clock that restarts offline. */

let store: TestStore
afterEach(() => store.stop())

const product = () => store.shop.products.toSorted((a, b) => a.price - b.price)[0]
const buy = () => store.buy([{ ean: product().ean, quantity: 1 }])
const at = (lane: keyof typeof LANES, more: Json, headers?: Record<string, string>) =>
  store.authorize(
    {
      deviceId: store.shop.devices[LANES[lane]],
      protectionAction: lane === 'gate' ? 'authorize_exit' : 'deactivate_label',
      ...more,
    },
    headers,
  )
/** Cuts the agent off from the cloud, runs `sold`, and then cuts the power. */
async function powerCut<T>(sold: () => Promise<T>): Promise<T> {
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
  await store.world.advance(5 * 60_000)
  const value = await sold()
  await store.restart(() => {
    store.world.setWall(store.world.clock.wall() - 3_600_000)
    store.world.reboot()
  })
  expect(store.agent.status()).toMatchObject({ clock: 'none', online: false })
  return value
}

it('without trusted time, receipts since the last cloud contact count with staff present, and elsewhere the reason is the time', async () => {
  store = await openStore()
  const { operatorId } = await store.drive(
    store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }),
  )
  await store.until('known', () => store.agent.trust.policy?.operators.length === 1, 20_000)
  const [first, second, token] = await powerCut(async () => {
    const [a, b, c] = [await buy(), await buy(), await buy()]
    const { authorizationToken } = await store.shop.ok('verifySecurityTagDeactivation', {
      purchaseId: c.purchase.transactionId,
      deviceId: store.shop.devices[LANES.station],
    })
    return [a.receipt, b.receipt, authorizationToken as string] as const
  })
  const { body } = await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: '471108' } })
  const staff = { 'x-untag-operator': body.session as string }
  expect(await at('gate', { receipt: first })).toMatchObject({ authorized: false, reason: 'clock_untrusted' })
  for (const shown of [{ receipt: second }, { token }]) {
    expect(await at('station', shown)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
    expect(await at('station', shown, staff)).toMatchObject({ authorized: true, offline: true })
    expect(await at('station', shown, staff)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  }
})

it('without trusted time, receipts that ended before the last cloud contact are expired', async () => {
  store = await openStore()
  const { receipt } = await buy()
  store.world.sleep(25 * 3_600_000)
  await store.world.advance(60_000)
  await store.until('the time', () => store.agent.clock.now().trust === 'signed')
  await powerCut(async () => undefined)
  expect(await at('station', { receipt })).toMatchObject({ authorized: false, reason: 'token_expired' })
})

it('accepts a new receipt although its clock is some seconds behind after days offline', async () => {
  store = await openStore()
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
  const { now } = store.agent.clock
  // A clock error of 50 ppm adds up to 13 s in 72 h.
  Object.assign(store.agent.clock, { now: () => ({ ...now(), nowMs: now().nowMs - 13_000 }) })
  const { receipt } = await buy()
  expect(await at('station', { receipt })).toMatchObject({ authorized: true, offline: true })
})
