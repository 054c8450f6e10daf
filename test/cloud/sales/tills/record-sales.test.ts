import { enrolTestAgent } from '../../../support/test-agent.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openPrimeShop, type PrimeShop } from '../../../support/prime-shop.ts'
import { until } from '../../../support/receiver.ts'
import { newEan, newEpc, openShop, type Shop } from '../../../support/shop.ts'

inFullSizeOnEveryDatabase('sales of tills', (kind) => {
  let shop: Shop
  let jacket: Json
  beforeAll(async () => {
    shop = await openShop(kind)
    jacket = shop.products[0]
  })
  afterAll(() => shop.stop())

  let number = 0
  const sale = (fields: Json = {}): Json => ({
    saleId: String(++number),
    tillId: 'till-3',
    occurredAt: new Date().toISOString(),
    lines: [{ ean: jacket.ean, quantity: 1, priceUnit: 4_990, vat: 19 }],
    ...fields,
  })
  const line = (fields: Json): Json => ({ ean: jacket.ean, quantity: 1, priceUnit: 4_990, vat: 19, ...fields })
  const record = (...sales: Json[]) => shop.ok('recordSales', { storeId: shop.storeId, sales })
  const recordOne = async (sent: Json) => {
    const answer = await record(sent)
    expect(answer.errors).toEqual([])
    return { ...answer, ...answer.results[0] }
  }
  const statusOf = async (epc: string) =>
    (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus
  const detach = (fields: Json) =>
    shop.ok('verifyProtectedItem', {
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      ...fields,
    })
  const exceptions = async () =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, limit: 500 })).exceptions.map((e: Json) => e.kind)

  it('makes the tags paid, and its receipt releases them', async () => {
    const { epc } = await shop.newItem(jacket)
    const { purchaseId, receiptToken, items, warnings } = await recordOne(
      sale({ totalCent: 4_990, fiscal: 'TSE 4711', lines: [line({ epcs: [epc] })] }),
    )
    expect(warnings).toEqual([])
    expect(items).toEqual([{ lineId: '1', tag: epc, itemStatus: 'paid' }])
    expect(await statusOf(epc)).toBe('paid')
    const purchase = await shop.ok('fetchPurchase', { purchaseId })
    expect(purchase).toMatchObject({ status: 'SUCCESS', total: 49.9 })
    expect(purchase.receipt).toMatchObject({ fiscal: 'TSE 4711', till: { saleId: String(number), tillId: 'till-3' } })
    const grant = await detach({ epc, receiptToken })
    expect(grant).toMatchObject({ authorized: true })
  })

  it('releases goods that came back with a sale that is void, unless they were released before', async () => {
    const [epc, other] = [(await shop.newItem(jacket)).epc, (await shop.newItem(jacket)).epc]
    const { receiptToken } = await recordOne(sale({ lines: [line({ epcs: [epc] })] }))
    const exchange = sale({ lines: [line({ quantity: -1, epcs: [epc] }), line({ epcs: [other] })] })
    await record(exchange)
    const { saleId, tillId } = exchange
    await shop.ok('voidSale', { storeId: shop.storeId, saleId, tillId })
    expect(await statusOf(epc)).toBe('paid')
    expect(await detach({ epc, receiptToken })).toMatchObject({ authorized: true })
  })

  it('takes the product of a line from its tags, and goods of several products in one line', async () => {
    const [one, other] = [await shop.newItem(jacket), await shop.newItem(shop.products[1])]
    const unnamed = { name: 'Ware', priceUnit: 100, vat: 19 }
    const { purchaseId, warnings } = await recordOne(sale({ lines: [{ ...unnamed, quantity: 1, epcs: [one.epc] }] }))
    expect(warnings).toEqual([])
    expect((await shop.ok('fetchPurchase', { purchaseId })).items[0].productId).toBe(jacket.productId)
    const again = await shop.newItem(jacket)
    await recordOne(sale({ lines: [{ ...unnamed, quantity: 2, epcs: [again.epc, other.epc] }] }))
    expect([await statusOf(one.epc), await statusOf(again.epc), await statusOf(other.epc)]).toEqual([
      'paid',
      'paid',
      'paid',
    ])
  })

  it('gives each of its items one new number for the gates', async () => {
    const epcs = [(await shop.newItem(jacket)).epc, (await shop.newItem(jacket)).epc]
    const newest = async () => {
      const heads = shop.cloud.db.database.reads.selectFrom('item_head').select('seq')
      return Number((await heads.where('store_id', '=', shop.storeId).executeTakeFirstOrThrow()).seq)
    }
    const before = await newest()
    await recordOne(sale({ lines: [line({ quantity: 2, epcs })] }))
    expect(await newest()).toBe(before + 2)
  })

  it('is found by its number and by the code on its receipt in its store', async () => {
    const sent = sale({ saleId: 'Bon 0815/7', receiptCodes: ['0815-7-8F2K', '0815-7-9G3L'] })
    const { purchaseId } = await recordOne(sent)
    for (const named of [
      { saleId: 'Bon 0815/7' },
      { receiptCode: '0815-7-8F2K' },
      { receiptCode: '0815-7-9G3L', saleId: 'Bon 0815/7' },
    ]) {
      const found = await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, ...named })
      expect(found.purchases.map((p: Json) => p.transactionId)).toEqual([purchaseId])
      const elsewhere = await shop.ok('fetchPurchaseHistory', { storeId: shop.otherStoreId, ...named })
      expect(elsewhere.purchases).toEqual([])
      expect((await shop.call('fetchPurchaseHistory', named)).status).toBe(400)
    }
    const wrong = { storeId: shop.storeId, receiptCode: '0815-7-8F2' }
    expect((await shop.ok('fetchPurchaseHistory', wrong)).purchases).toEqual([])
  })

  it('is recorded once, however often and in whatever spelling it is sent', async () => {
    const { epc } = await shop.newItem(jacket)
    const sent = sale({ occurredAt: new Date(Date.now() - 1_000).toISOString(), lines: [line({ epcs: [epc] })] })
    const first = await recordOne(sent)
    const again = await record({
      ...sent,
      version: 1,
      state: 'paid',
      lines: [line({ lineId: '1', epcs: [epc.toLowerCase()] })],
    })
    expect(again).toMatchObject({ recorded: 0, repeated: 1, results: [{ purchaseId: first.purchaseId }], errors: [] })
    const other = await record({ ...sent, lines: [line({ epcs: [epc], priceUnit: 1 })] })
    expect(other).toMatchObject({ recorded: 0, errors: [{ index: 0, saleId: sent.saleId, code: 'sale_conflict' }] })
    const series = await record({ ...sent, series: 'Z2', lines: [line({ priceUnit: 1 })] })
    expect(series.recorded).toBe(1)
  })

  it('refuses only the malformed sale of a call, and names its field', async () => {
    const answer = await record(sale(), sale({ lines: [line({ quantity: 0 })] }), { saleId: 'x' }, sale({ unknown: 1 }))
    expect(answer.recorded).toBe(1)
    expect(answer.errors).toMatchObject([
      { index: 1, field: 'lines.0.quantity' },
      { index: 2, saleId: 'x', field: 'occurredAt' },
      { index: 3, error: expect.stringContaining('unknown') },
    ])
  })

  it.each([[null], ['4711'], [[]]])('refuses only %j where a sale or return should be', async (row) => {
    const sold = sale()
    expect(await record(row as Json, sold)).toMatchObject({ recorded: 1, errors: [{ index: 0, field: 'saleId' }] })
    const back = {
      returnId: `R-${sold.saleId}`,
      saleId: sold.saleId,
      tillId: sold.tillId,
      lines: [{ lineId: '1' }],
      resellable: true,
    }
    const answer = await shop.ok('recordReturns', {
      storeId: shop.storeId,
      returns: [row, { ...back, resellable: 'yes' }, back],
    })
    expect(answer).toMatchObject({
      recorded: 1,
      errors: [
        { index: 0, field: expect.any(String) },
        { index: 1, saleId: sold.saleId, field: 'resellable' },
      ],
    })
  })

  describe('goods that do not fit', () => {
    it.each([
      ['sale_tag_unknown', async () => newEpc(), undefined],
      [
        'item_already_paid',
        async () => {
          const { epc } = await shop.newItem(jacket)
          await recordOne(sale({ lines: [line({ epcs: [epc] })] }))
          return epc
        },
        'paid',
      ],
      [
        'sale_of_held_item',
        async () => {
          const { epc } = await shop.newItem(jacket)
          await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'exception_hold' })
          return epc
        },
        'exception_hold',
      ],
      ['sale_of_other_product', async () => (await shop.newItem(shop.products[1])).epc, 'sellable'],
    ])('%s: recorded, warned, an exception, and the tag keeps its status', async (code, tag, status) => {
      const epc = await tag()
      const answer = await recordOne(sale({ lines: [line({ epcs: [epc] })] }))
      expect(answer.recorded).toBe(1)
      expect(answer.warnings).toMatchObject([{ code, tag: epc, lineId: '1' }])
      expect(answer.items[0].itemStatus).toBe(status)
      if (status !== undefined) expect(await statusOf(epc)).toBe(status)
      expect(await exceptions()).toContain(code)
    })

    it('warns of unknown products, wrong totals and clocks that are ahead', async () => {
      const occurredAt = new Date(Date.now() + 3_600_000).toISOString()
      const { warnings } = await recordOne(
        sale({ occurredAt, totalCent: 1, lines: [line({ ean: newEan(), name: 'Neu' })] }),
      )
      expect(warnings.map((w: Json) => w.code).sort()).toEqual([
        'sale_in_future',
        'sale_product_unknown',
        'sale_total_differs',
      ])
    })

    it('on hold do not come back at a till, so that it could sell them', async () => {
      const { epc } = await shop.newItem(jacket)
      await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'exception_hold' })
      const back = await recordOne(sale({ lines: [line({ quantity: -1, epcs: [epc] })] }))
      expect(back.warnings).toMatchObject([{ code: 'sale_of_held_item', tag: epc }])
      const { errors } = await shop.ok('recordReturns', {
        storeId: shop.storeId,
        returns: [{ returnId: `hold-${epc}`, epcs: [epc], resellable: true }],
      })
      expect(errors[0].code).toBe('illegal_move')
      expect(await statusOf(epc)).toBe('exception_hold')
    })

    it('of a recall stay, and the till learns it also without a tag', async () => {
      const product = shop.products[3]
      const { epc } = await shop.newItem(product)
      const { recallId } = await shop.ok('recallProducts', {
        storeIds: [shop.storeId],
        ean: product.ean,
        reason: 'test',
      })
      const { warnings } = await recordOne(sale({ lines: [line({ ean: product.ean, epcs: [epc] })] }))
      expect(warnings[0].code).toBe('sale_of_held_item')
      expect(await statusOf(epc)).toBe('sellable')
      const untagged = await recordOne(sale({ lines: [line({ ean: product.ean })] }))
      expect(untagged.warnings).toMatchObject([{ code: 'sale_of_held_item', lineId: '1' }])
      await shop.ok('endRecall', { recallId })
    })
  })

  it('finds the receipt of a printed code, also for an agent of the store, and none that two sales printed', async () => {
    const [code, shared] = [`code-${newEpc()}`, `both-${newEpc()}`]
    const { purchaseId, receiptToken } = await recordOne(sale({ receiptCodes: [code, shared] }))
    await recordOne(sale({ receiptCodes: [shared] }))
    const agent = await enrolTestAgent(shop)
    const found = { purchaseId, token: receiptToken }
    expect(await shop.ok('getReceiptFromCode', { storeId: shop.storeId, code })).toMatchObject(found)
    expect((await agent.call('getReceiptFromCode', { storeId: shop.storeId, code })).body).toMatchObject(found)
    const other = { storeId: shop.otherStoreId, code }
    expect([
      (await agent.call('getReceiptFromCode', other)).status,
      (await shop.call('getReceiptFromCode', other)).status,
    ]).toEqual([404, 404])
    expect((await shop.call('getReceiptFromCode', { storeId: shop.storeId, code: shared })).body.reason).toBe(
      'code_of_several_sales',
    )
    expect((await shop.call('getReceiptFromCode', { storeId: shop.storeId, code: 'unknown-code' })).status).toBe(404)
  })

  it('says which codes release labels: random ones, if the policy allows it', async () => {
    const { storeId } = shop
    const codes = ['9f86d081884c7d65', '2026112000004711']
    await recordOne(sale({ receiptCodes: codes }))
    const releases = () =>
      Promise.all(codes.map(async (code) => (await shop.ok('getReceiptFromCode', { storeId, code })).releases))
    expect(await releases()).toEqual([false, false])
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
    const tillSales = { ...policy.tillSales, codes: 'release' }
    await shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } })
    expect(await releases()).toEqual([true, false])
    await shop.ok('updateProtectionPolicy', { storeId, policy })
  })

  it('takes weighed goods, discounts, returned empties and returns in one sale', async () => {
    const { epc } = await shop.newItem(jacket)
    await recordOne(sale({ lines: [line({ epcs: [epc] })] }))
    const { purchaseId, items, warnings } = await recordOne(
      sale({
        totalCent: 366 - 100 - 25 - 4_990 + 8_990,
        lines: [
          { name: 'Äpfel', quantity: 1.234, priceUnit: 297, vat: 7 },
          { name: 'Rabatt', quantity: 1, priceUnit: -100, vat: 19 },
          { name: 'Leergut', quantity: 1, priceUnit: -25, vat: 19 },
          line({ quantity: -1, epcs: [epc] }),
          { name: 'Schuhe', quantity: 1, priceUnit: 8_990, vat: 19 },
        ],
      }),
    )
    expect(warnings).toEqual([])
    expect(items).toEqual([{ lineId: '4', tag: epc, itemStatus: 'returned' }])
    const { receipt } = await shop.ok('fetchPurchase', { purchaseId })
    expect(receipt.totalCent).toBe(4_241)
    expect(receipt.items[0]).toMatchObject({ priceUnit: 366, weightGrams: 1_234, pricePerKgCent: 297 })
  })

  describe('an open sale', () => {
    it('releases nothing until it is paid', async () => {
      const { epc } = await shop.newItem(jacket)
      const open = sale({ state: 'open', lines: [line({ epcs: [epc] })] })
      expect((await recordOne(open)).purchaseId).toBeUndefined()
      expect(await statusOf(epc)).toBe('sellable')
      const more = {
        ...open,
        version: 2,
        lines: [line({ epcs: [epc] }), { name: 'Tüte', quantity: 1, priceUnit: 25, vat: 19 }],
      }
      expect((await record(more)).recorded).toBe(1)
      expect((await record({ ...open, version: 2 })).errors[0].code).toBe('sale_version')
      const paid = await recordOne({ ...more, state: 'paid', version: 3 })
      expect(paid.purchaseId).toBeDefined()
      expect(await statusOf(epc)).toBe('paid')
      // Late copies of earlier states change nothing.
      expect((await record(open)).errors).toEqual([])
      expect(await statusOf(epc)).toBe('paid')
    })

    it('is one of at most 20 of a till', async () => {
      const sales = Array.from({ length: 21 }, () => sale({ state: 'open', tillId: 'till-20' }))
      const answer = await record(...sales)
      expect(answer.recorded).toBe(20)
      expect(answer.errors).toMatchObject([{ index: 20, code: 'too_many_open_sales' }])
    })
  })

  describe('a void', () => {
    it('takes back what was not released, and holds what was', async () => {
      const [kept, gone] = [await shop.newItem(jacket), await shop.newItem(jacket)]
      const sent = sale({ lines: [line({ quantity: 2, epcs: [kept.epc, gone.epc] })] })
      const { purchaseId, receiptToken } = await recordOne(sent)
      const grant = await detach({ epc: gone.epc, receiptToken })
      await shop.ok('redeemProtectionAuthorization', {
        authorizationToken: grant.authorizationToken,
        deviceId: shop.devices.self_checkout_detacher,
        redemptionId: `void-${number}`,
        outcome: 'confirmed',
      })
      const answer = await shop.ok('voidSale', { storeId: shop.storeId, saleId: sent.saleId, tillId: 'till-3' })
      expect(answer).toMatchObject({ purchaseId, released: [{ lineId: '1' }] })
      expect([await statusOf(kept.epc), await statusOf(gone.epc)]).toEqual(['cancelled', 'exception_hold'])
      expect(await exceptions()).toContain('released_then_voided')
      expect(await shop.ok('fetchPurchase', { purchaseId })).toMatchObject({ status: 'CANCELLED', refunded: 99.8 })
      expect(
        (await shop.ok('voidSale', { storeId: shop.storeId, saleId: sent.saleId, tillId: 'till-3' })).released,
      ).toEqual([])
      const later = await detach({ epc: kept.epc, receiptToken })
      expect(later.authorized).toBe(false)
    })

    it('that arrives before its sale applies to it', async () => {
      const { epc } = await shop.newItem(jacket)
      const sent = sale({ lines: [line({ epcs: [epc] })] })
      const name = { storeId: shop.storeId, saleId: sent.saleId, tillId: 'till-3' }
      expect(await shop.ok('voidSale', name)).toMatchObject({ waiting: true, released: [] })
      const { purchaseId } = await recordOne(sent)
      expect((await shop.ok('fetchPurchase', { purchaseId })).status).toBe('CANCELLED')
      expect(await statusOf(epc)).toBe('cancelled')
    })

    it('of an open sale is final: a late copy of the open sale books nothing', async () => {
      const { epc } = await shop.newItem(jacket)
      const open = sale({ state: 'open', version: 1, lines: [line({ epcs: [epc] })] })
      await record(open)
      const name = { storeId: shop.storeId, saleId: open.saleId, tillId: 'till-3' }
      await shop.ok('voidSale', name)
      expect(await record(open)).toMatchObject({ recorded: 0, repeated: 1, errors: [] })
      expect(await statusOf(epc)).toBe('sellable')
      expect((await shop.ok('voidSale', name)).released).toEqual([])
    })

    it('as a state of an unknown sale sells nothing, and a repeated void still waits', async () => {
      const { epc } = await shop.newItem(jacket)
      const sent = sale({ state: 'void', lines: [line({ epcs: [epc] })] })
      expect(await record(sent)).toMatchObject({ recorded: 1, errors: [] })
      expect(await statusOf(epc)).toBe('sellable')
      const name = { storeId: shop.storeId, saleId: `unknown-${number}`, tillId: 'till-3' }
      for (const _ of [1, 2]) expect(await shop.ok('voidSale', name)).toMatchObject({ waiting: true })
    })

    it('works by the purchase, too; payments and refunds of untag do not', async () => {
      const { purchaseId } = await recordOne(sale())
      for (const operation of ['refundPayment', 'processPayment'])
        expect((await shop.call(operation, { purchaseId })).body).toMatchObject({
          reason: 'sold_at_a_till',
          error: expect.stringContaining('recordReturns'),
        })
      expect((await shop.ok('markPurchaseCancelled', { purchaseId })).status).toBe('CANCELLED')
    })
  })

  describe('a return', () => {
    const back = (...returns: Json[]) => shop.ok('recordReturns', { storeId: shop.storeId, returns })
    const returnId = () => `R${++number}`

    it.each<[string, (request: Json) => Json]>([
      ['lower-case EPC', (request) => ({ ...request, epcs: [request['epcs'][0].toLowerCase()] })],
      ['resellable false', (request) => ({ ...request, resellable: false })],
      ['another time', (request) => ({ ...request, occurredAt: '2026-11-30T10:00:00Z' })],
    ])('is repeated in another spelling: %s', async (_, other) => {
      const { epc } = await shop.newItem(jacket)
      await record(sale({ lines: [line({ epcs: [epc] })] }))
      const request = { returnId: returnId(), epcs: [epc] }
      await back(request)
      const again = await back(other(request))
      expect([again.repeated, again.errors]).toEqual([1, []])
    })

    it('by sale, line and tag makes the tag alarm, and repays what was paid', async () => {
      const [a, b] = [await shop.newItem(jacket), await shop.newItem(jacket)]
      const sent = sale({ lines: [line({ lineId: 'A', quantity: 2, epcs: [a.epc, b.epc] })] })
      const { purchaseId } = await recordOne(sent)
      const request = {
        returnId: returnId(),
        saleId: sent.saleId,
        tillId: 'till-3',
        lines: [{ lineId: 'A', epcs: [b.epc] }],
      }
      const answer = await back(request)
      expect(answer).toMatchObject({
        recorded: 1,
        results: [{ purchaseId, amountCent: 4_990, items: [{ tag: b.epc, itemStatus: 'returned' }] }],
        errors: [],
      })
      expect(await statusOf(a.epc)).toBe('paid')
      expect(await back(request)).toMatchObject({ recorded: 0, repeated: 1, results: [{ amountCent: 4_990 }] })
      expect((await back({ ...request, returnId: returnId() })).errors[0].code).toBe('already_refunded')
      expect((await back({ ...request, resellable: true })).errors[0].code).toBe('return_conflict')
    })

    it('before their sale: ten returns wait for it, and a further one is refused', async () => {
      const sent = sale({ lines: [line({ lineId: 'A', quantity: 20 })] })
      const early = Array.from({ length: 11 }, () => ({
        returnId: returnId(),
        saleId: sent.saleId,
        tillId: 'till-3',
        lines: [{ lineId: 'A', quantity: 1 }],
      }))
      const answer = await back(...early)
      expect(answer).toMatchObject({ recorded: 10, errors: [{ index: 10, code: 'too_many_waiting_returns' }] })
      const { purchaseId } = await recordOne(sent)
      const { refunds } = await shop.ok('fetchPurchase', { purchaseId })
      expect(refunds).toHaveLength(10)
    })

    it('by tag, receipt, code or purchase, and back on sale at once', async () => {
      const ways: ((sold: Json, epc: string) => Json)[] = [
        (_, epc) => ({ epcs: [epc] }),
        ({ receiptToken }) => ({ receipt: receiptToken }),
        ({ saleId }) => ({ code: `CODE-${saleId}-42` }),
        ({ purchaseId }) => ({ purchaseId }),
      ]
      for (const way of ways) {
        const { epc } = await shop.newItem(jacket)
        const sent = sale({ lines: [line({ epcs: [epc] })] })
        const sold = await recordOne({ ...sent, receiptCodes: [`CODE-${sent.saleId}-42`] })
        const answer = await back({ returnId: returnId(), resellable: true, ...way(sold, epc) })
        expect(answer).toMatchObject({
          errors: [],
          results: [{ purchaseId: sold.purchaseId, items: [{ tag: epc, itemStatus: 'sellable' }] }],
        })
        // The goods are sold again, to another customer.
        expect((await recordOne(sale({ lines: [line({ epcs: [epc] })] }))).warnings).toEqual([])
      }
    })

    it('that arrives before its sale waits for it', async () => {
      const { epc } = await shop.newItem(jacket)
      const sent = sale({ lines: [line({ epcs: [epc] })] })
      const answer = await back({ returnId: returnId(), saleId: sent.saleId, tillId: 'till-3' })
      expect(answer.results).toMatchObject([{ waiting: true, items: [] }])
      await recordOne(sent)
      expect(await statusOf(epc)).toBe('returned')
    })

    it('within a sale moves each item once, and not one that the same sale sells', async () => {
      const [old, fresh] = [await shop.newItem(jacket), await shop.newItem(jacket)]
      await recordOne(sale({ lines: [line({ epcs: [old.epc] })] }))
      const given = line({ quantity: -1, epcs: [old.epc] })
      const answer = await recordOne(
        sale({ lines: [given, given, line({ epcs: [fresh.epc] }), line({ quantity: -1, epcs: [fresh.epc] })] }),
      )
      expect(answer.warnings).toEqual([])
      expect([await statusOf(old.epc), await statusOf(fresh.epc)]).toEqual(['returned', 'sellable'])
    })

    it('within a sale warns the till of goods whose money untag took', async () => {
      const { epc } = await shop.newItem(jacket)
      const own = await shop.newItem(jacket)
      const bought = await shop.buy([{ ean: jacket.ean, quantity: 1, epcs: [epc] }])
      await recordOne(sale({ lines: [line({ epcs: [own.epc] })] }))
      const sent = sale({
        lines: [line({ lineId: 'a', quantity: -1, epcs: [own.epc] }), line({ lineId: 'b', quantity: -1, epcs: [epc] })],
      })
      const { warnings } = await recordOne(sent)
      expect(warnings).toEqual([
        { code: 'not_sold_at_a_till', message: expect.stringContaining('refundPayment'), lineId: 'b', tag: epc },
      ])
      expect([await statusOf(own.epc), await statusOf(epc)]).toEqual(['returned', 'returned'])
      const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId, limit: 500 })
      const about = exceptions.filter((each: Json) => each.purchaseId === bought.transactionId)
      expect(about.map(({ kind }: Json) => kind)).toEqual(['return_unclear'])
    })

    it('by tags that cannot all come back changes none', async () => {
      const [sold, held] = [await shop.newItem(jacket), await shop.newItem(jacket)]
      const move = (epc: string, itemStatus: string) =>
        shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus })
      await move(sold.epc, 'paid')
      await move(held.epc, 'transfer_in_transit')
      const { errors } = await back({ returnId: returnId(), epcs: [sold.epc, held.epc] })
      expect(errors).toMatchObject([{ code: 'illegal_move' }])
      expect([await statusOf(sold.epc), await statusOf(held.epc)]).toEqual(['paid', 'transfer_in_transit'])
      await move(sold.epc, 'exception_hold')
      const hold = await back({ returnId: returnId(), epcs: [sold.epc], resellable: true })
      expect(hold.errors, 'only staff end a hold').toMatchObject([{ code: 'illegal_move' }])
      expect(await statusOf(sold.epc)).toBe('exception_hold')
    })

    it('of goods that staff hold leaves the hold, also by their sale', async () => {
      for (const way of ['tag', 'sale']) {
        const { epc } = await shop.newItem(jacket)
        const sent = sale({ lines: [line({ epcs: [epc] })] })
        await recordOne(sent)
        await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'exception_hold' })
        const name = way === 'tag' ? { epcs: [epc] } : { saleId: sent.saleId, tillId: 'till-3' }
        await back({ returnId: returnId(), resellable: true, ...name })
        expect([way, await statusOf(epc)]).toEqual([way, 'exception_hold'])
      }
    })

    it('of a purchase that untag was paid for is refused', async () => {
      const bought = await shop.buy([{ ean: jacket.ean, quantity: 1 }])
      const receipt = bought.receipt.receiptUrl
      for (const name of [{ purchaseId: bought.transactionId }, { receipt }])
        expect((await back({ returnId: returnId(), ...name })).errors[0].code).toBe('not_sold_at_a_till')
    })
  })

  describe('limits of a till', () => {
    it('beyond the policy: recorded, but its tags keep their status and its receipt releases nothing', async () => {
      const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
      await shop.ok('updateProtectionPolicy', {
        storeId: shop.storeId,
        policy: { ...policy, tillSales: { salesPerHour: 1 } },
      })
      const [a, b] = [await shop.newItem(jacket), await shop.newItem(jacket)]
      await recordOne(sale({ tillId: 'till-9', lines: [line({ epcs: [a.epc] })] }))
      const { warnings, receiptToken } = await recordOne(sale({ tillId: 'till-9', lines: [line({ epcs: [b.epc] })] }))
      expect(warnings).toMatchObject([{ code: 'sale_over_limit' }])
      expect([await statusOf(a.epc), await statusOf(b.epc)]).toEqual(['paid', 'sellable'])
      const denied = await detach({ epc: b.epc, receiptToken })
      expect(denied.authorized).toBe(false)
      const gate = { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit', receiptToken }
      expect((await shop.ok('verifyProtectedItem', gate)).authorized, 'barrier').toBe(false)
      await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy })
    })

    it('count the value of goods by their own price, because a till states its prices', async () => {
      const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
      const tillSales = { valuePerHour: 50 }
      await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, tillSales } })
      const { epc } = await shop.newItem(shop.products[0], { price: 60 })
      const { warnings } = await recordOne(sale({ tillId: 'till-8', lines: [line({ priceUnit: 0, epcs: [epc] })] }))
      expect(warnings).toMatchObject([{ code: 'sale_over_limit' }])
      expect(await statusOf(epc)).toBe('sellable')
      await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy })
    })

    it('a revoked till sells nothing any more, and its sales since then are on hold', async () => {
      const { epc } = await shop.newItem(jacket)
      const sinceAt = new Date().toISOString()
      const { purchaseId, receiptToken } = await recordOne(sale({ tillId: 'till-7', lines: [line({ epcs: [epc] })] }))
      expect(await shop.ok('revokeTill', { storeId: shop.storeId, tillId: 'till-7', sinceAt })).toMatchObject({
        held: 1,
      })
      expect(await statusOf(epc)).toBe('cancelled')
      const denied = await detach({ epc, receiptToken })
      expect(denied.authorized).toBe(false)
      expect((await shop.ok('fetchPurchase', { purchaseId })).status).toBe('SUCCESS')
      const next = await shop.newItem(jacket)
      const later = await recordOne(sale({ tillId: 'till-7', lines: [line({ epcs: [next.epc] })] }))
      expect(later.warnings).toMatchObject([{ code: 'sale_of_revoked_till' }])
      const occurredAt = new Date(Date.now() - 3_600_000).toISOString()
      const dated = await recordOne(sale({ tillId: 'till-7', occurredAt, lines: [line({ epcs: [next.epc] })] }))
      expect(dated.warnings, 'dated back by the till').toMatchObject([{ code: 'sale_of_revoked_till' }])
      expect(await statusOf(next.epc)).toBe('sellable')
    })
  })

  it('that was open counts from its payment: a revocation holds it', async () => {
    const { epc } = await shop.newItem(jacket)
    const open = sale({ tillId: 'till-open', state: 'open', lines: [line({ epcs: [epc] })] })
    await record(open)
    const sinceAt = new Date(Date.now() + 1).toISOString()
    await until('the time', async () => Date.now() > Date.parse(sinceAt))
    await recordOne({ ...open, state: 'paid' })
    const revoked = await shop.ok('revokeTill', { storeId: shop.storeId, tillId: 'till-open', sinceAt })
    expect(revoked).toMatchObject({ held: 1 })
    expect(await statusOf(epc)).toBe('cancelled')
  })

  it('takes back goods in at most 100 returns', async () => {
    const sold = sale({ lines: [line({ quantity: 200 })] })
    await recordOne(sold)
    const { storeId } = shop
    const { saleId } = sold
    const back = (n: number) => ({
      returnId: `many-${saleId}-${n}`,
      saleId,
      tillId: 'till-3',
      lines: [{ lineId: '1', quantity: 1 }],
    })
    const returns = Array.from({ length: 100 }, (_, n) => back(n))
    expect((await shop.ok('recordReturns', { storeId, returns })).errors).toEqual([])
    const { errors } = await shop.ok('recordReturns', { storeId, returns: [back(100)] })
    expect(errors).toMatchObject([{ code: 'too_many_refunds' }])
  })

  it('takes back parts of weighed goods in returns of at most 2,000 lines, which make a page short', async () => {
    const weighed = (quantity: number) => ({ name: 'Käse', quantity, priceUnit: 297, vat: 7 })
    const sold = sale({ lines: Array.from({ length: 500 }, () => weighed(9.999)) })
    await recordOne(sold)
    const { storeId } = shop
    const { saleId } = sold
    const back = (n: number) => ({
      returnId: `parts-${saleId}-${n}`,
      saleId,
      tillId: 'till-3',
      lines: Array.from({ length: 500 }, (_, i) => ({ lineId: String(i + 1), quantity: 0.001 })),
    })
    const { errors } = await shop.ok('recordReturns', { storeId, returns: [0, 1, 2, 3, 4].map(back) })
    expect(errors).toMatchObject([{ code: 'too_many_refunds', error: expect.stringContaining('2000 lines') }])
    await record(sale())
    const page = await shop.ok('fetchPurchaseHistory', { storeId, limit: 2 })
    expect([page.purchases.length, typeof page.nextCursor]).toEqual([1, 'string'])
  })

  it('with more than 2,000 tags is refused, and so is a call with too many', async () => {
    const lines = (count: number) =>
      Array.from({ length: count }, () => line({ quantity: 1_000, epcs: Array.from({ length: 1_000 }, newEpc) }))
    const { errors } = await record(sale({ lines: lines(3) }))
    expect(errors).toMatchObject([{ error: 'lines: name 3000 tags; the maximum is 2000' }])
    const answer = await shop.call('recordSales', { storeId: shop.storeId, sales: [sale({ lines: lines(5) })] })
    expect(answer).toMatchObject({ status: 400, body: { error: expect.stringContaining('lines and tags') } })
  })

  it('older than 24 hours gives no rights: its tags are paid and have left', async () => {
    const { epc } = await shop.newItem(jacket)
    const occurredAt = new Date(Date.now() - 25 * 3_600_000).toISOString()
    const { purchaseId, receiptToken, warnings } = await recordOne(sale({ occurredAt, lines: [line({ epcs: [epc] })] }))
    expect(warnings).toMatchObject([{ code: 'sale_too_old' }])
    expect(await statusOf(epc)).toBe('paid')
    expect((await shop.ok('fetchPurchase', { purchaseId })).status).toBe('UNLOADED')
    const denied = await shop.call('verifyProtectedItem', {
      storeId: shop.storeId,
      deviceId: shop.devices.pos_deactivator,
      receiptToken,
    })
    expect(denied.body.authorized).not.toBe(true)
    const { self_checkout_detacher: deviceId } = shop.devices
    const byTag = await shop.ok('verifyProtectedItem', { deviceId, protectionAction: 'detach_hard_tag', epc })
    expect(byTag).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    // Its goods may come back and be sold again.
    await shop.ok('recordReturns', {
      storeId: shop.storeId,
      returns: [{ returnId: newEpc(), epcs: [epc], resellable: true }],
    })
    await recordOne(sale({ lines: [line({ epcs: [epc] })] }))
    const sold = await shop.ok('verifyProtectedItem', { deviceId, protectionAction: 'detach_hard_tag', epc })
    expect(sold).toMatchObject({ authorized: true })
  })
})

