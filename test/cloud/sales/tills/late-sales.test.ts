import { afterAll, beforeAll, expect, it } from 'vitest'
import type { TillEvidence } from '../../../../policy/journal.ts'
import { keptReturn, keptSale, type TillReturn, type TillSale } from '../../../../policy/till-sale.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/** Goods that are sold and come back again and again, if the agent with the sales reaches the cloud last. */
const { platform, forward } = movablePlatform()
let shop: Shop
let seller: TestAgent
let taker: TestAgent
let epc = ''
beforeAll(async () => {
  shop = await openShop('sqlite', { platform })
  seller = await enrolTestAgent(shop)
  taker = await enrolTestAgent(shop)
  const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
  const tillSales = { ...policy.tillSales, agents: [seller.agentId, taker.agentId] }
  await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, tillSales } })
  epc = (await shop.newItem(shop.products[0])).epc
  forward(600_000)
  await seller.login()
  await taker.login()
})
afterAll(() => shop.stop())

const ago = (minutes: number) => platform.clock.wall() - minutes * 60_000
const report = (agent: TestAgent, minutes: number, evidence: TillEvidence) =>
  agent.report([agent.row({ evidence, atMs: ago(minutes) })])
const status = async () => (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus

async function sell(saleId: string, minutes: number, fields: { resold?: string[] } = {}): Promise<void> {
  const sale: TillSale = {
    saleId,
    tillId: 'till-1',
    occurredAt: new Date(ago(minutes)).toISOString(),
    lines: [{ ean: shop.products[0].ean, quantity: 1, priceUnit: 4_990, vat: 19, epcs: [epc] }],
  }
  const row = { kind: 'sale', sale: keptSale(shop.storeId, sale), items: [0, 0], ...fields } as TillEvidence
  expect((await report(seller, minutes, row)).body).toMatchObject({ accepted: 1 })
}

async function giveBack(returnId: string, minutes: number): Promise<void> {
  const kept = keptReturn(shop.storeId, { returnId, epcs: [epc], resellable: true } as TillReturn)
  expect((await report(taker, minutes, { kind: 'sale_return', return: kept })).body).toMatchObject({ accepted: 1 })
}

it('come back with each of their sales, though both returns arrive first', async () => {
  await giveBack('r1', 8)
  await giveBack('r2', 4)
  await sell('s1', 9)
  await sell('s2', 6, { resold: [`epc ${epc}`] })
  expect(await status()).toBe('sellable')
  for (const saleId of ['s1', 's2']) {
    const { purchases } = await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, saleId })
    expect(purchases[0].refunded).toBe(49.9)
  }
  expect((await shop.ok('fetchExceptions', { storeId: shop.storeId })).exceptions).toEqual([])
})
