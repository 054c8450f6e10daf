import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addDays, clockOf, dayOf, periodOf, startOfDay, timeOn } from '../../../../cloud/shop/analytics/store-days.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'
import { openPrimeShop, type PrimeShop } from '../../../support/prime-shop.ts'

const DAY = 86_400_000
const HOUR = 3_600_000

describe('days of a store', () => {
  it('start at midnight in Berlin, also on days with a clock change', () => {
    expect(new Date(startOfDay('2026-07-01')).toISOString()).toBe('2026-06-30T22:00:00.000Z')
    expect(new Date(startOfDay('2026-01-01')).toISOString()).toBe('2025-12-31T23:00:00.000Z')
    expect((startOfDay('2026-03-30') - startOfDay('2026-03-29')) / HOUR).toBe(23)
    expect((startOfDay('2026-10-26') - startOfDay('2026-10-25')) / HOUR).toBe(25)
    for (let day = '2000-01-01'; day < '2100-01-02'; day = addDays(day, 13))
      expect([dayOf(startOfDay(day)), dayOf(startOfDay(day) - 1)]).toEqual([day, addDays(day, -1)])
  })
  it('have the clock of Berlin, also on days with a clock change', () => {
    const at = (day: string, clock: string) => new Date(timeOn(day, clock)).toISOString().slice(0, 16)
    expect(at('2026-07-01', '00:00')).toBe('2026-06-30T22:00')
    expect(at('2026-11-05', '14:05')).toBe('2026-11-05T13:05')
    expect(['01:59', '02:30', '03:00'].map((clock) => at('2026-03-29', clock))).toEqual([
      '2026-03-29T00:59',
      '2026-03-29T01:30',
      '2026-03-29T01:00',
    ])
    expect(['02:30', '03:00'].map((clock) => at('2026-10-25', clock))).toEqual(['2026-10-25T00:30', '2026-10-25T02:00'])
    expect([timeOn('2026-07-01', '23:59'), timeOn('2026-12-31', '00:00')].map(clockOf)).toEqual(['23:59', '00:00'])
  })
  it('belong to weeks that start on Monday and to months', () => {
    expect(['2026-11-15', '2026-11-16', '2026-11-22', '2027-01-01'].map((day) => periodOf(day, 'weekly'))).toEqual([
      '2026-11-09',
      '2026-11-16',
      '2026-11-16',
      '2026-12-28',
    ])
    expect(periodOf('2026-02-28', 'monthly')).toBe('2026-02-01')
  })
})

type Step =
  | { do: 'wait'; hours: number }
  | { do: 'check in' }
  | { do: 'buy'; session: number; units: number; vat: 7 | 19; cents: number; paid: boolean }
  | { do: 'cancel'; purchase: number }
  | { do: 'refund'; purchase: number; cents: number }
  | { do: 'engage'; type: string; user: number | undefined; offer: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const), hours: fc.integer({ min: 1, max: 40 }) }) },
  { weight: 3, arbitrary: fc.constant({ do: 'check in' as const }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('buy' as const),
      session: fc.nat(),
      units: fc.integer({ min: 1, max: 4 }),
      vat: fc.constantFrom(7 as const, 19 as const),
      cents: fc.integer({ min: 1, max: 9_999 }),
      paid: fc.boolean(),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('cancel' as const), purchase: fc.nat() }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('refund' as const),
      purchase: fc.nat(),
      cents: fc.integer({ min: 1, max: 3_000 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('engage' as const),
      type: fc.constantFrom(
        'offer_click',
        'offer_favorite',
        'offer_unfavorite',
        'profile_view',
        'follow',
        'unfollow',
        'message',
      ),
      user: fc.option(fc.nat(2), { nil: undefined }),
      offer: fc.nat(1),
    }),
  },
)

