import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { cancelOverdueOrders } from '../../../../cloud/sales/click-and-collect/operations.ts'
import { checkDigit, priceCheckDigit } from '../../../../policy/gs1/gtin.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'

const DAY = 86_400_000
const WORDS = ['accepted', 'confirmed', 'preparing', 'ready', 'picked_up', 'cancelled'] as const
/** The state table of ADR sales, written independently of the code. */
const NEXT: Record<string, string[]> = {
  pending: ['confirmed', 'cancelled'],
  confirmed: ['preparing', 'ready', 'cancelled'],
  preparing: ['ready', 'cancelled'],
  ready: ['picked_up', 'cancelled'],
  picked_up: [],
  cancelled: [],
}

/** `data` of click and collect events (specification, Events). */

const OrderStatus = z.enum(['pending', 'confirmed', 'preparing', 'ready', 'picked_up', 'cancelled'])
const OrderFields = { orderId: z.string(), storeId: z.string(), userId: z.string(), estimatedPickupAt: z.string() }

const CLICK_AND_COLLECT_EVENTS = {
  'clickcollect.order': z.strictObject({
    ...OrderFields,
    status: z.literal('pending'),
    items: z.array(z.strictObject({ productId: z.string(), quantity: z.int() })),
    total: z.number(),
    currency: z.string(),
  }),
  'clickcollect.status_changed': z.strictObject({
    ...OrderFields,
    previousStatus: OrderStatus,
    status: OrderStatus,
  }),
  'clickcollect.picked_up': z.strictObject({
    ...OrderFields,
    pickedUpAt: z.string(),
    total: z.number(),
    currency: z.string(),
  }),
}

