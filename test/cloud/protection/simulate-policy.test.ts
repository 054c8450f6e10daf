import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'

onEveryDatabase('simulateProtectionPolicy', (kind) => {
  let shop: Shop
  let current: Json
  beforeAll(async () => {
    shop = await openShop(kind)
    current = (await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })).policy
  })
  afterAll(() => shop.stop())

  const simulate = (policy: Json, fields: Json = {}) =>
    shop.ok('simulateProtectionPolicy', { storeId: shop.storeId, policy: { ...current, ...policy }, ...fields })
  const verifyItem = (epc: string) =>
    shop.ok('verifyProtectedItem', {
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      epc,
    })

  it('returns the decisions that another policy would change, with their new results', async () => {
    const [paid, unpaid] = [await shop.newItem(shop.products[0]), await shop.newItem(shop.products[0])]
    await shop.buy([{ ean: shop.products[0].ean, quantity: 1, epcs: [paid.epc] }])
    const granted = await verifyItem(paid.epc)
    expect(granted.authorized).toBe(true)
    expect((await verifyItem(unpaid.epc)).reason).toBe('item_not_paid')
    const purchase = await shop.buy([{ ean: shop.products[1].ean, quantity: 2 }])
    await shop.ok('verifySecurityTagDeactivation', {
      purchaseId: purchase.transactionId,
      deviceId: shop.devices.pos_deactivator,
    })

    const { worstCaseLoss: lossNow } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    const none = { success: true, decisions: 3, changedTotal: 0, changed: [], worstCaseLoss: lossNow }
    expect(await simulate({})).toEqual(none)
    expect((await simulate({ offline: { ...current.offline, storeBound: 'deny' } })).worstCaseLoss).toBe(0)
    const strict = { requiresManualOverrideAboveValue: 1 }
    const { changed, decisions } = await simulate(strict)
    expect(decisions).toBe(3)
    expect(changed).toHaveLength(2)
    expect(changed.find((c: Json) => c.eventId === granted.eventId)).toMatchObject({
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      before: { authorized: true },
      after: { authorized: false, reason: 'manual_assistance_required', detail: expect.stringContaining('1.00 EUR') },
      offline: { authorized: false, reason: 'manual_assistance_required', unknownFacts: [] },
    })
    expect((await simulate(strict, { since: new Date(Date.now() + 60_000).toISOString() })).decisions).toBe(0)
    // The simulation changes nothing. After the real change the decision is the simulated one.
    expect((await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })).policy).toEqual(current)
    const { home: _home, homeEpoch: _epoch, ...rest } = current
    const { worstCaseLoss } = await shop.ok('updateProtectionPolicy', {
      storeId: shop.storeId,
      policy: { ...rest, ...strict },
    })
    // One gate × 20 receipts of the highest risk class that is honoured. Paid goods of any price may leave.
    expect(worstCaseLoss).toBe(20 * 1_000)
    const again = await shop.newItem(shop.products[0])
    await shop.buy([{ ean: shop.products[0].ean, quantity: 1, epcs: [again.epc] }])
    expect(await verifyItem(again.epc)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
    expect((await simulate({})).changed).toMatchObject([
      {
        before: { authorized: false, reason: 'manual_assistance_required' },
        after: { authorized: true },
        offline: { authorized: true, unknownFacts: [] },
      },
    ])
    // An online agent would grant it; an offline agent that may not accept receipts denies it.
    expect((await simulate({ offline: { ...current.offline, storeBound: 'deny' } })).changed).toMatchObject([
      { after: { authorized: true }, offline: { authorized: false, reason: 'limit_exceeded', unknownFacts: [] } },
    ])
    expect(shop.cloud.errors).toEqual([])
  })

  it('yields to other requests, and limits concurrent simulations', async () => {
    const { database } = shop.cloud.db
    const row = await database.reads
      .selectFrom('protection_decision')
      .selectAll()
      .orderBy('at_ms', 'desc')
      .limit(1)
      .executeTakeFirstOrThrow()
    const before = (await simulate({})).decisions
    await database.write(async (db) => {
      for (let n = 0; n < 1_000; n++)
        await db
          .insertInto('protection_decision')
          .values({ ...row, event_id: `evt-${n}`, at_ms: row.at_ms - Math.floor(n / 3) })
          .execute()
    })
    let turns = 0
    let isOver = false
    const countTurn = () => {
      turns++
      if (!isOver) setImmediate(countTurn)
    }
    countTurn()
    expect((await simulate({ requiresManualOverrideAboveValue: 1 })).decisions).toBe(before + 1_000)
    isOver = true
    // PostgreSQL queries yield to other requests anyway.
    expect(turns).toBeGreaterThan(1_000 / 20)
    const answers = await Promise.all(
      Array.from({ length: 4 }, () =>
        shop.call('simulateProtectionPolicy', { storeId: shop.storeId, policy: current }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 503, 503, 503])
    expect(answers.find(({ status }) => status === 503)?.headers.get('retry-after')).toBe('5')
  })
})
