import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readTransaction } from '../../cloud/integrations/transaction.ts'
import { businessCentralSystem } from '../../simulators/services/erp-businesscentral.ts'
import { erpnextSystem } from '../../simulators/services/erp-erpnext.ts'
import { odooSystem } from '../../simulators/services/erp-odoo.ts'
import { sapB1System } from '../../simulators/services/erp-sapb1.ts'
import { vendorGoods } from '../../simulators/services/vendor-goods.ts'
import type { Json } from '../support/cloud.ts'
import { openConnectedStore, type ConnectedStore } from '../support/connected-store.ts'
import { openPrimeShop, type PrimeShop } from '../support/prime-shop.ts'
import { newEan } from '../support/shop.ts'

const read = (record: Json): Json => readTransaction(record, 0)

describe('a sale that is written to another system', () => {
  let shop: PrimeShop
  let water: Json
  beforeAll(async () => {
    shop = await openPrimeShop('sqlite')
    water = await shop.ok('insertProduct', {
      storeId: shop.storeId,
      ean: newEan(),
      name: 'Mineralwasser 0,75 l',
      price: 0.99,
      vat: 7,
      deposit: 0.15,
    })
  })
  afterAll(() => shop.stop())

  const start = async () => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    return shop.ok('startCheckout', { sessionId, items: [{ ean: water.ean, quantity: 6 }] })
  }
  const buy = async () => shop.ok('completeTestCheckout', { transactionId: (await start()).transactionId })
  /** A purchase in every form that the API has of it. */
  const formsOf = async ({ transactionId }: Json): Promise<Json[]> => {
    const { sales } = await shop.ok('exportSalesData', { from: shop.today(), to: shop.today(), storeId: shop.storeId })
    const { success: _, ...purchase } = await shop.ok('fetchPurchase', { transactionId })
    return [...sales.filter((sale: Json) => sale.transactionId === transactionId), purchase, purchase.receipt]
  }

  it('is read in every form that the API has of it', async () => {
    const bought = await buy()
    const forms = await formsOf(bought)
    expect(forms).toHaveLength(3)
    const completedAt = forms[0]?.completedAt
    for (const form of forms) {
      expect(read(form).transaction).toEqual({
        id: bought.transactionId,
        completedAt,
        day: shop.today(),
        currency: 'EUR',
        totalCent: 6 * 114,
        lines: [
          { name: 'Mineralwasser 0,75 l', ean: water.ean, quantity: 6, unitCent: 99, vat: 7, isDeposit: false },
          { name: 'Pfand', ean: undefined, quantity: 6, unitCent: 15, vat: 7, isDeposit: true },
        ],
      })
    }
    // Without its receipt a purchase says neither EAN nor VAT of its lines: enough for tills.
    const { receipt: _, ...bare } = forms[1] as Json
    expect(read(bare).transaction).toMatchObject({
      id: bought.transactionId,
      completedAt,
      totalCent: 684,
      lines: [
        { quantity: 6, unitCent: 99, ean: undefined },
        { unitCent: 15, isDeposit: true },
      ],
    })
    const { vat: __, priceUnit: ___, ...item } = (forms[2] as Json).items[0]
    expect(read({ ...forms[1], receipt: { ...forms[2], items: [item] } }).fault).toMatchObject({
      field: 'receipt.items.0.priceUnit',
      message: expect.stringContaining('missing'),
    })
  })

  it('is one that was paid', async () => {
    const { receipt, ...open } = await start()
    for (const form of [open, receipt]) expect(read(form).fault).toMatchObject({ field: 'status', code: 'not_paid' })
    expect(read({ receipt }).fault).toMatchObject({ field: 'receipt.status', code: 'not_paid' })
    expect(read({ ...open, status: 'refunded' }).fault).toMatchObject({ field: 'status', code: 'invalid' })
  })

  it('is none where it was taken back, or a part of it', async () => {
    const [whole, byLine, byAmount] = [await buy(), await buy(), await buy()]
    await shop.ok('markPurchaseCancelled', { purchaseId: whole.transactionId })
    for (const form of await formsOf(whole))
      expect(read(form).fault).toMatchObject({
        code: 'taken_back',
        field: expect.stringMatching(/^(receipt\.)?status$/),
      })
    await shop.ok('refundPayment', { transactionId: byLine.transactionId, itemLineIds: [byLine.items[1].itemLineId] })
    await shop.ok('refundPayment', { transactionId: byAmount.transactionId, amount: 1 })
    for (const purchase of [byLine, byAmount]) {
      const forms = await formsOf(purchase)
      for (const form of forms)
        expect(read(form).fault).toMatchObject({
          code: 'taken_back',
          field: expect.stringMatching(/^(receipt\.)?refundedCent$/),
        })
      const { refundedCent: _, ...sale } = forms[0] as Json
      expect(read(sale).fault).toMatchObject({
        code: 'taken_back',
        field: expect.stringMatching(/^items\.\d\.refundedCent$/),
      })
      const { receipt: __, ...bare } = forms[1] as Json
      expect(read(bare).fault).toMatchObject({ code: 'taken_back', field: 'refunded' })
    }
  })
})

