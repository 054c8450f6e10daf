import { stateColumns } from '../../../../cloud/protection/agent-identity/agent-queries.ts'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Db } from '../../../../cloud/platform/persistence/database.ts'
import { storeFetchReport, storeState } from '../../../../cloud/protection/agents/documents/agent-state.ts'
import { AgentWatch } from '../../../../cloud/protection/agents/watch/incidents.ts'
import { iso } from '../../../../cloud/platform/operations/fields.ts'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { newId } from '../../../../policy/ids.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'

const MINUTE_MS = 60_000
const LIMIT_MS = 15 * MINUTE_MS

onEveryDatabase('the watch over agents', (kind) => {
  let shop: Shop
  let world: VirtualPlatform
  let watch: AgentWatch
  let agentId: string
  let nowMs: number

  beforeEach(async () => {
    world = virtualPlatform({ startMs: Date.now(), seed: 3 })
    shop = await openShop(kind, { platform: world })
    agentId = (await enrolTestAgent(shop, shop.storeId)).agentId
    watch = new AgentWatch(shop.cloud.db.database, shop.cloud.cloud.services, LIMIT_MS)
    nowMs = world.clock.wall()
    await bind(shop.devices.exit_gate)
    await hear()
  })
  afterEach(() => shop.stop())

  /** The agent reports that it has this device. */
  const bind = (deviceId: string) =>
    shop.cloud.db.database.write((db) =>
      db.updateTable('device').set({ agent_id: agentId }).where('device_id', '=', deviceId).execute(),
    )
  const agentRow = (db: Db, id = agentId) =>
    db.selectFrom('agent').selectAll().where('agent_id', '=', id).executeTakeFirstOrThrow()
  /** The agent contacts the cloud now, and reports this state. */
  const hear = (state: Json = {}) =>
    shop.cloud.db.database.write((db) =>
      db
        .updateTable('agent')
        .set({
          last_seen_ms: nowMs,
          ...stateColumns({
            observedAt: new Date(nowMs).toISOString(),
            policyVersion: 1_000_000,
            devicesAt: new Date(nowMs).toISOString(),
            ...state,
          }),
        })
        .where('agent_id', '=', agentId)
        .execute(),
    )
  /** Only the wall clock moves: other jobs do not matter here. */
  const later = (minutes: number) => world.setWall((nowMs += minutes * MINUTE_MS))
  const open = async (): Promise<Json[]> =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, state: 'open' })).exceptions
  const events = async (): Promise<Json[]> =>
    (await shop.ok('fetchProtectionEvents', { storeId: shop.storeId, type: 'protection.exception.raised' })).events

  it('raises one exception and event for a silent agent, and withdraws it at its next contact', async () => {
    later(14)
    await watch.check()
    expect(await open()).toEqual([])
    later(2)
    await watch.check()
    later(1)
    await watch.check()
    expect(await open()).toMatchObject([{ kind: 'agent_silent', storeId: shop.storeId }])
    expect(await events()).toMatchObject([{ reason: 'agent_silent' }])
    await hear()
    await watch.check()
    expect(await open()).toEqual([])
    later(16)
    await watch.check()
    expect(await open()).toMatchObject([{ kind: 'agent_silent' }])
    expect(await events()).toHaveLength(2)
  })

  it('stores each outage of an agent once, also if staff have acknowledged its exception', async () => {
    const outages = () =>
      shop.cloud.db.database.reads
        .selectFrom('agent_outage')
        .select(['agent_id', 'began_ms', 'ended_ms'])
        .orderBy('began_ms')
        .execute()
    const beganMs = nowMs
    later(14)
    await watch.check()
    expect(await outages()).toEqual([])
    later(2)
    await watch.check()
    const [exception] = await open()
    await shop.ok('acknowledgeException', { exceptionId: exception.exceptionId })
    later(1)
    await new AgentWatch(shop.cloud.db.database, shop.cloud.cloud.services, LIMIT_MS).check()
    expect(await outages()).toEqual([{ agent_id: agentId, began_ms: beganMs, ended_ms: null }])
    await hear()
    await watch.check()
    const endedMs = nowMs
    expect(await outages()).toEqual([{ agent_id: agentId, began_ms: beganMs, ended_ms: endedMs }])
    later(16)
    await watch.check()
    expect(await outages()).toMatchObject([{ ended_ms: endedMs }, { began_ms: endedMs, ended_ms: null }])
  })

  it('does not raise an acknowledged exception again before the agent returned', async () => {
    later(16)
    await watch.check()
    const [exception] = await open()
    await shop.ok('acknowledgeException', { exceptionId: exception.exceptionId })
    later(60)
    await watch.check()
    await new AgentWatch(shop.cloud.db.database, shop.cloud.cloud.services, LIMIT_MS).check()
    expect(await open()).toEqual([])
    await hear()
    await watch.check()
    later(16)
    await watch.check()
    expect(await open()).toHaveLength(1)
  })

  it('raises exceptions for a device that is not ready and for an old policy, if the agent is connected', async () => {
    const deviceId = shop.devices.exit_gate
    const { document_version: version } = await shop.cloud.db.database.reads
      .selectFrom('store')
      .select('document_version')
      .where('store_id', '=', shop.storeId)
      .executeTakeFirstOrThrow()
    // The document also changes with devices, without a new version of the rules.
    const broken = { policyVersion: version - 1, devices: [{ deviceId, state: 'absent', detail: 'no answer' }] }
    for (let minutes = 0; minutes <= 16; minutes += 8) {
      await hear(broken)
      await watch.check()
      later(8)
    }
    expect((await open()).map((e) => [e.kind, e.deviceId ?? null, e.detail]).sort()).toEqual([
      ['device_not_ready', deviceId, 'the device is absent: no answer'],
      ['policy_not_arrived', null, `the agent uses policy ${version - 1}, and the store has policy ${version}`],
    ])
    await hear()
    await watch.check()
    expect(await open()).toEqual([])
  })

  it('counts the time of a device from its last recovery, which may lie between two checks', async () => {
    const deviceId = shop.devices.exit_gate
    const absentSince = (sinceMs: number) =>
      hear({ devices: [{ deviceId, state: 'absent', detail: 'no answer', since: new Date(sinceMs).toISOString() }] })
    await absentSince(nowMs)
    await watch.check()
    later(1)
    // It was ready for 12 s, and failed again.
    const againMs = nowMs
    await absentSince(againMs)
    await watch.check()
    for (let minutes = 1; minutes <= 14; minutes += 13) {
      later(minutes)
      await absentSince(againMs)
      await watch.check()
      expect(await open()).toEqual([])
    }
    later(1)
    await absentSince(againMs)
    await watch.check()
    expect(await open()).toMatchObject([{ kind: 'device_not_ready', deviceId }])
    await hear({ devices: [{ deviceId, state: 'ready', since: new Date(nowMs).toISOString() }] })
    await watch.check()
    expect(await open()).toEqual([])
  })

  it('keeps the exception of a device if another agent of the store says that the device is ready', async () => {
    const other = await enrolTestAgent(shop)
    const deviceId = shop.devices.exit_gate ?? ''
    const { database } = shop.cloud.db
    const owner = await database.reads
      .selectFrom('device')
      .select('agent_id')
      .where('device_id', '=', deviceId)
      .execute()
    const broken = { devices: [{ deviceId, state: 'absent', detail: 'no answer' }] }
    for (let minutes = 0; minutes <= 16; minutes += 8) {
      await hear(broken)
      await watch.check()
      later(8)
    }
    const row = await database.reads
      .selectFrom('agent')
      .selectAll()
      .where('agent_id', '=', other.agentId)
      .executeTakeFirstOrThrow()
    expect(owner[0]?.agent_id).not.toBe(other.agentId)
    for (const state of ['absent', 'ready'] as const)
      await database.write(async (db) => {
        const agent = await db
          .selectFrom('agent')
          .selectAll()
          .where('agent_id', '=', row.agent_id)
          .executeTakeFirstOrThrow()
        const states = [{ deviceId, state, detail: 'x', since: nowMs }]
        const report = { policyVersion: undefined, ledgerSeq: undefined, release: undefined }
        await storeFetchReport(db, agent, { ...report, devices: { observedAt: iso(nowMs), states } as never }, nowMs)
      })
    expect((await open()).map(({ kind }) => kind)).toContain('device_not_ready')
    await hear()
    await watch.check()
  })

  it('keeps what an agent says about its own devices only, and short', async () => {
    const { database } = shop.cloud.db
    const own = shop.devices.exit_gate
    const state = (deviceId: string) => ({ deviceId, state: 'absent', detail: 'x'.repeat(300) })
    const states = [own, shop.devices.pos_deactivator, ...Array.from({ length: 198 }, (_, i) => `invented-${i}`)].map(
      state,
    )
    const report = { policyVersion: undefined, ledgerSeq: undefined, release: undefined }
    await database.write(async (db) =>
      storeFetchReport(db, await agentRow(db), { ...report, devices: { observedAt: iso(nowMs), states } }, nowMs),
    )
    const text = (await agentRow(database.reads)).device_states ?? ''
    const kept = JSON.parse(text) as { devices: { deviceId: string; detail: string }[] }
    expect(kept.devices.map(({ deviceId, detail }) => [deviceId, detail.length])).toEqual([[own, 200]])
    const online = JSON.stringify({ online: true, observedAt: iso(nowMs + 1), devices: states })
    await database.write((db) => storeState(db, { storeId: shop.storeId, agentId }, online, nowMs + 1))
    expect((await agentRow(database.reads)).device_states).toHaveLength(text.length)
  })

  it('fetchDevices ends a page early if it reads long states of many agents', async () => {
    const { database } = shop.cloud.db
    const AGENTS = 30
    const devices = Array.from({ length: 200 }, (_, i) => ({
      deviceId: `${i}`.padEnd(128, 'd'),
      state: 'absent',
      detail: 'x'.repeat(300),
    }))
    await hear({ devices })
    const total = await database.write(async (db) => {
      const agent = await agentRow(db)
      expect(agent.device_states?.length).toBeGreaterThan(90_000)
      const device = await db
        .selectFrom('device')
        .selectAll()
        .where('device_id', '=', shop.devices.exit_gate)
        .executeTakeFirstOrThrow()
      for (let i = 0; i < AGENTS; i++) {
        const own = { agent_id: `agt_~${i}`, x: `x-${i}`, ledger_id: `led-${i}` }
        await db
          .insertInto('agent')
          .values({ ...agent, ...own })
          .execute()
        // The second device of an agent costs nothing.
        const both = [1, 2].map(() => ({ ...device, device_id: newId('dev', world), agent_id: own.agent_id }))
        await db.insertInto('device').values(both).execute()
      }
      return Object.keys(shop.devices).length + 2 * AGENTS
    })
    const counts: number[] = []
    let cursor: string | undefined
    let after = ''
    do {
      const page = await shop.ok('fetchDevices', { storeId: shop.storeId, limit: 500, ...(cursor && { cursor }) })
      expect(page.devices[0].deviceId > after).toBe(true)
      counts.push(page.devices.length)
      after = page.devices.at(-1).deviceId
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(total)
    expect(Math.max(...counts)).toBeLessThan(30)
  })

  it('raises exceptions about registered devices of the agent only, at most 50', async () => {
    const { database } = shop.cloud.db
    const ids = Array.from({ length: 60 }, (_, i) => `dev_own_${String(i).padStart(2, '0')}`)
    await database.write(async (db) => {
      const { device_id: _id, ...device } = await db
        .selectFrom('device')
        .selectAll()
        .where('device_id', '=', shop.devices.exit_gate)
        .executeTakeFirstOrThrow()
      await db
        .insertInto('device')
        .values(ids.map((device_id) => ({ ...device, device_id })))
        .execute()
    })
    const others = [shop.devices.pos_deactivator, 'invented-1', 'invented-2']
    const since = iso(nowMs - 60 * MINUTE_MS)
    // An earlier release stored all that the agent said.
    await hear({ devices: [...others, ...ids].reverse().map((deviceId) => ({ deviceId, state: 'absent', since })) })
    await watch.check()
    await watch.check()
    const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId, state: 'open', limit: 500 })
    expect(exceptions.map((e: Json) => e.deviceId).sort()).toEqual(ids.slice(0, 50))
  })

  it('lets accounts take turns when it raises many exceptions', async () => {
    const { database } = shop.cloud.db
    const other = await shop.cloud.key('secret', 'test', { account: 'Other', package: 'GROW' })
    const [store] = (await shop.cloud.ok(other, 'fetchStores', {})).stores
    await database.write(async (db) => {
      const { tenant } = await db
        .selectFrom('store')
        .select('tenant')
        .where('store_id', '=', store.storeId)
        .executeTakeFirstOrThrow()
      const agent = { ...(await agentRow(db)), tenant, store_id: store.storeId }
      // Their ids come before that of the other account's agent.
      const silent = Array.from({ length: 250 }, (_, i) => ({
        agent_id: `agt_0${i}`,
        x: `x-${i}`,
        ledger_id: `led-${i}`,
      }))
      await db
        .insertInto('agent')
        .values(silent.map((each) => ({ ...agent, ...each })))
        .execute()
    })
    later(16)
    await watch.check()
    expect(await open()).toMatchObject([{ kind: 'agent_silent' }])
    const ofOther = { storeId: store.storeId, state: 'open', limit: 500 }
    expect((await shop.cloud.ok(other, 'fetchExceptions', ofOther)).exceptions).toHaveLength(199)
    await watch.check()
    expect((await shop.cloud.ok(other, 'fetchExceptions', ofOther)).exceptions).toHaveLength(250)
  })

  it('raises an exception while little disk space is left, once in each account', async () => {
    let free = 5
    const disk = { freeBytes: () => Promise.resolve(free * 1_048_576), minFreeBytes: 10 * 1_048_576 }
    watch = new AgentWatch(shop.cloud.db.database, shop.cloud.cloud.services, LIMIT_MS, disk)
    for (let minutes = 0; minutes <= 16; minutes += 8) {
      await hear()
      await watch.check()
      later(8)
    }
    const { exceptions } = await shop.ok('fetchExceptions', { kind: 'disk_low' })
    expect(exceptions).toMatchObject([{ detail: '5 MiB are free on the disk of the cloud' }])
    free = 50
    await watch.check()
    expect((await shop.ok('fetchExceptions', { kind: 'disk_low', state: 'open' })).exceptions).toEqual([])
  })

  it('raises exceptions for an ending key set and an ending API key that is in use', async () => {
    const { database } = shop.cloud.db
    const { keys } = await shop.ok('fetchApiKeys')
    const [{ keyId }] = keys
    await database.write(async (db) => {
      await db
        .updateTable('api_key')
        .set({ expires_ms: nowMs + 11 * 60 * MINUTE_MS, last_used_ms: nowMs })
        .where('key_id', '=', keyId)
        .execute()
      const iat = Math.floor(nowMs / 1_000) - 371 * 86_400
      await db.updateTable('signed_document').set({ iat }).where('kind', '=', 'keys').execute()
    })
    await watch.check()
    expect((await shop.ok('fetchExceptions', { state: 'open' })).exceptions.map((e: Json) => e.kind).sort()).toEqual([
      'api_key_ending',
      'key_set_not_renewed',
    ])
  })
})
