import { afterAll, beforeAll, expect, it } from 'vitest'
import { backfillCounters } from '../../../cloud/analytics/backfill.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { movablePlatform } from '../../support/movable-platform.ts'
import { openShop, type Shop } from '../../support/shop.ts'

const DAY = 86_400_000

onEveryDatabase('counters of what happened before there were any', (kind) => {
  let shop: Shop
  const { platform, forward } = movablePlatform()
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
  })
  afterAll(() => shop.stop())

  const database = () => shop.cloud.db.database
  async function counters(): Promise<Json> {
    const { reads } = database()
    const days = await reads.selectFrom('store_day').selectAll().orderBy('store_id').orderBy('day').execute()
    const rates = await reads
      .selectFrom('store_day_vat')
      .selectAll()
      .orderBy('store_id')
      .orderBy('day')
      .orderBy('rate')
      .execute()
    const sessions = await reads
      .selectFrom('shopping_session')
      .select(['session_id', 'completed'])
      .orderBy('session_id')
      .execute()
    return { days, rates, sessions }
  }
  /** As an installation is that comes from before the counters. */
  const forget = () =>
    database().write(async (db) => {
      await db.deleteFrom('store_day').execute()
      await db.deleteFrom('store_day_vat').execute()
      await db.updateTable('shopping_session').set({ completed: 0 }).execute()
      await db.deleteFrom('installation').where('name', '=', 'day-counters').execute()
    })
  const pay = async (sessionId: string, quantity: number) => {
    const { transactionId } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: shop.products[0].ean, quantity }],
    })
    await shop.ok('completeTestCheckout', { transactionId })
    return transactionId as string
  }
  const checkIn = async (): Promise<string> => (await shop.ok('checkIn', { storeId: shop.storeId })).sessionId

  it('come to what they would have been', async () => {
    const shared = await checkIn()
    for (let day = 0; day < 3; day++) {
      for (let i = 1; i <= 3; i++) await pay(await checkIn(), i)
      await pay(shared, day + 1)
      await checkIn()
      forward(DAY)
    }
    const before = await counters()
    await forget()
    await backfillCounters(database())
    expect(await counters()).toEqual(before)
    // Once more, and with nothing to do: nothing.
    await database().write((db) => db.deleteFrom('installation').where('name', '=', 'day-counters').execute())
    await backfillCounters(database())
    await backfillCounters(database())
    expect(await counters()).toEqual(before)
  })

  it('are added to what was counted since, also when that was taken back', async () => {
    const shared = await checkIn()
    const old = await pay(shared, 1)
    await pay(shared, 2)
    await pay(await checkIn(), 5)
    const first = await counters()
    await forget()
    const later = async () => {
      await pay(shared, 4)
      await pay(await checkIn(), 3)
      await shop.ok('markPurchaseCancelled', { purchaseId: old })
    }
    await later()
    await backfillCounters(database())
    const today = (await counters()).days.at(-1)
    const started = first.days.at(-1)
    expect(today).toMatchObject({
      sessions: started.sessions + 1,
      completed_checkouts: started.completed_checkouts + 2 - 1,
      items_scanned: started.items_scanned + 4 + 3 - 1,
      receipts: started.receipts + 2,
      refunds: started.refunds + 1,
    })
    const { reads } = database()
    const standing = await reads
      .selectFrom('purchase')
      .select((eb) => eb.fn.sum<number>('total_cent').as('cent'))
      .where('status', '=', 'SUCCESS')
      .executeTakeFirstOrThrow()
    const revenue = (await counters()).days.reduce((sum: number, day: Json) => sum + day.revenue_cent, 0)
    expect(revenue).toBe(Number(standing.cent))
  })
})
