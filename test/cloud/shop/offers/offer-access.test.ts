import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'

const DAY_MS = 86_400_000

onEveryDatabase('operations on offers', (kind) => {
  let cloud: TestCloud
  let key: string
  let stores: string[]
  const at = (days: number) => new Date(cloud.platform.clock.wall() + days * DAY_MS).toISOString()
  const ok = (operation: string, body: Json) => cloud.ok(key, operation, body)
  const call = (operation: string, body: Json) => cloud.call(key, operation, body)
  const good = (fields: Json = {}): Json => ({
    storeIds: stores.slice(0, 2),
    title: 'Herbstwochen',
    validFrom: at(-1),
    validTo: at(7),
    products: [{ name: 'Regenschirm', price: 9.99, oldPrice: 14.99 }],
    ...fields,
  })
  const listed = async (id: string, of = key): Promise<Json> =>
    (await cloud.ok(of, 'getManagerOffers', { limit: 500 })).offers.find((o: Json) => o.id === id || o.groupId === id)

  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    key = await cloud.key('secret', 'live')
    stores = await liveStores(cloud, key, { count: 4 })
  })
  afterAll(async () => {
    expect(cloud.errors).toEqual([])
    await cloud.stop()
  })

  it('require GO for the account and each store, also with test keys', async () => {
    const poor = await cloud.key('secret', 'live', { account: `Poor ${kind}`, package: 'ASSIST' })
    const refusal = { status: 403, body: { requiredUpgrade: 'GO', currentPackage: 'ASSIST' } }
    expect(await cloud.call(poor, 'createOffer', good())).toMatchObject(refusal)
    const test = await cloud.key('secret', 'test', { account: `Poor ${kind}` })
    expect(await cloud.call(test, 'getManagerOffers', {})).toMatchObject(refusal)
    const [small] = await liveStores(cloud, key, { package: 'DISCOVER' })
    expect(await call('createOffer', good({ storeIds: [stores[0], small] }))).toMatchObject({
      status: 403,
      body: { currentPackage: 'DISCOVER' },
    })
  })

  it('are limited to the stores of a key and to its account', async () => {
    const made = await ok('createOffer', good())
    const alone = await ok('createOffer', good({ storeIds: [stores[0]] }))
    const bound = await cloud.key('secret', 'live', { storeIds: [stores[0] ?? ''] })
    expect(await listed(made.offerId, bound)).toMatchObject({ storeIds: [stores[0]], storeCount: 2 })
    expect(
      (await cloud.ok(bound, 'getManagerOffers', { limit: 500 })).offers.every((o: Json) => o.storeIds.length === 1),
    ).toBe(true)
    expect(await cloud.call(bound, 'updateOffer', { offerId: made.offerIds[0], title: 'Meins' })).toMatchObject({
      status: 403,
      body: { reason: 'offer_of_other_stores' },
    })
    expect((await cloud.call(bound, 'deleteOffer', { offerId: made.offerIds[1] })).status).toBe(404)
    expect((await cloud.call(bound, 'updateOffer', { offerId: alone.offerId, storeIds: stores })).status).toBe(404)
    await cloud.ok(bound, 'updateOffer', { offerId: alone.offerId, title: 'Meins' })
    const stranger = await cloud.key('secret', 'live', { account: `Stranger ${kind}`, package: 'PRIME' })
    const [theirs] = await liveStores(cloud, stranger)
    for (const [operation, body] of [
      ['updateOffer', { offerId: made.offerId, title: 'Meins' }],
      ['deleteOffer', { offerId: made.offerId }],
      ['cloneOffer', { offerId: made.groupId, targetStoreIds: [theirs] }],
      ['createOffer', good()],
    ] as const) {
      expect([operation, (await cloud.call(stranger, operation, body)).status]).toEqual([operation, 404])
    }
    expect((await cloud.ok(stranger, 'getManagerOffers', {})).total).toBe(0)
  })
})
