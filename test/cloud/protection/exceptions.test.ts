import { afterAll, beforeAll, expect, it } from 'vitest'
import { raiseException } from '../../../cloud/protection/records/exceptions.ts'
import { firstIdAt } from '../../../policy/ids.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

onEveryDatabase('exceptions', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const open = async (filter: Json = {}) =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, ...filter })).exceptions as Json[]
  const event = (eventId: string, fields: Json): Json => ({
    type: 'protection.exception.raised',
    eventId,
    occurredAt: new Date().toISOString(),
    storeId: shop.storeId,
    deviceId: shop.devices.exit_gate,
    ...fields,
  })

  it('fetchExceptions lists exceptions of cloud, agents and devices, counted by kind and subject', async () => {
    const agent = await enrolTestAgent(shop)
    await agent.report([
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'red-nobody', outcome: 'confirmed' } }),
      agent.row({ event: event('evt-1', { reason: 'gate_alarm', epc: 'E2AA', detail: 'siren: not_paid' }) }),
      agent.row({ event: event('evt-2', { reason: 'gate_alarm', epc: 'E2AA' }) }),
      agent.row({ event: event('evt-3', { reason: 'gate_alarm', epc: 'E2BB' }) }),
    ])
    const reported = [event('evt-4', { reason: 'tray_open' })]
    await shop.ok('reportProtectionEvents', { events: reported })
    await shop.ok('reportProtectionEvents', { events: reported })
    const all = await open()
    expect(all.map((e) => [e.kind, e.times, e.state]).sort()).toEqual([
      ['gate_alarm', 1, 'open'],
      ['gate_alarm', 2, 'open'],
      ['tray_open', 1, 'open'],
      ['unapplied', 1, 'open'],
    ])
    expect((await open({ kind: 'gate_alarm' })).find((e) => e.times === 2)).toMatchObject({
      eventId: 'evt-2',
      deviceId: shop.devices.exit_gate,
      storeId: shop.storeId,
    })
  })

  it('fetchExceptions pages, the newest first, and shows each exception once', async () => {
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await shop.ok('fetchExceptions', {
        storeId: shop.storeId,
        limit: 1,
        ...(cursor !== undefined && { cursor }),
      })
      seen.push(...page.exceptions.map((e: Json) => e.exceptionId))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(seen).toEqual((await open()).map((e) => e.exceptionId))
    expect(new Set(seen).size).toBe(4)
  })

  it('acknowledgeException stores the key; only repeated reports open an exception again', async () => {
    for (const { exceptionId } of await open()) {
      expect(await shop.ok('acknowledgeException', { exceptionId, note: 'angesehen' })).toMatchObject({
        state: 'acknowledged',
        note: 'angesehen',
        acknowledgedBy: expect.stringMatching(/^key_/),
      })
    }
    expect(await open({ state: 'open' })).toEqual([])
    await shop.ok('reportProtectionEvents', { events: [event('evt-5', { reason: 'tray_open' })] })
    expect(await open({ state: 'open' })).toMatchObject([{ kind: 'tray_open', times: 2 }])
    expect(await open({ state: 'acknowledged' })).toHaveLength(3)
  })

  it('other accounts see no exceptions of this account', async () => {
    const [{ exceptionId } = {} as Json] = await open()
    const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
    const elsewhere = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    for (const key of [stranger, elsewhere]) {
      expect((await shop.cloud.call(key, 'acknowledgeException', { exceptionId })).status).toBe(404)
      expect((await shop.cloud.call(key, 'fetchExceptions', { storeId: shop.storeId })).status).toBe(404)
    }
    expect(shop.cloud.errors).toEqual([])
  })

  /** Stores exceptions of a kind, as many tills and agents would raise them. */
  async function fill(count: number, exceptionKind: string, atMs: number, storeId = shop.storeId) {
    const { database } = shop.cloud.db
    const { tenant } = await database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', storeId)
      .executeTakeFirstOrThrow()
    const rows = Array.from({ length: count }, (_, n) => ({
      exception_id: firstIdAt('exc', atMs + n),
      tenant,
      store_id: storeId,
      kind: exceptionKind,
      subject: `${atMs} ${n}`,
      detail: '',
      raised_ms: atMs + n,
      times: 1,
    }))
    for (let i = 0; i < count; i += 1_000)
      await database.write((db) =>
        db
          .insertInto('protection_exception')
          .values(rows.slice(i, i + 1_000))
          .execute(),
      )
  }

  it('above 1,000 open ones of a kind in a store are counted as one', async () => {
    await fill(1_000, 'door_forced', 1_000_000)
    await fill(1_000, 'sale_tag_unknown', 2_000_000)
    await fill(1_000, 'payment_mismatch', 3_000_000)
    const [known] = await open({ kind: 'door_forced', limit: 1 })
    const reason = 'door_forced'
    const reports = ['E2C1', 'E2C2', 'E2C3'].map((epc) => event(`evt-${epc}`, { reason, epc, detail: epc }))
    await shop.ok('reportProtectionEvents', { events: reports })
    expect(await open({ kind: reason, limit: 2 })).toMatchObject([
      { subject: 'further', times: 3, detail: 'E2C3 (the last of many)', eventId: 'evt-E2C3' },
      { exceptionId: known?.exceptionId },
    ])
    const tagIds = Array.from({ length: 20 }, (_, n) => `no-such-tag-${n}`)
    const line = { name: 'Hemd', quantity: 20, priceUnit: 100, vat: 19, tagIds }
    const sale = { tillId: 'k1', saleId: '1', occurredAt: new Date().toISOString(), totalCent: 2_000, lines: [line] }
    for (const saleId of ['1', '2'])
      await shop.ok('recordSales', { storeId: shop.storeId, sales: [{ ...sale, saleId }] })
    const [further, ...others] = await open({ kind: 'sale_tag_unknown', limit: 500 })
    expect(further).toMatchObject({ subject: 'further', times: 40 })
    expect(others.filter(({ subject }) => String(subject).includes('no-such-tag'))).toEqual([])
    // What the cloud finds once has its event, and those that have their exception keep it.
    const { database } = shop.cloud.db
    const scope = { platform: shop.cloud.platform, nowMs: Date.now() }
    const about = { storeId: shop.storeId, kind: 'payment_mismatch' as const, detail: 'one more' }
    const { tenant } = await database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', shop.storeId)
      .executeTakeFirstOrThrow()
    for (const subject of ['new-1', 'new-2', '3000000 5'])
      await database.write((db) => raiseException({ ...scope, tenant, db }, { ...about, subject }))
    expect(await open({ kind: 'payment_mismatch', limit: 1 })).toMatchObject([{ subject: 'further', times: 2 }])
    const { events } = await shop.ok('fetchProtectionEvents', { storeId: shop.storeId, latest: true, limit: 50 })
    expect(events.filter((each: Json) => each.reason === 'payment_mismatch')).toHaveLength(2)
  })

  it('look at 10,000 in a page, whatever the filter', async () => {
    const storeId = shop.otherStoreId
    await fill(1, 'door_left_open', 1_000, storeId)
    await fill(10_100, 'tray_open', 10_000, storeId)
    const filter = { storeId, kinds: ['door_left_open'], state: 'open' }
    const first = await shop.ok('fetchExceptions', filter)
    expect(first).toMatchObject({ exceptions: [], total: 0, nextCursor: firstIdAt('exc', 10_100) })
    const { exceptions, nextCursor } = await shop.ok('fetchExceptions', { ...filter, cursor: first.nextCursor })
    expect([exceptions.length, nextCursor]).toEqual([1, undefined])
    const both = await shop.cloud.key('secret', 'test', { storeIds: [storeId, shop.storeId] })
    // Two stores: 5,000 of each.
    const page = await shop.cloud.ok(both, 'fetchExceptions', { kinds: ['door_left_open'] })
    expect(page).toMatchObject({ exceptions: [], nextCursor: firstIdAt('exc', 15_100) })
    expect(await shop.ok('fetchExceptions', { storeId, kind: 'tray_open', limit: 1 })).toMatchObject({ total: 10_000 })
  })

  it('of kinds that are not in the vocabulary are counted as one above 10,000 open ones of a store', async () => {
    const storeId = shop.otherStoreId
    const events = ['own_1', 'own_2'].map((reason) => ({ ...event(`evt-${reason}`, { reason }), storeId }))
    await shop.ok('reportProtectionEvents', { events })
    const { exceptions } = await shop.ok('fetchExceptions', { storeId, limit: 2 })
    expect(exceptions).toMatchObject([{ kind: 'unnamed', subject: 'further', times: 2 }, { kind: 'tray_open' }])
  })
})
