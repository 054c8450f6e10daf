import { afterEach, describe, expect, it } from 'vitest'
import { hashSecret, newSecret } from '../../../edge-agent/identity/identity.ts'
import type { TillRight } from '../../../edge-agent/ledger/pairings.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

describe('a till at an agent whose machine has no battery clock', () => {
  let store: TestStore
  let till: Record<string, string>
  afterEach(async () => {
    expect(store.shop.cloud.errors).toEqual([])
    await store.stop()
  })

  function pair(...rights: TillRight[]): Record<string, string> {
    const credential = newSecret('pair', store.world.random)
    store.agent.ledger.pairings.addProgram(hashSecret(credential), 'till 3', store.world.clock.wall(), rights)
    return { authorization: `Bearer ${credential}` }
  }

  async function open(): Promise<void> {
    store = await openStore()
    till = pair('sales', 'returns')
    await allow([store.agent.identity.agentId])
  }
  async function allow(agents: string[], limits: Json = {}): Promise<void> {
    const { storeId } = store.shop
    const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
    await store.drive(
      store.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales: { agents, ...limits } } }),
    )
    const current = () => store.agent.trust.policy?.policy.tillSales
    await store.until(
      'the policy',
      () =>
        JSON.stringify(current()?.agents) === JSON.stringify(agents) &&
        Object.entries(limits).every(([name, value]) => (current() as Json)[name] === value),
    )
  }
  const product = () => store.shop.products[0]
  const newItem = async (fields: Json = {}) => {
    const { epc } = await store.drive(store.shop.newItem(product(), fields))
    await store.until(
      'the replica',
      () => store.agent.items.find('epc', epc) !== undefined && store.agent.items.confirmedMs > 0,
    )
    return epc
  }
  const cut = async () => {
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
  }
  const join = async () => {
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline, 60 * 60_000)
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0, 60 * 60_000)
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

  const status = async (epc: string) =>
    (await store.drive(store.shop.ok('fetchProtectedItem', { storeId: store.shop.storeId, epc }))).itemStatus

  it('takes goods back after a restart without a clock: the cloud, which sold them later by its clock, agrees', async () => {
    await open()
    const epc = await newItem()
    await store.world.advance(60_000)
    await cut()
    await store.world.advance(300_000)
    const sales = [sale([epc])]
    await store.drive(store.shop.ok('recordSales', { storeId: store.shop.storeId, sales }))
    const wall = store.world.clock.wall()
    await store.restart(() => {
      store.world.setWall(wall - 30 * 86_400_000)
      store.world.reboot()
    })
    expect(store.agent.clock.now()).toMatchObject({ trust: 'none' })
    expect(store.agent.clock.now().nowMs).toBeLessThan(wall - 120_000)
    await post('/v1/returns', { returnId: 'R1', epcs: [epc], resellable: true })
    store.world.setWall(wall + 60_000)
    await join()
    expect(await status(epc)).toBe('sellable')
  })
})
