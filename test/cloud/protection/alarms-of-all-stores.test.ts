import { afterAll, beforeAll, expect, it } from 'vitest'
import { ALARM_STATES, listAlarms } from '../../../cloud/protection/records/alarm-queries.ts'
import type { StoreScope } from '../../../cloud/platform/stores/own-store.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { openQueryPlans } from '../../support/query-plans.ts'
import { newEpc, openShop, type Shop } from '../../support/shop.ts'

const MINUTE_MS = 60_000
/** Alarms of each store in each state. */
const EACH = 5

onEveryDatabase('alarms of all stores', (kind) => {
  let shop: Shop
  let storeIds: string[]
  let both: string
  let bound: string

  beforeAll(async () => {
    shop = await openShop(kind)
    const { stores } = await shop.ok('fetchStores')
    const { address } = await shop.ok('fetchStore', { storeId: shop.otherStoreId })
    const about = { companyName: 'Deichgold GmbH', tradingName: 'Deichgold Kiel', phone: '+49431555010', address }
    const added = await shop.ok('insertStore', about)
    storeIds = [...stores.map(({ storeId }: Json) => storeId), added.storeId]
    both = await shop.cloud.user('manager', { storeIds: [storeIds[2] ?? '', storeIds[0] ?? ''] })
    bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    for (let n = 0; n < EACH * ALARM_STATES.length; n++)
      for (const storeId of storeIds) await alarmIn(storeId, ALARM_STATES[n % ALARM_STATES.length] ?? 'open')
  })
  afterAll(() => shop?.stop())

  let count = 0
  /** Raises an alarm in a state. */
  async function alarmIn(storeId: string, state: string): Promise<void> {
    const eventId = `alarm-${++count}`
    const occurredAt = new Date(shop.cloud.platform.clock.wall() - MINUTE_MS).toISOString()
    const event = { type: 'protection.exception.raised', eventId, occurredAt, storeId, reason: 'gate_alarm' }
    await shop.ok('reportProtectionEvents', { events: [{ ...event, epc: newEpc() }] })
    if (state === 'acknowledged') {
      const { alarms } = await shop.ok('fetchAlarms', { storeId, eventId })
      await shop.ok('acknowledgeException', { exceptionId: alarms[0].exceptionId })
    }
    if (state === 'disposed') await shop.ok('disposeAlarm', { eventId, disposition: 'phantom', operatorId: 'op-1' })
  }

  async function listed(key: string, filter: Json): Promise<Json[]> {
    const alarms: Json[] = []
    let cursor: string | undefined
    do {
      const page = await shop.cloud.ok(key, 'fetchAlarms', { ...filter, ...(cursor !== undefined && { cursor }) })
      alarms.push(...page.alarms)
      cursor = page.nextCursor
    } while (cursor !== undefined)
    return alarms
  }
  const idsOf = (alarms: readonly Json[]) => alarms.map(({ eventId }) => eventId)
  /** What the lists of single stores contain together. */
  const ofEach = async (ids: readonly string[], filter: Json) =>
    (await Promise.all(ids.map((storeId) => listed(shop.key, { storeId, ...filter })))).flat()

  it.each(ALARM_STATES)(
    'are those of each store together, the latest first, on pages of any size: %s',
    async (state) => {
      const visible: [string, readonly string[]][] = [
        [shop.key, storeIds],
        [both, [storeIds[0] ?? '', storeIds[2] ?? '']],
        [bound, [shop.otherStoreId]],
      ]
      for (const [key, ids] of visible) {
        const alarms = await listed(key, { state, limit: 50 })
        const single = await ofEach(ids, { state, limit: 50 })
        expect(alarms).toHaveLength(EACH * ids.length)
        expect(new Set(alarms.map(({ storeId }) => storeId))).toEqual(new Set(ids))
        const byId = (a: Json, b: Json) => (a.eventId < b.eventId ? -1 : 1)
        expect(alarms.toSorted(byId)).toEqual(single.toSorted(byId))
        const times = alarms.map(
          ({ acknowledgedAt, disposedAt, occurredAt }) => disposedAt ?? acknowledgedAt ?? occurredAt,
        )
        expect(times).toEqual(times.toSorted().toReversed())
        for (const limit of [1, 4]) expect(idsOf(await listed(key, { state, limit }))).toEqual(idsOf(alarms))
        const { total } = await shop.cloud.ok(key, 'fetchAlarms', { state, limit: 1 })
        expect(total).toBe(alarms.length)
      }
    },
  )

  it('are filtered as in one store', async () => {
    for (const disposition of ['phantom', 'real'])
      expect(await listed(both, { state: 'disposed', disposition })).toHaveLength(
        disposition === 'phantom' ? EACH * 2 : 0,
      )
    const until = new Date(shop.cloud.platform.clock.wall() - 10 * MINUTE_MS).toISOString()
    for (const state of ALARM_STATES)
      for (const key of [shop.key, both]) expect(await listed(key, { state, raisedUntil: until })).toEqual([])
  })

  it('name one alarm of any visible store, and none of others', async () => {
    for (const { eventId, storeId } of await listed(shop.key, { limit: 50 })) {
      expect(await shop.ok('fetchAlarms', { eventId })).toMatchObject({ total: 1, alarms: [{ eventId, storeId }] })
      const { alarms } = await shop.cloud.ok(both, 'fetchAlarms', { eventId })
      expect(alarms).toHaveLength(storeId === storeIds[1] ? 0 : 1)
    }
    const purchaseId = 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B'
    expect(await shop.call('fetchAlarms', { purchaseId })).toMatchObject({
      status: 400,
      body: { details: [{ path: 'storeId', code: 'missing' }] },
    })
  })

  it('are hidden from other accounts, from the other mode, and without the package', async () => {
    const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
    const live = await shop.cloud.key('secret', 'live')
    const [{ eventId }] = (await listed(shop.key, { limit: 1 })) as [Json]
    for (const key of [stranger, live])
      for (const filter of [{}, { state: 'disposed' }, { eventId }])
        expect(await shop.cloud.ok(key, 'fetchAlarms', filter)).toMatchObject({ total: 0, alarms: [] })
    const { database } = shop.cloud.db
    const [low = '', high = ''] = storeIds
    await database.write(async (db) => {
      for (const table of ['store', 'protection_event', 'protection_exception', 'alarm_disposition'] as const)
        await db
          .updateTable(table)
          .set((eb) => ({ tenant: eb.fn<string>('replace', ['tenant', eb.val('.test'), eb.val('.live')]) }))
          .where('store_id', 'in', [low, high])
          .execute()
      await db.updateTable('store').set({ package: 'GO' }).where('store_id', '=', low).execute()
      await db.updateTable('store').set({ package: 'GROW' }).where('store_id', '=', high).execute()
    })
    const boundLive = await shop.cloud.key('secret', 'live', { storeIds: [low, high] })
    for (const key of [live, boundLive])
      for (const state of ALARM_STATES) {
        const alarms = await listed(key, { state })
        expect(alarms.map(({ storeId }) => storeId)).toEqual(Array.from({ length: EACH }, () => high))
      }
    expect(shop.cloud.errors).toEqual([])
  })

  it('are read by an index that has their order', async () => {
    const plans = openQueryPlans(shop.cloud.db.location)
    const tenant: StoreScope = { tenant: 'acc_1.test', packages: ['GROW', 'PRIME'] }
    const some: readonly StoreScope[] = [{ storeId: 'st_1' }, { storeId: 'st_2' }]
    const filter = { sinceMs: 0, after: { atMs: 9, id: 'x' }, limit: 20 }
    for (const state of ALARM_STATES)
      for (const scopes of [[tenant], some]) {
        const disposition = state === 'disposed' ? 'phantom' : undefined
        const read = await plans.of(() => listAlarms(plans.db, { ...filter, state, disposition, scopes }))
        // A page without unindexed filters needs not look for its end.
        expect(read).toHaveLength(scopes === some && state === 'open' ? 2 : 4)
        // PostgreSQL chooses by cost, and these tables have few rows.
        if (kind !== 'sqlite') continue
        for (const plan of read) {
          expect(plan).toMatch(scopes === some ? /\(store_id=\? AND \w+_ms[<>]\?/ : /_of_tenant|_by_tenant/)
          expect(plan).not.toMatch(/SCAN (protection_exception|alarm_disposition)/)
          if (scopes !== some) expect(plan).not.toMatch(/TEMP B-TREE/)
        }
      }
    await plans.close()
  })
})
