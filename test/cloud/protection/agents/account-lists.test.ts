import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { agentReader } from '../../../../cloud/protection/agents/administration/agent-operations.ts'
import type { Db } from '../../../../cloud/platform/persistence/database.ts'
import { listStores } from '../../../../cloud/platform/stores/queries.ts'
import { storesById } from '../../../../cloud/platform/stores/own-store.ts'
import {
  endOfPage,
  exceptionReader,
  type ExceptionFilter,
} from '../../../../cloud/protection/records/exception-operations.ts'
import type { StoreScope } from '../../../../cloud/platform/stores/own-store.ts'
import { firstIdAt } from '../../../../policy/ids.ts'
import { agentTopic } from '../../../../policy/mqtt-topics.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openQueryPlans, type QueryPlans } from '../../../support/query-plans.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('lists of agents, devices and exceptions of an account', (kind) => {
  let shop: Shop
  let stranger: string
  let live: string
  let bound: string
  /** Two agents of the first store, then one of the second store. */
  const agents: TestAgent[] = []

  beforeAll(async () => {
    shop = await openShop(kind)
    stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
    live = await shop.cloud.key('secret', 'live')
    bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
    for (const storeId of [shop.storeId, shop.storeId, shop.otherStoreId])
      agents.push(await enrolTestAgent(shop, storeId))
    for (const [storeId, reason] of [
      [shop.storeId, 'tray_open'],
      [shop.otherStoreId, 'tray_open'],
      [shop.storeId, 'gate_alarm'],
    ] as const)
      await shop.ok('reportProtectionEvents', { events: [raised(storeId, reason)] })
  })
  afterAll(() => shop.stop())

  let serial = 0
  const raised = (storeId: string, reason: string): Json => ({
    type: 'protection.exception.raised',
    eventId: `evt-${++serial}`,
    occurredAt: new Date().toISOString(),
    storeId,
    reason,
    detail: 'made by the test',
  })
  const idsOf = (list: readonly { agentId: string }[]) => list.map(({ agentId }) => agentId)
  const agentsOf = async (filter: Json = {}, key = shop.key) => shop.cloud.ok(key, 'fetchAgents', filter)
  const kindsOf = async (filter: Json = {}, key = shop.key) =>
    (await shop.cloud.ok(key, 'fetchExceptions', filter)).exceptions.map((e: Json) => [e.storeId, e.kind])
  const report = async ({ storeId, agentId }: TestAgent, online: boolean) => {
    const { messages } = shop.cloud.cloud
    const state = JSON.stringify({ online, observedAt: new Date().toISOString() })
    messages.hooks.onMessage({ storeId, agentId }, agentTopic(storeId, agentId, 'state'), state)
    await messages.settled()
  }

  it('fetchAgents lists the agents of all stores, of one store, and page by page', async () => {
    const all = await agentsOf()
    expect([idsOf(all.agents), all.total, all.nextCursor]).toEqual([idsOf(agents), 3, undefined])
    const one = await agentsOf({ storeId: shop.storeId })
    expect([idsOf(one.agents), one.total]).toEqual([idsOf(agents.slice(0, 2)), 2])
    const first = await agentsOf({ limit: 2 })
    expect([idsOf(first.agents), first.total]).toEqual([idsOf(agents.slice(0, 2)), 3])
    const second = await agentsOf({ limit: 2, cursor: first.nextCursor })
    expect([idsOf(second.agents), second.total, second.nextCursor]).toEqual([idsOf(agents.slice(2)), 3, undefined])
    // A key of named stores reads them one by one.
    const { storeId, otherStoreId } = shop
    const both = await shop.cloud.key('secret', 'test', { storeIds: [otherStoreId, storeId] })
    const merged = await agentsOf({ limit: 2 }, both)
    expect([idsOf(merged.agents), merged.total]).toEqual([idsOf(agents.slice(0, 2)), 3])
    expect(idsOf((await agentsOf({ limit: 2, cursor: merged.nextCursor }, both)).agents)).toEqual(
      idsOf(agents.slice(2)),
    )
  })

  it('fetchAgents filters by state and connection', async () => {
    const [online, offline, revoked] = agents as [TestAgent, TestAgent, TestAgent]
    await report(online, true)
    await report(offline, false)
    await report(revoked, true)
    await shop.ok('revokeAgent', { agentId: revoked.agentId })
    expect(idsOf((await agentsOf({ online: true })).agents)).toEqual([online.agentId])
    const down = await agentsOf({ online: false })
    expect(idsOf(down.agents)).toEqual([offline.agentId, revoked.agentId])
    expect(down.agents.map((a: Json) => a.online)).toEqual([false, false])
    expect(await agentsOf({ state: 'revoked' })).toMatchObject({ total: 1, agents: [{ agentId: revoked.agentId }] })
    expect(idsOf((await agentsOf({ state: 'active' })).agents)).toEqual([online.agentId, offline.agentId])
    expect(await agentsOf({ state: 'forked' })).toMatchObject({ total: 0, agents: [] })
  })

  it('fetchExceptions lists the exceptions of all stores, the newest first, and page by page', async () => {
    const all = [
      [shop.storeId, 'gate_alarm'],
      [shop.otherStoreId, 'tray_open'],
      [shop.storeId, 'tray_open'],
    ]
    expect(await kindsOf()).toEqual(all)
    const pages: Json[] = []
    let cursor: string | undefined
    do {
      const page = await shop.ok('fetchExceptions', { limit: 1, ...(cursor !== undefined && { cursor }) })
      expect(page.total).toBe(3)
      pages.push(...page.exceptions.map((e: Json) => [e.storeId, e.kind]))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(pages).toEqual(all)
  })

  it('fetchExceptions filters by kind, state and time', async () => {
    expect(await kindsOf({ kind: 'tray_open' })).toHaveLength(2)
    expect(await kindsOf({ kinds: ['gate_alarm', 'no_such'] })).toEqual([[shop.storeId, 'gate_alarm']])
    expect(await kindsOf({ otherThan: ['tray_open'] })).toEqual([[shop.storeId, 'gate_alarm']])
    const [newest, middle, oldest] = (await shop.ok('fetchExceptions')).exceptions as Json[]
    await shop.ok('acknowledgeException', { exceptionId: newest.exceptionId })
    expect(await kindsOf({ state: 'open' })).toHaveLength(2)
    expect(await kindsOf({ state: 'acknowledged' })).toEqual([[newest.storeId, newest.kind]])
    await shop.cloud.db.database.write((db) => move(db, oldest.exceptionId, '2025-01-01T12:00:00Z'))
    await shop.cloud.db.database.write((db) => move(db, middle.exceptionId, '2025-06-01T12:00:00Z'))
    const between = { since: '2025-01-01T12:00:00Z', until: '2025-06-01T12:00:00Z' }
    expect(await kindsOf(between)).toEqual([[oldest.storeId, oldest.kind]])
    expect(await kindsOf({ since: '2025-01-01T12:00:00.001Z' })).toHaveLength(2)
    expect(await kindsOf({ until: '2025-06-01T14:00:00.001+02:00' })).toHaveLength(2)
    expect(await shop.ok('fetchExceptions', { since: '2100-01-01T00:00:00Z' })).toMatchObject({ total: 0 })
    expect(await kindsOf({ until: '0001-01-01T00:00:00Z' })).toEqual([])
    expect(await shop.call('fetchExceptions', { since: 'yesterday' })).toMatchObject({ status: 400 })
  })

  const move = (db: Db, id: string, at: string) =>
    db
      .updateTable('protection_exception')
      .set({ raised_ms: Date.parse(at), exception_id: firstIdAt('exc', Date.parse(at)) })
      .where('exception_id', '=', id)
      .execute()

  it('fetchDevices lists the devices of all stores, of one kind, and page by page', async () => {
    const { storeId, otherStoreId } = shop
    await shop.ok('registerDevice', { storeId: otherStoreId, deviceType: 'exit_gate' })
    const devicesOf = async (filter: Json, key = shop.key): Promise<Json[]> => {
      const found: Json[] = []
      let cursor: string | undefined
      do {
        const page = await shop.cloud.ok(key, 'fetchDevices', { ...filter, ...(cursor !== undefined && { cursor }) })
        found.push(...page.devices)
        cursor = page.nextCursor
        if (cursor === undefined) expect(page.total).toBe(found.length)
      } while (cursor !== undefined)
      return found
    }
    const byId = (a: Json, b: Json) => (a.deviceId < b.deviceId ? -1 : 1)
    const ofEach = [...(await devicesOf({ storeId })), ...(await devicesOf({ storeId: otherStoreId }))].toSorted(byId)
    const both = await shop.cloud.key('secret', 'test', { storeIds: [otherStoreId, storeId] })
    for (const key of [shop.key, both]) {
      for (const limit of [2, 100]) expect(await devicesOf({ limit }, key)).toEqual(ofEach)
      const gates = await devicesOf({ deviceType: 'exit_gate' }, key)
      expect(gates).toEqual(ofEach.filter(({ deviceType }) => deviceType === 'exit_gate'))
      expect(new Set(gates.map((gate) => gate.storeId))).toEqual(new Set([storeId, otherStoreId]))
    }
    expect(await devicesOf({}, bound)).toEqual(ofEach.filter((device) => device.storeId === otherStoreId))
    const own = new Set(ofEach.map(({ deviceId }) => deviceId))
    for (const key of [stranger, live])
      expect((await devicesOf({}, key)).filter(({ deviceId }) => own.has(deviceId))).toEqual([])
    expect((await shop.cloud.call(bound, 'fetchDevices', { storeId })).status).toBe(404)
  })

  it('show a bound key only its stores, and other accounts and live keys nothing', async () => {
    expect(await agentsOf({}, bound)).toMatchObject({ total: 1, agents: [{ agentId: agents[2]?.agentId }] })
    expect(await kindsOf({}, bound)).toEqual([[shop.otherStoreId, 'tray_open']])
    const both = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId, shop.storeId] })
    const first = await agentsOf({ limit: 2 }, both)
    expect([idsOf(first.agents), first.total]).toEqual([idsOf(agents.slice(0, 2)), 3])
    expect(idsOf((await agentsOf({ limit: 2, cursor: first.nextCursor }, both)).agents)).toEqual([agents[2]?.agentId])
    expect(await kindsOf({}, both)).toEqual(await kindsOf())
    for (const key of [stranger, live]) {
      expect(await agentsOf({}, key)).toMatchObject({ total: 0, agents: [] })
      expect(await shop.cloud.ok(key, 'fetchExceptions')).toMatchObject({ total: 0, exceptions: [] })
    }
    for (const [operation, body] of [
      ['fetchAgents', { storeId: shop.storeId }],
      ['fetchExceptions', { storeId: shop.storeId }],
    ] as const)
      for (const key of [stranger, live, bound]) expect((await shop.cloud.call(key, operation, body)).status).toBe(404)
  })

  it('leave out stores whose package is too low', async () => {
    const { database } = shop.cloud.db
    const tenantOf = async (from: string, to: string) => {
      for (const table of ['store', 'agent', 'device', 'protection_exception'] as const)
        await database.write((db) =>
          db
            .updateTable(table)
            .set((eb) => ({ tenant: eb.fn<string>('replace', ['tenant', eb.val(from), eb.val(to)]) }))
            .where('store_id', 'in', [shop.storeId, shop.otherStoreId])
            .execute(),
        )
    }
    const setPackage = (storeId: string, name: string) =>
      database.write((db) => db.updateTable('store').set({ package: name }).where('store_id', '=', storeId).execute())
    await tenantOf('.test', '.live')
    await setPackage(shop.storeId, 'GO')
    await setPackage(shop.otherStoreId, 'GROW')
    const boundLive = await shop.cloud.key('secret', 'live', { storeIds: [shop.storeId, shop.otherStoreId] })
    for (const key of [live, boundLive]) {
      // Agents can be revoked in each package.
      expect(await agentsOf({}, key)).toMatchObject({ total: 3 })
      expect(await kindsOf({}, key)).toEqual([[shop.otherStoreId, 'tray_open']])
      const { devices } = await shop.cloud.ok(key, 'fetchDevices', {})
      expect(new Set(devices.map(({ storeId }: Json) => storeId))).toEqual(new Set([shop.otherStoreId]))
      expect((await shop.cloud.call(key, 'fetchExceptions', { storeId: shop.storeId })).status).toBe(403)
    }
    expect(shop.cloud.errors).toEqual([])
  })

  describe('read by an index', () => {
    let plans: QueryPlans
    beforeAll(async () => {
      plans = openQueryPlans(shop.cloud.db.location)
      await shop.cloud.db.database.write(fill)
      await plans.analyze()
    })
    afterAll(() => plans.close())

    const tenant: StoreScope = { tenant: 'acc_1.test', packages: undefined }
    const gated: StoreScope = { tenant: 'acc_1.test', packages: ['GROW', 'PRIME'] }
    const store: StoreScope = { storeId: 'st_1' }
    const after = firstIdAt('exc', 4_000_000)
    const cases: [name: string, scope: StoreScope, filter: Partial<ExceptionFilter>, index: RegExp][] = [
      ['all of an account', tenant, { after }, /exception_by_tenant\b/],
      ['all of an account by package', gated, { after }, /exception_by_tenant/],
      ['open ones of an account', tenant, { state: 'open' }, /exception_open\b/],
      ['a kind in an account', tenant, { kind: 'rare' }, /exception_by_tenant_kind\b/],
      ['open ones of a kind in an account', tenant, { state: 'open', kind: 'rare' }, /exception_open_kind\b/],
      ['open ones of a kind in a store', store, { state: 'open', kind: 'rare' }, /exception_open_kind_in_store\b/],
      ['open ones of some kinds', tenant, { state: 'open', kinds: ['rare', 'other'] }, /exception_open\b/],
      ['open ones of other kinds', store, { state: 'open', otherThan: ['rare'] }, /exception_open_in_store\b/],
      [
        'a time in an account',
        tenant,
        { sinceMs: 1_000_000, untilMs: 1_200_000 },
        /exception_by_tenant\b|exception_pkey/,
      ],
      ['all of a store', store, { after }, /exception_by_store\b/],
      ['open ones of a store', store, { state: 'open' }, /exception_open_in_store\b/],
      ['a kind in a store', store, { kind: 'rare' }, /exception_by_store_kind\b/],
    ]
    it.each(cases)('exceptions: %s', async (_name, scope, filter, index) => {
      const reader = exceptionReader(plans.db, { ...filter, limit: 20 })
      const read = await plans.of(async () => {
        await endOfPage(plans.db, [scope], { ...filter, limit: 20 })
        await reader.ids(scope, 21)
        await reader.count(scope, 10_000)
      })
      expect(read).toHaveLength(4)
      for (const plan of read) {
        // PostgreSQL chooses among the indexes by cost.
        expect(plan).toMatch(kind === 'sqlite' ? index : /Index/)
        expect(plan).not.toMatch(/Seq Scan on (agent|protection)|SCAN protection_exception|TEMP B-TREE/)
        if (filter.sinceMs === undefined) expect(plan).not.toMatch(/Filter: .*(tenant|store_id) = '/)
      }
    })

    it('lists read neither policies of stores nor devices of agents, which may be long', async () => {
      const { db, queries } = plans
      queries.length = 0
      await agentReader(db, { nowMs: 0, limit: 20 }).rows(['agt_1'])
      await listStores(db, 'acc_1.test', 10)
      await storesById({ db }, ['st_1'])
      expect(queries).toHaveLength(3)
      for (const { sql } of queries) expect(sql).not.toMatch(/\*|"policy"|"device_states"/)
    })

    it('long columns are the last of their tables: SQLite walks through them to reach later ones', async () => {
      const tables = await plans.db.introspection.getTables()
      const last = (name: string) => tables.find((table) => table.name === name)?.columns.at(-1)?.name
      expect([last('store'), last('agent')]).toEqual(['policy', 'device_states'])
    })

    it('agents of an account', async () => {
      const reader = agentReader(plans.db, { nowMs: 0, limit: 20 })
      for (const plan of await plans.of(() => reader.ids(tenant, 21))) {
        expect(plan).toMatch(/agent_by_tenant/)
        expect(plan).not.toMatch(/TEMP B-TREE/)
      }
    })
  })

  /** Two hundred accounts of two stores each. Of their exceptions one of 50 is open, and one of 100 is rare. */
  async function fill(db: Db): Promise<void> {
    const one = await db
      .selectFrom('agent')
      .selectAll()
      .where('agent_id', '=', agents[0]?.agentId ?? '')
      .executeTakeFirstOrThrow()
    const storeOf = (n: number) => ({ tenant: `acc_${n % 200}.test`, store_id: `st_${n % 400}` })
    const rows = Array.from({ length: 8_000 }, (_, n) => ({
      ...storeOf(n),
      exception_id: firstIdAt('exc', n * 1_000),
      kind: Math.floor(n / 400) % 20 === 1 ? 'rare' : 'gate_alarm',
      subject: `s-${n}`,
      device_id: null,
      purchase_id: null,
      detail: '',
      raised_ms: n * 1_000,
      acknowledged_ms: Math.floor(n / 400) % 10 === 1 ? null : 1,
      acknowledged_by: null,
      note: null,
      event_id: null,
      last_ms: null,
      times: 1,
    }))
    const fleet = Array.from({ length: 1_000 }, (_, n) => ({
      ...one,
      tenant: storeOf(n).tenant,
      agent_id: firstIdAt('agt', n),
      ledger_id: `led-${n}`,
      x: `x-${n}`,
    }))
    for (let i = 0; i < rows.length; i += 1_000)
      await db
        .insertInto('protection_exception')
        .values(rows.slice(i, i + 1_000))
        .execute()
    await db.insertInto('agent').values(fleet).execute()
  }
})
