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

  const LINE_FIELDS = ['ean', 'name', 'lineId', 'tagIds']
  const SALE_FIELDS = ['saleId', 'series', 'fiscal', 'receiptCodes', 'userId', 'loyaltyCard', 'unknown\u0000']
  const withText = (sale: Json, field: string, text: string): Json => {
    const value = ['tagIds', 'receiptCodes'].includes(field) ? [text] : text
    return LINE_FIELDS.includes(field)
      ? { ...sale, lines: [{ ...sale.lines[0], epcs: undefined, [field]: value }] }
      : { ...sale, [field]: value }
  }

  it.each([...LINE_FIELDS, ...SALE_FIELDS])(
    'recordSales refuses only the sale with an odd text in %s',
    async (field) => {
      for (const bad of ['x\u0000', 'x\ud800', '\u0001\u0002']) {
        const epc = (await shop.newItem(shop.products[0])).epc
        const odd = withText(saleOf(epc), field, bad)
        const answer = await shop.ok('recordSales', { storeId: shop.storeId, sales: [odd, saleOf(epc)] })
        expect(answer).toMatchObject({ recorded: 1, errors: [{ index: 0 }] })
        expect(answer.errors[0].field ?? answer.errors[0].error).toContain(field)
        expect(await statusOf(epc)).toBe('paid')
      }
    },
  )

  it.each(['returnId', 'saleId', 'receipt', 'code', 'reason', 'epcs'])(
    'recordReturns refuses only the return with an odd text in %s',
    async (field) => {
      for (const bad of ['x\u0000', 'x\ud800', '\u0001\u0002']) {
        const epc = (await shop.newItem(shop.products[0])).epc
        const sold = saleOf(epc)
        await shop.ok('recordSales', { storeId: shop.storeId, sales: [sold] })
        const back = { returnId: `R${sold.saleId}`, epcs: [epc], resellable: true }
        const odd = { returnId: `O${sold.saleId}`, epcs: [epc], [field]: field === 'epcs' ? [bad] : bad }
        const answer = await shop.ok('recordReturns', { storeId: shop.storeId, returns: [odd, back] })
        expect(answer).toMatchObject({ recorded: 1, errors: [{ index: 0, field: expect.stringContaining(field) }] })
        expect(await statusOf(epc)).toBe('sellable')
      }
    },
  )

  it('a NUL outside of the rows refuses the call', async () => {
    const answer = await shop.call('recordSales', { storeId: 'x\u0000', sales: [saleOf('x')] })
    expect(answer).toMatchObject({ status: 400, body: { details: [{ path: 'storeId', code: 'bad_characters' }] } })
  })
})
