import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { processEach, processOnce, turnOf } from '../../../../cloud/platform/operations/process-each.ts'
import type { Services } from '../../../../cloud/platform/operations/operation.ts'
import { cancelOverduePurchases } from '../../../../cloud/sales/checkout/cancel-overdue-purchases.ts'
import { lapseReservations } from '../../../../cloud/shop/stock/reserve.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

/** Failing rows must not block other rows, even if many fail. */
describe('processEach', () => {
  it.each([
    ['none fails', () => false, 350],
    ['every third fails', (n: number) => n % 3 === 0, 233],
    ['the oldest two pages fail', (n: number) => n < 200, 150],
  ] as const)('attempts every due row once if %s', async (_what, fails, expected) => {
    const due = new Set(Array.from({ length: 350 }, (_, n) => n))
    const tried: number[] = []
    const logged: unknown[] = []
    await processEach(
      { log: { error: (entry: unknown) => void logged.push(entry) } as unknown as Services['log'] },
      {
        job: 'a job',
        read: (limit, failed) => Promise.resolve([...due].slice(failed, failed + limit)),
        async process(n) {
          tried.push(n)
          if (fails(n)) throw new Error('no')
          due.delete(n)
        },
      },
    )
    expect([350 - due.size, tried.length, logged.length]).toEqual([expected, 350, 350 - expected])
  })

  it.each([
    [999, 999, false],
    [2_500, 1_000, true],
  ])('of %i due rows processes %i in one run', async (count, expected, isMore) => {
    const due = Array.from({ length: count }, (_, n) => n)
    let processed = 0
    const ended = await processEach(
      { log: {} as Services['log'] },
      {
        job: 'a job',
        read: (limit) => Promise.resolve(due.slice(0, limit)),
        process: (n) => {
          due.splice(due.indexOf(n), 1)
          processed++
          return Promise.resolve()
        },
      },
    )
    expect([processed, ended]).toEqual([expected, isMore])
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

  it('take a row of each account before the second row of any', async () => {
    const { database } = shop.cloud.db
    const rows = ['a', 'a', 'a', 'b', 'c', 'c'].map((tenant, n) => ({ tenant, revocation_id: `rev_${n}` }))
    const taken: string[] = []
    await processOnce(shop.cloud.cloud.services, {
      job: 'a job',
      read: (limit) =>
        database.reads
          .with('waiting', (db) =>
            rows
              .map(({ tenant, revocation_id }) =>
                db.selectNoFrom((eb) => [eb.val(tenant).as('tenant'), eb.val(revocation_id).as('revocation_id')]),
              )
              .reduce((all, one) => all.unionAll(one)),
          )
          .selectFrom('waiting')
          .select(['tenant', 'revocation_id', turnOf('revocation_id')])
          .orderBy('turn')
          .orderBy('revocation_id')
          .limit(limit)
          .execute(),
      process: ({ tenant }) => Promise.resolve(void taken.push(tenant)),
    })
    expect(taken).toEqual(['a', 'b', 'c', 'a', 'c', 'a'])
  })
})
