import { afterAll, beforeAll, expect, it } from 'vitest'
import { firstIdAt } from '../../../../policy/ids.ts'
import { dayOf } from '../../../../cloud/shop/analytics/store-days.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openQueryPlans } from '../../../support/query-plans.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import type { Json } from '../../../support/cloud.ts'
import { fetchPurchaseHistory } from '../../../../cloud/sales/checkout/history-operations.ts'

const COPIES = 20_100
const AT_ONCE = 500

onEveryDatabase('a history of many purchases', (kind) => {
  let shop: Shop
  let oldest: string
  let startMs: number
  beforeAll(async () => {
    shop = await openShop(kind)
    const { transactionId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    oldest = transactionId
    startMs = Date.now() + 60_000
    const { database } = shop.cloud.db
    const one = await database.reads
      .selectFrom('purchase')
      .selectAll()
      .where('purchase_id', '=', oldest)
      .executeTakeFirstOrThrow()
    // They were begun and are not paid: no day has them.
    const rows = Array.from({ length: COPIES }, (_, n) => ({
      ...one,
      purchase_id: firstIdAt('pur', startMs + n),
      status: 'CREATED' as const,
      checkout_session_id: null,
      cti: null,
      completed_ms: null,
      completed_position: null,
    }))
    for (let i = 0; i < COPIES; i += AT_ONCE)
      await database.write((db) =>
        db
          .insertInto('purchase')
          .values(rows.slice(i, i + AT_ONCE))
          .execute(),
      )
  })
  afterAll(() => shop.stop())

  it('has pages that look at 20,000 purchases, and are shorter if few of them match', async () => {
    const day = dayOf(startMs - 60_000)
    for (const filter of [{ day }, { day, storeId: shop.storeId }]) {
      const first = await shop.ok('fetchPurchaseHistory', filter)
      const nextCursor = firstIdAt('pur', startMs + 100)
      expect(first).toMatchObject({ purchases: [], total: 0, totalIsEstimate: true, nextCursor })
      const { purchases, nextCursor: last } = await shop.ok('fetchPurchaseHistory', { ...filter, cursor: nextCursor })
      expect([purchases.map(({ transactionId }: Json) => transactionId), last]).toEqual([[oldest], undefined])
    }
    expect(await shop.ok('fetchPurchaseHistory', { number: oldest.slice(-8) })).toMatchObject({
      purchases: [{ transactionId: oldest }],
      total: 1,
    })
    const all = await shop.ok('fetchPurchaseHistory', { limit: 2 })
    expect(all).toMatchObject({
      total: 10_000,
      totalIsEstimate: true,
      nextCursor: firstIdAt('pur', startMs + COPIES - 2),
    })
    const { storeId, otherStoreId } = shop
    const both = await shop.cloud.key('secret', 'test', { storeIds: [storeId, otherStoreId] })
    // Two stores: 10,000 of each.
    const page = await shop.cloud.ok(both, 'fetchPurchaseHistory', { day })
    expect(page).toMatchObject({ purchases: [], nextCursor: firstIdAt('pur', startMs + COPIES - 10_000) })
  })

  if (kind === 'sqlite')
    it('reads the index with its filter', async () => {
      const plans = openQueryPlans(shop.cloud.db.location)
      const caller = (storeIds: string[] | null) => ({
        kind: 'secret',
        tenant: 't',
        storeIds,
        keyId: 'k',
        package: 'PRIME',
      })
      const plansOf = (filter: object, storeIds: string[] | null) =>
        plans.of(() =>
          fetchPurchaseHistory.run(
            { db: plans.db, caller: caller(storeIds), nowMs: startMs } as never,
            filter as never,
          ),
        )
      const cases: [object, string][] = [
        [{ userId: 'u' }, 'purchase_by_user (tenant=? AND user_id=?'],
        [{ userId: 'u', totalCent: 5 }, 'purchase_by_user (tenant=? AND user_id=?'],
        [{ totalCent: 5, day: '2026-11-20' }, 'purchase_by_total (tenant=? AND total_cent=?'],
        [{ receipt: 'x', totalCent: 5 }, '(cti=?)'],
        [{ number: 'ABCDEFGH' }, 'purchase_by_end (tenant=? AND <expr>=?)'],
        [{ number: 'ABCDEF', day: '2026-11-20', userId: 'u' }, 'purchase_by_end (tenant=? AND <expr>=?)'],
      ]
      for (const [filter, index] of cases)
        for (const storeIds of [null, ['st_1'], ['st_1', 'st_2']])
          for (const plan of await plansOf(filter, storeIds)) expect(plan).toContain(index)
      for (const filter of [{}, { day: '2026-11-20' }])
        for (const plan of await plansOf(filter, ['st_1']))
          expect(plan).toContain('purchase_by_store (store_id=? AND purchase_id>?')
      await plans.close()
    })
})
