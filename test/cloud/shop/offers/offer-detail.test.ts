import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

const DAY_MS = 86_400_000
const EAN = '4012345678901'

onEveryDatabase('reading offers', (kind) => {
  let cloud: TestCloud
  let key: string
  let appKey: string
  let stores: string[]
  const at = (days: number) => new Date(cloud.platform.clock.wall() + days * DAY_MS).toISOString()
  const ok = (operation: string, body: Json, of = key) => cloud.ok(of, operation, body)
  const create = (fields: Json = {}) =>
    ok('createOffer', {
      storeIds: stores.slice(0, 2),
      title: 'Herbstwochen',
      validFrom: at(-1),
      validTo: at(7),
      products: [
        { ean: EAN, discountPrice: 10, originalPrice: 20 },
        { name: 'Regenschirm', price: 9.99 },
      ],
      ...fields,
    })
  const active = async (storeId: string, of = key): Promise<Json[]> =>
    (await ok('fetchActiveOffers', { storeId, limit: 100 }, of)).offers

  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    key = await cloud.key('secret', 'live')
    appKey = await cloud.key('publishable', 'live')
    stores = await liveStores(cloud, key, {
      count: 3,
      products: [{ ean: EAN, name: 'Wollschal', priceCent: 2_000 }],
    })
  })
  afterAll(async () => {
    expect(cloud.errors).toEqual([])
    await cloud.stop()
  })

  it('returns each store’s prices after priceAdjustments, for every id of the group', async () => {
    const [first, second, third] = stores as [string, string, string]
    const { offerId } = await create({ storeIds: [first] })
    const clone = await ok('cloneOffer', {
      offerId,
      targetStoreIds: [second, third],
      priceAdjustments: { [second]: { type: 'percentage', value: -5 }, [third]: { type: 'fixed', value: 10.5 } },
    })
    const { offer } = await ok('fetchOffer', { offerId: clone.clonedOfferId })
    expect(offer.products).toEqual([
      {
        ean: EAN,
        name: 'Wollschal',
        originalPrice: 20,
        discountPrice: 9.5,
        prices: [
          { storeId: second, originalPrice: 20, discountPrice: 9.5 },
          { storeId: third, discountPrice: 20.5 },
        ],
      },
      {
        name: 'Regenschirm',
        discountPrice: 9.49,
        prices: [
          { storeId: second, discountPrice: 9.49 },
          { storeId: third, discountPrice: 20.49 },
        ],
      },
    ])
    const { products, ...listed } = offer
    const { offers } = await ok('getManagerOffers', { limit: 500 })
    expect(offers).toContainEqual(listed)
    expect(products).toHaveLength(2)
    for (const id of [...clone.clonedOfferIds, clone.groupId])
      expect((await ok('fetchOffer', { offerId: id })).offer).toEqual(offer)
  })

  it('lists only active offers, also for publishable keys, at the price of the requested store', async () => {
    const [first, second] = stores as [string, string, string]
    const now = await create()
    const later = await create({ validFrom: at(1) })
    const over = await create({ validFrom: at(-9), validTo: at(-2) })
    for (const of of [key, appKey]) {
      const ids = (await active(first, of)).map(({ id }) => id)
      expect(ids).toContain(now.offerId)
      expect(ids).not.toContain(later.offerId)
      expect(ids).not.toContain(over.offerId)
    }
    const offer = (await active(second, appKey)).find(({ id }) => id === now.offerId)
    expect(offer?.products[0].prices).toEqual([{ storeId: second, originalPrice: 20, discountPrice: 10 }])
    await ok('updateOffer', { offerId: now.offerId, storeIds: [first] })
    expect((await active(second)).map(({ id }) => id)).not.toContain(now.offerId)
    await ok('deleteOffer', { offerId: now.offerId })
    expect((await active(first)).map(({ id }) => id)).not.toContain(now.offerId)
  })

  it('lists each active offer once over all pages', async () => {
    const [, , third] = stores as [string, string, string]
    for (let i = 0; i < 3; i++) await create({ storeIds: [third] })
    const all = await active(third)
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await ok('fetchActiveOffers', { storeId: third, limit: 2, ...(cursor && { cursor }) })
      expect(page.total).toBe(all.length)
      seen.push(...page.offers.map(({ id }: Json) => id))
      cursor = page.nextCursor
    } while (cursor && seen.length <= all.length)
    expect(seen).toEqual(all.map(({ id }) => id))
  })

  it('requires a store if an offer has more than 50,000 prices', async () => {
    const many = await liveStores(cloud, key, { count: 101 })
    const products = Array.from({ length: 500 }, (_, i) => ({ name: `Ding ${i}`, price: 9.99 }))
    const { offerId } = await create({ storeIds: many, products })
    expect(await cloud.call(key, 'fetchOffer', { offerId })).toMatchObject({
      status: 400,
      body: { details: [{ path: 'storeId' }] },
    })
    const { offer } = await ok('fetchOffer', { offerId, storeId: many[1] ?? '' })
    expect(offer.storeIds).toEqual([many[1]])
    expect(offer.products).toHaveLength(500)
    expect(offer.products[0].prices).toEqual([{ storeId: many[1], discountPrice: 9.99 }])
    const [other = ''] = stores
    expect((await cloud.call(key, 'fetchOffer', { offerId, storeId: other })).status).toBe(404)
  })

  it('shows a key only its own stores, and no offer of another account', async () => {
    const [first, second] = stores as [string, string, string]
    const { offerId } = await create()
    const bound = await cloud.key('secret', 'live', { storeIds: [second] })
    const { offer } = await ok('fetchOffer', { offerId }, bound)
    expect(offer.storeIds).toEqual([second])
    expect(JSON.stringify(offer.products)).not.toContain(first)
    const other = await cloud.key('secret', 'live', { storeIds: [stores[2] ?? ''] })
    const foreign = await cloud.key('secret', 'live', { account: `Other ${kind}` })
    for (const of of [other, foreign]) {
      expect((await cloud.call(of, 'fetchOffer', { offerId })).status).toBe(404)
      expect((await cloud.call(of, 'fetchActiveOffers', { storeId: first })).status).toBe(404)
    }
    expect((await cloud.call(appKey, 'fetchOffer', { offerId })).status).toBe(403)
  })
})

onEveryDatabase('reading offers in the sandbox', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  it('returns mock offers with products of the sandbox catalogue', async () => {
    const { storeId } = shop
    const { offers, total, _sandbox } = await shop.ok('fetchActiveOffers', { storeId })
    expect([offers.length, total, _sandbox]).toEqual([1, 1, true])
    expect(offers[0].products).toHaveLength(offers[0].productCount)
    for (const { ean, prices } of offers[0].products) {
      const product = await shop.ok('fetchProduct', { storeId, ean })
      expect(prices).toEqual([{ storeId, originalPrice: product.price, discountPrice: expect.any(Number) }])
      expect(prices[0].discountPrice).toBeLessThan(product.price)
    }
    const { offer } = await shop.ok('fetchOffer', { offerId: offers[0].id })
    expect(offer.storeIds).toHaveLength(2)
    expect(offer.products[0].prices).toHaveLength(2)
    const app = await shop.cloud.key('publishable')
    expect((await shop.cloud.ok(app, 'fetchActiveOffers', { storeId })).offers).toEqual(offers)
  })
})
