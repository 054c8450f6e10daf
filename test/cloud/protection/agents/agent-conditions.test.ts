import { afterAll, beforeAll, expect, it } from 'vitest'
import { countConditions } from '../../../../cloud/protection/agents/administration/agent-conditions.ts'
import { agentReader } from '../../../../cloud/protection/agents/administration/agent-operations.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'
import { agentTopic } from '../../../../policy/mqtt-topics.ts'
import { insertFleet } from '../../../support/fleet.ts'
import { openQueryPlans, type QueryPlans } from '../../../support/query-plans.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('conditions of agents', (kind) => {
  let shop: Shop
  let plans: QueryPlans
  let nowMs: number
  let device: string

  beforeAll(async () => {
    shop = await openShop(kind)
    plans = openQueryPlans(shop.cloud.db.location)
    nowMs = shop.cloud.platform.clock.wall()
    const { storeId, otherStoreId } = shop
    device = (await shop.ok('registerDevice', { storeId, deviceType: 'exit_gate', name: 'Ausgang' })).deviceId
    const { database } = shop.cloud.db
    await database.write((db) => db.updateTable('store').set({ document_version: 7 }).execute())
    const many = Array.from({ length: 490 }, (_, n) => ({
      agentId: `agt_B${String(n).padStart(3, '0')}`,
      storeId: n % 2 === 0 ? storeId : otherStoreId,
    }))
    const broken = [{ deviceId: device, state: 'absent', detail: 'no answer' }] as const
    await database.write((db) =>
      insertFleet(db, nowMs, [
        ...many,
        { agentId: 'agt_A1', storeId: otherStoreId, behind: 2 },
        { agentId: 'agt_A2', storeId, silentMs: 91_000 },
        { agentId: 'agt_A3', storeId, columns: { online: 0 } },
        { agentId: 'agt_A4', storeId, devices: [...broken] },
        { agentId: 'agt_A5', storeId, columns: { fork_ms: nowMs } },
        { agentId: 'agt_A6', storeId, columns: { online: null, state: null, policy_version: null } },
        // Each has a worse condition than that of its policy or devices.
        { agentId: 'agt_C1', storeId, behind: 1, silentMs: 91_000, devices: [...broken] },
        { agentId: 'agt_C2', storeId, behind: 1, columns: { fork_ms: nowMs, online: 0 } },
        { agentId: 'agt_C3', storeId, behind: 1, devices: [...broken] },
        // Without a broker, its requests say that it is there.
        { agentId: 'agt_C4', storeId, columns: { online: null } },
        { agentId: 'agt_C5', storeId, behind: 3, columns: { revoked_ms: nowMs, online: 0 } },
      ]),
    )
    await plans.analyze()
  })
  afterAll(async () => {
    await plans?.close()
    await shop?.stop()
  })

  const idsOf = async (condition: string, about: Json = {}) =>
    (await shop.ok('fetchAgents', { condition, ...about })).agents.map(({ agentId }: Json) => agentId)
  const countsOf = async (about: Json = {}, key = shop.key) => {
    const { total, conditions } = await shop.cloud.ok(key, 'fetchAgentConditions', about)
    return { total, ...Object.fromEntries(conditions.map(({ condition, agents }: Json) => [condition, agents])) }
  }

  it('finds the agents of each condition among 500, and counts each agent once', async () => {
    expect(await idsOf('behind')).toEqual(['agt_A1', 'agt_C3'])
    expect(await idsOf('offline')).toEqual(['agt_A2', 'agt_A3', 'agt_C1'])
    expect(await idsOf('fault')).toEqual(['agt_A4'])
    expect(await idsOf('forked')).toEqual(['agt_A5', 'agt_C2'])
    expect(await idsOf('never')).toEqual(['agt_A6'])
    expect(await idsOf('ok', { limit: 500 })).toHaveLength(491)
    expect(await countsOf()).toEqual({ total: 500, forked: 2, offline: 3, behind: 2, fault: 1, never: 1, ok: 491 })
  })

  it('counts the agents of one store, and of the stores of the key', async () => {
    const { otherStoreId } = shop
    const other = { total: 246, forked: 0, offline: 0, behind: 1, fault: 0, never: 0, ok: 245 }
    expect(await countsOf({ storeId: otherStoreId })).toEqual(other)
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [otherStoreId] })
    expect(await countsOf({}, bound)).toEqual(other)
    expect((await shop.cloud.call(bound, 'fetchAgentConditions', { storeId: shop.storeId })).status).toBe(404)
    const both = await shop.cloud.key('secret', 'test', { storeIds: [otherStoreId, shop.storeId] })
    expect(await countsOf({}, both)).toEqual(await countsOf())
    const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger', package: 'PRIME' })
    expect(await countsOf({}, stranger)).toMatchObject({ total: 0, behind: 0 })
  })

  it('says why an agent is behind, and which of its devices do not work', async () => {
    const [agent] = (await shop.ok('fetchAgents', { condition: 'behind' })).agents
    expect(agent).toMatchObject({ policyVersion: 5, currentPolicyVersion: 7, isPolicyCurrent: false })
    const [broken] = (await shop.ok('fetchAgents', { condition: 'fault' })).agents
    expect(broken.faults).toEqual({ total: 1, devices: [{ deviceId: device, name: 'Ausgang', fault: 'absent' }] })
    expect((await shop.ok('fetchAgents', { condition: 'ok', limit: 1 })).agents[0]).not.toHaveProperty('faults')
  })

  it('an agent is behind from the change of the policy until it reports the new one', async () => {
    const { database } = shop.cloud.db
    const setVersion = (version: number) =>
      database.write((db) =>
        db.updateTable('store').set({ document_version: version }).where('store_id', '=', shop.otherStoreId).execute(),
      )
    await setVersion(8)
    expect(await countsOf({ storeId: shop.otherStoreId })).toMatchObject({ behind: 246, ok: 0 })
    await setVersion(7)
    expect(await countsOf({ storeId: shop.otherStoreId })).toMatchObject({ behind: 1, ok: 245 })
  })

  it('an agent that reports leaves its condition at once', async () => {
    const { agentId, storeId } = await enrolTestAgent(shop, shop.otherStoreId)
    expect(await idsOf('never', { storeId })).toEqual([agentId])
    const { messages } = shop.cloud.cloud
    const report = async (policyVersion: number) => {
      const state = JSON.stringify({ online: true, observedAt: new Date().toISOString(), policyVersion })
      messages.hooks.onMessage({ storeId, agentId }, agentTopic(storeId, agentId, 'state'), state)
      await messages.settled()
    }
    await report(3)
    expect(await idsOf('behind', { storeId })).toContain(agentId)
    const { currentPolicyVersion } = (await shop.ok('fetchAgents', { condition: 'behind', storeId })).agents[0]
    await report(currentPolicyVersion)
    expect(await idsOf('behind', { storeId })).not.toContain(agentId)
    expect(await idsOf('ok', { storeId, limit: 500 })).toContain(agentId)
  })

  it('a device that was taken out of service is no fault of its agent', async () => {
    const { agentId, storeId } = await enrolTestAgent(shop, shop.otherStoreId)
    const { deviceId } = await shop.ok('registerDevice', { storeId, deviceType: 'exit_gate', agentId })
    const { messages } = shop.cloud.cloud
    const report = async () => {
      const { agents } = await shop.ok('fetchAgents', { storeId, limit: 500 })
      const { currentPolicyVersion } = agents.at(-1)
      const devices = [{ deviceId, state: 'absent' }]
      const state = { online: true, observedAt: new Date().toISOString(), policyVersion: currentPolicyVersion, devices }
      messages.hooks.onMessage({ storeId, agentId }, agentTopic(storeId, agentId, 'state'), JSON.stringify(state))
      await messages.settled()
    }
    await report()
    expect(await idsOf('fault', { storeId })).toEqual([agentId])
    await shop.ok('decommissionDevice', { deviceId })
    await report()
    expect(await idsOf('fault', { storeId })).toEqual([])
  })

  it('counts with one query, and reads both by the index of the account', async () => {
    // Agents of ten other accounts, which nobody may read for this one.
    const others = Array.from({ length: 4_000 }, (_, n) => ({
      agentId: `agt_X${n}`,
      storeId: shop.storeId,
      columns: { tenant: `acc_${n % 10}.test` },
    }))
    await shop.cloud.db.database.write((db) => insertFleet(db, nowMs, others))
    await plans.analyze()
    const { tenant } = await plans.db
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', shop.storeId)
      .executeTakeFirstOrThrow()
    const scope = { tenant, packages: undefined }
    const counting = await plans.of(() => countConditions(plans.db, [scope], nowMs))
    expect(counting).toHaveLength(1)
    const reader = agentReader(plans.db, { nowMs, condition: 'behind', limit: 50 })
    for (const plan of [...counting, ...(await plans.of(() => reader.ids(scope, 51)))]) {
      expect(plan).toMatch(/agent_by_tenant/)
      expect(plan).not.toMatch(/SCAN agent|SCAN store|Seq Scan on agent/)
    }
  })
})
