import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readTransaction } from '../../../../cloud/sales/integrations/transaction.ts'
import { businessCentralSystem } from '../../../../simulators/services/erp-businesscentral.ts'
import { erpnextSystem } from '../../../../simulators/services/erp-erpnext.ts'
import { odooSystem } from '../../../../simulators/services/erp-odoo.ts'
import { sapB1System } from '../../../../simulators/services/erp-sapb1.ts'
import { vendorGoods } from '../../../../simulators/services/vendor-server.ts'
import type { Json } from '../../../support/cloud.ts'
import { openConnectedStore, type ConnectedStore } from '../../../support/connected-store.ts'
import { openPrimeShop, type PrimeShop } from '../../../support/prime-shop.ts'
import { newEan } from '../../../support/shop.ts'

const read = (record: Json): Json => readTransaction(record, 0)

describe('a sale for another system', () => {
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
  /** Returns a purchase in every form of the API. */
  const formsOf = async ({ transactionId }: Json): Promise<Json[]> => {
    const { sales } = await shop.ok('exportSalesData', { from: shop.today(), to: shop.today(), storeId: shop.storeId })
    const { success: _, ...purchase } = await shop.ok('fetchPurchase', { transactionId })
    return [...sales.filter((sale: Json) => sale.transactionId === transactionId), purchase, purchase.receipt]
  }

  it('is read from every form of the API', async () => {
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
          { name: 'Mineralwasser 0,75 l', ean: water.ean, quantity: 6, unitCent: 99, vat: 7, kind: 'goods' },
          { name: 'Pfand', ean: undefined, quantity: 6, unitCent: 15, vat: 7, kind: 'deposit' },
        ],
        refunds: [],
      })
    }
    // Without its receipt, a purchase contains neither EAN nor VAT of its lines. Tills need neither.
    const { receipt: _, ...bare } = forms[1] as Json
    expect(read(bare).transaction).toMatchObject({
      id: bought.transactionId,
      completedAt,
      totalCent: 684,
      lines: [
        { quantity: 6, unitCent: 99, ean: undefined },
        { unitCent: 15, kind: 'deposit' },
      ],
    })
    const { vat: __, priceUnit: ___, ...item } = (forms[2] as Json).items[0]
    expect(read({ ...forms[1], receipt: { ...forms[2], items: [item] } }).fault).toMatchObject({
      field: 'receipt.items.0.priceUnit',
      message: expect.stringContaining('missing'),
    })
  })

  it('contains coupons as lower prices of the goods with their VAT rate', async () => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const items = [
      { ean: water.ean, quantity: 6 },
      { name: 'Hemd', priceUnit: 5_000, quantity: 1, vat: 19 },
      { name: 'Gutschein', priceUnit: -100, quantity: 1, vat: 7, priceReason: 'coupon' },
    ]
    const { transactionId } = await shop.ok('startCheckout', { sessionId, items })
    const bought = await shop.ok('completeTestCheckout', { transactionId })
    await shop.ok('refundPayment', { transactionId, lines: [{ itemLineId: bought.items[0].itemLineId }] })
    // 5.94 + 0.90 EUR less 1.00 EUR are 5.07 + 0.77 EUR: three bottles at 0.85 and three at 0.84 EUR.
    const water7 = [
      { quantity: 3, unitCent: 85, ean: water.ean },
      { quantity: 3, unitCent: 84, ean: water.ean },
      { quantity: 5, unitCent: 13, kind: 'deposit' },
      { quantity: 1, unitCent: 12, kind: 'deposit' },
    ]
    for (const form of await formsOf(bought)) {
      const { lines, refunds, totalCent } = read(form).transaction
      expect([totalCent, lines]).toMatchObject([5_584, [...water7, { quantity: 1, unitCent: 5_000, vat: 19 }]])
      expect(refunds).toMatchObject([{ amountCent: 584, lines: water7 }])
    }
    const [{ items: _items, ...sale }, line] = [(await formsOf(bought))[0] as Json, { vat: 19, quantity: 1 }]
    const over = { ...sale, refunds: [], refundedCent: 0, items: [{ ...line, name: 'x', priceUnit: -1 }] }
    expect(read(over).fault).toMatchObject({ field: 'items', code: 'invalid' })
  })

  it('must be paid', async () => {
    const { receipt, ...open } = await start()
    for (const form of [open, receipt]) expect(read(form).fault).toMatchObject({ field: 'status', code: 'not_paid' })
    expect(read({ receipt }).fault).toMatchObject({ field: 'receipt.status', code: 'not_paid' })
    expect(read({ ...open, status: 'refunded' }).fault).toMatchObject({ field: 'status', code: 'invalid' })
  })

  it('contains the completed refunds with their goods or amounts', async () => {
    const [whole, byLine, byAmount] = [await buy(), await buy(), await buy()]
    const [goods, deposit] = [
      { name: 'Mineralwasser 0,75 l', ean: water.ean, quantity: 6, unitCent: 99, vat: 7, kind: 'goods' },
      { name: 'Pfand', ean: undefined, quantity: 6, unitCent: 15, vat: 7, kind: 'deposit' },
    ]
    await shop.ok('markPurchaseCancelled', { purchaseId: whole.transactionId })
    await shop.ok('refundPayment', {
      transactionId: byLine.transactionId,
      lines: [{ itemLineId: byLine.items[1].itemLineId }],
    })
    await shop.ok('refundPayment', { transactionId: byAmount.transactionId, amount: 1 })
    const byPieces = await buy()
    await shop.ok('refundPayment', {
      transactionId: byPieces.transactionId,
      lines: [{ itemLineId: byPieces.items[0].itemLineId, quantity: 2 }],
    })
    const expected = [
      {
        purchase: byPieces,
        amountCent: 228,
        lines: [
          { ...goods, quantity: 2 },
          { ...deposit, quantity: 2 },
        ],
      },
      { purchase: whole, amountCent: 684, lines: [goods, deposit] },
      { purchase: byLine, amountCent: 90, lines: [deposit] },
      { purchase: byAmount, amountCent: 100, lines: [{ unitCent: 100, quantity: 1, vat: 7, kind: 'amount' }] },
    ]
    for (const { purchase, amountCent, lines } of expected) {
      const forms = await formsOf(purchase)
      expect(forms).toHaveLength(3)
      for (const form of forms) {
        const { refunds, ...sale } = read(form).transaction
        expect(sale).toMatchObject({ totalCent: 684, lines: [goods, deposit] })
        const id = (forms[0] as Json).refunds[0].refundId
        expect(refunds).toMatchObject([{ id, amountCent, lines, day: shop.today(), completedAt: expect.any(String) }])
      }
    }
  })

  it('is rejected if its refunds[] do not add up to the refunded amount', async () => {
    const [whole, byAmount] = [await buy(), await buy()]
    await shop.ok('markPurchaseCancelled', { purchaseId: whole.transactionId })
    await shop.ok('refundPayment', { transactionId: byAmount.transactionId, amount: 1 })
    for (const form of await formsOf(whole)) {
      const without = form.receipt ? { ...form, receipt: { ...form.receipt, refunds: [] } } : { ...form, refunds: [] }
      expect(read(without).fault).toMatchObject({
        code: 'taken_back',
        field: expect.stringMatching(/^(receipt\.)?status$/),
      })
    }
    const forms = await formsOf(byAmount)
    const { refunds: _, refundedCent: __, ...sale } = forms[0] as Json
    expect(read({ ...sale, refundedCent: 100 }).fault).toMatchObject({ code: 'taken_back', field: 'refundedCent' })
    expect(read(sale).fault).toMatchObject({
      code: 'taken_back',
      field: expect.stringMatching(/^items\.\d\.refundedCent$/),
    })
    const { receipt: ___, refunds: ____, ...bare } = forms[1] as Json
    expect(read(bare).fault).toMatchObject({ code: 'taken_back', field: 'refunded' })
  })

  it('ignores pending, failed and late refunds, and reports invalid ones', () => {
    const items = [
      { itemLineId: 'lin_1', name: 'A', ean: '4006381333931', quantity: 1, priceUnit: 119, vat: 19 },
      { itemLineId: 'lin_2', name: 'B', ean: '4012345678901', quantity: 1, priceUnit: 107, vat: 7 },
    ]
    const sale = { transactionId: 'pur_1', status: 'SUCCESS', totalCent: 226, items }
    const refund = (refundId: string, amountCent: number, more: Json = {}) => ({ refundId, amountCent, ...more })
    const of = (...refunds: Json[]) => read({ ...sale, refunds })
    expect(
      of(
        refund('r1', 226, { status: 'pending' }),
        refund('r2', 10, { status: 'failed' }),
        refund('r3', 9, { kind: 'late' }),
      ).transaction.refunds,
    ).toEqual([])
    // An amount is split by VAT rate; the last refund takes the rest of each rate.
    expect(
      of(refund('r1', 100, { kind: 'part' }), refund('r2', 126)).transaction.refunds.map((r: Json) => r.lines),
    ).toMatchObject([
      [
        { unitCent: 47, vat: 7, kind: 'amount' },
        { unitCent: 53, vat: 19, kind: 'amount' },
      ],
      [
        { unitCent: 60, vat: 7 },
        { unitCent: 66, vat: 19 },
      ],
    ])
    // The first refund names a line; the second refunds all remaining lines.
    expect(
      of(
        refund('r1', 107, { kind: 'part', lines: [{ itemLineId: 'lin_2' }] }),
        refund('r2', 119, { kind: 'whole' }),
      ).transaction.refunds.map((r: Json) => r.lines.map((line: Json) => [line.name, line.kind])),
    ).toEqual([[['B', 'goods']], [['A', 'goods']]])
    expect(of(refund('r1', 227)).fault).toMatchObject({ field: 'refunds', code: 'invalid' })
    expect(of({ refundId: 'r1' }).fault).toMatchObject({ field: 'refunds.0.amountCent', code: 'invalid' })
    expect(of(refund('', 1)).fault).toMatchObject({ field: 'refunds.0.refundId', code: 'invalid' })
  })
})

