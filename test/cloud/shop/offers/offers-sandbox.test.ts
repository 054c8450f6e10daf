import { afterAll, beforeAll, expect, it } from 'vitest'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import type { Json } from '../../../support/cloud.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

inFullSizeOnEveryDatabase('offers in the sandbox', (kind) => {
  let shop: Shop
  let good: (fields?: Json) => Json
  beforeAll(async () => {
    shop = await openShop(kind)
    good = (fields = {}) => ({
      storeIds: [shop.storeId],
      title: 'Herbstwochen',
      validFrom: '2026-01-01T00:00:00Z',
      validTo: '2100-01-01T00:00:00Z',
      products: [{ ean: shop.products[0].ean, discountPrice: 5, originalPrice: 10 }],
      ...fields,
    })
  })
  afterAll(async () => {
    const { reads } = shop.cloud.db.database
    for (const table of ['offer', 'offer_group', 'offer_list', 'offer_price', 'outbox_event'] as const) {
      expect(
        (await reads.selectFrom(table).selectAll().execute()).filter(
          (row: Json) => row.type === undefined || row.type === 'offer.published',
        ),
      ).toEqual([])
    }
    expect(shop.cloud.errors).toEqual([])
    await shop.stop()
  })

  it('responds like live mode, and its ids can be used in further requests', async () => {
    const made = await shop.ok('createOffer', good())
    expect(made).toMatchObject({
      success: true,
      _sandbox: true,
      offerIds: [made.offerId],
      storeCount: 1,
      scope: 'LOCAL',
      status: 'ACTIVE',
      discountPercent: 50,
    })
    const both = [shop.storeId, shop.otherStoreId]
    expect(
      await shop.ok('updateOffer', { offerId: made.offerId, storeIds: [shop.otherStoreId], title: 'Neu' }),
    ).toEqual({
      success: true,
      _sandbox: true,
      offerId: made.offerId,
      updatedFields: ['title', 'storeIds'],
      siblingUpdates: 0,
      addedStores: [shop.otherStoreId],
      removedStores: [shop.storeId],
    })
    const clone = await shop.ok('cloneOffer', {
      offerId: made.offerId,
      targetStoreIds: both,
      priceAdjustments: { [shop.storeId]: { type: 'fixed', value: -1 } },
    })
    expect(clone).toMatchObject({
      _sandbox: true,
      storeCount: 2,
      clonedOfferIds: [clone.clonedOfferId, expect.any(String)],
      groupId: expect.any(String),
    })
    expect(await shop.ok('updateOffer', { offerId: clone.clonedOfferIds[1], tags: [] })).toMatchObject({
      offerId: clone.clonedOfferIds[1],
      siblingUpdates: 1,
    })
    expect(await shop.ok('deleteOffer', { offerId: clone.groupId })).toMatchObject({
      success: true,
      _sandbox: true,
      deletedCount: 2,
    })
  })

  it('lists mock offers of every status, with filters and pages', async () => {
    const all = await shop.ok('getManagerOffers')
    expect(all).toMatchObject({ _sandbox: true, total: 3 })
    expect(all.offers.map((o: Json) => o.status).sort()).toEqual(['ACTIVE', 'DRAFT', 'EXPIRED'])
    expect(all.offers[0].storeIds.toSorted()).toEqual([shop.storeId, shop.otherStoreId].toSorted())
    for (const [status, count] of [
      ['active', 1],
      ['expired', 1],
      ['scheduled', 1],
      ['draft', 1],
    ] as const)
      expect((await shop.ok('getManagerOffers', { status })).total).toBe(count)
    const paged: string[] = []
    for (let cursor: string | undefined; ;) {
      const page = await shop.ok('getManagerOffers', { limit: 1, ...(cursor && { cursor }) })
      paged.push(...page.offers.map((o: Json) => o.id))
      cursor = page.nextCursor
      if (!cursor) break
    }
    expect(paged).toEqual(all.offers.map((o: Json) => o.id))
    expect((await shop.ok('getManagerOffers', { offset: 1 })).offers[0].id).toBe(paged[1])
    expect((await shop.call('getManagerOffers', { offset: 1, cursor: 'x' })).status).toBe(400)
    const { id, ...offer } = all.offers[0]
    expect(await shop.ok('updateOffer', { ...offer, offerId: id })).toMatchObject({ _sandbox: true, offerId: id })
    expect(await shop.call('updateOffer', { offerId: id, status: 'ARCHIVED' })).toMatchObject({ status: 400 })
  })

  it('validates requests, stores, catalogues and ids as in live mode', async () => {
    const made = await shop.ok('createOffer', good())
    const stranger = await shop.cloud.key('secret', 'test', { account: `Stranger ${kind}` })
    const theirs = (await shop.cloud.ok(stranger, 'getManagerOffers')).offers[0]
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    for (const [status, operation, body, key] of [
      [400, 'createOffer', good({ title: 'x' }), shop.key],
      [400, 'createOffer', good({ validTo: '2025-01-01T00:00:00Z' }), shop.key],
      [400, 'createOffer', good({ products: [{ ean: '4000000000000', discountPrice: 1 }] }), shop.key],
      [404, 'createOffer', good({ storeIds: theirs.storeIds }), shop.key],
      [404, 'createOffer', good(), bound],
      [404, 'updateOffer', { offerId: theirs.id, title: 'Neu' }, shop.key],
      [404, 'updateOffer', { offerId: 'off_x', title: 'Neu' }, shop.key],
      [404, 'updateOffer', { offerId: made.offerId, title: 'Neu' }, bound],
      [404, 'updateOffer', { offerId: made.offerId, storeIds: ['st_x'] }, shop.key],
      [
        400,
        'updateOffer',
        { offerId: made.offerId, validFrom: '2027-01-01T00:00:00Z', validTo: '2026-01-01T00:00:00Z' },
        shop.key,
      ],
      [400, 'updateOffer', { offerId: made.offerId, products: [{ ean: '4000000000000', discountPrice: 1 }] }, shop.key],
      [404, 'deleteOffer', { offerId: theirs.id }, shop.key],
      [404, 'cloneOffer', { offerId: theirs.id, targetStoreIds: [shop.storeId] }, shop.key],
      [404, 'cloneOffer', { offerId: made.offerId, targetStoreIds: theirs.storeIds }, shop.key],
    ] as const) {
      expect([operation, JSON.stringify(body), (await shop.cloud.call(key, operation, body)).status]).toEqual([
        operation,
        JSON.stringify(body),
        status,
      ])
    }
  })
})
