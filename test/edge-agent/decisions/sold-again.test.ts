import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { fakeReader } from '../../support/fake-reader.ts'
import { pairTill } from '../../support/paired-till.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/** Goods that a cashier took back by mistake, and sold again at once. */
let store: TestStore
let reader: ReturnType<typeof fakeReader>
let headers: Record<string, string> = {}
beforeEach(async () => {
  reader = fakeReader()
  store = await openStore({ reader: { device: reader.device, antennas: { inside: [1], outside: [3] } } })
  headers = await pairTill(store)
})
afterEach(() => store.stop())

let number = 0
const post = (path: string, body: Json) => store.local(path, { method: 'POST', body, headers })
const sell = (epc: string) =>
  post('/v1/sales', {
    saleId: `s${++number}`,
    occurredAt: new Date(store.world.clock.wall()).toISOString(),
    lines: [{ ean: store.shop.products[0].ean, quantity: 1, priceUnit: 4_990, vat: 19, epcs: [epc] }],
  })
/** Carries a tag out. Returns true if the gate is silent. */
async function passes(epc: string): Promise<boolean> {
  const sirens = () => store.boards.gate.log.filter((change) => change.coil === 1 && change.on).length
  const before = sirens()
  for (const antenna of [1, 3, 3, 3]) {
    reader.see([{ tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() }])
    await store.world.advance(260)
  }
  return sirens() === before
}

it.each(
  [true, false].flatMap((isOnline) =>
    [true, false].flatMap((resellable) =>
      [0, 5_000, 50_000].map((ms) => [isOnline ? 'online' : 'offline', resellable, ms] as const),
    ),
  ),
)('leave silently %s, resellable %s, each %i ms after the report before', async (network, resellable, ms) => {
  const { storeId } = store.shop
  const { epc } = await store.drive(store.shop.newItem(store.shop.products[0]))
  await store.until('the item', () => store.agent.items.find('epc', epc) !== undefined)
  store.network(network === 'online')
  await store.until('the network', () => store.agent.link.isOnline === (network === 'online'))
  await sell(epc)
  await store.world.advance(ms)
  await post('/v1/returns', { returnId: `r${++number}`, epcs: [epc], resellable })
  await store.world.advance(ms)
  expect((await sell(epc)).body).toMatchObject({ warnings: [], items: [{ itemStatus: 'paid' }] })
  expect(await passes(epc)).toBe(true)
  store.network(true)
  await store.until('the cloud', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
  const { itemStatus } = await store.drive(store.shop.ok('fetchProtectedItem', { storeId, epc }))
  expect(itemStatus).toBe('paid')
  await store.world.advance(70_000)
  expect(await passes(epc)).toBe(true)
})
