import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { TillEvidence } from '../../../../policy/journal.ts'
import { keptReturn, keptSale, saleKeyOf, type TillReturn, type TillSale } from '../../../../policy/till-sale.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/** A return takes back the goods of its own sale only: what it names wrongly is for people. */
onEveryDatabase('a return that does not fit the sale with its number', (kind) => {
  let shop: Shop
  let home: TestAgent
  let other: TestAgent
  beforeAll(async () => {
    shop = await openShop(kind)
    ;[home, other] = [await enrolTestAgent(shop), await enrolTestAgent(shop)]
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    const tillSales = { ...policy.tillSales, agents: [home.agentId, other.agentId] }
    await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, tillSales } })
  })
  afterAll(() => shop.stop())

  let number = 0
  const tag = async (): Promise<string> => (await shop.newItem(shop.products[0])).epc
  const line = (epcs: string[], quantity = 1) => ({ name: 'Jacke', quantity, priceUnit: 1_000, vat: 19 as const, epcs })
  const saleOf = (...lines: Json[]): Json => ({
    saleId: `o${++number}`,
    tillId: 'till-3',
    occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
    lines,
  })
  const sold = (sale: Json): TillEvidence => ({
    kind: 'sale',
    sale: keptSale(shop.storeId, sale as TillSale),
    items: [0, 0],
  })
  const back = (fields: Json, sale?: string): TillEvidence => ({
    kind: 'sale_return',
    return: keptReturn(shop.storeId, { returnId: `g${++number}`, tillId: 'till-3', ...fields } as TillReturn),
    ...(sale !== undefined && { sale }),
  })
  const report = async (by: TestAgent, evidence: TillEvidence) =>
    expect((await by.report([by.row({ evidence })])).body).toMatchObject({ accepted: 1 })
  const statusOf = async (epc: string) =>
    (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus
  const refundedOf = async ({ saleId }: Json): Promise<number> =>
    (await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, saleId })).purchases[0].refunded ?? 0
  const unclear = async (): Promise<number> =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: 'return_unclear', limit: 200 })).exceptions.length
  let before: number
  beforeEach(async () => {
    before = await unclear()
  })

  /** Two agents, which are apart, acknowledge different sales with one number. The first one counts. */
  async function twoSales(): Promise<{ sale: Json; first: string; second: string }> {
    const [first, second] = [await tag(), await tag()]
    const sale = saleOf(line([first]))
    await report(home, sold(sale))
    await report(other, sold({ ...sale, lines: [line([second], 2)] }))
    return { sale, first, second }
  }

  it.each<[string, (sale: Json, second: string) => TillEvidence]>([
    ['by the number', ({ saleId }) => back({ saleId })],
    ['by the number and a tag', ({ saleId }, epc) => back({ saleId, epcs: [epc] })],
    ['by a line', ({ saleId }) => back({ saleId, lines: [{ lineId: '1' }] })],
    [
      'by the receipt of its agent',
      (sale) => back({ receipt: 'a receipt' }, saleKeyOf(shop.storeId, sale as TillSale)),
    ],
  ])('takes back nothing of the first sale if its agent sold another one: %s', async (_, request) => {
    const { sale, first, second } = await twoSales()
    await report(other, request(sale, second))
    expect([await statusOf(first), await statusOf(second), await refundedOf(sale)]).toEqual(['paid', 'sellable', 0])
    expect((await unclear()) - before).toBe(1)
  })

  it('takes back a tag that it names, also one that the first sale names, too; without its money', async () => {
    const { sale, first } = await twoSales()
    await report(other, back({ saleId: sale['saleId'], epcs: [first] }))
    expect([await statusOf(first), await refundedOf(sale), (await unclear()) > before]).toEqual(['returned', 0, true])
  })

  it('counts as ever from the agent of the first sale, and from the cloud', async () => {
    const { sale, first } = await twoSales()
    await report(home, back({ saleId: sale['saleId'] }))
    expect([await statusOf(first), await refundedOf(sale), (await unclear()) - before]).toEqual(['returned', 10, 0])
  })

  const UNKNOWN = '3034257BF7194E4000EEEEEE'
  const returns = async (fields: Json) => {
    const request = { returnId: `g${++number}`, tillId: 'till-3', ...fields }
    return (await shop.ok('recordReturns', { storeId: shop.storeId, returns: [request] })) as Json
  }
  const sell = (sale: Json) => shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })

  it('takes no piece with another tag for a tag that was never in the sale', async () => {
    const [epc, stranger] = [await tag(), await tag()]
    const sale = saleOf(line([epc]))
    await sell(sale)
    for (const wrong of [stranger, UNKNOWN]) {
      expect(await returns({ saleId: sale['saleId'], epcs: [wrong] })).toMatchObject({
        errors: [{ code: 'item_unknown', field: 'epcs' }],
      })
      await report(home, back({ saleId: sale['saleId'], epcs: [wrong] }))
    }
    expect([await statusOf(epc), await refundedOf(sale), (await unclear()) - before]).toEqual(['paid', 0, 2])
  })

  it.each([true, false])(
    'takes the pieces without a known tag for such tags, and no more, of a product with tags: %s',
    async (tagged) => {
      const [ean, { storeId }] = [newEan(), shop]
      await shop.ok('insertProduct', { storeId, ean, name: 'Hemd', price: 10, vat: 19, tagged })
      const pieces = [await shop.newItem({ ean }), await shop.newItem({ ean }), await shop.newItem({ ean })]
      const [epc, one, two] = pieces.map((item) => item.epc as string) as [string, string, string]
      const sale = saleOf({ ...line([epc], 2), ean })
      await sell(sale)
      const comesBack = (...epcs: string[]) => returns({ saleId: sale['saleId'], epcs })
      expect(await comesBack(one, two)).toMatchObject({ errors: [{ code: 'item_unknown' }] })
      expect(await comesBack(one)).toMatchObject({ results: [{ amountCent: 1_000 }] })
      expect(await comesBack(two)).toMatchObject({ errors: [{ code: 'item_unknown' }] })
      expect([await statusOf(epc), await refundedOf(sale)]).toEqual(['paid', 10])
      expect(await comesBack(epc)).toMatchObject({ results: [{ amountCent: 1_000 }] })
      expect([await statusOf(epc), await refundedOf(sale)]).toEqual(['returned', 20])
    },
  )

  it('takes the piece of the line that named a doubtful tag, also beside other lines', async () => {
    const [first, second] = [await tag(), await tag()]
    const sale = saleOf(line([first]), { ...line([UNKNOWN]), priceUnit: 2_000 }, line([second]))
    await sell(sale)
    expect(await returns({ saleId: sale['saleId'], epcs: [UNKNOWN] })).toMatchObject({
      results: [{ amountCent: 2_000 }],
    })
    expect([await statusOf(first), await statusOf(second)]).toEqual(['paid', 'paid'])
  })
})
