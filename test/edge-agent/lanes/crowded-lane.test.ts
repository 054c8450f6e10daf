import { afterEach, describe, expect, it } from 'vitest'
import type { TagName } from '../../../device-drivers/kit/device.ts'
import type { KnownItem } from '../../../edge-agent/items/item-table.ts'
import { Presentations } from '../../../edge-agent/lanes/presentations.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import { atLanes } from '../../support/at-lanes.ts'
import { fakeReader } from '../../support/fake-reader.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const label = (n: number) => `E2801160${n.toString(16).toUpperCase().padStart(16, '0')}`
const labels = (count: number, from = 0) => Array.from({ length: count }, (_, i) => label(from + i))

describe('a lane with too many tags', () => {
  /** `items`: status by EPC. Requests of paid items are authorized. */
  function bench(items: Record<string, string> = {}) {
    const platform = virtualPlatform()
    const requests: string[] = []
    const warnings: string[] = []
    const statusOf = (tag: TagName) => ('epc' in tag ? items[tag.epc] : undefined)
    const presentations = new Presentations({
      platform,
      find: (tag) => (statusOf(tag) === undefined ? undefined : ({ status: statusOf(tag) } as KnownItem)),
      request: async (_deviceId, tag) => {
        requests.push('epc' in tag ? tag.epc : tag.tagUid)
        return statusOf(tag) === 'paid'
      },
      onCrowded: (_deviceId, detail) => void warnings.push(detail),
    })
    const see = async (epcs: readonly string[], seconds = 1) => {
      for (let i = 0; i < seconds; i++) {
        const seenAtMs = platform.clock.elapsed()
        const reads = epcs.map((epc) => ({ tag: { epc }, antenna: 1, rssiDbm: -45, seenAtMs }))
        presentations.onReads('lane', reads, { absentMs: 2_000, minimumRssi: undefined })
        await platform.advance(1_000)
      }
    }
    return { requests, warnings, see, crowd: () => presentations.crowdOf('lane') }
  }

  it('asks at most 100 times at once for tags that are not registered, then once a second', async () => {
    const { requests, warnings, see, crowd } = bench()
    await see(labels(100))
    expect([requests.length, crowd()]).toEqual([100, undefined])
    // Ever new tags, as of a printer: 200 a second.
    for (let second = 1; second <= 10; second++) await see(labels(200, second * 200))
    expect(requests.length).toBeLessThanOrEqual(111)
    expect(crowd()).toMatchObject({ code: 'too_many_tags', isWarning: true })
    expect(crowd()?.detail).toMatch(/; \d{4} times since the start a tag got no decision$/)
    expect(warnings).toHaveLength(1)
    await see([], 61)
    expect(crowd()).toBeUndefined()
  })

  it('decides about a paid item at once, also beside many labels and many unpaid items', async () => {
    const unpaid = labels(150, 1_000)
    const { requests, see } = bench({
      ...Object.fromEntries(unpaid.map((epc) => [epc, 'sellable'])),
      A0: 'paid',
    })
    const pile = [...labels(150), ...unpaid]
    await see(pile, 60)
    // The unpaid items beyond the hundred replace one another at the same limit.
    expect(requests.length).toBeLessThanOrEqual(100 + 150 + 120)
    await see([...pile, 'A0'])
    expect(requests).toContain('A0')
  })
})

describe('a self-service lane', () => {
  let store: TestStore
  afterEach(() => store.stop())
  const { device, product, events } = atLanes(() => store)

  it('releases a paid tag beside many blank labels, and warns of too many tags', async () => {
    const reader = fakeReader()
    store = await openStore({
      extra: async (shop) => ({
        entries: [
          {
            deviceId: 'r1',
            driver: 'llrp',
            link: { tcp: '10.0.0.77:5084' },
            feeds: shop.devices.self_checkout_detacher,
          },
        ],
        devices: { r1: reader.device },
      }),
    })
    const { agent, world } = store
    const { epc } = await store.drive(store.shop.newItem(product()))
    await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    await store.until('the payment', () => agent.items.find('epc', epc)?.status === 'paid')
    const sheet = labels(150)
    const see = async (epcs: readonly string[]) => {
      reader.see(
        epcs.map((each) => ({ tag: { epc: each }, antenna: 1, rssiDbm: -45, seenAtMs: world.clock.elapsed() })),
      )
      await world.advance(500)
    }
    for (let i = 0; i < 10; i++) await see(sheet)
    for (let i = 0; i < 4; i++) await see([...sheet, epc])
    expect(store.pulses('detacher')).toBe(1)
    const { body } = await store.local('/v1/status')
    const own = body.devices.find((each: { deviceId: string }) => each.deviceId === device('detacher'))
    expect(own).toMatchObject({ state: 'ready', findings: [{ code: 'too_many_tags', isWarning: true }] })
    const denied = (await events({ deviceId: device('detacher') })).filter(({ epc: tag }) => tag !== epc)
    expect(denied.length).toBeLessThan(240)
  })
})
