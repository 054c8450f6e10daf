import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json, TestCloud } from '../../../support/cloud.ts'
import { startTestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'

const COFFEE = { ean: '4152894103278', name: 'Filterkaffee', priceCent: 899 }
const CHOCOLATE = { ean: '4149563104889', name: 'Zartbitterschokolade', priceCent: 229 }
const DAY_MS = 86_400_000

onEveryDatabase('offers', (kind) => {
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
  const rows = (groupId: string) =>
    cloud.db.database.reads
      .selectFrom('offer')
      .selectAll()
      .where('group_id', '=', groupId)
      .orderBy('branch_no')
      .execute()
  const lists = async (groupId: string) => {
    const { reads } = cloud.db.database
    const own = await reads
      .selectFrom('offer')
      .innerJoin('offer_list', 'offer_list.list_id', 'offer.list_id')
      .select(['store_id', 'products'])
      .where('group_id', '=', groupId)
      // A store that was removed and added again also has its earlier document.
      .where('is_active', '=', 1)
      .execute()
    return Object.fromEntries(own.map((row) => [row.store_id, JSON.parse(row.products) as Json]))
  }
  const published = async (groupId: string) => {
    const events = await cloud.db.database.reads
      .selectFrom('outbox_event')
      .selectAll()
      .where('type', '=', 'offer.published')
      .execute()
    return events
      .map((e) => ({ tenant: e.tenant, storeId: e.store_id, ...(JSON.parse(e.data) as Json) }))
      .filter((e) => e.groupId === groupId)
  }
  const errorOf = async (operation: string, body: Json) => {
    const answer = await call(operation, body)
    return [answer.status, ...(answer.body.details ?? []).map((d: Json) => d.path)]
  }

  beforeAll(async () => {
    cloud = await startTestCloud(kind)
    key = await cloud.key('secret', 'live')
    stores = await liveStores(cloud, key, { count: 4, products: [COFFEE, CHOCOLATE] })
  })
  afterAll(async () => {
    expect(cloud.errors).toEqual([])
    await cloud.stop()
  })

  it('createOffer creates one document per store, emits an event for each, and is listed once', async () => {
    const made = await ok(
      'createOffer',
      good({
        storeIds: [...stores, stores[0]],
        tags: ['herbst'],
        merchantColor: 'aabbcc',
        quantity: 5,
        imageUrl: 'https://shop.example/a.png',
      }),
    )
    expect(made).toMatchObject({
      success: true,
      storeCount: 4,
      scope: 'MULTI_STORE',
      status: 'ACTIVE',
      discountPercent: 33,
    })
    expect(made).not.toHaveProperty('_sandbox')
    expect(made.offerIds).toHaveLength(4)
    expect(made.offerIds[0]).toBe(made.offerId)
    const branches = await rows(made.groupId)
    expect(branches.map((row) => [row.offer_id, row.store_id])).toEqual(
      made.offerIds.map((id: string, i: number) => [id, stores[i]]),
    )
    const events = await published(made.groupId)
    expect(events.map((e) => e.offerId).sort()).toEqual([...made.offerIds].sort())
    expect(events.every((e) => branches.some((row) => row.offer_id === e.offerId && row.store_id === e.storeId))).toBe(
      true,
    )
    expect(await listed(made.offerId)).toEqual({
      id: made.offerId,
      groupId: made.groupId,
      title: 'Herbstwochen',
      description: expect.stringMatching(
        /^Regenschirm, 33 % günstiger\. Gültig vom \d\d\.\d\d\.\d{4} bis \d\d\.\d\d\.\d{4}\.$/,
      ),
      storeIds: stores,
      validFrom: expect.any(String),
      validTo: expect.any(String),
      merchantColor: 'AABBCC',
      tags: ['herbst'],
      imageUrl: 'https://shop.example/a.png',
      quantity: 5,
      productCount: 1,
      isActive: true,
      status: 'ACTIVE',
      discountPercent: 33,
      scope: 'MULTI_STORE',
      storeCount: 4,
      clickCount: 0,
      favoritedCount: 0,
      createdAt: made.createdAt,
    })
  })

  it('an offer in one store has no groupId in lists, the default color, and accepts validUntil', async () => {
    const { validTo, ...rest } = good({ storeIds: [stores[0]] })
    const made = await ok('createOffer', { ...rest, validUntil: validTo, description: '' })
    expect(made).toMatchObject({ scope: 'LOCAL', storeCount: 1, groupId: expect.any(String) })
    expect(await listed(made.offerId)).toMatchObject({ groupId: null, merchantColor: 'FF6600', validTo })
    expect((await call('createOffer', good({ validUntil: at(8) }))).status).toBe(400)
  })

  it('lists those that run in some days, at most 50 in a page', async () => {
    const ids: string[] = []
    for (const [from, to] of [
      [30, 40],
      [41, 50],
    ] as const)
      ids.push((await ok('createOffer', good({ validFrom: at(from), validTo: at(to) }))).groupId)
    const day = (days: number) => at(days).slice(0, 10)
    const within = async (from: number, to: number) =>
      (await ok('getManagerOffers', { from: day(from), to: day(to), limit: 500 })).offers
        .map((offer: Json) => ids.indexOf(offer.groupId))
        .filter((n: number) => n >= 0)
        .toSorted()
    expect(await within(20, 28)).toEqual([])
    expect(await within(35, 36)).toEqual([0])
    expect(await within(45, 60)).toEqual([1])
    expect(await within(39, 43)).toEqual([0, 1])
  })

  it('rejects values out of range, names the field, and changes nothing', async () => {
    const before = (await ok('getManagerOffers', {})).total
    const product = (fields: Json) => good({ products: [fields] })
    const cases: [Json, string][] = [
      [good({ title: 'ab' }), 'title'],
      [good({ title: 'x'.repeat(81) }), 'title'],
      [good({ storeIds: [] }), 'storeIds'],
      [good({ storeIds: Array.from({ length: 1_001 }, (_, i) => `st_${i}`) }), 'storeIds'],
      [good({ products: [] }), 'products'],
      [good({ products: Array.from({ length: 501 }, () => ({ name: 'x', price: 1 })) }), 'products'],
      [good({ merchantColor: '#FF6600' }), 'merchantColor'],
      [good({ validTo: at(-1) }), 'validTo'],
      [good({ validTo: at(-2) }), 'validTo'],
      [good({ validFrom: 'tomorrow' }), 'validFrom'],
      [good({ validTo: undefined }), 'validTo'],
      [good({ imageUrl: 'javascript:alert(1)' }), 'imageUrl'],
      [good({ quantity: 0 }), 'quantity'],
      [product({ price: 1 }), 'products[0].name'],
      [product({ name: 'x' }), 'products[0].price'],
      [product({ name: 'x', price: 1.999 }), 'products[0].price'],
      [product({ name: 'x', price: 3, oldPrice: 2 }), 'products[0].price'],
      [product({ name: 'x', price: 3, discountPercentage: 10 }), 'products[0].discountPercentage'],
      [product({ name: 'x', oldPrice: 3, discountPercentage: 101 }), 'products[0].discountPercentage'],
      [product({ name: 'x', price: 3, discountPrice: 2 }), 'products[0].price'],
      [product({ ean: '0123456789012', discountPrice: 1 }), 'products[0].ean'],
      [product({ ean: COFFEE.ean }), 'products[0].discountPrice'],
      [
        good({
          products: [
            { ean: COFFEE.ean, discountPrice: 1 },
            { ean: COFFEE.ean, discountPrice: 2 },
          ],
        }),
        'products[1].ean',
      ],
      [good({ nonsense: 1 }), 'nonsense'],
    ]
    for (const [body, path] of cases) expect(await errorOf('createOffer', body)).toEqual([400, path])
    expect((await call('createOffer', good({ storeIds: [stores[0], 'st_x'] }))).status).toBe(404)
    expect((await ok('getManagerOffers', {})).total).toBe(before)
  })

  it('accepts EAN products that every store sells, and names those that a store does not sell', async () => {
    const [poor = ''] = await liveStores(cloud, key, { products: [CHOCOLATE] })
    const answer = await call(
      'createOffer',
      good({
        storeIds: [stores[0], poor],
        products: [
          { ean: CHOCOLATE.ean, discountPrice: 1 },
          { ean: COFFEE.ean, discountPrice: 5, originalPrice: 8.99 },
        ],
      }),
    )
    expect(answer).toMatchObject({
      status: 400,
      body: { details: [{ path: 'products[1].ean', code: 'product_unknown' }] },
    })
    expect(answer.body.error).toContain(COFFEE.ean)
    expect(answer.body.error).toContain(poor)
    expect(answer.body.error).not.toContain(stores[0])
    const made = await ok(
      'createOffer',
      good({
        storeIds: [stores[0], poor],
        products: [{ ean: CHOCOLATE.ean, discountPrice: 1.99, originalPrice: 2.29 }],
      }),
    )
    expect((await lists(made.groupId))[poor]).toEqual([
      { name: CHOCOLATE.name, priceCent: 199, oldPriceCent: 229, ean: CHOCOLATE.ean },
    ])
    expect(
      await errorOf('updateOffer', { offerId: made.offerId, products: [{ ean: COFFEE.ean, discountPrice: 5 }] }),
    ).toEqual([400, 'products[0].ean'])
    const coffee = await ok(
      'createOffer',
      good({ storeIds: [stores[0]], products: [{ ean: COFFEE.ean, discountPrice: 5 }] }),
    )
    expect(await errorOf('updateOffer', { offerId: coffee.offerId, storeIds: [stores[0], poor] })).toEqual([
      400,
      'storeIds',
    ])
    expect(await errorOf('cloneOffer', { offerId: coffee.offerId, targetStoreIds: [poor] })).toEqual([
      400,
      'targetStoreIds',
    ])
  })

  it('calculates the price from discountPercentage, half up to a cent', async () => {
    const made = await ok(
      'createOffer',
      good({
        products: [
          { name: 'a', oldPrice: 0.5, discountPercentage: 25 },
          { name: 'b', price: 9, oldPrice: 10, discountPercentage: 33.3333 },
        ],
      }),
    )
    expect((await lists(made.groupId))[stores[0] ?? '']).toMatchObject([{ priceCent: 38 }, { priceCent: 667 }])
    expect(made.discountPercent).toBe(33)
  })

  it('updateOffer changes all branches, adds and removes stores, and accepts any id of the group', async () => {
    const made = await ok('createOffer', good({ storeIds: stores.slice(0, 3) }))
    const answer = await ok('updateOffer', {
      offerId: made.offerIds[1],
      title: 'Winterwochen',
      storeIds: [stores[3], stores[1], stores[0]],
      tags: ['x'],
    })
    expect(answer).toEqual({
      success: true,
      offerId: made.offerIds[1],
      updatedFields: ['title', 'storeIds', 'tags'],
      siblingUpdates: 1,
      addedStores: [stores[3]],
      removedStores: [stores[2]],
    })
    const branches = await rows(made.groupId)
    expect(branches.map((row) => [row.store_id, row.is_active])).toEqual([
      [stores[0], 1],
      [stores[1], 1],
      [stores[2], 0],
      [stores[3], 1],
    ])
    expect(await listed(made.offerId)).toMatchObject({
      title: 'Winterwochen',
      storeIds: [stores[0], stores[1], stores[3]],
      storeCount: 3,
      tags: ['x'],
    })
    expect((await published(made.groupId)).filter((e) => e.storeId === stores[3])).toEqual([
      {
        tenant: expect.stringMatching(/\.live$/),
        offerId: branches[3]?.offer_id,
        groupId: made.groupId,
        storeId: stores[3],
      },
    ])
    expect(await published(made.groupId)).toHaveLength(4)

    // Updates by the id of the removed document, of the new document, and of the group.
    expect(
      await ok('updateOffer', {
        offerId: made.offerIds[2],
        products: [
          { name: 'Schal', price: 5 },
          { name: 'Hut', price: 15, oldPrice: 20 },
        ],
      }),
    ).toMatchObject({ siblingUpdates: 3, addedStores: [] })
    expect(await listed(made.offerId)).toMatchObject({
      productCount: 2,
      discountPercent: 25,
      description: expect.stringContaining('Schal und Hut, bis zu 25 % günstiger'),
    })
    expect(await ok('updateOffer', { id: branches[3]?.offer_id, description: 'Von Hand' })).toMatchObject({
      updatedFields: ['description'],
      siblingUpdates: 2,
    })
    expect(await ok('updateOffer', { offerId: made.groupId, validUntil: at(9) })).toMatchObject({
      updatedFields: ['validTo'],
    })
    expect(await listed(made.offerId)).toMatchObject({ description: 'Von Hand' })
    expect(await ok('updateOffer', { offerId: made.offerId })).toMatchObject({ updatedFields: [], siblingUpdates: 0 })
    expect(await ok('updateOffer', { offerId: made.offerId, storeIds: [stores[2]] })).toMatchObject({
      addedStores: [stores[2]],
      removedStores: [stores[0], stores[1], stores[3]],
    })
    expect(await listed(made.offerId)).toMatchObject({ id: made.offerId, groupId: null, scope: 'LOCAL' })
  })

  it('updateOffer accepts unchanged system fields and rejects others', async () => {
    const made = await ok('createOffer', good())
    const { id, ...offer } = await listed(made.offerId)
    expect(await ok('updateOffer', { ...offer, offerId: id, title: 'Gleich' })).toMatchObject({
      siblingUpdates: 1,
      addedStores: [],
      removedStores: [],
    })
    for (const [field, value] of Object.entries({
      status: 'ARCHIVED',
      isActive: false,
      discountPercent: 1,
      storeCount: 9,
      clickCount: 5,
      groupId: 'grp_x',
      createdAt: at(0),
      offerIds: [id],
    })) {
      expect(await errorOf('updateOffer', { offerId: id, [field]: value })).toEqual([400, field])
    }
    expect(await errorOf('updateOffer', { offerId: id, validTo: at(-2) })).toEqual([400, 'validTo'])
    expect(await errorOf('updateOffer', { offerId: id, validFrom: at(30) })).toEqual([400, 'validFrom'])
    expect(await errorOf('updateOffer', { title: 'Wer denn?' })).toEqual([400, 'offerId'])
    expect((await call('updateOffer', { offerId: id, id: 'off_x' })).status).toBe(400)
    expect((await call('updateOffer', { offerId: id, storeIds: ['st_x'] })).status).toBe(404)
  })

  it('new dates determine the status again', async () => {
    const made = await ok('createOffer', good({ validFrom: at(1) }))
    expect(made.status).toBe('DRAFT')
    expect(await published(made.groupId)).toEqual([])
    await ok('updateOffer', { offerId: made.offerId, validFrom: at(-1) })
    expect(await listed(made.offerId)).toMatchObject({ status: 'ACTIVE', isActive: true })
    expect(await published(made.groupId)).toHaveLength(2)
    await ok('updateOffer', { offerId: made.offerId, title: 'Noch immer' })
    await ok('updateOffer', { offerId: made.offerId, validFrom: at(-3), validTo: at(-2) })
    expect(await listed(made.offerId)).toMatchObject({ status: 'EXPIRED', isActive: false })
    expect(await published(made.groupId)).toHaveLength(2)
    await ok('updateOffer', { offerId: made.offerId, validTo: at(2) })
    expect(await published(made.groupId)).toHaveLength(4)
  })

  it('a document of a removed branch returns the offer’s current prices', async () => {
    const [first, second, third] = stores as [string, string, string]
    const made = await ok('createOffer', good({ storeIds: [first, second] }))
    await ok('updateOffer', { offerId: made.offerId, storeIds: [second] })
    await ok('updateOffer', {
      offerId: made.offerId,
      products: [
        { name: 'Regenschirm', price: 7.49, oldPrice: 14.99 },
        { name: 'Mütze', price: 5 },
      ],
    })
    await ok('updateOffer', { offerId: made.offerId, storeIds: [second, first, third], validTo: at(8) })
    const branches = (await rows(made.groupId)).filter((row) => row.is_active === 1)
    expect(new Set(branches.map((row) => row.list_id)).size).toBe(1)
    const shown = await listed(made.offerId)
    expect(shown).toMatchObject({ productCount: 2, discountPercent: 50 })
    expect(shown.description).toMatch(/^Regenschirm und Mütze, bis zu 50 % günstiger/)
    const clone = await ok('cloneOffer', { offerId: made.offerId, targetStoreIds: [third] })
    expect((await lists(clone.groupId))[third].map((p: Json) => p.priceCent)).toEqual([749, 500])
  })

  it('deleteOffer deletes every document and price, by any id', async () => {
    const made = await ok('createOffer', good({ products: [{ ean: COFFEE.ean, discountPrice: 1 }] }))
    expect(await ok('deleteOffer', { offerId: made.offerIds[1] })).toEqual({
      success: true,
      offerId: made.offerIds[1],
      deletedCount: 2,
    })
    expect(await rows(made.groupId)).toEqual([])
    expect(await listed(made.offerId)).toBeUndefined()
    const { reads } = cloud.db.database
    const unused = await reads
      .selectFrom('offer_list')
      .leftJoin('offer', 'offer.list_id', 'offer_list.list_id')
      .select('offer_list.list_id')
      .where('offer_id', 'is', null)
      .execute()
    expect(unused).toEqual([])
    for (const operation of ['deleteOffer', 'updateOffer'])
      expect((await call(operation, { offerId: made.offerId })).status).toBe(404)
    expect((await call('cloneOffer', { offerId: made.offerId, targetStoreIds: stores })).status).toBe(404)
  })

  it('cloneOffer makes at most 20,000 own prices', async () => {
    const products = Array.from({ length: 500 }, (_, i) => ({ name: `p${i}`, price: 1 }))
    const { offerId } = await ok('createOffer', good({ storeIds: [stores[0]], products }))
    const targetStoreIds = await liveStores(cloud, key, { count: 41 })
    const adjusting = (count: number) =>
      Object.fromEntries(targetStoreIds.map((id, i) => [id, { type: 'percentage', value: (i % count) + 1 }]))
    const clone = (count: number) => ({ offerId, targetStoreIds, priceAdjustments: adjusting(count) })
    expect(await errorOf('cloneOffer', clone(41))).toEqual([400, 'priceAdjustments'])
    expect((await ok('cloneOffer', clone(2))).storeCount).toBe(41)
  })

  it('updateOffer makes at most 20,000 own prices of an offer whose stores keep their prices', async () => {
    const { offerId } = await ok('createOffer', good({ storeIds: [stores[0]], products: [{ name: 'p0', price: 1 }] }))
    const targetStoreIds = await liveStores(cloud, key, { count: 41 })
    const priceAdjustments = Object.fromEntries(
      targetStoreIds.map((id, i) => [id, { type: 'percentage', value: i + 1 }]),
    )
    const { clonedOfferId } = await ok('cloneOffer', { offerId, targetStoreIds, priceAdjustments })
    const { offer } = await ok('fetchOffer', { offerId: clonedOfferId })
    const more = Array.from({ length: 499 }, (_, i) => ({ name: `p${i + 1}`, price: 1 }))
    const kept = { offerId: clonedOfferId, products: [offer.products[0], ...more] }
    expect(await errorOf('updateOffer', kept)).toEqual([400, 'products'])
    await ok('updateOffer', { ...kept, products: kept.products.slice(0, 480) })
    // One price for all stores needs one list.
    await ok('updateOffer', { offerId: clonedOfferId, products: [{ name: 'p0', price: 1 }, ...more] })
  })

  it('cloneOffer copies to other stores at adjusted prices', async () => {
    const made = await ok(
      'createOffer',
      good({
        storeIds: [stores[0]],
        title: 'Original',
        products: [
          { name: 'a', price: 1.5, oldPrice: 2 },
          { ean: COFFEE.ean, discountPrice: 0.25 },
        ],
      }),
    )
    const [, s1 = '', s2 = '', s3 = ''] = stores
    const clone = await ok('cloneOffer', {
      offerId: made.offerId,
      targetStoreIds: [s1, s2, s3, s1],
      priceAdjustments: { [s1]: { type: 'percentage', value: -10 }, [s2]: { type: 'fixed', value: -0.5 } },
    })
    expect(clone).toMatchObject({
      success: true,
      storeCount: 3,
      scope: 'MULTI_STORE',
      clonedOfferIds: [clone.clonedOfferId, expect.any(String), expect.any(String)],
      createdAt: expect.any(String),
    })
    expect(clone.groupId).not.toBe(made.groupId)
    const prices = await lists(clone.groupId)
    expect(prices[s1]).toMatchObject([{ priceCent: 135, oldPriceCent: 200 }, { priceCent: 23 }])
    expect(prices[s2]).toMatchObject([{ priceCent: 100 }, { priceCent: 0 }])
    expect(prices[s3]).toMatchObject([{ priceCent: 150 }, { priceCent: 25 }])
    expect(await listed(clone.clonedOfferId)).toMatchObject({ title: 'Original', discountPercent: 50, productCount: 2 })
    const dear = await ok('cloneOffer', {
      id: made.offerId,
      targetStoreIds: [s1],
      priceAdjustments: { [s1]: { type: 'percentage', value: 1_000 } },
    })
    expect((await lists(dear.groupId))[s1]).toEqual([
      { name: 'a', priceCent: 1_650 },
      expect.objectContaining({ priceCent: 275 }),
    ])
    expect(
      await errorOf('cloneOffer', {
        offerId: made.offerId,
        targetStoreIds: [s1],
        priceAdjustments: { [s2]: { type: 'fixed', value: 1 } },
      }),
    ).toEqual([400, `priceAdjustments.${s2}`])
    for (const wrong of [
      { type: 'percentage', value: -101 },
      { type: 'percentage', value: 1_001 },
      { type: 'fixed', value: 0.001 },
      { type: 'times', value: 2 },
    ]) {
      expect(
        (await call('cloneOffer', { offerId: made.offerId, targetStoreIds: [s1], priceAdjustments: { [s1]: wrong } }))
          .status,
      ).toBe(400)
    }
    await ok('deleteOffer', { offerId: made.offerId })
    expect(await listed(clone.clonedOfferId)).toBeDefined()
  })

  it('getManagerOffers filters, and pages by cursor and offset', async () => {
    const own = await cloud.key('secret', 'live', { account: `Pages ${kind}`, package: 'GO' })
    const [store] = await liveStores(cloud, own, { package: 'GO' })
    const dates = { active: [-1, 1], scheduled: [1, 2], expired: [-2, -1], archived: [-200, -100] }
    const ids: Record<string, string> = {}
    for (const [name, [from, to]] of Object.entries(dates)) {
      ids[name] = (
        await cloud.ok(own, 'createOffer', good({ storeIds: [store], validFrom: at(from ?? 0), validTo: at(to ?? 0) }))
      ).offerId
    }
    const names = async (body: Json) => {
      const { offers, total } = await cloud.ok(own, 'getManagerOffers', body)
      expect(offers.length).toBe(Math.min(total, body.limit ?? 50))
      return offers.map((o: Json) => Object.keys(ids).find((name) => ids[name] === o.id)).sort()
    }
    expect(await names({})).toEqual(['active', 'archived', 'expired', 'scheduled'])
    expect(await names({ status: 'active' })).toEqual(['active'])
    expect(await names({ status: 'scheduled' })).toEqual(['scheduled'])
    expect(await names({ status: 'draft' })).toEqual(['scheduled'])
    expect(await names({ status: 'expired' })).toEqual(['archived', 'expired'])
    const all = (await cloud.ok(own, 'getManagerOffers', {})).offers
    expect(all.find((o: Json) => o.id === ids['archived'])).toMatchObject({ status: 'ARCHIVED', isActive: false })

    const first = await cloud.ok(own, 'getManagerOffers', { limit: 2 })
    expect(first).toMatchObject({ total: 4, nextCursor: first.offers[1].id })
    await cloud.ok(own, 'deleteOffer', { offerId: first.nextCursor })
    const second = await cloud.ok(own, 'getManagerOffers', { limit: 2, cursor: first.nextCursor })
    expect([...first.offers, ...second.offers].map((o: Json) => o.id)).toEqual(all.map((o: Json) => o.id))
    expect(second.nextCursor).toBeUndefined()
    expect((await cloud.ok(own, 'getManagerOffers', { limit: 1, offset: 2 })).offers[0].id).toBe(all[3].id)
    for (const wrong of [{ offset: 0, cursor: 'x' }, { limit: 0 }, { limit: 501 }, { status: 'old' }])
      expect((await cloud.call(own, 'getManagerOffers', wrong)).status).toBe(400)
  })

  it('stays consistent under 32 concurrent updates, and an Idempotency-Key creates one offer', async () => {
    const made = await ok('createOffer', good({ storeIds: stores }))
    const subsets = Array.from({ length: 32 }, (_, i) => stores.filter((_, n) => ((i % 15) + 1) & (1 << n)))
    const answers = await Promise.all(
      subsets.map((storeIds, i) =>
        call('updateOffer', {
          offerId: made.offerIds[i % 4],
          title: `Runde ${i}`,
          storeIds,
          products: [{ name: `P${i}`, price: i + 1 }],
        }),
      ),
    )
    expect(answers.map((a) => a.status)).toEqual(Array(32).fill(200))
    const offer = await listed(made.offerId)
    const round = Number(offer.title.split(' ')[1])
    expect([...offer.storeIds].sort()).toEqual([...(subsets[round] ?? [])].sort())
    const active = (await rows(made.groupId)).filter((row) => row.is_active === 1)
    expect(active.map((row) => row.store_id)).toEqual(offer.storeIds)
    const prices = await lists(made.groupId)
    for (const row of active)
      expect(prices[row.store_id]).toEqual([{ name: `P${round}`, priceCent: (round + 1) * 100 }])
    // An active store was active at the start, or was added more often than removed.
    const moves = (field: string, id: string) => answers.filter((a) => a.body[field].includes(id)).length
    for (const id of stores)
      expect(1 + moves('addedStores', id) - moves('removedStores', id)).toBe(offer.storeIds.includes(id) ? 1 : 0)

    const headers = { 'idempotency-key': `offer-${kind}` }
    const body = good({ title: 'Nur einmal' })
    const twice = [
      await cloud.call(key, 'createOffer', body, headers),
      await cloud.call(key, 'createOffer', body, headers),
    ]
    expect(twice[1]?.text).toBe(twice[0]?.text)
    expect(
      (await ok('getManagerOffers', { limit: 500 })).offers.filter((o: Json) => o.title === 'Nur einmal'),
    ).toHaveLength(1)
  })

  it('accepts a thousand stores and five hundred products', async () => {
    const own = await cloud.key('secret', 'live', { account: `Chain ${kind}`, package: 'GO' })
    const chain = await liveStores(cloud, own, { count: 1_000, products: [COFFEE] })
    const products = [
      { ean: COFFEE.ean, discountPrice: 7 },
      ...Array.from({ length: 499 }, (_, i) => ({ name: `Ware ${i}`, price: 1 })),
    ]
    const made = await cloud.ok(own, 'createOffer', good({ storeIds: chain, products }))
    expect(made).toMatchObject({ storeCount: 1_000, scope: 'NATIONAL' })
    expect(await published(made.groupId)).toHaveLength(1_000)
    expect(
      await cloud.ok(own, 'updateOffer', { offerId: made.offerIds[999], storeIds: chain.slice(0, 100) }),
    ).toMatchObject({ siblingUpdates: 100 })
    expect((await listed(made.offerId, own)).scope).toBe('REGIONAL')
    expect(await cloud.ok(own, 'deleteOffer', { offerId: made.offerId })).toMatchObject({ deletedCount: 100 })
  })
})
