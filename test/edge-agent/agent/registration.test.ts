import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { refusedDevice, REGISTRATION_FAULTS } from '../../../edge-agent/health/registration.ts'
import { statusView } from '../../../edge-agent/pages/model/status-view.ts'
import { textsOf } from '../../../edge-agent/pages/texts/catalogue.ts'
import { LANGUAGES } from '../../../policy/page-language.ts'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import type { Json } from '../../support/cloud.ts'
import { addAgent } from '../../support/second-agent.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { getPage, newStatus, pagesBench, STATION } from '../pages/pages-agent.ts'

const TYPO = 'dev_01KANX6Y7C3V9Q2M8R5T4W6Z1B'

describe('a configured device that the agent refuses', () => {
  let store: TestStore
  beforeAll(async () => {
    store = await openStore({
      broker: true,
      extra: async (_shop, platform) => {
        const board = new RelayBoard({ platform, locks: [] })
        return {
          entries: [{ deviceId: TYPO, driver: 'modbus', link: { tcp: '10.0.0.8:502' }, output: 0 }],
          ports: { '10.0.0.8:502': (link) => board.serve(link) },
        }
      },
    })
  })
  afterAll(() => store.stop())

  const ready = async () => (await store.local('/readyz')) as { status: number; body: Json }
  const deviceIn = ({ devices }: Json, deviceId: string) => devices.find((d: Json) => d.deviceId === deviceId)

  it('shows an id that the store does not have, with the fix, and stays ready for the other devices', async () => {
    const unknown = { state: 'unknown_device', detail: expect.stringMatching(/registerDevice/) }
    const { status, body } = await ready()
    expect([status, body.ready]).toEqual([200, true])
    expect(deviceIn(body, TYPO)).toEqual({ deviceId: TYPO, findings: [], ...unknown })
    expect(deviceIn(body, TYPO).detail).toContain(store.shop.storeId)
    expect(deviceIn(body, store.shop.devices.pos_deactivator).state).toBe('ready')
    expect(deviceIn((await store.local('/v1/status')).body, TYPO)).toMatchObject(unknown)
    expect((await store.local('/v1/setup/check', { method: 'POST', body: { deviceId: TYPO } })).body).toMatchObject(
      unknown,
    )
    expect((await store.local('/metrics')).body).toContain(
      `untag_device_state{device="${TYPO}",state="unknown_device"} 1`,
    )
    expect(await store.authorize({ deviceId: TYPO, protectionAction: 'deactivate_label', receipt: 'x' })).toMatchObject(
      { authorized: false, reason: 'device_unknown' },
    )
  })

  it('requires no registration of devices that only feed another', async () => {
    expect(deviceIn((await ready()).body, 'station-scanner').state).toBe('ready')
  })

  it('shows a device that moved to another agent, and one that was decommissioned', async () => {
    const { shop } = store
    const other = await addAgent(store, [])
    const [moved, retired] = [shop.devices.self_checkout_detacher, shop.devices.pos_deactivator]
    await store.drive(shop.ok('updateDevice', { deviceId: moved, agentId: other.agent.identity.agentId }))
    await store.drive(shop.ok('decommissionDevice', { deviceId: retired }))
    const stateOf = async (deviceId: string) => deviceIn((await ready()).body, deviceId).state as string
    await store.until('the move', async () => (await stateOf(moved)) !== 'ready', 200_000)
    await store.until('the decommissioning', async () => (await stateOf(retired)) !== 'ready')
    const { status, body } = await ready()
    expect(status).toBe(200)
    expect(deviceIn(body, moved)).toMatchObject({
      state: 'device_of_another_agent',
      detail: expect.stringMatching(/updateDevice/),
    })
    expect(deviceIn(body, retired)).toMatchObject({
      state: 'decommissioned_device',
      detail: expect.stringMatching(/registerDevice/),
    })
    await other.stop()
  })
})

describe('the policy of a store', () => {
  it('allows requests for a device without an agent', () => {
    const device = { deviceId: 'dev_1', agentId: null, revoked: false }
    const policy = { aud: 'st_1', devices: [device] } as unknown as Parameters<typeof refusedDevice>[0]
    expect(refusedDevice(policy, 'agt_1', 'dev_1')).toBeUndefined()
    expect(refusedDevice(policy, 'agt_1', 'dev_2')?.state).toBe('unknown_device')
  })
})

describe.each(LANGUAGES)('pages in %s', (language) => {
  const texts = textsOf(language)

  it.each(REGISTRATION_FAULTS)('show %s at the station and on the set-up page', async (state) => {
    const status = newStatus()
    const devices = status.devices.map((device) => ({ ...device, state, detail: 'detail of the API' }))
    const fix = texts.registrationFixes[state](STATION)
    expect(statusView({ ...status, devices }, STATION, texts, { nowMs: 0, isStaff: true })).toMatchObject({
      badges: expect.arrayContaining([{ tone: 'bad', text: texts.deviceStates[state] }]),
      banners: expect.arrayContaining([{ tone: 'bad', text: `${texts.deviceStates[state]}. ${fix}` }]),
    })
    const bench = pagesBench()
    bench.status = { ...bench.status, devices }
    const station = await (await getPage(bench, `/station?device=${STATION}&lang=${language}`)).text()
    expect(station).toContain(texts.forShoppers.fault)
    const setup = await (await getPage(bench, `/setup?lang=${language}`)).text()
    expect(setup).toContain(fix)
    for (const html of [station, setup]) expect(html).not.toContain('detail of the API')
  })
})