const ERPS = [
  {
    system: 'odoo',
    start: odooSystem,
    lines: (record: Json) => record.order_line.map((line: Json[]) => [line[2]?.product_id, line[2]?.price_unit]),
    days: (record: Json) => [record.date_order],
    when: ['2026-11-30 23:30:00'],
  },
  {
    system: 'erpnext',
    start: erpnextSystem,
    lines: (record: Json) => record.items.map((line: Json) => [line.item_code, line.rate]),
    days: (record: Json) => [record.transaction_date, record.delivery_date],
    when: ['2026-12-01', '2026-12-01'],
  },
  {
    system: 'businesscentral',
    start: businessCentralSystem,
    lines: (record: Json) => record.salesOrderLines.map((line: Json) => [line.lineObjectNumber, line.unitPrice]),
    days: (record: Json) => [record.orderDate],
    when: ['2026-12-01'],
  },
  {
    system: 'sapb1',
    start: sapB1System,
    lines: (record: Json) => record.DocumentLines.map((line: Json) => [line.ItemCode, line.PriceAfterVAT]),
    days: (record: Json) => [record.DocDate, record.DocDueDate],
    when: ['2026-12-01', '2026-12-01'],
  },
]

describe.each(ERPS)('$system', ({ system, start, lines, days, when }) => {
  let store: ConnectedStore
  beforeAll(async () => {
    store = await openConnectedStore('sqlite')
  })
  afterAll(() => store.stop())

  const [ean] = vendorGoods(1).products.map((product) => product.ean)
  /** Half past midnight in Berlin. */
  const sale = (transactionId: string, vat: number, more: Json = {}): Json => ({
    transactionId,
    completedAt: '2026-11-30T23:30:00Z',
    status: 'SUCCESS',
    currency: 'EUR',
    totalCent: 114,
    refundedCent: 0,
    items: [
      { itemLineId: 'lin_1', ean, name: 'Wasser', quantity: 1, vat, priceUnit: 99, totalCent: 99, refundedCent: 0 },
      {
        itemLineId: 'lin_2',
        name: 'Pfand',
        quantity: 1,
        vat,
        priceUnit: 15,
        totalCent: 15,
        refundedCent: 0,
        depositOf: 'lin_1',
      },
    ],
    ...more,
  })

  it('books deposits on the article that the credentials name, and sales on the day of the store', async () => {
    const vendor = await start({ goods: vendorGoods(3) })
    const number = (n: number) =>
      system === 'businesscentral' ? String(1_000 + n) : `${system === 'erpnext' ? 'ITEM-' : 'A'}${1_000 + n}`
    const own = (n: number) => (system === 'odoo' ? 1_000 + n : number(n))
    const push = (credentials: Json, records: Json[]) =>
      store.ok('pushToERP', {
        system,
        dataType: 'transactions',
        records,
        credentials: { ...vendor.credentials, ...credentials },
      })
    try {
      const { pushed, errors } = await push({}, [
        sale('pur_0', 19),
        sale('pur_c', 19, { status: 'CANCELLED', refundedCent: 114 }),
      ])
      expect([pushed, errors]).toMatchObject([
        0,
        [
          { index: 0, field: 'items.1.depositOf', code: 'deposit_article_missing', externalId: 'pur_0' },
          { index: 1, field: 'status', code: 'taken_back' },
        ],
      ])
      expect(errors[0].message).toContain('credentials.depositArticle')
      expect(vendor.written).toEqual([])
      expect(await push({ depositArticle: number(2) }, [sale('pur_1', 19), sale('pur_2', 7)])).toMatchObject({
        pushed: 2,
        errors: [],
      })
      expect(
        await push({ depositArticle: number(2), reducedDepositArticle: number(3) }, [
          sale('pur_3', 19),
          sale('pur_4', 7),
        ]),
      ).toMatchObject({ pushed: 2, errors: [] })
      expect(vendor.written.map(({ record }) => lines(record as Json))).toEqual(
        [2, 2, 2, 3].map((n) => [
          [own(1), 0.99],
          [own(n), 0.15],
        ]),
      )
      expect(vendor.written.map(({ record }) => days(record as Json))).toEqual([1, 2, 3, 4].map(() => when))
      if (system === 'odoo')
        expect((await push({ depositArticle: 'NO' }, [sale('pur_5', 19)])).errors).toMatchObject([
          { field: 'items.1.depositOf', code: 'unknown_product' },
        ])
    } finally {
      await vendor.close()
    }
  })
})
