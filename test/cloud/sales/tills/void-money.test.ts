import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('money of sales of tills in the reports', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    await shop.ok('updateProtectionPolicy', {
      storeId: shop.storeId,
      policy: { ...policy, tillSales: { ...policy.tillSales, salesPerHour: 10_000, valuePerHour: 1_000_000 } },
    })
  })
  afterAll(() => shop.stop())
  let number = 0
  const sale = (lines: Json[]): Json => ({
    saleId: `m${++number}`,
    tillId: 'till-3',
    occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
    lines,
  })
  const line = (quantity: number, priceUnit: number, vat = 19, name = 'Ware'): Json => ({
    name,
    quantity,
    priceUnit,
    vat,
  })
  /** Figures of the reports and closings, in cents. */
  const day = async () => {
    const db = shop.cloud.db.database.reads
    const days = await db.selectFrom('store_day').selectAll().where('store_id', '=', shop.storeId).execute()
    const vats = await db
      .selectFrom('store_day_vat')
      .selectAll()
      .where('store_id', '=', shop.storeId)
      .where('is_till', '=', 1)
      .execute()
    const sum = <T>(rows: readonly T[], name: keyof T) => rows.reduce((all, row) => all + Number(row[name]), 0)
    return {
      cent: sum(days, 'till_cent'),
      items: sum(days, 'till_items'),
      sales: sum(days, 'till_sales'),
      vat: sum(vats, 'sales_cent') - sum(vats, 'refund_cent'),
      tax: sum(vats, 'sales_tax_cent') - sum(vats, 'refund_tax_cent'),
    }
  }
  const cases: Record<string, Json[]> = {
    plain: [line(2, 1000)],
    'return slip': [line(-1, 1000)],
    'exchange down': [line(1, 1000), line(-1, 4000, 19, 'Jacke')],
    'exchange up': [line(1, 5000), line(-1, 4000, 19, 'Jacke')],
    'exchange other vat': [line(1, 5000, 7), line(-1, 4000, 19, 'Jacke')],
    'exchange other vat down': [line(1, 3000, 7), line(-1, 4000, 19, 'Jacke')],
    empties: [line(10, -25)],
    'empties and goods': [line(10, -25), line(1, 100, 7)],
    coupon: [line(1, 1000), line(1, -300, 19, 'Rabatt')],
    'coupon of other rate': [line(1, 1000, 7), line(1, -300, 19, 'Rabatt')],
    cancelled: [line(1, 1000), line(-1, 1000), line(1, 500, 7)],
    zero: [line(1, 1000), line(-1, 1000, 19, 'Jacke')],
    weighed: [line(0.333, 999, 7)],
    'weighed back': [line(0.333, 999, 7), line(-0.2, 999, 7)],
  }
  for (const [name, lines] of Object.entries(cases))
    it(`void: ${name}`, async () => {
      const before = await day()
      const of = sale(lines)
      await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
      await shop.ok('voidSale', { storeId: shop.storeId, saleId: of.saleId, tillId: 'till-3' })
      expect(await day()).toEqual(before)
    })
})
