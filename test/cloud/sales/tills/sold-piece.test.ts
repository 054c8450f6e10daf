import { afterAll, beforeAll, expect, it } from 'vitest'
import { decodeJwt } from 'jose'
import { encodeSgtin, splitGtin14 } from '../../../../policy/gs1/sgtin.ts'
import { AckClaims } from '../../../../policy/documents/agent-messages.ts'
import type { TillEvidence } from '../../../../policy/journal.ts'
import { keptReturn, keptSale, saleKeyOf, type TillSale } from '../../../../policy/till-sale.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { until } from '../../../support/receiver.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('a tag that passed for a piece that a till sold', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let till: TestAgent
  let gate: TestAgent
  let unnamed: TestAgent
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    ;[till, gate, unnamed] = [await enrolTestAgent(shop), await enrolTestAgent(shop), await enrolTestAgent(shop)]
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    const tillSales = { agents: [till.agentId, gate.agentId], passByProduct: 15 }
    await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, tillSales } })
  })
  afterAll(() => shop.stop())

  let number = 0
  const saleOf = (quantity = 1, product: Json = shop.products[0]) => ({
    saleId: `b${++number}`,
    tillId: 'till-3',
    occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
    lines: [{ ean: product.ean, quantity, priceUnit: 4_990, vat: 19 as const }],
  })
  const sell = async (sale: Json) =>
    (await shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })).results[0] as Json
  const report = async (by: TestAgent, ...evidence: TillEvidence[]) =>
    expect((await by.report(evidence.map((each) => by.row({ evidence: each })))).body).toMatchObject({
      accepted: evidence.length,
    })
  const passed = (sale: ReturnType<typeof saleOf>, epc: string): TillEvidence => ({
    kind: 'sale_piece',
    sale: saleKeyOf(shop.storeId, sale),
    epc,
  })
  const itemOf = (epc: string) => shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })
  const statusOf = async (epc: string) => (await itemOf(epc)).itemStatus
  const exceptionsAbout = async (of: string, epc: string): Promise<Json[]> =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: of, limit: 200 })).exceptions.filter(
      ({ detail }: Json) => detail.includes(epc),
    )
  const tag = async (product: Json = shop.products[0]) => (await shop.newItem(product)).epc

  it('belongs to the purchase: as its item, with its receipt, and for its return', async () => {
    const [a, b, c] = [await tag(), await tag(), await tag()]
    const sale = saleOf(2)
    const { purchaseId } = await sell(sale)
    await report(gate, passed(sale, a), passed(sale, b), passed(sale, a), passed(sale, c))
    expect([await statusOf(a), await statusOf(b), await statusOf(c)]).toEqual(['paid', 'paid', 'sellable'])
    expect((await itemOf(a)).purchaseId).toBe(purchaseId)
    expect(await exceptionsAbout('sale_of_more_items', c)).toHaveLength(1)
    await shop.ok('recordReturns', { storeId: shop.storeId, returns: [{ returnId: `r${number}`, epcs: [a] }] })
    expect([await statusOf(a), await statusOf(b)]).toEqual(['returned', 'paid'])
  })

  it('is paid, although its agent took it back within the minute before', async () => {
    const epc = await tag()
    forward(120_000)
    const sale = saleOf()
    const nowMs = shop.cloud.platform.clock.wall()
    const back = keptReturn(shop.storeId, { returnId: `w${number}`, tillId: 'till-3', epcs: [epc], resellable: true })
    const rows: [number, TillEvidence][] = [
      [40_000, { kind: 'sale_return', return: back }],
      [30_000, { kind: 'sale', sale: keptSale(shop.storeId, sale as TillSale), items: [0, 0] }],
      [20_000, passed(sale, epc)],
    ]
    for (const [agoMs, evidence] of rows)
      expect((await gate.report([gate.row({ evidence, atMs: nowMs - agoMs })])).body).toMatchObject({ accepted: 1 })
    expect(await statusOf(epc)).toBe('paid')
  })

  it('needs no tagged product: the piece gets its tag now', async () => {
    const ean = newEan()
    const { storeId } = shop
    await shop.ok('insertProduct', {
      storeId,
      ean,
      name: 'Tee',
      price: 4.9,
      vat: 7,
      tagged: false,
    })
    const [a, b] = [await tag({ ean }), await tag({ ean })]
    const sale = saleOf(1, { ean })
    await sell(sale)
    await report(gate, passed(sale, a), passed(sale, b))
    expect([await statusOf(a), await statusOf(b)]).toEqual(['paid', 'sellable'])
  })

  it('leaves no label to release, also if a token was granted for it before', async () => {
    const sale = saleOf()
    const { receiptToken } = await sell(sale)
    const deviceId = shop.devices.pos_deactivator
    const ask = () => shop.ok('verifySecurityTagDeactivation', { deviceId, receiptToken })
    expect(await ask()).toMatchObject({ deactivationAuthorized: true })
    await report(gate, passed(sale, await tag()))
    expect(await ask()).toMatchObject({ deactivationAuthorized: false })
  })

  it('waits for its sale, which another agent reports later', async () => {
    const epc = await tag()
    const sale = saleOf()
    await report(gate, passed(sale, epc))
    expect(await statusOf(epc)).toBe('sellable')
    await report(till, { kind: 'sale', sale: keptSale(shop.storeId, sale as TillSale), items: [0, 0] })
    // The sale wakes the job that retries rows. By itself it comes each ten minutes.
    await until('the tag is bound', async () => (await statusOf(epc)) === 'paid', 10_000)
  })

  it('stays in force at its agent, whose acknowledgements name the row, until its sale is here', async () => {
    const [sale, row] = [saleOf(), gate.row({ evidence: passed(saleOf(), await tag()) })]
    const evidence = passed(sale, await tag())
    const next = gate.row({ evidence })
    const ackOf = (body: Json) => AckClaims.parse(decodeJwt(body['ack']))
    expect(ackOf((await gate.report([row, next])).body).unapplied).toEqual(expect.arrayContaining([row.seq, next.seq]))
    await report(till, { kind: 'sale', sale: keptSale(shop.storeId, sale as TillSale), items: [0, 0] })
    await until(
      'the tag is bound',
      async () => (await statusOf(evidence.kind === 'sale_piece' ? evidence.epc : '')) === 'paid',
      10_000,
    )
    const { unapplied } = ackOf((await gate.report([gate.row({ evidence: passed(sale, await tag()) })])).body)
    expect([unapplied?.includes(row.seq), unapplied?.includes(next.seq)]).toEqual([true, false])
  })

  it.each<[string, string, (epc: string, sale: ReturnType<typeof saleOf>) => Promise<unknown>]>([
    [
      'goods are on hold',
      'sale_of_held_item',
      (epc) => shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'exception_hold' }),
    ],
    [
      'goods were paid elsewhere',
      'item_already_paid',
      (epc) => {
        const sale = saleOf()
        return sell({ ...sale, lines: sale.lines.map((line) => ({ ...line, epcs: [epc] })) })
      },
    ],
    [
      'sale is void',
      'sale_of_more_items',
      (_, { saleId, tillId }) => shop.ok('voidSale', { storeId: shop.storeId, saleId, tillId }),
    ],
    [
      'piece came back',
      'sale_of_more_items',
      (_, { saleId, tillId }) =>
        shop.ok('recordReturns', { storeId: shop.storeId, returns: [{ returnId: `r${saleId}`, saleId, tillId }] }),
    ],
  ])('keeps its status, with an exception, if its %s', async (_, exception, change) => {
    const epc = await tag()
    const sale = saleOf()
    await sell(sale)
    await change(epc, sale)
    const before = await statusOf(epc)
    await report(gate, passed(sale, epc))
    expect(await statusOf(epc)).toBe(before)
    expect(await exceptionsAbout(exception, epc)).toHaveLength(1)
  })

  it('keeps its status if it is of another product, or came back since it passed', async () => {
    const [other, back] = [await tag(shop.products[1]), await tag()]
    const sale = saleOf(2)
    await sell(sale)
    await report(gate, passed(sale, other))
    expect(await statusOf(other)).toBe('sellable')
    expect(await exceptionsAbout('sale_of_more_items', other)).toHaveLength(1)
    const before = shop.cloud.platform.clock.wall() - 60_000
    const named = saleOf()
    await sell({ ...named, lines: named.lines.map((line) => ({ ...line, epcs: [back] })) })
    const returned = { returnId: `r${number}`, epcs: [back], resellable: true }
    await shop.ok('recordReturns', { storeId: shop.storeId, returns: [returned] })
    await gate.report([gate.row({ atMs: before, evidence: passed(sale, back) })])
    expect(await statusOf(back)).toBe('sellable')
    expect(await exceptionsAbout('item_changed', back)).toHaveLength(1)
  })

  it('counts only from an agent that the policy names', async () => {
    const epc = await tag()
    const sale = saleOf()
    await sell(sale)
    await report(unnamed, passed(sale, epc))
    expect(await statusOf(epc)).toBe('sellable')
    expect(await exceptionsAbout('foreign_evidence', epc)).toHaveLength(1)
  })

  it('is known by the product in its EPC, if its item has none', async () => {
    const { ean } = shop.products[0]
    const parts = splitGtin14(`0${ean}`, 7)
    const encoded = parts && encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...parts, serial: '77' })
    expect(encoded?.ok).toBe(true)
    const epc = encoded?.ok ? encoded.hex : ''
    await shop.newItem({}, { epc })
    const sale = saleOf()
    await sell(sale)
    await report(gate, passed(sale, epc))
    expect(await statusOf(epc)).toBe('paid')
  })

  it('is no goods without a product code', async () => {
    const epc = await tag()
    const milk = { ...saleOf(), lines: [{ name: 'Milch', quantity: 1, priceUnit: 99, vat: 7 as const }] }
    await sell(milk)
    const passedMilk = { kind: 'sale_piece', sale: saleKeyOf(shop.storeId, milk), epc } as const
    await report(gate, passedMilk)
    expect(await statusOf(epc)).toBe('sellable')
    expect(await exceptionsAbout('sale_of_more_items', epc)).toHaveLength(1)
  })

  it('comes back by a return that arrived before its row', async () => {
    const epc = await tag()
    const sale = saleOf()
    await sell(sale)
    const atMs = shop.cloud.platform.clock.wall()
    const request = keptReturn(shop.storeId, { returnId: `e${number}`, epcs: [epc] })
    await till.report([till.row({ atMs: atMs + 1_000, evidence: { kind: 'sale_return', return: request } })])
    await gate.report([gate.row({ atMs, evidence: passed(sale, epc) })])
    expect(await statusOf(epc)).toBe('returned')
  })

  it('is paid as a named one, though its sale is older than 24 hours when the agents are online again', async () => {
    const [epc, sale] = [await tag(), saleOf()]
    const atMs = platform.clock.wall()
    forward(25 * 3_600_000)
    for (const agent of [till, gate]) await agent.login()
    const rows: TillEvidence[] = [
      { kind: 'sale', sale: keptSale(shop.storeId, sale as TillSale), items: [0, 0] },
      passed(sale, epc),
    ]
    await till.report(rows.map((evidence, n) => till.row({ evidence, atMs: atMs + n * 60_000 })))
    expect([await statusOf(epc), await exceptionsAbout('sale_of_more_items', epc)]).toEqual(['paid', []])
  })

  it('keeps its status, with an exception, if its till was revoked after the sale, also if the product needs no tag', async () => {
    const [ean, { storeId }] = [newEan(), shop]
    await shop.ok('insertProduct', { storeId, ean, name: 'Mütze', price: 49.9, vat: 19, tagged: false })
    for (const product of [{ ean }, shop.products[0] as Json]) {
      const [epc, sale] = [await tag(product), { ...saleOf(1, product), tillId: `revoked-${product['ean']}` }]
      await sell(sale)
      const sinceAt = new Date(platform.clock.wall() - 60_000).toISOString()
      expect(await shop.ok('revokeTill', { storeId, tillId: sale.tillId, sinceAt })).toMatchObject({ held: 1 })
      await report(gate, passed(sale, epc))
      expect([await statusOf(epc), (await exceptionsAbout('sale_of_more_items', epc)).length]).toEqual(['sellable', 1])
    }
  })
})
