import { afterEach, describe, expect, it } from 'vitest'
import { atLanes } from '../../../support/at-lanes.ts'
import { fakeReader } from '../../../support/fake-reader.ts'
import { openStore, type TestStore } from '../../../support/store.ts'

describe('a gate through which many blank tags pass', () => {
  let store: TestStore
  afterEach(() => store.stop())
  const { device, product, events } = atLanes(() => store)

  it('stores the alarms of unpaid and held goods, a limit of those of blank tags, and one summary', async () => {
    const reader = fakeReader()
    store = await openStore({ reader: { device: reader.device, antennas: { inside: [1], outside: [2] } } })
    const { shop, agent, world } = store
    const epcs: string[] = []
    for (let i = 0; i < 2; i++) epcs.push((await store.drive(shop.newItem(product()))).epc)
    const [unpaid = '', held = ''] = epcs
    await store.drive(shop.ok('updateItemStatus', { storeId: shop.storeId, epc: held, itemStatus: 'exception_hold' }))
    await store.until('the items', () => agent.items.find('epc', held)?.status === 'exception_hold')
    await world.advance(65_000)
    const see = (tags: readonly string[], antenna: number) =>
      reader.see(tags.map((epc) => ({ tag: { epc }, antenna, rssiDbm: -50, seenAtMs: world.clock.elapsed() })))
    const blank = Array.from({ length: 700 }, (_, i) => `E2801160${i.toString(16).toUpperCase().padStart(16, '0')}`)
    for (const tags of [blank, [unpaid], [held]]) {
      see(tags, 1)
      await world.advance(100)
      see(tags, 2)
      await world.advance(100)
    }
    // The gate writes its events within 250 ms.
    await world.advance(1_000)
    const ofGate = await events({ deviceId: device('gate') })
    const alarms = ofGate.filter(({ reason }) => reason === 'gate_alarm').map(({ epc }) => String(epc))
    expect(alarms.filter((epc) => epcs.includes(epc)).toSorted()).toEqual(epcs.toSorted())
    expect(alarms).toHaveLength(102)
    expect(ofGate.filter(({ reason }) => reason === 'gate_events_dropped')).toEqual([
      expect.objectContaining({ detail: expect.stringContaining('over 100 events of tags that are not registered') }),
    ])
  })
})
