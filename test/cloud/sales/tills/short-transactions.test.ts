import { afterAll, beforeAll, expect, it } from 'vitest'
import { endsSoon } from '../../../../cloud/platform/operations/job-steps.ts'
import { realPlatform } from '../../../../host/platform.ts'
import type { JournalRow, TillEvidence } from '../../../../policy/journal.ts'
import type { Json } from '../../../support/cloud.ts'
import { countStatements } from '../../../support/count-statements.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/** Each look at the clock takes this long, ms: as if the work between did. */
let stepMs = 0
let passedMs = 0
const real = realPlatform()
const platform = { ...real, clock: { ...real.clock, elapsed: () => (passedMs += stepMs) } }

let shop: Shop
let agent: TestAgent
beforeAll(async () => {
  shop = await openShop('sqlite', { platform })
  agent = await enrolTestAgent(shop)
  const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
  const tillSales = { agents: [agent.agentId], valuePerHour: 1_000_000 }
  await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, tillSales } })
})
afterAll(() => shop.stop())

let number = 0
const saleOf = (epcs: string[]) => ({
  saleId: `s${++number}`,
  occurredAt: new Date().toISOString(),
  lines: [{ ean: shop.products[0].ean, quantity: epcs.length, priceUnit: 0, vat: 19 as const, epcs }],
})
const sold = (sale: ReturnType<typeof saleOf>): TillEvidence => ({
  kind: 'sale',
  sale: { ...sale, codeHashes: [] },
  items: [0, 0],
})
const tags = (count: number) => Array.from({ length: count }, newEpc)
const register = async (count: number) => {
  const epcs = tags(count)
  await shop.ok('registerProtectedItems', {
    storeId: shop.storeId,
    items: epcs.map((epc) => ({ epc, ean: shop.products[0].ean, protectionTechnology: 'uhf_rfid' })),
  })
  return epcs
}
const record = (...sales: Json[]) => shop.ok('recordSales', { storeId: shop.storeId, sales })
const giveBack = (request: Json) =>
  shop.ok('recordReturns', { storeId: shop.storeId, returns: [{ returnId: `r${++number}`, ...request }] })
const statuses = async (epcs: string[]) =>
  new Set(
    await Promise.all(
      epcs.map(async (epc) => (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus),
    ),
  )

it('of reports of tills end after the row that takes long', () => {
  let nowMs = 0
  const isOver = endsSoon({ elapsed: () => nowMs })
  expect(isOver()).toBe(false)
  nowMs = 100
  expect(isOver()).toBe(true)
})

it('of a batch leave rows to the agent, which sends them again', async () => {
  const rows = [tags(1), tags(1), tags(1)].map((epcs) => agent.row({ evidence: sold(saleOf(epcs)) }))
  stepMs = 60
  let left: JournalRow[] = rows
  const accepted: number[] = []
  while (left.length > 0) {
    const { body } = await agent.reportOnce(left)
    accepted.push(body.accepted)
    left = left.slice(body.accepted)
  }
  stepMs = 0
  expect(accepted.reduce((sum, n) => sum + n, 0)).toBe(3)
  expect(accepted.length).toBeGreaterThan(1)
  expect((await agent.report(rows)).body).toMatchObject({ accepted: 0, duplicates: 3 })
})

it('of a call record all its sales, one after another', async () => {
  /** Number of transactions that recorded these sales. */
  const record4 = async () => {
    const sales = [tags(1), tags(1), tags(1), tags(1)].map(saleOf)
    const answer = await record(...sales)
    expect(answer).toMatchObject({ recorded: 4, errors: [] })
    expect(answer.results.map(({ saleId }: Json) => saleId)).toEqual(sales.map(({ saleId }) => saleId))
    const ids = answer.results.map(({ purchaseId }: Json) => purchaseId)
    const purchases = shop.cloud.db.database.reads.selectFrom('purchase').select('completed_position')
    return new Set((await purchases.where('purchase_id', 'in', ids).execute()).map((row) => row.completed_position))
      .size
  }
  expect(await record4()).toBe(1)
  stepMs = 60
  expect(await record4()).toBeGreaterThan(1)
  stepMs = 0
})

it('write a sale of many unknown tags with few statements, and one exception', async () => {
  const sale = saleOf(tags(400))
  expect(await countStatements(() => record(sale))).toBeLessThan(250)
  const { exceptions } = await shop.ok('fetchExceptions', {
    storeId: shop.storeId,
    kind: 'sale_tag_unknown',
    limit: 200,
  })
  const ofSale = exceptions.filter(({ detail }: Json) => detail.includes('and 399 more of this sale'))
  expect(ofSale).toHaveLength(1)
})

it('sell and take back many items with few statements', async () => {
  const epcs = await register(300)
  const sale = saleOf(epcs)
  const counts = [
    await countStatements(() => record(sale)),
    await countStatements(() => giveBack({ epcs, resellable: true })),
  ]
  expect(await statuses(epcs)).toEqual(new Set(['sellable']))
  await record(saleOf(epcs))
  const lines = [{ ...sale.lines[0], quantity: -300 }]
  counts.push(await countStatements(() => record({ ...sale, saleId: `s${++number}`, lines })))
  expect(await statuses(epcs)).toEqual(new Set(['returned']))
  expect(Math.max(...counts)).toBeLessThan(300)
})

it('keep goods that came back with few statements, also if an agent reports what cannot be booked', async () => {
  const epcs = await register(200)
  const sale = saleOf(epcs)
  await record(sale)
  const wrong = { returnId: `r${++number}`, saleId: sale.saleId, lines: [{ lineId: 'nope', epcs }], codeHash: null }
  const row = agent.row({ evidence: { kind: 'sale_return', return: wrong } })
  expect(await countStatements(() => agent.report([row]))).toBeLessThan(200)
  expect(await statuses(epcs)).toEqual(new Set(['returned']))
})

it('take back goods of many purchases with few statements', async () => {
  const epcs = await register(100)
  await record(...epcs.map((epc) => saleOf([epc])))
  const sale = saleOf(epcs)
  const lines = sale.lines.map((line) => ({ ...line, quantity: -100 }))
  // Up to 20 former sales note what came back.
  expect(await countStatements(() => record({ ...sale, lines }))).toBeLessThan(850)
  expect(await statuses(epcs)).toEqual(new Set(['returned']))
})
