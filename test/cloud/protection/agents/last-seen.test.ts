import { connectAsync, type MqttClient } from 'mqtt'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { markAllOffline, storeFetchReport } from '../../../../cloud/protection/agents/documents/agent-state.ts'
import { startBroker, type Broker } from '../../../../cloud/service/messaging/embedded-broker.ts'
import { agentTopic } from '../../../../policy/mqtt-topics.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'
import { waitFor } from '../../../support/wait-for.ts'

const MINUTE_MS = 60_000
/** The cloud stores broker messages with a short delay. */
const eventually = (check: () => Promise<void>) => waitFor(check)

onEveryDatabase('lastSeenAt', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let agent: TestAgent
  let broker: Broker
  let client: MqttClient
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined }

  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    broker = await startBroker({ host: '127.0.0.1', port: 0 }, shop.cloud.cloud.messages.hooks, { log, platform })
    shop.cloud.cloud.attachBroker(broker)
    agent = await enrolTestAgent(shop)
  })
  afterAll(async () => {
    await broker.close()
    await shop.stop()
  })

  const listedTime = async () =>
    Date.parse((await shop.ok('fetchAgents', {})).agents.find((a: Json) => a.agentId === agent.agentId).lastSeenAt)
  const storedTime = async () =>
    (
      await shop.cloud.db.database.reads
        .selectFrom('agent')
        .select('last_seen_ms')
        .where('agent_id', '=', agent.agentId)
        .executeTakeFirstOrThrow()
    ).last_seen_ms
  const flush = () => shop.cloud.cloud.services.lastSeen.flush(shop.cloud.db.database)
  /** Moves the clock a minute, runs `work`, and expects a new lastSeenAt. */
  const expectNewTime = async (work: () => unknown) => {
    forward(MINUTE_MS)
    const before = platform.clock.wall()
    await work()
    await eventually(async () => expect(await listedTime()).toBeGreaterThan(before))
    expect(await listedTime()).toBeLessThanOrEqual(platform.clock.wall())
  }

  it('is offline after a kill of the broker, and shows a new release at once', async () => {
    const { database } = shop.cloud.db
    const own = async () =>
      (await shop.ok('fetchAgents', {})).agents.find((a: Json) => a.agentId === agent.agentId) as Json
    const row = () =>
      database.reads.selectFrom('agent').selectAll().where('agent_id', '=', agent.agentId).executeTakeFirstOrThrow()
    await database.write((db) =>
      db.updateTable('agent').set({ online: 1 }).where('agent_id', '=', agent.agentId).execute(),
    )
    expect((await own())['online']).toBe(true)
    const isListed = async (online: boolean) =>
      (await shop.ok('fetchAgents', { online })).agents.some((a: Json) => a.agentId === agent.agentId)
    expect([await isListed(true), await isListed(false)]).toEqual([true, false])
    forward(2 * MINUTE_MS)
    expect((await own())['online'], 'a silent agent, whose broker did not notice').toBe(false)
    expect([await isListed(true), await isListed(false)]).toEqual([false, true])
    await database.write(markAllOffline)
    expect((await own())['online']).toBe(false)

    const report = { policyVersion: 1, ledgerSeq: undefined }
    for (const release of ['0.1.0', '0.2.0']) {
      const before = await row()
      await database.write((db) => storeFetchReport(db, before, { ...report, release }, platform.clock.wall()))
      expect((await own())['release']).toBe(release)
    }
  })

  it('changes with a login and every HTTP request, and is stored by one later write', async () => {
    await expectNewTime(() => agent.login())
    await flush()
    const before = await storedTime()
    await expectNewTime(() => agent.call('fetchSignedDocuments', {}))
    await expectNewTime(() => agent.call('reportDeviceHeartbeat', { deviceId: 'dev_of_nobody' }))
    await expectNewTime(() => agent.report([agent.row({})]))
    expect(await storedTime()).toBe(before)
    const last = await listedTime()
    await flush()
    expect([await storedTime(), await listedTime()]).toEqual([last, last])
  })

  it('changes with the connection, pings and messages over MQTT', async () => {
    const will = { topic: agentTopic(shop.storeId, agent.agentId, 'state'), payload: stateOf(false), retain: true }
    await agent.login()
    await expectNewTime(async () => {
      client = await connectAsync(`mqtt://127.0.0.1:${broker.port}`, {
        protocolVersion: 4,
        reconnectPeriod: 0,
        clientId: agent.agentId,
        username: agent.agentId,
        password: agent.messages.assertion(agent.mqttChallenge, platform.clock.wall()),
        will,
      })
    })
    await expectNewTime(() => client.sendPing())
    await expectNewTime(() => client.publishAsync(agentTopic(shop.storeId, agent.agentId, 'state'), stateOf(true)))
    await eventually(async () => expect((await shop.ok('fetchAgents', {})).agents[0].online).toBe(true))
  })

  it('stays after a lost connection, although the broker then publishes the will', async () => {
    const last = await listedTime()
    forward(MINUTE_MS)
    client.stream.destroy()
    await eventually(async () => expect((await shop.ok('fetchAgents', {})).agents[0].online).toBe(false))
    await flush()
    expect([await listedTime(), await storedTime()]).toEqual([last, last])
  })

  it('ignores calls without a login, and survives a failed write', async () => {
    const last = await listedTime()
    forward(MINUTE_MS)
    await shop.cloud.call(null, 'agentLogin', { agentId: agent.agentId })
    await shop.cloud.call(null, 'agentLogin', { agentId: agent.agentId, assertion: 'x' })
    await shop.cloud.call(`untag_agent_${'x'.repeat(43)}`, 'fetchSignedDocuments', {})
    expect(await listedTime()).toBe(last)
    await expectNewTime(() => agent.call('fetchSignedDocuments', {}))
    const noted = await listedTime()
    const { lastSeen } = shop.cloud.cloud.services
    const broken = { ...shop.cloud.db.database, write: () => Promise.reject(new Error('no disk')) }
    await expect(lastSeen.flush(broken)).rejects.toThrow('no disk')
    expect(await listedTime()).toBe(noted)
    await flush()
    expect(await storedTime()).toBe(noted)
  })

  const stateOf = (online: boolean) =>
    JSON.stringify({ online, observedAt: new Date(platform.clock.wall()).toISOString() })
})
