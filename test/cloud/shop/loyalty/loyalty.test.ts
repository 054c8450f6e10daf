import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { expireEarnings, LOYALTY_EVENTS, adjustEarnings } from '../../../../cloud/shop/loyalty/ledger.ts'
import { earnedByPurchase, expiryOf, openProgram, type Program } from '../../../../cloud/shop/loyalty/program.ts'
import type { Json } from '../../../support/cloud.ts'
import { assertLoyaltyMonths } from '../../../support/loyalty-months.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { readQr } from '../../../support/qr.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const MUNICH = { lat: 48.1372, lng: 11.5755 }
let users = 0
const newUser = () => `member-${++users}`

onEveryDatabase('loyalty', (kind) => {
  let shop: Shop
  const { platform, forward } = movablePlatform()
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
  })
  afterAll(() => shop.stop())

  const make = (fields: Json = {}) =>
    shop.ok('createLoyaltyProgram', { storeId: shop.storeId, name: 'Karte', type: 'points', ...fields })
  const add = (programId: string, userId: string, fields: Json) =>
    shop.ok('addLoyaltyPoints', { programId, userId, ...fields })
  const balanceOf = async (programId: string, userId: string) =>
    (await shop.ok('getLoyaltyProgram', { programId, userId })).membership.balance
  /** Returns the events of a customer and validates them against their schemas. */
  async function eventsOf(userId: string): Promise<Json[]> {
    const rows = await shop.cloud.db.database.reads
      .selectFrom('outbox_event')
      .selectAll()
      .where('type', 'like', 'loyalty.%')
      .orderBy('event_id')
      .execute()
    const events = rows
      .map((row) => ({ type: row.type, ...JSON.parse(row.data) }) as Json)
      .filter((e) => e.userId === userId)
    for (const { type, ...data } of events) LOYALTY_EVENTS[type as keyof typeof LOYALTY_EVENTS].parse(data)
    return events
  }
  const types = async (userId: string) => (await eventsOf(userId)).map((e) => e.type.slice('loyalty.'.length)).sort()
  /** Asserts that the entries of each member add up to the balance. */
  async function assertLedger(): Promise<void> {
    const { reads } = shop.cloud.db.database
    const members = await reads.selectFrom('loyalty_member').selectAll().execute()
    for (const member of members) {
      const entries = await reads
        .selectFrom('loyalty_entry')
        .selectAll()
        .where('program_id', '=', member.program_id)
        .where('user_id', '=', member.user_id)
        .execute()
      expect(entries.reduce((sum, e) => sum + e.amount, 0)).toBe(member.balance)
      expect(member.balance).toBeGreaterThanOrEqual(0)
    }
    await assertLoyaltyMonths(shop.cloud.db.database)
  }

  it('creates, returns, lists and changes programs of all types', async () => {
    const made = await make({
      type: 'cashback',
      cashbackPercent: 2.5,
      rewards: [
        { name: 'Groß', cost: 10 },
        { name: 'Klein', cost: 2.5 },
      ],
    })
    expect(made).toMatchObject({
      storeId: shop.storeId,
      name: 'Karte',
      type: 'cashback',
      earningMethods: ['scan_and_go'],
      isActive: true,
      cashbackPercent: 2.5,
      pointsPerEuro: 1,
    })
    expect(made.rewards.map((r: Json) => [r.name, r.cost])).toEqual([
      ['Klein', 2.5],
      ['Groß', 10],
    ])
    const { success: _success, programId, ...rest } = made
    const changed = await shop.ok('updateLoyaltyProgram', {
      programId,
      ...rest,
      name: 'Neue Karte',
      earningMethods: ['click_collect', 'qr_checkin'],
    })
    expect(changed).toMatchObject({
      name: 'Neue Karte',
      earningMethods: ['click_collect', 'qr_checkin'],
      rewards: made.rewards,
      type: 'cashback',
    })
    expect((await shop.call('updateLoyaltyProgram', { programId, type: 'stamps' })).status).toBe(400)
    for (const type of ['stamps', 'points', 'tier']) expect((await make({ type })).type).toBe(type)
    expect(
      (
        await shop.call('createLoyaltyProgram', {
          storeId: shop.storeId,
          name: 'x',
          type: 'stamps',
          rewards: [{ name: 'halb', cost: 0.5 }],
        })
      ).status,
    ).toBe(400)
    expect(
      (
        await shop.call('createLoyaltyProgram', {
          storeId: shop.storeId,
          name: 'x',
          type: 'stamps',
          earningMethods: ['scan_and_go', 'scan_and_go'],
        })
      ).status,
    ).toBe(400)
    const { programs, total } = await shop.ok('getStoreLoyaltyPrograms', { storeId: shop.storeId })
    expect(total).toBe(programs.length)
    const all = await shop.ok('getLoyaltyPrograms')
    expect(all.total).toBe(total + 1)
    const [first, second] = [
      await shop.ok('getLoyaltyPrograms', { limit: 2 }),
      await shop.ok('getLoyaltyPrograms', { limit: 500, offset: 2 }),
    ]
    expect([...first.programs, ...second.programs]).toEqual(all.programs)
    const rest2 = await shop.ok('getLoyaltyPrograms', { limit: 500, cursor: first.nextCursor })
    expect(rest2.programs).toEqual(second.programs)
  })

  it('draws a QR code that publishable keys can read; they cannot read balances', async () => {
    const key = await shop.cloud.key('publishable')
    const answer = await shop.cloud.ok(key, 'getLoyaltyProgram', { programId: shop.programId })
    expect(answer.checkInCode).toBe(`untag://loyalty/${shop.storeId}/${shop.programId}`)
    expect(readQr(Buffer.from(answer.qrCodeImage, 'base64'))).toBe(answer.checkInCode)
    expect((await shop.cloud.call(key, 'getLoyaltyProgram', { programId: shop.programId, userId: 'a' })).status).toBe(
      403,
    )
  })

  it('requires GO for the account and the store', async () => {
    const poor = await shop.cloud.key('secret', 'live', { account: 'Small', package: 'ASSIST' })
    expect(await shop.cloud.call(poor, 'getLoyaltyPrograms')).toMatchObject({
      status: 403,
      body: { requiredUpgrade: 'GO', currentPackage: 'ASSIST' },
    })
  })

  it('requires GROW for programs that earn at the checkout', async () => {
    const { cloud } = shop
    const key = await cloud.key('secret', 'live', { account: 'Kiosk', package: 'GO' })
    const [storeId] = await liveStores(cloud, key, { package: 'GO' })
    const program = { storeId, name: 'Stempel', type: 'stamps' }
    const refused = { status: 403, body: { reason: 'package_too_low', requiredUpgrade: 'GROW' } }
    const earning = { earningMethods: ['qr_checkin', 'scan_and_go'] }
    expect(await cloud.call(key, 'createLoyaltyProgram', { ...program, ...earning })).toMatchObject(refused)
    const made = await cloud.ok(key, 'createLoyaltyProgram', program)
    expect(made.earningMethods).toEqual(['qr_checkin'])
    const { programId } = made
    expect(await cloud.call(key, 'updateLoyaltyProgram', { programId, ...earning })).toMatchObject(refused)
    expect(await cloud.ok(key, 'updateLoyaltyProgram', { programId, name: 'Karte' })).toMatchObject({ name: 'Karte' })
  })

  it('credits once per transaction, emits members, rewards and tiers, and redeems', async () => {
    const user = newUser()
    const { programId, rewards } = await make({
      rewards: [{ name: 'Tasse', cost: 10 }],
      tiers: [
        { name: 'Silber', threshold: 20 },
        { name: 'Bronze', threshold: 5 },
      ],
    })
    expect(await add(programId, user, { amount: 6, transactionId: 't1', source: 'click_collect' })).toMatchObject({
      amount: 6,
      newBalance: 6,
      tier: 'Bronze',
      transactionId: 't1',
    })
    expect(await add(programId, user, { amount: 6, transactionId: 't1' })).toMatchObject({ amount: 6, newBalance: 6 })
    expect(
      (await shop.call('addLoyaltyPoints', { programId, userId: newUser(), amount: 6, transactionId: 't1' })).body,
    ).toMatchObject({ code: 'failed-precondition', reason: 'transaction_used' })
    expect(await types(user)).toEqual(['enrollment', 'points_earned', 'tier_changed'])
    expect(await add(programId, user, { amount: 19 })).toMatchObject({ newBalance: 25, tier: 'Silber' })
    const spent = await shop.ok('redeemLoyaltyPoints', { programId, userId: user, rewardId: rewards[0].rewardId })
    expect(spent).toMatchObject({ amount: 10, newBalance: 15, tier: 'Bronze', rewardName: 'Tasse' })
    await shop.ok('redeemLoyaltyPoints', { programId, userId: user, amount: 8 })
    expect(
      (await shop.call('redeemLoyaltyPoints', { programId, userId: user, rewardId: rewards[0].rewardId })).body,
    ).toMatchObject({ reason: 'balance_too_low' })
    expect((await shop.call('redeemLoyaltyPoints', { programId, userId: newUser(), amount: 1 })).status).toBe(409)
    expect((await shop.call('redeemLoyaltyPoints', { programId, userId: user, rewardId: 'rwd_x' })).status).toBe(404)
    await add(programId, user, { amount: 3 })
    const events = await eventsOf(user)
    expect(events.filter((e) => e.type === 'loyalty.reward_unlocked').map((e) => e.newBalance)).toEqual([25, 10])
    expect(
      events.filter((e) => e.type === 'loyalty.tier_changed').map((e) => [e.previousTier, e.newTier, e.direction]),
    ).toEqual([
      [null, 'Bronze', 'up'],
      ['Bronze', 'Silber', 'up'],
      ['Silber', 'Bronze', 'down'],
    ])
    expect(events.find((e) => e.type === 'loyalty.points_earned')).toEqual({
      type: 'loyalty.points_earned',
      userId: user,
      programId,
      storeId: shop.storeId,
      amount: 6,
      newBalance: 6,
      transactionId: 't1',
      source: 'click_collect',
    })
    for (const fields of [{ amount: 0 }, { amount: -1 }, { amount: 1.5 }, {}])
      expect((await shop.call('addLoyaltyPoints', { programId, userId: user, ...fields })).status).toBe(400)
    await shop.ok('updateLoyaltyProgram', { programId, isActive: false })
    expect((await shop.call('addLoyaltyPoints', { programId, userId: user, amount: 1 })).body).toMatchObject({
      reason: 'program_inactive',
    })
    await shop.ok('redeemLoyaltyPoints', { programId, userId: user, amount: 1 })
  })

  it('rejects amounts that would round to nothing', async () => {
    for (const type of ['points', 'cashback']) {
      const { programId } = await make({ type })
      const answer = await shop.call('addLoyaltyPoints', {
        programId,
        userId: 'nobody',
        amount: 1e-9,
        transactionId: 't-1',
      })
      expect([answer.status, answer.body.details[0].path]).toEqual([400, 'amount'])
    }
  })

  it('emits tier events only if the store’s package includes them', async () => {
    const user = newUser()
    const { programId } = await shop.ok('createLoyaltyProgram', {
      storeId: shop.otherStoreId,
      name: 'GROW',
      type: 'tier',
      tiers: [{ name: 'A', threshold: 1 }],
    })
    expect(await add(programId, user, { amount: 2 })).toMatchObject({ tier: 'A' })
    expect(await types(user)).toEqual(['enrollment', 'points_earned'])
  })

  it('credits at checkout by the rules of each program, and reverses with the purchase', async () => {
    const [points, stamps, cashback, off] = [
      await make({ pointsPerEuro: 1.5 }),
      await make({ type: 'stamps', stampsPerVisit: 2 }),
      await make({ type: 'cashback', cashbackPercent: 2.5 }),
      await make({ earningMethods: ['click_collect'] }),
    ]
    const [product] = shop.products
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
    const cent = Math.round(purchase.total * 100)
    const user = 'shopper-1'
    const balances = async () => Promise.all([points, stamps, cashback, off].map((p) => balanceOf(p.programId, user)))
    const earned = [Math.floor((cent * 1.5) / 100), 2, Math.round(cent * 0.025) / 100, 0]
    expect(await balances()).toEqual(earned)
    // A call of the merchant for the same purchase changes nothing.
    expect(await add(points.programId, user, { purchaseId: purchase.transactionId })).toMatchObject({
      amount: earned[0],
      newBalance: earned[0],
    })
    expect(
      (await eventsOf(user)).find((e) => e.programId === points.programId && e.type === 'loyalty.points_earned'),
    ).toMatchObject({ source: 'scan_and_go', transactionId: purchase.transactionId })
    await shop.ok('redeemLoyaltyPoints', { programId: stamps.programId, userId: user, amount: 1 })
    await shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId })
    // A redeemed stamp stays redeemed, and no balance falls below 0.
    expect(await balances()).toEqual([0, 0, 0, 0])
    await assertLedger()
  })

  it('reverses the share of a partial refund', async () => {
    const user = newUser()
    const { programId } = await make()
    await add(programId, user, { amount: 100, transactionId: `part-${user}` })
    const { database } = shop.cloud.db
    const back = (remainingCent: number) =>
      database.write((db) =>
        adjustEarnings(
          { db, nowMs: platform.clock.wall(), services: shop.cloud.cloud.services, emit: () => undefined },
          { tenant: tenant, transactionId: `part-${user}`, remainingCent, totalCent: 10_000 },
        ),
      )
    const { tenant } = await database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', shop.storeId)
      .executeTakeFirstOrThrow()
    for (const [remaining, balance] of [
      [7_550, 75],
      [7_550, 75],
      [2_000, 20],
      [0, 0],
      [0, 0],
    ] as const) {
      await back(remaining)
      expect(await balanceOf(programId, user)).toBe(balance)
    }
    // The refund failed a month later: the reversed points return.
    forward(31 * DAY)
    await back(10_000)
    expect(await balanceOf(programId, user)).toBe(100)
    const { pointsReversed, monthly } = await shop.ok('getLoyaltyAnalytics', { programId })
    expect([pointsReversed, monthly.at(-2).pointsReversed, monthly.at(-1).pointsReversed]).toEqual([0, 100, -100])
  })

  it('credits a paid purchase of this store only', async () => {
    const user = newUser()
    const [product] = shop.products
    const paid = await shop.buy([{ ean: product.ean, quantity: 2 }])
    const { programId } = await make({ earningMethods: ['qr_checkin'] })
    expect(await add(programId, user, { purchaseId: paid.transactionId })).toMatchObject({
      amount: Math.floor(paid.total),
      transactionId: paid.transactionId,
    })
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const open = await shop.ok('startCheckout', { sessionId, items: [{ ean: product.ean, quantity: 1 }] })
    expect(
      (await shop.call('addLoyaltyPoints', { programId, userId: user, purchaseId: open.transactionId })).body,
    ).toMatchObject({ reason: 'purchase_not_paid' })
    const elsewhere = await shop.ok('createLoyaltyProgram', { storeId: shop.otherStoreId, name: 'x', type: 'points' })
    expect(
      (
        await shop.call('addLoyaltyPoints', {
          programId: elsewhere.programId,
          userId: user,
          purchaseId: paid.transactionId,
        })
      ).status,
    ).toBe(404)
  })

  it('credits the rest of a purchase after a partial refund, and later refunds reverse their share of it', async () => {
    const user = newUser()
    const paid = await shop.buy([{ ean: shop.products[0].ean, quantity: 2 }])
    const { transactionId: purchaseId, total } = paid
    await shop.ok('refundPayment', { purchaseId, amount: Math.round(total * 100 - 2_000) / 100 })
    const [points, stamps, cashback] = [
      await make(),
      await make({ type: 'stamps', stampsPerVisit: 2 }),
      await make({ type: 'cashback', cashbackPercent: 10 }),
    ]
    const balances = () => Promise.all([points, stamps, cashback].map((p) => balanceOf(p.programId, user)))
    expect(await add(points.programId, user, { purchaseId })).toMatchObject({ amount: 20, newBalance: 20 })
    for (const program of [stamps, cashback]) await add(program.programId, user, { purchaseId })
    expect(await balances()).toEqual([20, 2, 2])
    await shop.ok('refundPayment', { purchaseId, amount: 5 })
    expect(await balances()).toEqual([15, 2, 1.5])
    await shop.ok('refundPayment', { purchaseId, amount: 15 })
    expect(await balances()).toEqual([0, 0, 0])
    // A repeated call returns the same result.
    expect(await add(points.programId, user, { purchaseId })).toMatchObject({ amount: 20, newBalance: 0 })
    const { programId } = await make({ type: 'stamps' })
    expect((await shop.call('addLoyaltyPoints', { programId, userId: user, purchaseId })).body).toMatchObject({
      reason: 'nothing_earned',
    })
    await assertLedger()
  })

  it('accepts a code check-in once per hour, and a store check-in once per day', async () => {
    const user = newUser()
    const { programId, checkInCode } = await make({ type: 'stamps', earningMethods: ['qr_checkin', 'store_checkin'] })
    const byCode = (code = checkInCode) =>
      shop.call('loyaltyCheckIn', { programId, userId: user, method: 'qr_checkin', code })
    const here = (at: Json) => shop.call('loyaltyCheckIn', { programId, userId: user, method: 'store_checkin', ...at })
    expect((await byCode('untag://loyalty/st_x/loy_x')).status).toBe(400)
    expect((await byCode()).body).toMatchObject({ success: true, enrolled: true, amount: 1, newBalance: 1 })
    const soon = await byCode()
    expect(soon).toMatchObject({ status: 409, body: { code: 'failed-precondition', reason: 'too_soon' } })
    expect(new Date(soon.body.retryAt).getTime() - platform.clock.wall()).toBeGreaterThan(HOUR - 60_000)
    // 0.0018 degrees of latitude are 200.15 m.
    expect((await here({ lat: MUNICH.lat + 0.0018, lng: MUNICH.lng })).body).toMatchObject({ reason: 'too_far' })
    expect((await here({ latitude: MUNICH.lat + 0.00179, longitude: MUNICH.lng })).body).toMatchObject({
      enrolled: false,
      newBalance: 2,
    })
    expect((await here(MUNICH)).body).toMatchObject({ reason: 'too_soon' })
    forward(HOUR + 1)
    expect((await byCode()).body).toMatchObject({ newBalance: 3 })
    expect((await here(MUNICH)).status).toBe(409)
    forward(DAY)
    expect((await here(MUNICH)).body).toMatchObject({ newBalance: 4 })
    expect(await types(user)).toEqual([
      'checkin_earned',
      'checkin_earned',
      'enrollment',
      'points_earned',
      'points_earned',
      'points_earned',
      'points_earned',
      'qr_earned',
      'qr_earned',
    ])
    const off = await make()
    expect(
      (
        await shop.call('loyaltyCheckIn', {
          programId: off.programId,
          userId: user,
          method: 'store_checkin',
          ...MUNICH,
        })
      ).body,
    ).toMatchObject({ reason: 'earning_method_off' })
    for (const fields of [
      { method: 'qr_checkin' },
      { method: 'store_checkin' },
      { method: 'store_checkin', lat: 1 },
      { method: 'scan_and_go' },
    ]) {
      expect((await shop.call('loyaltyCheckIn', { programId, userId: user, ...fields })).status).toBe(400)
    }
  })

  it('24 concurrent check-ins and redemptions earn and spend only what exists', async () => {
    const user = newUser()
    const { programId, checkInCode } = await make({ earningMethods: ['qr_checkin'] })
    const visits = await Promise.all(
      Array.from({ length: 12 }, () =>
        shop.call('loyaltyCheckIn', { programId, userId: user, method: 'qr_checkin', code: checkInCode }),
      ),
    )
    expect(visits.filter((v) => v.status === 200)).toHaveLength(1)
    await Promise.all(Array.from({ length: 12 }, () => add(programId, user, { amount: 9, transactionId: 'same' })))
    expect(await balanceOf(programId, user)).toBe(10)
    const spent = await Promise.all(
      Array.from({ length: 24 }, () => shop.call('redeemLoyaltyPoints', { programId, userId: user, amount: 1 })),
    )
    expect(spent.map((s) => s.status).sort()).toEqual([...Array<number>(10).fill(200), ...Array<number>(14).fill(409)])
    await assertLedger()
  })

  it('expires old points once, the oldest first', async () => {
    const user = newUser()
    const { programId } = await make({ pointsValidMonths: 1, tiers: [{ name: 'A', threshold: 10 }] })
    const expire = () => expireEarnings(shop.cloud.db.database, shop.cloud.cloud.services)
    await add(programId, user, { amount: 10 })
    forward(20 * DAY)
    await add(programId, user, { amount: 5 })
    await shop.ok('redeemLoyaltyPoints', { programId, userId: user, amount: 4 })
    await expire()
    expect(await balanceOf(programId, user)).toBe(11)
    // Checked now, because the cloud deletes events after 30 days.
    const directions = async () =>
      (await eventsOf(user)).filter((e) => e.type === 'loyalty.tier_changed').map((e) => e.direction)
    expect(await directions()).toEqual(['up'])
    forward(12 * DAY)
    await Promise.all([expire(), expire()])
    expect(await balanceOf(programId, user)).toBe(5)
    forward(20 * DAY)
    await expire()
    await expire()
    expect(await balanceOf(programId, user)).toBe(0)
    expect((await directions()).at(-1)).toBe('down')
    await assertLedger()
  })

  it('sums up all figures', async () => {
    const { programId } = await make()
    const [a, b] = [newUser(), newUser()]
    await add(programId, a, { amount: 30 })
    await add(programId, b, { amount: 10 })
    await shop.ok('redeemLoyaltyPoints', { programId, userId: a, amount: 5 })
    const answer = await shop.ok('getLoyaltyAnalytics', { programId })
    expect(answer).toMatchObject({
      members: 2,
      pointsIssued: 40,
      pointsRedeemed: 5,
      redemptions: 1,
      redemptionRate: 12.5,
    })
    expect(answer.monthly).toHaveLength(12)
    expect(answer.monthly[11]).toMatchObject({
      month: new Date(platform.clock.wall()).toISOString().slice(0, 7),
      newMembers: 2,
      pointsIssued: 40,
      redemptions: 1,
    })
    const all = await shop.ok('getLoyaltyAnalytics', {})
    expect(all.members).toBeGreaterThan(2)
    expect(all.programs.find((p: Json) => p.programId === programId)).toMatchObject({ members: 2 })
    expect((await shop.call('getLoyaltyAnalytics', { programId, storeId: shop.otherStoreId })).status).toBe(404)
  })

  it('hides programs from other accounts and from keys of other stores', async () => {
    const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger' })
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    for (const key of [stranger, bound]) {
      for (const [name, body] of [
        ['getLoyaltyProgram', {}],
        ['updateLoyaltyProgram', { name: 'x' }],
        ['addLoyaltyPoints', { userId: 'a', amount: 1 }],
        ['redeemLoyaltyPoints', { userId: 'a', amount: 1 }],
        ['loyaltyCheckIn', { userId: 'a', method: 'store_checkin', ...MUNICH }],
        ['getLoyaltyAnalytics', {}],
      ] as const) {
        expect([name, (await shop.cloud.call(key, name, { programId: shop.programId, ...body })).status]).toEqual([
          name,
          404,
        ])
      }
      const { programs } = await shop.cloud.ok(key, 'getLoyaltyPrograms')
      expect(programs.some((p: Json) => p.programId === shop.programId)).toBe(false)
    }
  })

  it('logs no error', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})

