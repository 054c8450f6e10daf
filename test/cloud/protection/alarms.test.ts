import { afterAll, beforeAll, expect, it } from 'vitest'
import { perform } from '../../../cloud/platform/operations/perform.ts'
import { disposeAlarm } from '../../../cloud/protection/records/dispose-alarm.ts'
import type { UserCaller } from '../../../cloud/platform/foundation/caller.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { newEpc, openShop, type Shop } from '../../support/shop.ts'

const MINUTE = 60_000

onEveryDatabase('alarms of a store', (kind) => {
  let shop: Shop
  let ids = 0
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop?.stop())

  const nowMs = () => shop.cloud.platform.clock.wall()
  async function raise(fields: Json = {}, ms = nowMs()): Promise<string> {
    const eventId = `alarm-${++ids}`
    const event = {
      type: 'protection.exception.raised',
      eventId,
      occurredAt: new Date(ms).toISOString(),
      storeId: shop.storeId,
      deviceId: shop.devices.exit_gate,
      reason: 'gate_alarm',
      epc: newEpc(),
      ...fields,
    }
    await shop.ok('reportProtectionEvents', { events: [event] })
    return eventId
  }
  const fetched = (filter: Json = {}): Promise<Json> => shop.ok('fetchAlarms', { storeId: shop.storeId, ...filter })
  const alarmOf = async (eventId: string, state = 'open') =>
    (await fetched({ state })).alarms.find((alarm: Json) => alarm.eventId === eventId)

  it('lists an open alarm with product, price and gate, then as acknowledged, then as disposed of', async () => {
    const [product] = shop.products
    const { epc } = await shop.newItem(product)
    await shop.ok('updateDevice', { deviceId: shop.devices.exit_gate, name: 'Ausgang Nord' })
    const eventId = await raise({ epc, itemStatus: 'sellable' })
    const open = await alarmOf(eventId)
    expect(open).toMatchObject({
      state: 'open',
      gate: 'Ausgang Nord',
      epc,
      times: 1,
      product: { productId: product.productId, name: product.name, price: product.price },
    })
    expect(open.receipt).toBeUndefined()
    await shop.ok('acknowledgeException', { exceptionId: open.exceptionId })
    expect(await alarmOf(eventId)).toBeUndefined()
    expect(await alarmOf(eventId, 'acknowledged')).toMatchObject({ state: 'acknowledged' })
    const { operatorId } = await shop.ok('registerOperator', { storeId: shop.storeId, name: 'Frau Petersen' })
    await shop.ok('disposeAlarm', { eventId, disposition: 'real', operatorId, recoveredValue: 12.5 })
    expect(await alarmOf(eventId, 'acknowledged')).toBeUndefined()
    expect(await alarmOf(eventId, 'disposed')).toMatchObject({
      state: 'disposed',
      disposition: 'real',
      recoveredValue: 12.5,
      operatorId,
      handledByName: 'Frau Petersen',
    })
    expect((await fetched({ state: 'disposed', disposition: 'phantom' })).total).toBe(0)
    expect((await shop.ok('fetchAlarms', { storeId: shop.otherStoreId })).alarms).toEqual([])
  })

  it('calls colleagues to an alarm once, with gate and name of the caller, until the call is closed', async () => {
    await shop.ok('updateDevice', { deviceId: shop.devices.exit_gate, name: 'Ausgang Nord' })
    const guard = await shop.cloud.user('associate')
    const eventId = await raise()
    const call = await shop.cloud.ok(guard, 'callHelpToAlarm', { eventId })
    const { requestId, requestedByName } = call
    expect(call).toMatchObject({ reason: 'alarm', status: 'open', eventId, deviceName: 'Ausgang Nord', messages: [] })
    expect(requestedByName).toMatch(/./)
    expect(await alarmOf(eventId)).toMatchObject({ helpRequestId: requestId })
    expect(await shop.cloud.ok(guard, 'callHelpToAlarm', { eventId })).toMatchObject({ requestId })
    const { requests } = await shop.ok('fetchAssistanceRequests', { storeId: shop.storeId, status: 'open' })
    expect(requests.filter((each: Json) => each.eventId === eventId)).toMatchObject([
      { requestId, requestedByName, tag: (await alarmOf(eventId)).epc },
    ])

    const message = 'Bin unterwegs.'
    expect(await shop.ok('answerAssistanceRequest', { requestId, message })).toMatchObject({
      status: 'answered',
      eventId,
    })
    await shop.ok('answerAssistanceRequest', { requestId, status: 'closed' })
    expect((await alarmOf(eventId)).helpRequestId).toBeUndefined()
    expect((await shop.ok('callHelpToAlarm', { eventId })).requestId).not.toBe(requestId)
    await shop.cloud.ok(guard, 'disposeAlarm', { eventId, disposition: 'phantom' })
    const { requests: left } = await shop.ok('fetchAssistanceRequests', { storeId: shop.storeId, status: 'open' })
    expect(left.filter((each: Json) => each.eventId === eventId)).toEqual([])
    expect((await shop.call('callHelpToAlarm', { eventId: 'evt_unknown' })).status).toBe(404)
    const viewer = await shop.cloud.user('viewer')
    expect((await shop.cloud.call(viewer, 'callHelpToAlarm', { eventId })).status).toBe(403)
  })

  it('names the purchase that contains this tag, else the product, of the last hour only', async () => {
    const [, first, second] = shop.products
    const paid = await shop.newItem(first)
    const { transactionId: ofItem } = await shop.buy([{ ean: first.ean, quantity: 1, epcs: [paid.epc] }])
    const { transactionId: ofProduct } = await shop.buy([{ ean: second.ean, quantity: 1 }])
    const receiptOf = async (epc: string, ms = nowMs()) => (await alarmOf(await raise({ epc }, ms))).receipt
    expect(await receiptOf(paid.epc)).toMatchObject({ match: 'item', purchaseId: ofItem })
    // Goods that came back are not paid any more, on sale again or not.
    for (const resellable of [true, false]) {
      const back = await shop.newItem(shop.products[3])
      const sale = { saleId: `back-${resellable}`, occurredAt: new Date(nowMs()).toISOString() }
      const lines = [{ ean: shop.products[3].ean, quantity: 1, priceUnit: 990, vat: 19, epcs: [back.epc] }]
      await shop.ok('recordSales', { storeId: shop.storeId, sales: [{ ...sale, lines }] })
      const returns = [{ returnId: sale.saleId, epcs: [back.epc], resellable }]
      await shop.ok('recordReturns', { storeId: shop.storeId, returns })
      expect(await receiptOf(back.epc), `resellable ${resellable}`).toBeUndefined()
    }
    // An item without a product is described by what is registered.
    const named = newEpc()
    const items = [{ epc: named, brand: 'Mola', price: 89.9 }]
    await shop.ok('registerProtectedItems', { storeId: shop.storeId, items })
    expect((await alarmOf(await raise({ epc: named }))).goods).toMatchObject({ brand: 'Mola', price: 89.9 })
    // Another piece of the first product: the only purchase of the product is bound to another tag.
    expect(await receiptOf((await shop.newItem(first)).epc)).toBeUndefined()
    const other = await shop.newItem(second)
    expect(await receiptOf(other.epc)).toMatchObject({ match: 'product', purchaseId: ofProduct })
    // The shopper pays these goods up to ten minutes after the alarm. A later purchase of the product may be anybody's.
    expect(await receiptOf(paid.epc, nowMs() - 9 * MINUTE)).toMatchObject({ match: 'item' })
    expect(await receiptOf(paid.epc, nowMs() - 11 * MINUTE)).toBeUndefined()
    expect(await receiptOf(other.epc, nowMs() - 5 * MINUTE)).toBeUndefined()
    // A purchase more than an hour ago does not count.
    expect(await receiptOf(other.epc, nowMs() + 59 * MINUTE)).toMatchObject({ match: 'product' })
    expect(await receiptOf(other.epc, nowMs() + 61 * MINUTE)).toBeUndefined()
    await shop.ok('markPurchaseCancelled', { purchaseId: ofProduct })
    expect(await receiptOf(other.epc)).toBeUndefined()
  })

  it('lists one alarm in any state, and the latest alarm of each tag of a purchase', async () => {
    const [product] = shop.products
    const [one, two] = [await shop.newItem(product), await shop.newItem(product)]
    const { transactionId: purchaseId } = await shop.buy([{ ean: product.ean, quantity: 2, epcs: [one.epc, two.epc] }])
    await raise({ epc: one.epc }, nowMs() - MINUTE)
    const [latest, other] = [await raise({ epc: one.epc }), await raise({ epc: two.epc })]
    await raise()
    await shop.ok('disposeAlarm', { eventId: other, disposition: 'real', operatorId: 'op-1' })
    const idsOf = async (filter: Json) => (await fetched(filter)).alarms.map(({ eventId }: Json) => eventId)
    expect((await idsOf({ purchaseId })).toSorted()).toEqual([latest, other].toSorted())
    expect(await fetched({ eventId: other })).toMatchObject({ total: 1, alarms: [{ state: 'disposed' }] })
    expect(await fetched({ eventId: latest })).toMatchObject({ alarms: [{ state: 'open' }] })
    const none = { total: 0, alarms: [] }
    expect(await fetched({ eventId: 'evt_of_nobody' })).toMatchObject(none)
    const elsewhere = { storeId: shop.otherStoreId, eventId: other }
    expect(await shop.ok('fetchAlarms', elsewhere)).toMatchObject(none)
    expect(await shop.ok('fetchAlarms', { storeId: shop.otherStoreId, purchaseId })).toMatchObject(none)
    expect(await idsOf({ purchaseId: 'pur_of_nobody' })).toEqual([])
  })

  it('are the latest events of their gate, the latest first', async () => {
    const ids = [await raise(), await raise()]
    const about = { storeId: shop.storeId, deviceId: shop.devices.exit_gate, latest: true }
    const { events, nextCursor } = await shop.ok('fetchProtectionEvents', { ...about, limit: 2 })
    expect([nextCursor, ...events.map(({ eventId }: Json) => eventId).toSorted()]).toEqual([
      undefined,
      ...ids.toSorted(),
    ])
    expect(
      (await shop.ok('fetchProtectionEvents', { ...about, deviceId: shop.devices.pos_deactivator })).events.filter(
        ({ reason }: Json) => reason === 'gate_alarm',
      ),
    ).toEqual([])
    const since = new Date(nowMs() + MINUTE).toISOString()
    expect((await shop.ok('fetchProtectionEvents', { ...about, since })).events).toEqual([])
  })

  it('pages, the latest first, and counts', async () => {
    const all = (await fetched({ limit: 50 })).alarms.map(({ eventId }: Json) => eventId)
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await fetched({ limit: 2, ...(cursor !== undefined && { cursor }) })
      expect(page.total).toBe(all.length)
      seen.push(...page.alarms.map(({ eventId }: Json) => eventId))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(seen).toEqual(all)
    const newest = await raise()
    expect((await fetched({ limit: 1 })).alarms[0].eventId).toBe(newest)
    expect((await shop.call('fetchAlarms', { storeId: shop.storeId, cursor: 'x' })).status).toBe(400)
  })

  it('show to a second person who decided first, and keep what was decided before', async () => {
    const eventId = await raise()
    const dispose = (operatorId: string, disposition: string, seen?: string) =>
      shop.call('disposeAlarm', { eventId, disposition, operatorId, ...(seen && { seen }) })
    const { operatorId: gustav } = await shop.ok('registerOperator', { storeId: shop.storeId, name: 'Gustav Holm' })
    expect((await dispose(gustav, 'real', 'none')).status).toBe(200)
    const second = await dispose('op-2', 'phantom', 'none')
    expect(second).toMatchObject({ status: 409, body: { reason: 'alarm_disposed' } })
    expect(second.body.error).toMatch(/^Gustav Holm recorded real at \d{4}-/)
    const { disposedAt } = await alarmOf(eventId, 'disposed')
    expect((await dispose('op-2', 'phantom', disposedAt)).status).toBe(200)
    expect((await dispose('op-3', 'staff_error')).status).toBe(200)
    expect(await alarmOf(eventId, 'disposed')).toMatchObject({
      disposition: 'staff_error',
      operatorId: 'op-3',
      earlier: [
        { disposition: 'phantom', operatorId: 'op-2' },
        { disposition: 'real', operatorId: gustav, name: 'Gustav Holm', disposedAt },
      ],
    })
  })

  it('of one gate and time are listed, and get one disposition together', async () => {
    const { storeId } = shop
    const { deviceId } = await shop.ok('registerDevice', {
      storeId,
      deviceType: 'exit_gate',
      workflowType: 'automatic_exit',
    })
    const elsewhere = await raise()
    const ids = [await raise({ deviceId }), await raise({ deviceId }), await raise({ deviceId })]
    const [cared, ...others] = ids
    const { exceptionId } = (await fetched({ deviceId })).alarms.find(({ eventId }: Json) => eventId === cared)
    await shop.ok('acknowledgeException', { exceptionId })
    expect((await fetched({ deviceId })).alarms.map(({ eventId }: Json) => eventId).toSorted()).toEqual(
      others.toSorted(),
    )
    const until = new Date(nowMs()).toISOString()
    expect((await fetched({ until: new Date(nowMs() - 86_400_000 * 2).toISOString() })).total).toBe(0)
    const body = { storeId, deviceId, until, disposition: 'phantom', operatorId: 'op-1' }
    expect(await shop.ok('disposeAlarms', body)).toMatchObject({ disposed: 2, left: 0 })
    expect(await shop.ok('disposeAlarms', body)).toMatchObject({ disposed: 0, left: 0 })
    for (const eventId of others)
      expect(await alarmOf(eventId, 'disposed')).toMatchObject({ disposition: 'phantom', operatorId: 'op-1' })
    expect(await alarmOf(cared ?? '', 'acknowledged')).toMatchObject({ state: 'acknowledged' })
    expect(await alarmOf(elsewhere)).toMatchObject({ state: 'open' })
    const past = { ...body, until: new Date(nowMs() - 86_400_000).toISOString(), deviceId: shop.devices.exit_gate }
    expect(await shop.ok('disposeAlarms', past)).toMatchObject({ disposed: 0 })
  })

  it('of a gate and a time are found in each state, also if their agent reported them late', async () => {
    const { storeId } = shop
    const gate = { storeId, deviceType: 'exit_gate', workflowType: 'automatic_exit' }
    const { deviceId } = await shop.ok('registerDevice', gate)
    const yesterdayMs = nowMs() - 26 * 60 * MINUTE
    const old = [await raise({ deviceId }, yesterdayMs), await raise({ deviceId }, yesterdayMs)]
    const late = await raise({ deviceId })
    const [disposed, open] = old
    const cause = { disposition: 'phantom', operatorId: 'op-1' }
    await shop.ok('disposeAlarm', { eventId: disposed, ...cause })
    const times = (fromMs: number, untilMs: number) => ({
      raisedFrom: new Date(fromMs).toISOString(),
      raisedUntil: new Date(untilMs).toISOString(),
    })
    const ofDay = times(yesterdayMs - MINUTE, yesterdayMs + MINUTE)
    const found = async (filter: Json) => (await fetched(filter)).alarms.map(({ eventId }: Json) => eventId)
    expect(await found({ ...ofDay, deviceId })).toEqual([open])
    expect(await found({ ...ofDay, state: 'disposed', deviceId })).toEqual([disposed])
    expect(await found({ ...ofDay, state: 'disposed', deviceId: shop.devices.exit_gate })).toEqual([])
    expect((await fetched({ state: 'disposed', deviceId })).total).toBe(1)
    const until = new Date(nowMs()).toISOString()
    expect(await shop.ok('disposeAlarms', { storeId, deviceId, until, ...ofDay, ...cause })).toMatchObject({
      disposed: 1,
    })
    expect(await found({ deviceId })).toEqual([late])
  })

  it('stores the user who disposes of an alarm, and asks API keys who decided', async () => {
    const eventId = await raise()
    const refused = await shop.call('disposeAlarm', { eventId, disposition: 'phantom' })
    expect(refused).toMatchObject({ status: 400, body: { details: [{ path: 'operatorId', code: 'missing' }] } })
    const { tenant } = await shop.cloud.db.database.reads.selectFrom('store').select('tenant').executeTakeFirstOrThrow()
    const caller: UserCaller = {
      kind: 'user',
      keyId: 'usr_1',
      sessionId: 'ses_1',
      role: 'associate',
      hasSecondFactor: false,
      mayUseLive: false,
      accountId: tenant.split('.')[0]!,
      mode: 'test',
      tenant: tenant as UserCaller['tenant'],
      storeIds: null,
      package: 'PRIME',
    }
    const { body } = await perform(
      {
        operation: disposeAlarm,
        caller,
        input: { eventId, disposition: 'staff_error' },
        isLegacyForm: false,
        idempotencyKey: undefined,
        requestId: 'req_1',
      },
      shop.cloud.db.database,
      { ...shop.cloud.cloud.services, findCaller: async () => caller },
    )
    expect(JSON.parse(body)).toMatchObject({ disposition: 'staff_error', operatorId: 'usr_1' })
  })

  it('look at 10,000 in a page, whatever the filter', async () => {
    const { storeId } = shop
    const { database } = shop.cloud.db
    const { tenant } = await database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', storeId)
      .executeTakeFirstOrThrow()
    const oldest = await raise()
    await shop.ok('disposeAlarm', { eventId: oldest, disposition: 'staff_error', operatorId: 'op-1' })
    const fromMs = nowMs() + MINUTE
    const cause = { tenant, store_id: storeId, disposition: 'phantom', operator_id: 'op-1' }
    const rows = Array.from({ length: 10_000 }, (_, n) => ({
      ...cause,
      event_id: `many-${n}`,
      disposed_ms: fromMs + n,
    }))
    for (let i = 0; i < rows.length; i += 1_000)
      await database.write((db) =>
        db
          .insertInto('alarm_disposition')
          .values(rows.slice(i, i + 1_000))
          .execute(),
      )
    const filter = { state: 'disposed', deviceId: shop.devices.exit_gate, disposition: 'staff_error' }
    const first = await fetched(filter)
    expect(first).toMatchObject({ alarms: [], total: 0, nextCursor: expect.any(String) })
    const next = await fetched({ ...filter, cursor: first.nextCursor })
    expect([next.alarms[0].eventId, next.nextCursor]).toEqual([oldest, undefined])
  })
})
