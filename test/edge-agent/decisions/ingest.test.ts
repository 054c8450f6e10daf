import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type TestStore } from '../../support/store.ts'

const SECRET = 'a-secret-of-gate-1-alone'
const BODY = { reads: [{ epc: '3034257BF400B800000000C8', ts: '1716900123456' }] }

describe('a reader that sends to the agent and feeds a gate', () => {
  let store: TestStore
  afterAll(() => store.stop())

  it('sounds the siren of the gate’s board for an unpaid tag', async () => {
    store = await openStore({
      extra: async (shop) => ({
        entries: [
          {
            deviceId: 'arch',
            driver: 'http-ingest',
            link: { push: 'gate-1' },
            secret: SECRET,
            mapping: 'keonn',
            clock: 'arrival',
            feeds: shop.devices.exit_gate,
            antennas: { inside: [1], outside: [2] },
          },
        ],
      }),
    })
    const { epc } = await store.drive(store.shop.newItem(store.shop.products[0]))
    await store.until(
      'the replica',
      () => store.agent.items.find('epc', epc) !== undefined && store.agent.items.confirmedMs > 0,
    )
    const isOn = () => store.boards.gate.log.some((change) => change.coil === 1 && change.on)
    const see = async (antenna: string) => {
      expect(
        await store.local('/ingest/gate-1', {
          method: 'POST',
          body: { reads: [{ epc, antenna, rssi: '-50' }] },
          headers: { authorization: `Bearer ${SECRET}` },
        }),
      ).toMatchObject({ status: 200 })
      await store.world.advance(260)
    }
    await see('1')
    expect(isOn()).toBe(false)
    for (let i = 0; i < 3; i++) await see('2')
    await store.until('the siren', isOn)
  })
})

describe('readers that send to the agent', () => {
  let store: TestStore
  const send = (headers: Record<string, string>) =>
    store.local('/ingest/gate-1', { method: 'POST', body: BODY, headers })
  beforeAll(async () => {
    store = await openStore({
      extra: async (shop) => ({
        entries: [
          {
            deviceId: 'dev_reader',
            driver: 'http-ingest',
            link: { push: 'gate-1' },
            secret: SECRET,
            mapping: 'keonn',
            feeds: shop.devices.pos_deactivator,
          },
        ],
      }),
    })
  })
  afterAll(() => store.stop())

  it('show in /readyz and the status what a person must change', async () => {
    const isOver = () =>
      store.agent.status().devices.find(({ deviceId }) => deviceId === 'dev_reader')?.state === 'degraded'
    for (let n = 0; n < 3; n++)
      await store.local('/ingest/gate-1', {
        method: 'POST',
        body: { data: [] },
        headers: { authorization: `Bearer ${SECRET}` },
      })
    await store.until('the finding', isOver)
    const findings = [{ code: 'unreadable_data', detail: expect.stringContaining('"mapping"'), isWarning: false }]
    expect((await store.local('/readyz')).body).toMatchObject({
      devices: expect.arrayContaining([expect.objectContaining({ deviceId: 'dev_reader', findings })]),
    })
    expect((await store.local('/v1/status')).body).toMatchObject({
      devices: expect.arrayContaining([
        expect.objectContaining({ deviceId: 'dev_reader', feeds: store.shop.devices.pos_deactivator, findings }),
      ]),
    })
    expect(await send({ authorization: `Bearer ${SECRET}` })).toMatchObject({ status: 200 })
    await store.until('the next read', () => !isOver())
  })

  it('reach their driver through the agent’s HTTP, only with their secret and an allowed host name', async () => {
    await store.until('the device', () =>
      store.agent.status().devices.some(({ deviceId, state }) => deviceId === 'dev_reader' && state === 'ready'),
    )
    expect(await send({ authorization: `Bearer ${SECRET}` })).toMatchObject({ status: 200, body: { success: true } })
    expect(await send({})).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
    expect(await send({ authorization: `Bearer ${SECRET}`, host: 'evil.example' })).toMatchObject({ status: 403 })
    expect(await send({ authorization: `Bearer ${SECRET}`, origin: 'https://evil.example' })).toMatchObject({
      status: 403,
    })
  })
})