onEveryDatabase('analytics', (kind) => {
  let shop: PrimeShop
  beforeAll(async () => {
    shop = await openPrimeShop(kind)
  })
  afterAll(() => shop.stop())

  it('reports and closings equal the sum of all purchases and engagements after any sequence of events', async () => {
    let first = true
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 40 }), async (steps) => {
        if (!first) shop.forward(3 * DAY)
        first = false
        const { storeId } = shop
        const begun = shop.today()
        const followersBefore = await reportedFollowers(storeId, addDays(begun, -1))
        const engaged = await runSteps(storeId, steps)
        const end = shop.today()
        const { reports } = await shop.ok('fetchAnalytics', { storeId, from: begun, to: end })
        const expected = await recompute(storeId, begun, end, followersBefore, engaged)
        expect(reports).toEqual(expected)
        const { reports: months } = await shop.ok('fetchAnalytics', {
          storeId,
          from: begun,
          to: end,
          period: 'monthly',
        })
        const sum = (list: Json[], of: (r: Json) => number) => list.reduce((total, r) => total + of(r), 0)
        for (const of of [
          (r: Json) => r.scanAndGo.revenueCent,
          (r: Json) => r.scanAndGo.sessions,
          (r: Json) => r.store.newFollowers,
          (r: Json) => r.scanAndGo.itemsScanned,
        ]) {
          expect(sum(months, of)).toBe(sum(reports, of))
        }
        expect(months.at(-1).store.totalFollowers).toBe(reports.at(-1).store.totalFollowers)
        await closeAndCompare(storeId)
      }),
      { numRuns: kind === 'sqlite' ? 12 : 4, endOnFailure: true },
    )
  })

  async function reportedFollowers(storeId: string, day: string): Promise<number> {
    const { reports } = await shop.ok('fetchAnalytics', { storeId, from: day, to: day })
    return reports[0].store.totalFollowers
  }

  interface Engaged {
    day: string
    type: string
    user: string | undefined
    offer: string
  }

  let run = 0
  async function runSteps(storeId: string, steps: readonly Step[]): Promise<Engaged[]> {
    const [sessions, paid, engaged]: [string[], string[], Engaged[]] = [[], [], []]
    const users = `u${run++}-`
    const { offers }: { offers: Json[] } = await shop.ok('getManagerOffers')
    for (const s of steps) {
      if (s.do === 'wait') shop.forward(s.hours * HOUR)
      else if (s.do === 'check in') sessions.push((await shop.ok('checkIn', { storeId })).sessionId)
      else if (s.do === 'buy' && sessions.length > 0) {
        const items = [
          { name: 'Hemd', priceUnit: s.cents, quantity: s.units, vat: s.vat },
          { name: 'Tee', priceUnit: 7, quantity: 1, vat: 7 },
        ]
        const { transactionId } = await shop.ok('startCheckout', {
          sessionId: sessions[s.session % sessions.length],
          items,
        })
        await shop.ok('completeTestCheckout', { transactionId, result: s.paid ? 'paid' : 'declined' })
        if (s.paid) paid.push(transactionId)
      } else if (s.do === 'cancel' && paid.length > 0)
        await shop.call('markPurchaseCancelled', { purchaseId: paid[s.purchase % paid.length] })
      else if (s.do === 'refund' && paid.length > 0)
        await shop.call('refundPayment', { purchaseId: paid[s.purchase % paid.length], amount: s.cents / 100 })
      else if (s.do === 'engage') {
        const user = s.user === undefined ? undefined : `${users}${s.user}`
        const offer = offers[s.offer]?.id ?? ''
        const isAboutOffer = s.type.startsWith('offer')
        const answer = await shop.call('recordEngagement', {
          type: s.type,
          storeId,
          ...(user && { userId: user }),
          ...(isAboutOffer && { offerId: offer }),
        })
        expect(answer.status).toBe(user === undefined && s.type.endsWith('follow') ? 400 : 200)
        if (answer.status === 200) engaged.push({ day: shop.today(), type: s.type, user, offer })
      }
    }
    return engaged
  }

  /** Computes the reports from the rows of purchases and the recorded engagements, without the daily counters. */
  async function recompute(
    storeId: string,
    from: string,
    to: string,
    followersBefore: number,
    engaged: readonly Engaged[],
  ): Promise<Json[]> {
    const { reads } = shop.cloud.db.database
    const berlin = (ms: number) =>
      new Date(ms).toLocaleDateString('en-CA', {
        timeZone: 'Europe/Berlin',
        year: 'numeric',
        month: '2-digit',
        day: '2-digit',
      })
    const sessions = await reads.selectFrom('shopping_session').selectAll().where('store_id', '=', storeId).execute()
    const purchases = (await reads.selectFrom('purchase').selectAll().where('store_id', '=', storeId).execute()).filter(
      (p) => p.completed_ms !== null && p.status !== 'CANCELLED',
    )
    const lines = await reads.selectFrom('purchase_line').selectAll().execute()
    const parts = await reads.selectFrom('refund').selectAll().where('kind', '=', 'part').execute()
    const partsOf = (purchaseId: string) =>
      parts.filter((part) => part.purchase_id === purchaseId).reduce((sum, part) => sum + part.amount_cent, 0)
    const following = new Map<string, string>()
    const liked = new Map<string, string>()
    const count = new Map<string, number>()
    const add = (what: string, day: string, n = 1) =>
      count.set(`${what} ${day}`, (count.get(`${what} ${day}`) ?? 0) + n)
    for (const { day, type, user, offer } of engaged) {
      if (type === 'follow' && !following.has(user ?? '')) {
        following.set(user ?? '', day)
        add('new', day)
        add('all', day)
      } else if (type === 'unfollow' && following.has(user ?? '')) {
        if (following.get(user ?? '') === day) add('new', day, -1)
        following.delete(user ?? '')
        add('all', day, -1)
      } else if (type === 'offer_favorite' && (user === undefined || !liked.has(`${user} ${offer}`))) {
        if (user !== undefined) liked.set(`${user} ${offer}`, day)
        add('favorite', day)
      } else if (type === 'offer_unfavorite' && (user === undefined || liked.has(`${user} ${offer}`))) {
        add('favorite', user === undefined ? day : (liked.get(`${user} ${offer}`) ?? ''), -1)
        liked.delete(`${user} ${offer}`)
      } else add(type, day)
    }
    const reports: Json[] = []
    let followers = followersBefore
    for (let day = from; day <= to; day = addDays(day, 1)) {
      const of = (what: string) => count.get(`${what} ${day}`) ?? 0
      const own = sessions.filter((s) => berlin(s.created_ms) === day)
      const lost = own.filter((s) => !purchases.some((p) => p.session_id === s.session_id)).length
      const done = purchases.filter((p) => berlin(p.completed_ms ?? 0) === day)
      const revenueCent = done.reduce((sum, p) => sum + p.total_cent - partsOf(p.purchase_id), 0)
      const clicks = of('offer_click')
      const favorites = Math.max(0, of('favorite'))
      followers += of('all')
      reports.push({
        storeId,
        date: day,
        period: 'daily',
        scanAndGo: {
          sessions: own.length,
          completedCheckouts: done.length,
          abandonedRate: own.length === 0 ? 0 : Math.round((lost * 1_000) / own.length) / 10,
          revenueCent,
          avgBasketCent: done.length === 0 ? 0 : Math.round(revenueCent / done.length),
          itemsScanned: lines
            .filter((l) => done.some((p) => p.purchase_id === l.purchase_id))
            .reduce((sum, l) => sum + l.quantity, 0),
        },
        tills: { sales: 0, revenueCent: 0, avgBasketCent: 0, itemsSold: 0 },
        offers: {
          activeOffers: 0,
          totalClicks: clicks,
          totalFavorites: favorites,
          conversionRate: clicks === 0 ? 0 : Math.min(100, Math.round((favorites * 1_000) / clicks) / 10),
        },
        store: {
          profileViews: of('profile_view'),
          newFollowers: of('new'),
          totalFollowers: followers,
          dmReceived: of('message'),
        },
      })
    }
    return reports
  }

  /** Closes the day. All closings of the store together must contain all its purchases, as on their receipts. */
  async function closeAndCompare(storeId: string): Promise<void> {
    shop.nextDay()
    const closing = await shop.ok('closeStoreDay', { storeId })
    expect((await shop.call('closeStoreDay', { storeId })).body).toMatchObject({ code: 'already-exists' })
    expect((await shop.call('closeStoreDay', { storeId, date: shop.today() })).body).toMatchObject({
      reason: 'day_not_over',
    })
    const { closings } = await shop.ok('fetchClosings', { storeId })
    const { success: _success, ...first } = closing
    expect(closings[0]).toEqual(first)
    expect(closings.map((c: Json) => c.number)).toEqual(closings.map((_: Json, n: number) => closings.length - n))
    for (const [n, c] of closings.slice(0, -1).entries()) expect(c.from).toBe(addDays(closings[n + 1].date, 1))
    const { reads } = shop.cloud.db.database
    const purchases = (await reads.selectFrom('purchase').selectAll().where('store_id', '=', storeId).execute()).filter(
      (p) => p.completed_ms !== null,
    )
    const cancelled = purchases.filter((p) => p.status === 'CANCELLED')
    const parts = await reads
      .selectFrom('refund')
      .selectAll()
      .where('store_id', '=', storeId)
      .where('kind', '=', 'part')
      .execute()
    const partCent = parts
      .filter((part) => !cancelled.some((p) => p.purchase_id === part.purchase_id))
      .reduce((total, part) => total + part.amount_cent, 0)
    const vat: Record<string, number> = {}
    for (const p of purchases.filter((purchase) => purchase.status !== 'CANCELLED')) {
      const { receipt } = await shop.ok('fetchPurchase', { transactionId: p.purchase_id })
      for (const [rate, { net, tax }] of Object.entries<Json>(receipt.vatBreakdown)) {
        vat[`${rate} net`] = (vat[`${rate} net`] ?? 0) + net
        vat[`${rate} tax`] = (vat[`${rate} tax`] ?? 0) + tax
      }
    }
    const sum = (of: (c: Json) => number) => closings.reduce((total: number, c: Json) => total + of(c), 0)
    expect(sum((c) => c.receiptCount)).toBe(purchases.length)
    const refunds = await reads.selectFrom('refund').selectAll().where('store_id', '=', storeId).execute()
    // After partial refunds of the whole amount, a whole refund pays nothing and is not counted.
    expect(sum((c) => c.refundCount)).toBe(
      refunds.filter((refund) => refund.kind !== 'late' && refund.amount_cent > 0).length,
    )
    expect(sum((c) => c.salesCent)).toBe(purchases.reduce((total, p) => total + p.total_cent, 0))
    expect(sum((c) => c.refundCent)).toBe(cancelled.reduce((total, p) => total + p.total_cent, 0) + partCent)
    // Compares only the sums of both rates. refund-shares.test.ts tests the split by rate.
    const grossOf = (of: (key: string) => number) =>
      ['7 net', '7 tax', '19 net', '19 tax'].reduce((total, key) => total + of(key), 0)
    expect(grossOf((key) => sum((c) => c.vatBreakdown[key.split(' ')[0] ?? '']?.[key.split(' ')[1] ?? ''] ?? 0))).toBe(
      grossOf((key) => vat[key] ?? 0) - partCent,
    )
    if (partCent === 0)
      for (const rate of ['7', '19']) {
        expect(sum((c) => c.vatBreakdown[rate]?.net ?? 0)).toBe(vat[`${rate} net`] ?? 0)
        expect(sum((c) => c.vatBreakdown[rate]?.tax ?? 0)).toBe(vat[`${rate} tax`] ?? 0)
      }
  }

  it('closings count no refund if nothing was left to refund', async () => {
    const { storeId } = shop
    shop.nextDay()
    await shop.call('closeStoreDay', { storeId })
    const { sessionId } = await shop.ok('checkIn', { storeId })
    const { transactionId, items } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ name: 'Hemd', priceUnit: 1_190, quantity: 1, vat: 19 }],
    })
    await shop.ok('completeTestCheckout', { transactionId })
    await shop.ok('refundPayment', { transactionId, lines: [{ itemLineId: items[0].itemLineId }] })
    await shop.ok('markPurchaseCancelled', { purchaseId: transactionId })
    expect(await shop.ok('fetchPurchase', { transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
      refunded: 11.9,
    })
    shop.nextDay()
    expect(await shop.ok('closeStoreDay', { storeId })).toMatchObject({
      receiptCount: 1,
      refundCount: 1,
      refundCent: 1_190,
      totalCent: 0,
    })
  })

  it('a later cancellation does not change a closing', async () => {
    const { storeId } = shop
    shop.nextDay()
    await shop.call('closeStoreDay', { storeId })
    const day = shop.today()
    const { sessionId } = await shop.ok('checkIn', { storeId })
    const { transactionId } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ name: 'Hemd', priceUnit: 1_190, quantity: 1, vat: 19 }],
    })
    await shop.ok('completeTestCheckout', { transactionId })
    shop.nextDay()
    const before = await shop.ok('closeStoreDay', { storeId })
    expect(before).toMatchObject({
      receiptCount: 1,
      refundCount: 0,
      totalCent: 1_190,
      vatBreakdown: { 19: { net: 1_000, tax: 190 } },
      date: day,
    })
    await shop.ok('markPurchaseCancelled', { purchaseId: transactionId })
    const { reports } = await shop.ok('fetchAnalytics', { storeId, from: day, to: day })
    expect(reports[0].scanAndGo).toMatchObject({
      sessions: 1,
      completedCheckouts: 0,
      abandonedRate: 100,
      revenueCent: 0,
      itemsScanned: 0,
    })
    shop.nextDay()
    expect(await shop.ok('closeStoreDay', { storeId })).toMatchObject({
      number: before.number + 1,
      receiptCount: 0,
      refundCount: 1,
      totalCent: -1_190,
      vatBreakdown: { 19: { net: -1_000, tax: -190 } },
    })
    const { closings } = await shop.ok('fetchClosings', { storeId, limit: 1, cursor: String(before.number + 1) })
    expect(closings[0].totalCent).toBe(1_190)
  })

  it('two concurrent closings of a day create one closing', async () => {
    shop.nextDay()
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => shop.call('closeStoreDay', { storeId: shop.otherStoreId })),
    )
    expect(answers.map((a) => a.status).sort()).toEqual([200, 409, 409, 409])
  })

  it('engagements increase the counters of active offers in their store', async () => {
    const key = await shop.cloud.key('secret', 'live', { account: 'Fischmarkt', package: 'PRIME' })
    const [storeId = '', otherId = '', thirdId = ''] = await liveStores(shop.cloud, key, { count: 3, package: 'PRIME' })
    const ok = (name: string, body: Json) => shop.cloud.ok(key, name, body)
    const now = shop.cloud.platform.clock.wall()
    const { offerIds, groupId } = await ok('createOffer', {
      title: 'Matjes',
      storeIds: [storeId, otherId],
      validFrom: new Date(now - DAY).toISOString(),
      validTo: new Date(now + 2 * DAY).toISOString(),
      products: [{ name: 'Matjes', price: 2.5, oldPrice: 3 }],
    })
    const engage = async (type: string, offerId: string, userId?: string, at = storeId) =>
      shop.cloud.call(key, 'recordEngagement', { type, storeId: at, offerId, ...(userId && { userId }) })
    for (const [type, id, user] of [
      ['offer_click', offerIds[0]],
      ['offer_click', groupId],
      ['offer_favorite', offerIds[0], 'u1'],
      ['offer_favorite', groupId, 'u1'],
      ['offer_favorite', offerIds[1], 'u2'],
      ['offer_unfavorite', groupId, 'u2'],
      ['offer_unfavorite', groupId, 'u2'],
    ] as const) {
      expect((await engage(type, id, user)).status).toBe(200)
    }
    await engage('offer_click', groupId, undefined, otherId)
    const branches = await shop.cloud.db.database.reads
      .selectFrom('offer')
      .select(['store_id', 'click_count', 'favorited_count'])
      .where('group_id', '=', groupId)
      .execute()
    expect(branches).toEqual(
      expect.arrayContaining([
        { store_id: storeId, click_count: 2, favorited_count: 1 },
        { store_id: otherId, click_count: 1, favorited_count: 0 },
      ]),
    )
    expect((await engage('offer_click', groupId, undefined, thirdId)).status).toBe(404)
    expect((await engage('offer_click', 'off_x')).status).toBe(404)
    const { reports } = await ok('fetchAnalytics', { storeId, from: dayOf(now - 3 * DAY), to: dayOf(now + 4 * DAY) })
    expect(reports.map((r: Json) => r.offers.activeOffers).reduce((a: number, b: number) => a + b)).toBe(
      dayOf(now + 2 * DAY - 1) === dayOf(now + 2 * DAY) ? 4 : 3,
    )
    expect(reports[3].offers).toMatchObject({ activeOffers: 1, totalClicks: 2, totalFavorites: 1, conversionRate: 50 })
  })

  it('rejects invalid dates, types and stores', async () => {
    const { storeId } = shop
    const status = async (name: string, body: Json) => (await shop.call(name, body)).status
    expect(await status('fetchAnalytics', { storeId, from: '2026-02-30', to: '2026-03-01' })).toBe(400)
    expect(await status('fetchAnalytics', { storeId, from: '2026-03-02', to: '2026-03-01' })).toBe(400)
    expect(await status('fetchAnalytics', { storeId, from: '2020-01-01', to: '2026-03-01' })).toBe(400)
    expect(await status('fetchAnalytics', { storeId, from: '2020-01-01', to: '2026-03-01', period: 'weekly' })).toBe(
      200,
    )
    expect(await status('fetchAnalytics', { storeId, from: '2026-01-01', to: '2026-12-31' })).toBe(200)
    expect(await status('recordEngagement', { storeId, type: 'offer_click' })).toBe(400)
    expect(await status('fetchClosings', { storeId, cursor: 'x' })).toBe(400)
    // The other store has only the package GROW.
    expect(await status('fetchAnalytics', { storeId: shop.otherStoreId, from: '2026-01-01', to: '2026-01-02' })).toBe(
      403,
    )
  })

  it('logs no error', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