const ERPS = [
  {
    system: 'odoo',
    start: odooSystem,
    lines: (record: Json) => record.order_line.map((line: Json[]) => [line[2]?.product_id, line[2]?.price_unit]),
    days: (record: Json) => [record.date_order],
    when: ['2026-11-30 23:30:00'],
    back: (record: Json) => [
      [record.move_type, record.ref, record.invoice_origin, record.invoice_date],
      record.invoice_line_ids.map(([, , line]: Json[]) => [line?.product_id, line?.quantity, line?.price_unit]),
    ],
    head: ['out_refund', 'ref_1', 'pur_1', '2026-12-02'],
    sign: 1,
  },
  {
    system: 'erpnext',
    start: erpnextSystem,
    lines: (record: Json) => record.items.map((line: Json) => [line.item_code, line.rate]),
    back: (record: Json) => [
      [record.is_return, record.po_no, record.posting_date],
      record.items.map((line: Json) => [line.item_code, line.qty, line.rate]),
    ],
    head: [1, 'ref_1', '2026-12-02'],
    sign: -1,
    days: (record: Json) => [record.transaction_date, record.delivery_date],
    when: ['2026-12-01', '2026-12-01'],
  },
  {
    system: 'businesscentral',
    start: businessCentralSystem,
    back: (record: Json) => [
      [record.customerNumber, record.externalDocumentNumber, record.creditMemoDate],
      record.salesCreditMemoLines.map((line: Json) => [line.lineObjectNumber, line.quantity, line.unitPrice]),
    ],
    head: ['10000', 'ref_1', '2026-12-02'],
    sign: 1,
    lines: (record: Json) => record.salesOrderLines.map((line: Json) => [line.lineObjectNumber, line.unitPrice]),
    days: (record: Json) => [record.orderDate],
    when: ['2026-12-01'],
  },
  {
    system: 'sapb1',
    start: sapB1System,
    back: (record: Json) => [
      [record.CardCode, record.NumAtCard, record.DocDate],
      record.DocumentLines.map((line: Json) => [line.ItemCode, line.Quantity, line.PriceAfterVAT]),
    ],
    head: ['C-LAUF', 'ref_1', '2026-12-02'],
    sign: 1,
    lines: (record: Json) => record.DocumentLines.map((line: Json) => [line.ItemCode, line.PriceAfterVAT]),
    days: (record: Json) => [record.DocDate, record.DocDueDate],
    when: ['2026-12-01', '2026-12-01'],
  },
]

