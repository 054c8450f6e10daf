import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inTurns, processDue } from '../../../../cloud/platform/operations/job-steps.ts'
import type { Services } from '../../../../cloud/platform/operations/operation.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import { cancelOverduePurchases } from '../../../../cloud/sales/checkout/cancel-overdue-purchases.ts'
import { lapseReservations } from '../../../../cloud/shop/stock/reserve.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

const accountsOf = (due: readonly { tenant: string }[]) => [...new Set(due.map(({ tenant }) => tenant))]
const noDatabase = {} as Database
/** Services whose time goes on by a second with each turn. */
function services(logged: unknown[] = []) {
  let nowMs = 0
  return {
    log: { error: (entry: unknown) => void logged.push(entry) },
    platform: { clock: { elapsed: () => (nowMs += 1_000) } },
  } as unknown as Pick<Services, 'log' | 'platform'>
}

/** Failing rows must not block other rows, even if many fail. */
describe('processDue', () => {
  const rowsOf = (tenant: string, count: number) => Array.from({ length: count }, (_, n) => ({ tenant, n }))
  const run = async (due: { tenant: string; n: number }[], fails: (n: number) => boolean = () => false) => {
    const tried: string[] = []
    const logged: unknown[] = []
    const isMore = await processDue(noDatabase, services(logged), {
      job: 'a job',
      accounts: () => Promise.resolve(accountsOf(due)),
      read: (_db, account, { limit, offset }) =>
        Promise.resolve(due.filter(({ tenant }) => tenant === account).slice(offset, offset + limit)),
      process(row) {
        tried.push(`${row.tenant}${row.n}`)
        if (fails(row.n)) return Promise.reject(new Error('no'))
        due.splice(due.indexOf(row), 1)
        return Promise.resolve()
      },
    })
    return { tried, logged, isMore }
  }

  it.each([
    ['none fails', () => false, 350],
    ['every third fails', (n: number) => n % 3 === 0, 233],
    ['the oldest 200 fail', (n: number) => n < 200, 150],
  ] as const)('attempts every due row once if %s', async (_what, fails, expected) => {
    const due = rowsOf('a', 350)
    const { tried, logged, isMore } = await run(due, fails)
    expect([350 - due.length, tried.length, logged.length, isMore]).toEqual([expected, 350, 350 - expected, false])
  })

  it('leaves the rest of many rows to the next run', async () => {
    const due = rowsOf('a', 2_500)
    expect((await run(due)).isMore).toBe(true)
    expect(due.length).toBe(1_500)
  })

  it('gives each account its turn, however much another one has', async () => {
    const { tried } = await run([...rowsOf('a', 1_000), ...rowsOf('b', 6), ...rowsOf('c', 1)])
    expect(tried.indexOf('c0')).toBe(10)
    expect(tried.indexOf('b5')).toBe(16)
  })
})

describe('inTurns', () => {
  it('takes accounts in that come while it runs, and none again whose turn failed or that has nothing left', async () => {
    const turns: string[] = []
    const logged: unknown[] = []
    const isMore = await inTurns<number>(noDatabase, services(logged), {
      job: 'a job',
      accounts: () => Promise.resolve(turns.length < 2 ? ['a', 'bad'] : ['a', 'bad', 'late']),
      turn(tenant, place = 0) {
        turns.push(`${tenant}${place}`)
        if (tenant === 'bad') return Promise.reject(new Error('no'))
        return Promise.resolve(place < 2 ? place + 1 : undefined)
      },
    })
    expect(turns).toEqual(['a0', 'bad0', 'a1', 'late0', 'a2', 'late1', 'late2'])
    expect([logged.length, isMore]).toEqual([1, false])
  })
})

onEveryDatabase('scheduled jobs', (kind) => {
  let shop: Shop
  const { platform, forward } = movablePlatform()
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
  })
  afterAll(() => shop.stop())

  const checkout = async (product: Json): Promise<string> => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    return (await shop.ok('startCheckout', { sessionId, items: [{ ean: product.ean, quantity: 1 }] })).transactionId
  }
  const statusOf = async (transactionId: string) => (await shop.ok('fetchPurchase', { transactionId })).status

  it('process the other purchases and reservations when one fails', async () => {
    const [broken, whole] = shop.products
    const { database } = shop.cloud.db
    for (const { productId } of [broken, whole])
      await shop.ok('setStock', { productId, storeId: shop.storeId, quantity: 5 })
    const first = await checkout(broken)
    // The job cannot return this reservation, because the reserved stock would become negative.
    await database.write((db) =>
      db.updateTable('stock_level').set({ reserved: 0 }).where('product_id', '=', broken.productId).execute(),
    )
    forward(1)
    const second = await checkout(whole)
    const order = await shop.ok('submitClickCollectOrder', {
      storeId: shop.storeId,
      userId: 'u',
      items: [{ productId: whole.productId, quantity: 1 }],
    })
    await database.write((db) =>
      db
        .updateTable('stock_reservation')
        .set({ expires_ms: platform.clock.wall() + 2 })
        .where('owner_id', '=', order.orderId)
        .execute(),
    )
    forward(36 * 60_000)
    await cancelOverduePurchases(database, shop.cloud.cloud.services)
    expect([await statusOf(first), await statusOf(second)]).toEqual(['PENDING_PAYMENT', 'CANCELLED'])
    await lapseReservations(database, shop.cloud.cloud.services)
    const states = await database.reads.selectFrom('stock_reservation').select(['owner_id', 'state']).execute()
    expect(new Map(states.map((row) => [row.owner_id, row.state]))).toEqual(
      new Map([
        [first, 'held'],
        [order.orderId, 'lapsed'],
      ]),
    )
    expect(shop.cloud.errors.length).toBe(2)
    // After the repair the job returns the reservation.
    await database.write((db) =>
      db.updateTable('stock_level').set({ reserved: 1 }).where('product_id', '=', broken.productId).execute(),
    )
    await cancelOverduePurchases(database, shop.cloud.cloud.services)
    expect(await statusOf(first)).toBe('CANCELLED')
  })
})
