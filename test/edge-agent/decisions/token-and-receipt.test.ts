import { afterEach, describe, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

/** A paid unit is released once, by its receipt or a token, in any order, even if the network fails meanwhile. */

let store: TestStore
afterEach(() => store.stop())

const station = () => store.shop.devices[LANES.station]
const product = () => store.shop.products.toSorted((a, b) => a.price - b.price)[0]
const buy = (quantity: number) => store.buy([{ ean: product().ean, quantity }])
const present = (presented: Json) =>
  store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', ...presented })
const tokenOf = async ({ transactionId }: Json) =>
  (
    await store.drive(
      store.shop.ok('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId: station() }),
    )
  ).authorizationToken as string
const journalSent = () =>
  store.until('the report', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
/** Waits until the agent has received the rights of the token. */
const rightsReceived = () =>
  store.until('the deny list', () => Number(store.agent.ledger.metadata.get('deny_seq') ?? 0) > 0, 20_000)
const exceptions = async () =>
  ((await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId }))).exceptions as Json[]).map(
    ({ kind }) => kind as string,
  )

async function network(isUp: boolean): Promise<void> {
  store.network(isUp)
  await store.until(isUp ? 'online' : 'offline', () => store.agent.link.isOnline === isUp)
}

describe('a purchase released online', () => {
  it.each([1, 2, 3])('is not released again offline by the receipt, of %i units', async (quantity) => {
    store = await openStore()
    const { receipt } = await buy(quantity)
    for (let n = 0; n < quantity; n++)
      expect(await present({ receipt })).toMatchObject({ authorized: true, outcome: 'confirmed', offline: false })
    await journalSent()
    await store.world.advance(60_000)
    await network(false)
    for (let n = 0; n < 2; n++)
      expect(await present({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
    expect(store.pulses('station')).toBe(quantity)
  })

  it('with one unit left is released offline once more', async () => {
    store = await openStore()
    const { receipt } = await buy(3)
    for (let n = 0; n < 2; n++) expect(await present({ receipt })).toMatchObject({ authorized: true, offline: false })
    await journalSent()
    await network(false)
    expect(await present({ receipt })).toMatchObject({ authorized: true, offline: true })
    expect(await present({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(3)
    await network(true)
    await journalSent()
    expect(await exceptions()).toEqual([])
  })
})

describe('a program’s token', () => {
  it.each([
    ['the network works', () => Promise.resolve()],
    ['the network fails after the report', () => journalSent().then(() => network(false))],
    ['the network fails before', undefined],
  ] as const)('that was redeemed uses up the receipt: %s', async (_, between) => {
    store = await openStore()
    const { purchase, receipt } = await buy(2)
    const token = await tokenOf(purchase)
    await rightsReceived()
    if (!between) await network(false)
    for (let n = 0; n < 2; n++)
      expect(await present({ token })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    await between?.()
    expect(await present({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    // The token expired long ago; the receipt is still valid.
    await network(false)
    store.world.sleep(20 * 60_000)
    await store.world.advance(1_000)
    expect(await present({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(2)
    await network(true)
    await journalSent()
    expect(await exceptions()).toEqual([])
  })

  it('and the receipt use up the same units, also offline', async () => {
    store = await openStore()
    const { purchase, receipt } = await buy(2)
    const token = await tokenOf(purchase)
    await rightsReceived()
    await network(false)
    expect(await present({ receipt })).toMatchObject({ authorized: true, offline: true })
    expect(await present({ token })).toMatchObject({ authorized: true })
    for (const presented of [{ token }, { receipt }])
      expect(await present(presented)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(2)
    await network(true)
    await journalSent()
    expect(await exceptions()).toEqual([])
  })

  it('leaves the receipt unused if the device failed', async () => {
    store = await openStore()
    const { purchase, receipt } = await buy(1)
    const token = await tokenOf(purchase)
    await rightsReceived()
    await network(false)
    store.boards.station.stick(0, false)
    expect(await present({ token })).toMatchObject({ authorized: true, outcome: 'failed' })
    store.boards.station.stick(0, null)
    expect(await present({ receipt })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(await present({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  })

  it('uses up the receipt also if the agent learns its rights only after the redemption', async () => {
    store = await openStore()
    const { purchase, receipt } = await buy(1)
    await network(false)
    const token = await tokenOf(purchase)
    expect(await present({ token })).toMatchObject({ authorized: true, offline: true })
    await network(true)
    await journalSent()
    await rightsReceived()
    await network(false)
    store.world.sleep(20 * 60_000)
    await store.world.advance(1_000)
    expect(await present({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('station')).toBe(1)
  })
})

describe('a named tag', () => {
  const tagId = 'HT-1'
  const tokenOfTag = async () =>
    (
      await store.drive(
        store.shop.ok('verifyProtectedItem', { deviceId: station(), protectionAction: 'deactivate_label', tagId }),
      )
    ).authorizationToken as string

  /** The agent has gone offline before it learned to which right of the receipt the token belongs. */
  async function soldWithToken() {
    store = await openStore()
    const { storeId } = store.shop
    const { ean } = product()
    await store.drive(store.shop.ok('registerProtectedItems', { storeId, items: [{ tagId, ean }] }))
    const { receipt } = await store.buy([{ ean, quantity: 1, tagIds: [tagId] }])
    await store.until('the replica', () => store.agent.items.find('tagId', tagId)?.status === 'paid')
    await network(false)
    return { receipt, token: await tokenOfTag() }
  }

  it.each([
    ['token', 'receipt'],
    ['receipt', 'token'],
  ] as const)('that a %s released is not released again by a %s', async (first, second) => {
    const sold = await soldWithToken()
    expect(await present({ tagId, [first]: sold[first] })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    await store.world.advance(5_000)
    for (const name of [second, first])
      expect(await present({ tagId, [name]: sold[name] })).toMatchObject({
        authorized: false,
        reason: 'already_redeemed',
      })
    expect(store.pulses('station')).toBe(1)
  })

  it('is tried again by the other one after a failure', async () => {
    const sold = await soldWithToken()
    store.boards.station.stick(0, false)
    expect(await present({ tagId, token: sold.token })).toMatchObject({ authorized: true, outcome: 'failed' })
    store.boards.station.stick(0, null)
    expect(await present({ tagId, receipt: sold.receipt })).toMatchObject({ authorized: true, outcome: 'confirmed' })
  })
})

it('requires staff for goods that only the shopper’s app has priced, also offline', async () => {
  store = await openStore()
  const key = await store.shop.cloud.key('publishable')
  const call = (operation: string, body: Json) => store.drive(store.shop.cloud.ok(key, operation, body))
  const { sessionId } = await call('checkIn', { storeId: store.shop.storeId })
  const { transactionId } = await call('startCheckout', {
    sessionId,
    items: [{ name: 'x', priceUnit: 1, quantity: 5, vat: 19 }],
  })
  await store.drive(store.shop.ok('completeTestCheckout', { transactionId }))
  const { url: receipt } = await store.drive(store.shop.ok('generateReceiptQR', { purchaseId: transactionId }))
  const gate = { deviceId: store.shop.devices[LANES.gate], protectionAction: 'authorize_exit' }
  for (const isUp of [true, false]) {
    if (!isUp) await network(false)
    expect(await present({ receipt })).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
      offline: !isUp,
    })
    expect(await store.authorize({ ...gate, receipt })).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
    })
  }
})