describe.each(ERPS)('$system', ({ system, start, lines, days, when, back, head, sign }) => {
  let store: ConnectedStore
  beforeAll(async () => {
    store = await openConnectedStore('sqlite')
  })
  afterAll(() => store.stop())

  const [ean] = vendorGoods(1).products.map((product) => product.ean)
  /** A sale at half past midnight in Berlin. */
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

  const number = (n: number) =>
    system === 'businesscentral' ? String(1_000 + n) : `${system === 'erpnext' ? 'ITEM-' : 'A'}${1_000 + n}`
  const own = (n: number) => (system === 'odoo' ? 1_000 + n : number(n))

  it('receives each refund once, as a credit note of its own day', async () => {
    const vendor = await start({ goods: vendorGoods(3) })
    const push = (credentials: Json, record: Json) =>
      store.ok('pushToERP', {
        system,
        dataType: 'transactions',
        records: [record],
        credentials: { ...vendor.credentials, depositArticle: number(2), ...credentials },
      })
    const back1 = { refundId: 'ref_1', status: 'done', completedAt: '2026-12-02T09:00:00Z' }
    try {
      expect(await push({}, sale('pur_1', 19))).toMatchObject({ pushed: 1, errors: [] })
      const goods = sale('pur_1', 19, {
        refundedCent: 99,
        refunds: [{ ...back1, kind: 'part', amountCent: 99, lines: [{ itemLineId: 'lin_1' }] }],
      })
      // The response to the credit note is lost. A repeated call must find the credit note.
      vendor.gate = () => (vendor.written.length === 1 ? 'lost_write' : undefined)
      const body = { system, dataType: 'transactions', records: [goods], credentials: vendor.credentials }
      expect([200, 503]).toContain((await store.call('pushToERP', body)).status)
      vendor.gate = undefined
      for (let i = 0; i < 2; i++) expect(await push({}, goods)).toMatchObject({ pushed: 1, errors: [] })
      expect(vendor.written.map(({ kind, key }) => [kind, key])).toEqual([
        ['transactions', 'pur_1'],
        ['refunds', 'ref_1'],
      ])
      expect(back(vendor.written[1]?.record as Json)).toEqual([head, [[own(1), sign, 0.99]]])

      const rest = sale('pur_1', 19, {
        refundedCent: 104,
        refunds: [...goods['refunds'], { ...back1, refundId: 'ref_2', kind: 'part', amountCent: 5 }],
      })
      expect((await push({}, rest)).errors).toMatchObject([
        { index: 0, field: 'refunds.1', code: 'refund_article_missing', externalId: 'pur_1' },
      ])
      expect(await push({ refundArticle: number(3) }, rest)).toMatchObject({ pushed: 1, errors: [] })
      expect(vendor.written).toHaveLength(3)
      expect(back(vendor.written[2]?.record as Json)[1]).toEqual([[own(3), sign, 0.05]])
    } finally {
      await vendor.close()
    }
  })

  it('books deposits on the article of the credentials, and sales on the store’s day', async () => {
    const vendor = await start({ goods: vendorGoods(3) })
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
