import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('a tag that tills sell and take back again and again', (kind) => {
  let shop: Shop
  let number = 0
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const sell = async (epc: string): Promise<Json> => {
    const lines = [{ ean: shop.products[0].ean, quantity: 1, priceUnit: 0, vat: 19, epcs: [epc] }]
    const sale = { saleId: `s${++number}`, tillId: `till-${number}`, occurredAt: new Date().toISOString(), lines }
    return (await shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })).results[0]
  }
  const takeBack = (epc: string) =>
    shop.ok('recordReturns', {
      storeId: shop.storeId,
      returns: [{ returnId: `r${++number}`, epcs: [epc], resellable: true }],
    })
  const reports = async () =>
    (await shop.cloud.db.database.reads.selectFrom('piece_report').select('report_key').execute()).length

  it('is sold 12 times in 90 days; a further sale leaves it as it is, with a warning', async () => {
    const epc = newEpc()
    const item = { epc, ean: shop.products[0].ean, protectionTechnology: 'uhf_rfid' }
    await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [item] })
    for (let n = 0; n < 12; n++) {
      expect((await sell(epc)).warnings).toEqual([])
      await takeBack(epc)
    }
    expect(await reports()).toBe(24)
    const { warnings } = await sell(epc)
    expect(warnings).toMatchObject([{ code: 'item_already_paid', tag: epc }])
    expect((await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus).toBe('sellable')
    expect(await reports()).toBe(24)
  })
})
