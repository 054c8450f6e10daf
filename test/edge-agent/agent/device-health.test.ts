import { afterEach, expect, it } from 'vitest'
import { AgentWatch } from '../../../cloud/protection/agents/watch/incidents.ts'
import { llrpReader, type LlrpReader } from '../../../simulators/devices/llrp.ts'
import { agentTopic } from '../../../policy/mqtt-topics.ts'
import type { Json } from '../../support/cloud.ts'
import { cutLine } from '../../support/memory-broker.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/** Time within which the cloud must know of a change, ms. */
const KNOWN_MS = 15_000
const MINUTE_MS = 60_000

let store: TestStore
afterEach(() => store.stop())

const device = async (): Promise<Json> => {
  const { shop } = store
  const { devices } = await shop.ok('fetchDevices', { storeId: shop.storeId })
  return devices.find((each: Json) => each.deviceId === shop.devices.self_checkout_detacher)
}
const health = async (): Promise<Json> => (await device()).health
const becomes = (state: string, limitMs = KNOWN_MS) =>
  store.until(`the device ${state}`, async () => (await health()).state === state, limitMs)
const plug = () => store.boardPorts.detacher
const tenant = async () =>
  (
    await store.shop.cloud.db.database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', store.shop.storeId)
      .executeTakeFirstOrThrow()
  ).tenant
const exceptions = async (): Promise<Json[]> =>
  (await store.shop.ok('fetchExceptions', { kind: 'device_not_ready', state: 'open' })).exceptions

it.each([
  // The agent polls every 15 s: an earlier report came over the broker.
  ['5 s over the broker', true, 5_000],
  ['15 s without a broker', false, KNOWN_MS],
])('the cloud knows a dead board of a connected agent, and its repair, within %s', async (_, broker, limitMs) => {
  store = await openStore({ broker })
  await becomes('ready')
  expect(await health()).toMatchObject({ state: 'ready', since: expect.any(String) })
  const deadMs = store.world.clock.wall()
  let refreshed = 0
  const { changes } = store.shop.cloud.cloud.services
  const filter = { tenant: await tenant(), topics: new Set(['agents']), storeIds: null }
  changes.subscribe(filter, () => refreshed++)
  plug().unplug()
  await becomes('absent', limitMs)
  expect(refreshed).toBe(1)
  const { detail, since } = await health()
  expect(detail).toMatch(/unplugged|cut/)
  expect(Math.abs(Date.parse(since) - deadMs)).toBeLessThan(2_000)
  // The driver goes on trying: neither state nor time change.
  await store.drive(store.world.advance(MINUTE_MS))
  expect(await health()).toEqual({ state: 'absent', detail: expect.any(String), since })
  expect((await device()).agentId).toBe(store.identity.agentId)
  plug().plug()
  await becomes('ready', KNOWN_MS + limitMs)
})

it('the cloud knows that a gate sees nothing without its reader', async () => {
  let reader: LlrpReader | undefined
  store = await openStore({
    broker: true,
    extra: async ({ devices }, platform) => {
      reader = llrpReader({ platform })
      const link = { tcp: '10.0.0.77:5084' }
      return {
        entries: [{ deviceId: 'gate-reader', driver: 'llrp', link, feeds: devices.exit_gate }],
        ports: { [link.tcp]: reader.serve },
      }
    },
  })
  const gate = async (): Promise<Json> => {
    const { shop } = store
    const { devices } = await shop.ok('fetchDevices', { storeId: shop.storeId })
    return devices.find((each: Json) => each.deviceId === shop.devices.exit_gate).health
  }
  await store.until('the gate', async () => (await gate()).state === 'ready', KNOWN_MS)
  reader?.hang(true)
  await store.until('the dead reader', async () => (await gate()).state === 'absent', 4 * KNOWN_MS)
  expect((await gate()).detail).toMatch(/^gate-reader: /)
})

