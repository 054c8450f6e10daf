import { afterEach, describe, expect, it } from 'vitest'
import { hashSecret, newSecret } from '../../../edge-agent/identity/identity.ts'
import type { TillRight } from '../../../edge-agent/ledger/pairings.ts'
import type { Json } from '../../support/cloud.ts'
import { fakeReader } from '../../support/fake-reader.ts'
import { openStore, type TestStore } from '../../support/store.ts'

describe('texts of a till at an agent', () => {
  let store: TestStore
  let reader: ReturnType<typeof fakeReader>
  let till: Record<string, string>
  afterEach(async () => {
    await store.stop()
  })
  function pair(...rights: TillRight[]): Record<string, string> {
    const credential = newSecret('pair', store.world.random)
    store.agent.ledger.pairings.addProgram(hashSecret(credential), 'till 3', store.world.clock.wall(), rights)
    return { authorization: `Bearer ${credential}` }
  }
  async function open(): Promise<void> {
    reader = fakeReader()
    store = await openStore({ reader: { device: reader.device, antennas: { inside: [1, 2], outside: [3] } } })
    till = pair('sales', 'returns')
    const agents = [store.agent.identity.agentId]
    const { storeId } = store.shop
    const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
    await store.drive(
      store.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales: { agents } } }),
    )
    await store.until(
      'the policy',
      () => JSON.stringify(store.agent.trust.policy?.policy.tillSales.agents) === JSON.stringify(agents),
    )
  }
  const product = () => store.shop.products[0]
  const newItem = async () => {
    const { epc } = await store.drive(store.shop.newItem(product(), {}))
    await store.until(
      'the replica',
      () => store.agent.items.find('epc', epc) !== undefined && store.agent.items.confirmedMs > 0,
    )
    return epc as string
  }
  let number = 0
  const sale = (epcs: string[], fields: Json = {}): Json => ({
    saleId: String(++number),
    tillId: 'till-3',
    occurredAt: new Date(store.world.clock.wall()).toISOString(),
    lines: epcs.map((epc) => ({ ean: product().ean, quantity: 1, priceUnit: 4_990, vat: 19, epcs: [epc] })),
    ...fields,
  })
  const post = (path: string, body: Json, headers = till) => store.local(path, { method: 'POST', body, headers })

  it.each(['void', 'return'])(
    'a NUL in a %s is refused before it is in the journal, as in the cloud',
    async (where) => {
      await open()
      const a = await newItem()
      const sent = sale([a])
      await post('/v1/sales', sent)
      const answer =
        where === 'void'
          ? await post('/v1/sales/void', { saleId: sent.saleId, tillId: 'till-3', reason: 'x\u0000' })
          : await post('/v1/returns', { returnId: 'R', purchaseId: 'p\u0000', epcs: [a] })
      expect(answer.status).toBe(400)
    },
  )
})
