import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { TillEvidence } from '../../../../policy/journal.ts'
import { keptReturn, keptSale, type TillReturn, type TillSale } from '../../../../policy/till-sale.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('a report of a till with a text that PostgreSQL cannot store', (kind) => {
  let shop: Shop
  let till: TestAgent
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  // Each test has its own agent, because the journal of one may be stuck.
  beforeEach(async () => {
    till = await enrolTestAgent(shop)
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    await shop.ok('updateProtectionPolicy', {
      storeId: shop.storeId,
      policy: { ...policy, tillSales: { agents: [till.agentId] } },
    })
  })
  afterAll(() => shop.stop())
  let number = 0
  const saleOf = (epc: string, fields: Json = {}): Json => ({
    saleId: `a${++number}`,
    tillId: 'till-3',
    occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
    lines: [{ ean: shop.products[0].ean, quantity: 1, priceUnit: 4_990, vat: 19 as const, epcs: [epc] }],
    ...fields,
  })
  const sold = (sale: Json): TillEvidence => ({
    kind: 'sale',
    sale: keptSale(shop.storeId, sale as TillSale),
    items: [0, 0],
  })
  const statusOf = async (epc: string) =>
    (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus

  it('a void or return with a NUL stays unapplied and stops no later row', async () => {
    const [a, b] = [(await shop.newItem(shop.products[0])).epc, (await shop.newItem(shop.products[0])).epc]
    const first = saleOf(a)
    const back = keptReturn(shop.storeId, { returnId: 'R1', purchaseId: 'p\u0000', epcs: [a] } as TillReturn)
    const rows: TillEvidence[] = [
      sold(first),
      { kind: 'sale_void', saleId: first.saleId, tillId: 'till-3', reason: 'x\u0000' },
      { kind: 'sale_return', return: back },
      sold(saleOf(b)),
    ]
    expect((await till.report(rows.map((evidence) => till.row({ evidence })))).body).toMatchObject({ accepted: 4 })
    expect(await statusOf(a)).toBe('paid')
    expect(await statusOf(b)).toBe('paid')
    const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: 'unapplied' })
    expect(exceptions[0].detail).toContain('contains a NUL or an unpaired surrogate')
  })

  it.each(['saleId', 'series', 'fiscal', 'ean', 'name', 'tagIds', 'lineId', 'reason', 'receipt'])(
    'an unpaired surrogate in %s stops no other sale',
    async (field) => {
      const b = (await shop.newItem(shop.products[0])).epc
      const bad = 'x\ud800'
      const line = { ean: shop.products[0].ean, quantity: 1, priceUnit: 1, vat: 19 as const }
      const odd: Json = saleOf(b, { lines: [line] })
      if (field in { saleId: 1, series: 1, fiscal: 1 }) odd[field] = bad
      if (field in { ean: 1, name: 1, lineId: 1 }) odd.lines = [{ ...line, [field]: bad }]
      if (field === 'tagIds') odd.lines = [{ ...line, tagIds: [bad] }]
      const rows: TillEvidence[] = [
        sold(odd),
        { kind: 'sale_void', saleId: odd.saleId, tillId: 'till-3', reason: field === 'reason' ? bad : 'x' },
        sold(saleOf(b)),
      ]
      if (field === 'receipt')
        rows.unshift({
          kind: 'sale_return',
          return: keptReturn(shop.storeId, { returnId: 'R9', receipt: bad } as TillReturn),
        })
      const answer = await till.report(rows.map((evidence) => till.row({ evidence })))
      expect(answer.status).toBe(200)
      expect(await statusOf(b)).toBe('paid')
      const { purchases } = await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId })
      expect(purchases.length).toBeGreaterThan(0)
    },
  )
})