it('the cloud knows a gate for which no device reads tags', async () => {
  store = await openStore({ broker: true })
  const gate = async (): Promise<Json> => {
    const { devices } = await store.shop.ok('fetchDevices', { storeId: store.shop.storeId })
    return devices.find((each: Json) => each.deviceId === store.shop.devices.exit_gate).health
  }
  await becomes('ready')
  expect(await gate()).toMatchObject({ state: 'ready', readsTags: false })
  const { devices } = store.agent.status()
  const found = devices.map(({ deviceType, findings }) => [deviceType, findings.map(({ code }) => code)])
  expect(found).toContainEqual(['exit_gate', ['no_tag_reader']])
  expect(found).toContainEqual(['self_checkout_detacher', []])
})

it('raises device_not_ready for a dead board, and withdraws it at its repair without a check', async () => {
  store = await openStore({ broker: true })
  const { database } = store.shop.cloud.db
  const watch = new AgentWatch(database, store.shop.cloud.cloud.services, 5 * MINUTE_MS)
  plug().unplug()
  await becomes('absent')
  await watch.check()
  await store.drive(store.world.advance(6 * MINUTE_MS), 7 * MINUTE_MS)
  await watch.check()
  expect(await exceptions()).toMatchObject([{ deviceId: store.shop.devices.self_checkout_detacher }])
  plug().plug()
  await becomes('ready')
  expect(await exceptions()).toEqual([])
})

it('does not know the health of devices whose agent was killed, and knows it again after its return', async () => {
  store = await openStore({ broker: true })
  await becomes('ready')
  const { agentId, storeId } = store.identity
  const { hooks } = store.shop.cloud.cloud.messages
  const topic = agentTopic(storeId, agentId, 'state')
  // The broker publishes the will of the killed agent.
  const will = JSON.stringify({ online: false, observedAt: new Date(store.world.clock.wall()).toISOString() })
  store.network(false)
  hooks.onMessage({ agentId, storeId }, topic, will)
  await becomes('unknown')
  expect(await health()).toMatchObject({ unknownBecause: 'agent_offline', since: expect.any(String) })
  store.network(true)
  cutLine(store.shop.cloud.cloud, agentId)
  await store.until('the agent back', async () => (await health()).state === 'ready', MINUTE_MS)
})

it('does not know the health after 90 s without a contact, as after a pulled network cable', async () => {
  store = await openStore({ broker: false })
  await becomes('ready')
  store.network(false)
  await store.drive(store.world.advance(80_000), 100_000)
  expect((await health()).state).toBe('ready')
  await store.drive(store.world.advance(11_000))
  expect(await health()).toMatchObject({ state: 'unknown', unknownBecause: 'agent_offline' })
})

it('limits the rate of state messages of a loose plug', async () => {
  store = await openStore({ broker: true })
  await becomes('ready')
  const states: string[] = []
  const { hooks } = store.shop.cloud.cloud.messages
  const onMessage = hooks.onMessage.bind(hooks)
  hooks.onMessage = (from, topic, payload) => {
    if (topic.endsWith('/state')) states.push(payload)
    onMessage(from, topic, payload)
  }
  for (let i = 0; i < 30; i++) {
    plug().unplug()
    await store.drive(store.world.advance(500))
    plug().plug()
    await store.drive(store.world.advance(500))
  }
  expect(states.length).toBeGreaterThan(1)
  expect(states.length).toBeLessThanOrEqual(7)
})

it('ignores an older state that the broker repeats', async () => {
  store = await openStore({ broker: true })
  await becomes('ready')
  const { agentId, storeId } = store.identity
  const { self_checkout_detacher: deviceId } = store.shop.devices
  const say = (ageMs: number) =>
    store.shop.cloud.cloud.messages.hooks.onMessage(
      { agentId, storeId },
      agentTopic(storeId, agentId, 'state'),
      JSON.stringify({
        online: true,
        observedAt: new Date(store.world.clock.wall() - ageMs).toISOString(),
        devices: [{ deviceId, state: 'identifying' }],
      }),
    )
  say(MINUTE_MS)
  await store.shop.cloud.cloud.messages.settled()
  expect((await health()).state).toBe('ready')
  // Older agents send states of the driver, and no time.
  say(0)
  await store.shop.cloud.cloud.messages.settled()
  expect(await health()).toEqual({ state: 'absent' })
})
