import { afterEach, describe, expect, it } from 'vitest'
import { atLanes } from '../../support/at-lanes.ts'
import { fakeReader } from '../../support/fake-reader.ts'
import { openStore, type TestStore } from '../../support/store.ts'

describe('a walk test of a gate', () => {
  let store: TestStore
  let reader: ReturnType<typeof fakeReader>
  afterEach(() => store.stop())
  const { device, product, events } = atLanes(() => store)
  const start = (seconds = 5) =>
    store.local('/v1/setup/walk-test', { method: 'POST', body: { deviceId: device('gate'), seconds } })
  const sirens = () => store.boards.gate.log.filter(({ coil, on }) => coil === 1 && on).length

  /** Opens a store with a gate that has learnt, and returns the operator's id and unpaid items. */
  async function open(count: number): Promise<{ operatorId: string; epcs: string[] }> {
    reader = fakeReader()
    store = await openStore({ reader: { device: reader.device, antennas: { inside: [1], outside: [2] } } })
    const operator = { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }
    const { operatorId } = await store.drive(store.shop.ok('registerOperator', operator))
    const epcs: string[] = []
    for (let i = 0; i < count; i++) epcs.push((await store.drive(store.shop.newItem(product()))).epc)
    const { agent, world } = store
    await store.until('the operator', () => agent.trust.policy?.operators?.[0]?.operatorId === operatorId)
    await store.until('the items', () => epcs.every((epc) => agent.items.find('epc', epc)))
    await world.advance(65_000)
    return { operatorId, epcs }
  }
  const signIn = (operatorId: string) =>
    store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: '471108', deviceId: device('gate') } })

  /** Carries a tag out. `between` runs after the last read inside. */
  async function carryOut(epc: string, between: () => Promise<unknown> = async () => undefined): Promise<void> {
    for (const [i, antenna] of [1, 1, 1, 1, 2, 2, 2, 2].entries()) {
      reader.see([{ tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() }])
      await store.world.advance(100)
      if (i === 3) await between()
    }
    await store.world.advance(8_000)
  }

  it('needs a signed-in operator, and is recorded with the name', async () => {
    const { operatorId } = await open(0)
    expect(await start()).toMatchObject({ status: 403, body: { code: 'operator_required' } })
    await signIn(operatorId)
    expect((await start()).status).toBe(200)
    const tested = (await events()).filter(({ reason }) => reason === 'device_tested')
    expect(tested).toEqual([
      expect.objectContaining({
        deviceId: device('gate'),
        operatorId,
        detail: 'Frau Petersen began a walk test of 5 s',
      }),
    ])
  })

  it('does not make the gate forget the tag of a person who is leaving', async () => {
    const { operatorId, epcs } = await open(2)
    await signIn(operatorId)
    for (const epc of epcs) await carryOut(epc, () => start(1))
    expect(sirens()).toBe(2)
  })

  it('is one at a time, until a tag has left or its time is over, and the same tag leaves again', async () => {
    const { operatorId, epcs } = await open(1)
    await signIn(operatorId)
    const [epc = ''] = epcs
    expect((await start(120)).status).toBe(200)
    expect(await start(120)).toMatchObject({ status: 429, body: { code: 'busy' } })
    await carryOut(epc)
    expect((await start(5)).status).toBe(200)
    await carryOut(epc)
    expect(sirens()).toBe(2)
    await store.world.advance(5_000)
    expect((await start(5)).status).toBe(200)
  })
})
