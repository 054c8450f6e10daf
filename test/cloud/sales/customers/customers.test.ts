import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ROWS_AT_ONCE } from '../../../../cloud/sales/customers/personal-table.ts'
import { PERSONAL_TABLES } from '../../../../cloud/sales/customers/personal-tables.ts'
import type { Call } from '../../../../cloud/platform/operations/operation.ts'
import type { Json } from '../../../support/cloud.ts'
import { assertLoyaltyMonths } from '../../../support/loyalty-months.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openQueryPlans } from '../../../support/query-plans.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'

/** A customer id with characters that HTTP, JSON and SQL must escape. */
const USER = 'grüße"%_\\shopper'
const OTHER = 'GRÜSSE"%_\\SHOPPER'

const USER_TABLES = new Set(['console_user', 'user_session', 'user_passkey', 'used_challenge', 'user_identity'])

onEveryDatabase('customers’ rights', (kind) => {
  let shop: Shop
  let offerId: string
  beforeAll(async () => {
    shop = await openShop(kind)
    offerId = (await shop.ok('getManagerOffers')).offers[0].id
    for (const userId of [USER, OTHER]) await createRows(userId)
  })
  afterAll(() => shop.stop())

  /** Creates a row with the customer id in every table that can have one. */
  async function createRows(userId: string): Promise<string> {
    const { storeId } = shop
    const { sessionId } = await shop.ok('checkIn', { storeId, userId })
    const { transactionId } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ name: 'Hemd', priceUnit: 1_190, quantity: 1, vat: 19 }],
    })
    await shop.ok('completeTestCheckout', { transactionId })
    const { productId } = shop.products[0]
    await shop.ok('submitClickCollectOrder', {
      storeId,
      userId,
      items: [{ productId, quantity: 1 }],
      note: `für ${userId}`,
    })
    await shop.ok('recordEngagement', { type: 'follow', storeId, userId })
    await shop.ok('recordEngagement', { type: 'offer_favorite', storeId, userId, offerId })
    const { zoneId } = await shop.ok('createZone', { storeId, name: 'Herren' })
    await shop.ok('requestAssistance', { zoneId, message: `Ich bin ${userId}`, userId })
    await shop.ok('registerPushSubscription', { kind: 'https', endpoint: 'https://push.example/', userId })
    return transactionId
  }

  const columns = async (): Promise<{ table: string; column: string }[]> => {
    const query =
      kind === 'sqlite'
        ? sql<Json>`SELECT m.name AS "table", c.name AS "column" FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'`
        : sql<Json>`SELECT table_name AS "table", column_name AS "column" FROM information_schema.columns WHERE table_schema = 'public'`
    return (await query.execute(shop.cloud.db.database.reads)).rows
  }
  /** Returns all rows of the database as text. */
  const dump = async () => {
    const tables = new Set((await columns()).map(({ table }) => table))
    const rows = await Promise.all(
      [...tables].map(async (table) =>
        (await sql`SELECT * FROM ${sql.table(table)}`.execute(shop.cloud.db.database.reads)).rows.map((row) =>
          JSON.stringify([table, row]),
        ),
      ),
    )
    return rows.flat()
  }
  const holding = async (userId: string) => {
    const once = JSON.stringify(userId).slice(1, -1)
    const twice = JSON.stringify(once).slice(1, -1)
    return (await dump())
      .filter((row) => row.includes(once) || row.includes(twice))
      .map((row) => JSON.parse(row)[0] as string)
  }

  it('every table with a column user_id is in PERSONAL_TABLES, except tables of console users', async () => {
    const found = (await columns())
      .filter(({ column, table }) => column === 'user_id' && !USER_TABLES.has(table))
      .map(({ table }) => table)
    expect(found.length).toBeGreaterThan(3)
    expect(found.filter((table) => !PERSONAL_TABLES.some((personal) => personal.table === table))).toEqual([])
  })

  it.runIf(kind === 'sqlite')(
    'are found by an index in each table, however many rows other accounts have',
    async () => {
      const plans = openQueryPlans(shop.cloud.db.location)
      const call = { db: plans.db, services: { platform: virtualPlatform() } } as unknown as Call
      const who = { tenant: 'acc_1.test', userId: 'nobody' }
      for (const { table, page, erase } of PERSONAL_TABLES) {
        const read = [
          ...(await plans.of(async () => page?.(plans.db, who, ''))),
          ...(await plans.of(() => erase(call, who, ''))),
        ]
        expect(read.length).toBeGreaterThan(0)
        for (const plan of read) expect(plan, table).not.toMatch(/SCAN (?!read$)/m)
      }
      await plans.close()
    },
  )

  it('exports all data of one customer and nothing of others', async () => {
    const { records } = await shop.ok('exportCustomerData', { userId: USER })
    expect(Object.fromEntries(Object.entries<Json>(records).map(([name, rows]) => [name, rows.length]))).toEqual({
      purchases: 1,
      orders: 1,
      sessions: 1,
      loyaltyEntries: 1,
      loyaltyMemberships: 1,
      follows: 1,
      favorites: 1,
      assistanceRequests: 1,
      pushSubscriptions: 1,
    })
    expect(records.purchases[0]).toMatchObject({
      totalCent: 1_190,
      status: 'SUCCESS',
      items: [{ name: 'Hemd', priceUnit: 1_190 }],
    })
    expect(records.assistanceRequests[0].messages[0].text).toContain(USER)
    const nobody = await shop.ok('exportCustomerData', { userId: 'nobody' })
    expect(new Set(Object.values<Json>(nobody.records).map((rows) => rows.length))).toEqual(new Set([0]))
  })

  it('erases one customer everywhere, keeps the books, and can be repeated', async () => {
    const before = await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId })
    const mine = (await shop.ok('exportCustomerData', { userId: USER })).records.purchases[0].purchaseId
    expect(new Set(await holding(USER))).toEqual(
      new Set([
        'purchase',
        'push_subscription',
        'pickup_order',
        'shopping_session',
        'loyalty_entry',
        'loyalty_member',
        'follower',
        'offer_favorite',
        'assistance_request',
        'assistance_message',
        'outbox_event',
      ]),
    )
    const { records } = await shop.ok('eraseCustomerData', { userId: USER })
    await assertLoyaltyMonths(shop.cloud.db.database)
    expect(records).toEqual({
      purchases: 1,
      orders: 1,
      sessions: 1,
      loyaltyEntries: 1,
      loyaltyMemberships: 1,
      follows: 1,
      favorites: 1,
      assistanceRequests: 1,
      pushSubscriptions: 1,
      push_delivery: 0,
      outbox_event: expect.any(Number),
    })
    expect(await holding(USER)).toEqual([])
    const { receipt } = await shop.ok('fetchPurchase', { transactionId: mine })
    expect(receipt).toMatchObject({ totalCent: 1_190, status: 'SUCCESS', userId: expect.stringMatching(/^anon_/) })
    const { receipt: old } = before.purchases.find((p: Json) => p.transactionId === mine)
    expect({ ...receipt, userId: 0, receiptQrCode: 0 }).toEqual({ ...old, userId: 0, receiptQrCode: 0 })
    // The other customer's data is unchanged.
    expect((await holding(OTHER)).length).toBeGreaterThan(6)
    const again = await shop.ok('eraseCustomerData', { userId: USER })
    expect(new Set(Object.values(again.records))).toEqual(new Set([0]))
    expect(
      (await shop.ok('fetchAuditLog')).entries.filter((e: Json) => e.operation === 'eraseCustomerData').length,
    ).toBe(2)
  })

  it('finds a customer in stored events in short steps, wherever they are', async () => {
    const { database } = shop.cloud.db
    const { tenant } = await database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', shop.storeId)
      .executeTakeFirstOrThrow()
    const event = (seq: number | null, userId: string) => ({
      event_id: `evt_old_${seq ?? userId}`,
      tenant,
      store_id: null,
      type: 'checkout.completed',
      at_ms: 0,
      data: JSON.stringify({ userId }),
      seq,
      webhook_id: null,
    })
    const others = Array.from({ length: 5_100 }, (_, n) => event(1_000_000 + n, OTHER))
    const rows = [...others, ...[2_000_000, 2_000_001].map((seq) => event(seq, 'far'))]
    await database.write(async (db) => {
      for (let i = 0; i < rows.length; i += 500)
        await db
          .insertInto('outbox_event')
          .values(rows.slice(i, i + 500))
          .execute()
      await db.insertInto('outbox_event').values(event(null, 'far')).execute()
    })
    expect((await shop.ok('eraseCustomerData', { userId: 'far' })).records.outbox_event).toBe(3)
    await database.write((db) => db.deleteFrom('outbox_event').where('event_id', 'like', 'evt_old_%').execute())
  })

  it('returns cashback amounts in EUR', async () => {
    const program = (type: string) =>
      shop.ok('createLoyaltyProgram', { storeId: shop.storeId, type, name: type, earningMethods: ['qr_checkin'] })
    const [cashback, points] = [await program('cashback'), await program('points')]
    for (const { programId } of [cashback, points])
      await shop.ok('addLoyaltyPoints', {
        programId,
        userId: 'saver',
        amount: programId === cashback.programId ? 2.5 : 250,
      })
    const { records } = await shop.ok('exportCustomerData', { userId: 'saver' })
    const of = (rows: Json[], { programId }: Json) => rows.find((row) => row.programId === programId)
    expect([of(records.loyaltyEntries, cashback), of(records.loyaltyMemberships, cashback)]).toMatchObject([
      { amount: 2.5, balance: 2.5 },
      { balance: 2.5 },
    ])
    expect([of(records.loyaltyEntries, points), of(records.loyaltyMemberships, points)]).toMatchObject([
      { amount: 250, balance: 250 },
      { balance: 250 },
    ])
  })

  it('reads several pages', async () => {
    const id = await createRows('many')
    await shop.cloud.db.database.write(async (db) => {
      const row = await db.selectFrom('purchase').selectAll().where('purchase_id', '=', id).executeTakeFirstOrThrow()
      const copies = Array.from({ length: ROWS_AT_ONCE + 5 }, (_, n) => ({
        ...row,
        purchase_id: `${id}-${n}`,
        checkout_session_id: `${id}-${n}`,
        cti: null,
      }))
      for (const copy of copies) await db.insertInto('purchase').values(copy).execute()
    })
    const { records } = await shop.ok('exportCustomerData', { userId: 'many' })
    expect(new Set(records.purchases.map((p: Json) => p.purchaseId)).size).toBe(ROWS_AT_ONCE + 6)
    expect((await shop.ok('eraseCustomerData', { userId: 'many' })).records.purchases).toBe(ROWS_AT_ONCE + 6)
    expect(await holding('many')).toEqual([])
  })

  it('requires a key for the whole account, and finds no customer of another account', async () => {
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.storeId] })
    for (const name of ['exportCustomerData', 'eraseCustomerData']) {
      expect((await shop.cloud.call(bound, name, { userId: OTHER })).body).toMatchObject({
        code: 'permission-denied',
        reason: 'key_bound_to_stores',
      })
    }
    const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger' })
    await shop.cloud.ok(stranger, 'eraseCustomerData', { userId: OTHER })
    expect((await holding(OTHER)).length).toBeGreaterThan(6)
  })

  it('logs no error', () => expect(shop.cloud.errors).toEqual([]))
})