inFullSizeOnEveryDatabase('click and collect', (kind) => {
  let shop: Shop
  let product: Json
  const { platform, forward } = movablePlatform()
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    product = shop.products[0]
  })
  afterAll(() => shop.stop())

  const submit = (fields: Json = {}) =>
    shop.call('submitClickCollectOrder', {
      storeId: shop.storeId,
      userId: 'shopper-1',
      items: [{ productId: product.productId, quantity: 1 }],
      ...fields,
    })
  const ordered = async (fields: Json = {}): Promise<Json> => {
    const { status, body } = await submit(fields)
    expect([status, body.error]).toEqual([200, undefined])
    return body
  }
  const move = (orderId: string, status: string, fields: Json = {}) =>
    shop.call('updateClickCollectStatus', { orderId, status, ...fields })
  const walk = async (orderId: string, ...statuses: string[]) => {
    for (const status of statuses) expect((await move(orderId, status)).status).toBe(200)
  }
  const statusOfTag = async (tag: Json) =>
    (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc: tag.epc })).itemStatus
  const eventsOf = async (orderId: string): Promise<Json[]> => {
    const rows = await shop.cloud.db.database.reads
      .selectFrom('outbox_event')
      .selectAll()
      .where('type', 'like', 'clickcollect.%')
      .orderBy('event_id')
      .execute()
    const events = rows
      .map((row) => ({ type: row.type, ...JSON.parse(row.data) }) as Json)
      .filter((e) => e.orderId === orderId)
    for (const { type, ...data } of events)
      CLICK_AND_COLLECT_EVENTS[type as keyof typeof CLICK_AND_COLLECT_EVENTS].parse(data)
    return events
  }

  it('finds the order of a pick-up code, also for the store’s agents, without data of the customer or of other orders', async () => {
    const [first, second] = [await ordered(), await ordered()]
    const find = (pickupCode: string, storeId = shop.storeId) => shop.call('verifyPickupCode', { storeId, pickupCode })
    const spoken = ` ${first.pickupCode.slice(0, 4)}-${first.pickupCode.slice(4)} `.toLowerCase()
    expect((await find(spoken)).body).toMatchObject({ orderId: first.orderId, status: 'pending', items: first.items })
    expect((await find(second.pickupCode)).body).toMatchObject({ orderId: second.orderId })
    expect((await find(second.pickupCode)).text).not.toContain('shopper-1')
    expect((await find('AAAAAAAA')).status).toBe(404)
    expect((await find(first.pickupCode, 'st_x')).status).toBe(404)
    const agent = await enrolTestAgent(shop)
    await agent.login()
    expect(
      (await agent.call('verifyPickupCode', { storeId: shop.storeId, pickupCode: first.pickupCode })).body,
    ).toMatchObject({ orderId: first.orderId })
    const { stores } = await shop.ok('fetchStores', {})
    const other = (stores as Json[]).find(({ storeId }) => storeId !== shop.storeId)
    expect(
      (await agent.call('verifyPickupCode', { storeId: other?.storeId, pickupCode: first.pickupCode })).status,
    ).toBe(404)
    await move(first.orderId, 'cancelled')
    expect((await find(first.pickupCode)).status).toBe(404)
    await walk(second.orderId, 'confirmed', 'ready', 'picked_up')
    expect((await find(second.pickupCode)).body).toMatchObject({ status: 'picked_up' })
  })

  it('creates an order at the store’s prices, reserves its tagged items, and moves it to pick-up', async () => {
    const pickupTime = new Date(platform.clock.wall() + DAY).toISOString()
    const order = await ordered({
      items: [
        { productId: product.productId, quantity: 1 },
        { ean: product.ean, quantity: 1 },
      ],
      pickupTime,
      note: 'n'.repeat(250),
    })
    expect(order).toMatchObject({
      status: 'pending',
      estimatedPickupAt: pickupTime,
      currency: 'EUR',
      items: [{ productId: product.productId, quantity: 2, price: product.price }],
    })
    expect(order.total).toBeCloseTo(product.price * 2)
    expect(order.pickupCode).toMatch(/^[0-9A-HJKMNP-TV-Z]{8}$/)
    const tags = order.items[0].reservedTags
    expect(tags).toHaveLength(2)
    for (const tag of tags) expect(await statusOfTag(tag)).toBe('reserved_bopis')
    const gate = (tag: Json) =>
      shop.ok('verifyProtectedItem', {
        deviceId: shop.devices.exit_gate,
        protectionAction: 'authorize_exit',
        epc: tag.epc,
      })
    expect(await gate(tags[0])).toMatchObject({ authorized: false, reason: 'item_not_paid' })
    await walk(order.orderId, 'accepted', 'preparing', 'ready')
    const before = (await shop.ok('getLoyaltyProgram', { programId: shop.programId, userId: 'shopper-1' })).membership
      .balance
    expect((await move(order.orderId, 'picked_up', { pickupCode: 'AAAAAAAA' })).body).toMatchObject({
      code: 'failed-precondition',
      reason: 'pickup_code_wrong',
    })
    const spoken = `${order.pickupCode.slice(0, 4)}-${order.pickupCode.slice(4)}`
      .toLowerCase()
      .replaceAll('0', 'o')
      .replaceAll('1', 'l')
    expect((await move(order.orderId, 'picked_up', { pickupCode: spoken })).body).toMatchObject({
      success: true,
      status: 'picked_up',
      pickedUpAt: expect.any(String),
    })
    for (const tag of tags) expect(await statusOfTag(tag)).toBe('picked_up')
    expect(await gate(tags[0])).toMatchObject({ authorized: true })
    expect(
      (await shop.ok('getLoyaltyProgram', { programId: shop.programId, userId: 'shopper-1' })).membership.balance,
    ).toBe(before + Math.floor(order.total))
    const events = await eventsOf(order.orderId)
    expect(events.map((e) => [e.type.slice(13), e.previousStatus, e.status])).toEqual([
      ['order', undefined, 'pending'],
      ['status_changed', 'pending', 'confirmed'],
      ['status_changed', 'confirmed', 'preparing'],
      ['status_changed', 'preparing', 'ready'],
      ['status_changed', 'ready', 'picked_up'],
      ['picked_up', undefined, undefined],
    ])
    expect(JSON.stringify(events)).not.toContain('nnnn')
  })

  it('allows only the moves of the state table, in any order of requests', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 8 }), async (names) => {
        const { orderId } = await ordered({ items: [{ productId: shop.products[1].productId, quantity: 1 }] })
        let state = 'pending'
        for (const name of names) {
          const to = name === 'accepted' ? 'confirmed' : name
          const answer = await move(orderId, name)
          if (NEXT[state]?.includes(to)) {
            expect([answer.status, answer.body.status]).toEqual([200, to])
            state = to
          } else
            expect(answer).toMatchObject({
              status: 409,
              body: { code: 'failed-precondition', reason: 'illegal_order_move', allowedNext: NEXT[state] },
            })
        }
        await move(orderId, 'cancelled')
      }),
      { numRuns: 25 },
    )
  })

  it('releases the tagged items of a cancelled order, and reserves them exclusively until then', async () => {
    const other = shop.products[2]
    const { epc } = await shop.newItem(other)
    const first = await ordered({ items: [{ productId: other.productId, quantity: 4 }] })
    const tags = first.items[0].reservedTags
    expect(tags.some((t: Json) => t.epc === epc)).toBe(true)
    expect((await ordered({ items: [{ productId: other.productId, quantity: 1 }] })).items[0].reservedTags).toEqual([])
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    expect(
      (await shop.call('startCheckout', { sessionId, items: [{ ean: other.ean, quantity: 1, epcs: [epc] }] })).body,
    ).toMatchObject({ reason: 'item_not_sellable' })
    await walk(first.orderId, 'confirmed', 'ready')
    expect((await move(first.orderId, 'cancelled', { reason: 'customer called' })).body).toMatchObject({
      status: 'cancelled',
      reason: 'customer called',
    })
    for (const tag of tags) expect(await statusOfTag(tag)).toBe('sellable')
  })

  it('lets staff replace reserved items by the items that they picked', async () => {
    const other = shop.products[3]
    const { epc } = await shop.newItem(other)
    const { epc: stray } = await shop.newItem(shop.products[4])
    const order = await ordered({ items: [{ productId: other.productId, quantity: 1 }] })
    const [replaced] = order.items[0].reservedTags
    await walk(order.orderId, 'confirmed')
    expect((await move(order.orderId, 'preparing', { epcs: [stray] })).body).toMatchObject({ reason: 'item_mismatch' })
    expect((await move(order.orderId, 'preparing', { epcs: [epc, replaced.epc] })).body).toMatchObject({
      code: 'invalid-argument',
    })
    expect((await move(order.orderId, 'preparing', { epcs: ['30'] })).status).toBe(400)
    expect((await move(order.orderId, 'preparing', { epcs: [epc] })).body.items[0].reservedTags).toEqual([{ epc }])
    expect(await statusOfTag(replaced)).toBe('sellable')
    await walk(order.orderId, 'ready', 'picked_up')
    expect(await statusOfTag({ epc })).toBe('picked_up')
  })

  it('reserves each tagged item for one of many concurrent orders', async () => {
    const other = shop.products[1]
    for (let i = 0; i < 5; i++) await shop.newItem(other)
    const orders = await Promise.all(
      Array.from({ length: 12 }, () => ordered({ items: [{ productId: other.productId, quantity: 1 }] })),
    )
    const epcs = orders.flatMap((o) => o.items[0].reservedTags.map((t: Json) => t.epc))
    expect(new Set(epcs).size).toBe(epcs.length)
    expect(epcs.length).toBeGreaterThanOrEqual(5)
    await Promise.all(orders.map((o) => move(o.orderId, 'cancelled')))
  })

  it('cancels an order once if it is not picked up in time', async () => {
    const order = await ordered({ items: [{ productId: shop.products[0].productId, quantity: 1 }] })
    const { orderId } = order
    await walk(orderId, 'confirmed', 'ready')
    const run = () => cancelOverdueOrders(shop.cloud.db.database, shop.cloud.cloud.services)
    const stateOf = async () =>
      (await shop.ok('fetchClickCollectOrders', { storeId: shop.storeId, limit: 500 })).orders.find(
        (o: Json) => o.orderId === orderId,
      )
    await run()
    expect((await stateOf()).status).toBe('ready')
    forward(7 * DAY + 31 * 60_000)
    await Promise.all([run(), run()])
    expect(await stateOf()).toMatchObject({ status: 'cancelled', reason: 'expired' })
    for (const tag of order.items[0].reservedTags) expect(await statusOfTag(tag)).toBe('sellable')
    expect((await eventsOf(orderId)).filter((e) => e.status === 'cancelled')).toHaveLength(1)
  })

  it('rejects an estimate that would cancel the order at once, or that is more than a year ahead', async () => {
    const order = await ordered()
    const wrong = await move(order.orderId, 'confirmed', { estimatedPickupAt: '2020-11-20T10:00:00Z' })
    expect([wrong.status, wrong.body.details[0].path]).toEqual([400, 'estimatedPickupAt'])
    await cancelOverdueOrders(shop.cloud.db.database, shop.cloud.cloud.services)
    const late = new Date(platform.clock.wall() - DAY).toISOString()
    expect((await move(order.orderId, 'confirmed', { estimatedPickupAt: late })).body).toMatchObject({
      status: 'confirmed',
      estimatedPickupAt: late,
    })
    expect((await move(order.orderId, 'cancelled', { estimatedPickupAt: '2020-11-20T10:00:00Z' })).status).toBe(200)
  })

  it('lists orders page by page while new ones arrive, never with the code', async () => {
    const made: string[] = []
    for (let i = 0; i < 5; i++) made.unshift((await ordered({ storeId: shop.otherStoreId })).orderId)
    const list = (fields: Json) => shop.ok('fetchClickCollectOrders', { storeId: shop.otherStoreId, ...fields })
    const first = await list({ limit: 2 })
    const late = (await ordered({ storeId: shop.otherStoreId })).orderId
    const second = await list({ limit: 2, cursor: first.nextCursor })
    const third = await list({ limit: 2, cursor: second.nextCursor })
    expect([...first.orders, ...second.orders, ...third.orders].map((o: Json) => o.orderId)).toEqual(made)
    expect(third.nextCursor).toBeUndefined()
    await walk(late, 'confirmed')
    expect((await list({ status: 'accepted' })).orders.map((o: Json) => o.orderId)).toEqual([late])
    expect(await list({ status: 'pending', offset: 1, limit: 1 })).toMatchObject({
      total: 5,
      orders: [{ orderId: made[1] }],
    })
    expect(JSON.stringify(await list({}))).not.toContain('pickupCode')
    expect(
      (await shop.call('fetchClickCollectOrders', { storeId: shop.otherStoreId, offset: 1, cursor: late })).status,
    ).toBe(400)
  })

  it('lists orders of thousands of tagged pieces in short pages', async () => {
    const { productId, ean } = shop.products[4]
    for (let n = 0; n < 5; n++)
      await shop.ok('registerProtectedItems', {
        storeId: shop.storeId,
        items: Array.from({ length: 500 }, () => ({ ean, epc: newEpc() })),
      })
    const items = [{ productId, quantity: 1_000 }]
    const userId = 'shopper-large'
    for (let n = 0; n < 3; n++) await ordered({ userId, items })
    let cursor: string | undefined
    let large = 0
    do {
      const page: Json = await shop.ok('fetchClickCollectOrders', { storeId: shop.storeId, limit: 100, cursor })
      const pieces = page.orders.map((order: Json) => order.items.reduce((sum: number, i: Json) => sum + i.quantity, 0))
      expect(pieces.filter((count: number) => count === 1_000).length).toBeLessThan(3)
      large += pieces.filter((count: number) => count === 1_000).length
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(large).toBe(3)
  })

  it('stores only a hash of the code, and returns the same code for a repeated request', async () => {
    const headers = { 'idempotency-key': 'order-once' }
    const body = { storeId: shop.storeId, userId: 'u', items: [{ productId: product.productId, quantity: 1 }] }
    const [first, second] = [
      await shop.ok('submitClickCollectOrder', body, headers),
      await shop.ok('submitClickCollectOrder', body, headers),
    ]
    expect(second).toEqual(first)
    const { reads } = shop.cloud.db.database
    const dump = JSON.stringify(
      await Promise.all(
        (['pickup_order', 'idempotency', 'audit_entry', 'outbox_event'] as const).map((t) =>
          reads.selectFrom(t).selectAll().execute(),
        ),
      ),
    )
    expect(dump).not.toContain(first.pickupCode)
    await walk(first.orderId, 'cancelled')
  })

  it('works in live mode and without tags', async () => {
    const live = await shop.cloud.key('secret', 'live')
    const [storeId] = await liveStores(shop.cloud, live, {
      package: 'GO',
      products: [{ ean: '4017265103243', name: 'Schirm', priceCent: 1999 }],
    })
    const order = await shop.cloud.ok(live, 'submitClickCollectOrder', {
      storeId,
      userId: 'u',
      items: [{ ean: '4017265103243', quantity: 2 }],
    })
    expect(order).toMatchObject({ status: 'pending', total: 39.98, items: [{ reservedTags: [] }] })
    for (const status of ['confirmed', 'ready', 'picked_up'])
      await shop.cloud.ok(live, 'updateClickCollectStatus', { orderId: order.orderId, status })
    expect((await move(order.orderId, 'cancelled')).status).toBe(404)
    const [poor] = await liveStores(shop.cloud, live, {
      package: 'ASSIST',
      products: [{ ean: '4017265103243', name: 'Schirm', priceCent: 1999 }],
    })
    const refused = await shop.cloud.call(live, 'submitClickCollectOrder', {
      storeId: poor,
      userId: 'u',
      items: [{ ean: '4017265103243', quantity: 2 }],
    })
    expect(refused).toMatchObject({ status: 403, body: { requiredUpgrade: 'GO', currentPackage: 'ASSIST' } })
  })

  it('prices each label of a scale separately', async () => {
    const { storeId } = shop
    const cheese = await shop.ok('insertProduct', {
      storeId,
      ean: '2810280000007',
      name: 'Bergkäse am Stück',
      price: 19.9,
      vat: 7,
    })
    await shop.ok('setStock', { storeId, productId: cheese.productId, quantity: 3 })
    const label = (cents: number) => {
      const value = String(cents).padStart(5, '0')
      const digits = `281028${priceCheckDigit(value)}${value}`
      return `${digits}${checkDigit(digits)}`
    }
    const items = [502, 310, 502].map((cents) => ({ ean: label(cents), quantity: 1 }))
    const order = await ordered({ items })
    expect([order.total, order.items.map((item: Json) => [item.productId, item.price, item.quantity])]).toEqual([
      13.14,
      [
        [cheese.productId, 5.02, 2],
        [cheese.productId, 3.1, 1],
      ],
    ])
    expect(
      (await shop.ok('fetchStock', { storeId, limit: 500 })).stock.find((s: Json) => s.productId === cheese.productId),
    ).toMatchObject({ quantity: 3, reserved: 3 })
    const tooMany = await submit({ items: items.slice(0, 1) })
    expect([tooMany.status, tooMany.body.reason]).toEqual([409, 'out_of_stock'])
    // Registered items are assigned to one of the lines.
    const tag = await shop.newItem(cheese)
    await walk(order.orderId, 'confirmed')
    expect(
      (await move(order.orderId, 'ready', { epcs: [tag.epc] })).body.items.map((item: Json) => item.reservedTags),
    ).toEqual([[{ epc: tag.epc }], []])
    await walk(order.orderId, 'picked_up')
    expect(await statusOfTag(tag)).toBe('picked_up')
  })

  it('rejects invalid orders', async () => {
    for (const fields of [
      { note: 'n'.repeat(251) },
      { items: [] },
      { items: [{ quantity: 1 }] },
      { items: [{ productId: product.productId, quantity: 0 }] },
      { items: [{ productId: 'prd_x', quantity: 1 }] },
      { pickupTime: 'tomorrow' },
      { pickupTime: '2099-01-01T00:00:00Z' },
      { pickupTime: new Date(platform.clock.wall() - 60_000).toISOString() },
      { userId: '' },
    ]) {
      expect([fields, (await submit(fields)).status]).toEqual([fields, 400])
    }
    expect((await submit({ items: [{ productId: 'prd_x', quantity: 1 }] })).body.details[0].path).toBe(
      'items[0].productId',
    )
    const { orderId } = await ordered()
    expect((await move(orderId, 'pending')).status).toBe(400)
    const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger' })
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    for (const key of [stranger, bound]) {
      expect((await shop.cloud.call(key, 'updateClickCollectStatus', { orderId, status: 'confirmed' })).status).toBe(
        404,
      )
      expect((await shop.cloud.call(key, 'fetchClickCollectOrders', { storeId: shop.storeId })).status).toBe(404)
    }
    await walk(orderId, 'cancelled')
  })

  it('logs no error', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