inFullSizeOnEveryDatabase('figures of tills', (kind) => {
  let shop: PrimeShop
  beforeAll(async () => {
    shop = await openPrimeShop(kind)
  })
  afterAll(() => shop.stop())

  it('are apart from those of untag in reports and closings, and a named customer earns points', async () => {
    const { programId } = (await shop.ok('getStoreLoyaltyPrograms', { storeId: shop.storeId })).programs[0]
    const program = await shop.ok('getLoyaltyProgram', { programId })
    await shop.ok('updateLoyaltyProgram', { programId, earningMethods: [...program.earningMethods, 'till'] })
    const day = shop.today()
    const report = async () =>
      (await shop.ok('fetchAnalytics', { storeId: shop.storeId, from: day, to: day })).reports[0]
    const before = await report()
    const record = (saleId: string) =>
      shop.ok('recordSales', {
        storeId: shop.storeId,
        sales: [
          {
            saleId,
            userId: 'shopper-till',
            occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
            lines: [{ name: 'Jacke', quantity: 3, priceUnit: 4_990, vat: 19 }],
          },
        ],
      })
    await record('1')
    await record('2')
    await shop.ok('voidSale', { storeId: shop.storeId, saleId: '2' })
    const after = await report()
    expect(after.scanAndGo).toEqual(before.scanAndGo)
    expect(after.tills).toEqual({ sales: 1, revenueCent: 14_970, avgBasketCent: 14_970, itemsSold: 3 })
    const member = shop.cloud.db.database.reads
      .selectFrom('loyalty_member')
      .selectAll()
      .where('user_id', '=', 'shopper-till')
    expect((await member.executeTakeFirstOrThrow()).balance).toBeGreaterThan(0)
    shop.nextDay()
    const closing = await shop.ok('closeStoreDay', { storeId: shop.storeId, date: day })
    expect(closing.tills).toMatchObject({ receiptCount: 2, salesCent: 29_940, refundCount: 1, refundCent: 14_970 })
    expect(closing.receiptCount).toBe(0)
  })
})