describe('what a purchase earns', () => {
  const program = (type: string, fields: Json = {}): Program =>
    openProgram(
      {
        program_id: 'loy_x',
        tenant: 'a.test',
        store_id: 'st_x',
        name: '',
        type,
        earning_methods: '[]',
        points_per_euro_milli: 1_000,
        stamps_per_visit: 1,
        cashback_basis_points: 100,
        points_valid_months: null,
        rewards: '[]',
        tiers: '[]',
        is_active: 1,
        created_ms: 0,
        updated_ms: 0,
        ...fields,
      },
      { package: 'PRIME' },
    )

  it('is a whole number, never negative, and grows with the total', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('stamps', 'points', 'cashback', 'tier'),
        fc.nat(100_000_000),
        fc.nat(1_000_000),
        fc.nat(10_000),
        (type, cent, milli, basisPoints) => {
          const of = program(type, { points_per_euro_milli: milli, cashback_basis_points: basisPoints })
          const units = earnedByPurchase(of, cent)
          expect(Number.isSafeInteger(units) && units >= 0).toBe(true)
          expect(earnedByPurchase(of, cent + 100)).toBeGreaterThanOrEqual(units)
          if (type === 'cashback') expect(units).toBe(Math.round((cent * basisPoints) / 10_000))
        },
      ),
    )
  })

  it('expires on the same day of a later month, or on its last day', () => {
    const after = (from: string, months: number) =>
      new Date(expiryOf(program('points', { points_valid_months: months }), Date.parse(from)) ?? 0).toISOString()
    expect(after('2026-01-31T10:20:30.400Z', 1)).toBe('2026-02-28T10:20:30.400Z')
    expect(after('2026-11-20T00:00:00.000Z', 12)).toBe('2027-11-20T00:00:00.000Z')
    expect(after('2027-12-31T23:59:59.999Z', 2)).toBe('2028-02-29T23:59:59.999Z')
    expect(expiryOf(program('points'), 5)).toBeNull()
  })
})
