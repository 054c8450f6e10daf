import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('a return to a till', (kind) => {
  let shop: Shop
  let number = 0
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const sell = async (...lines: Json[]) => {
    const sale = {
      saleId: `r${++number}`,
      occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
      lines: lines.map((line) => ({ vat: 19, quantity: 1, ...line })),
    }
    const { results, errors } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })
    expect(errors).toEqual([])
    return results[0].purchaseId as string
  }
  /** What a return answers: its amount in cents, or its error. */
  const back = async (purchaseId: string, lines?: Json[], fields: Json = {}) => {
    const returns = [{ returnId: `b${++number}`, purchaseId, ...(lines && { lines }), ...fields }]
    const { results, errors } = await shop.ok('recordReturns', { storeId: shop.storeId, returns })
    return errors[0]?.code ?? results[0].amountCent
  }
  const purchase = (purchaseId: string) => shop.ok('fetchPurchase', { purchaseId })

  it('pays what was paid for the goods, although others came back in the same sale', async () => {
    const { epc } = await shop.newItem(shop.products[0])
    const former = await sell({ priceUnit: 4_000, name: 'Hemd', epcs: [epc] })
    const exchange = await sell(
      { priceUnit: 10_000, name: 'Jacke' },
      { priceUnit: 4_000, name: 'Hemd', quantity: -1, epcs: [epc] },
    )
    expect(await purchase(exchange)).toMatchObject({ total: 60, items: [{ paid: 100 }, { paid: 0, cameBack: 1 }] })
    // The exchange has credited the shirt.
    expect(await back(former)).toBe('already_refunded')
    expect(await purchase(former)).toMatchObject({ refunded: 0, refunds: [{ amount: 0, lines: [{ quantity: 1 }] }] })
    expect(await back(exchange, [{ lineId: '2' }])).toBe('invalid')
    expect(await back(exchange, [{ lineId: '1' }])).toBe(10_000)
    expect(await back(exchange, [{ lineId: '1' }])).toBe('already_refunded')
    // The whole is what is left: nothing.
    const { refunds } = await purchase(exchange)
    expect(refunds).toMatchObject([{ kind: 'part', amount: 100 }])
    expect((await shop.ok('voidSale', { storeId: shop.storeId, saleId: `r${2}` })).success).toBe(true)
  })

  it('shares a discount among the goods, and not with what came back', async () => {
    const sale = await sell(
      { priceUnit: 6_000, name: 'Hose' },
      { priceUnit: 2_000, name: 'Schal' },
      { priceUnit: -800, name: 'Rabatt' },
      { priceUnit: 5_000, name: 'Weste', quantity: -1 },
    )
    expect(await back(sale, [{ lineId: '1' }])).toBe(5_400)
    expect(await back(sale)).toBe(1_800)
  })

  it('gives back no more than was paid, though a discount has another VAT rate than the goods', async () => {
    const sale = await sell(
      { priceUnit: 6_000, vat: 7, name: 'Buch' },
      { priceUnit: 4_000, vat: 7, name: 'Heft' },
      { priceUnit: -5_000, vat: 19, name: 'Gutschein' },
    )
    expect(await back(sale, [{ lineId: '1' }])).toBe(3_000)
    expect(await back(sale)).toBe(2_000)
  })

  it('counts cancelled pieces of a line as never sold', async () => {
    const milk = { priceUnit: 100, vat: 7, ean: '4006381333931' }
    const sale = await sell({ ...milk, quantity: 3 }, { ...milk, ean: '04006381333931', quantity: -2 })
    expect(await purchase(sale)).toMatchObject({ total: 1, items: [{ paid: 1, cameBack: 2 }, { cameBack: 2 }] })
    expect(await back(sale, [{ lineId: '1', quantity: 2 }])).toBe('already_refunded')
    expect(await back(sale)).toBe(100)
    const discount = { priceUnit: -50, name: 'Rabatt' }
    const corrected = await sell({ priceUnit: 1_000, name: 'Buch' }, discount, { ...discount, quantity: -1 })
    expect(await back(corrected)).toBe(1_000)
    // Another price is another piece.
    const other = await sell({ priceUnit: 1_000, name: 'Buch' }, { priceUnit: 900, name: 'Buch', quantity: -1 })
    expect(await back(other)).toBe(1_000)
  })

  describe.each([
    ['quantity', { quantity: -1 }],
    ['price', { priceUnit: -4_990 }],
  ])('a piece that a negative %s cancels', (_, negative) => {
    it('releases no label', async () => {
      const { ean } = shop.products[0]
      const sale = await sell({ ean, priceUnit: 4_990, quantity: 2 }, { ean, priceUnit: 4_990, ...negative })
      const [line] = (await purchase(sale)).items
      const ask = () =>
        shop.ok('verifyProtectedItem', {
          deviceId: shop.devices.pos_deactivator,
          protectionAction: 'deactivate_label',
          purchaseId: sale,
          itemLineId: line.itemLineId,
        })
      const { authorized, authorizationToken } = await ask()
      expect(authorized).toBe(true)
      await shop.ok('redeemProtectionAuthorization', {
        authorizationToken,
        deviceId: shop.devices.pos_deactivator,
        redemptionId: `once${number}`,
      })
      expect((await ask()).authorized).toBe(false)
    })

    it('makes no more tags paid than pieces are left', async () => {
      const { ean } = shop.products[0]
      const epcs = [(await shop.newItem(shop.products[0])).epc, (await shop.newItem(shop.products[0])).epc]
      const line = { ean, priceUnit: 4_990, quantity: 1 }
      const sale = { saleId: `m${++number}`, occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString() }
      const lines = [
        { ...line, vat: 19, quantity: 2, epcs },
        { ...line, vat: 19, ...negative },
      ]
      const { results } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [{ ...sale, lines }] })
      expect(results[0]).toMatchObject({
        items: [{ itemStatus: 'paid' }, { itemStatus: 'sellable' }],
        warnings: [{ code: 'sale_of_more_items' }],
      })
      // A line that cancels without a tag means pieces without tags first.
      const own = (await shop.newItem(shop.products[0])).epc
      const mixed = await sell({ ...line, epcs: [own] }, line, { ...line, ...negative })
      expect(await back(mixed, undefined, { epcs: [own] })).toBe(4_990)
    })
  })

  it('pays a part of weighed goods by its weight, until nothing is left', async () => {
    const apples = { priceUnit: 300, vat: 7, name: 'Äpfel' }
    const sale = await sell({ ...apples, quantity: 1.2 }, { priceUnit: 100, name: 'Tüte' })
    expect(await back(sale, [{ lineId: '1', quantity: 2 }])).toBe('already_refunded')
    expect(await back(sale, [{ lineId: '1', quantity: 0.4 }])).toBe(120)
    expect(await purchase(sale)).toMatchObject({
      refunds: [{ lines: [{ quantity: 1, part: expect.closeTo(1 / 3, 6) }] }],
    })
    expect(await back(sale, [{ lineId: '1', quantity: 0.4 }])).toBe(120)
    expect(await back(sale, [{ lineId: '1', quantity: 0.5 }])).toBe('already_refunded')
    expect(await back(sale, [{ lineId: '1', quantity: 0.4 }])).toBe(120)
    expect(await back(sale)).toBe(100)
    expect(await back(sale)).toBe('already_refunded')
    const corrected = await sell(
      { ...apples, quantity: 0.8 },
      { ...apples, quantity: 0.5 },
      { ...apples, quantity: -0.5 },
    )
    expect(await back(corrected)).toBe(240)
  })

  const stockOf = async () => {
    const { stock } = await shop.ok('fetchStock', { storeId: shop.storeId })
    return stock.find((each: Json) => each.productId === shop.products[0].productId).quantity as number
  }
  const WAYS: Record<string, (sale: { purchaseId: string; saleId: string; epc: string }) => Json> = {
    'its purchase and tag': ({ purchaseId, epc }) => ({ purchaseId, epcs: [epc] }),
    'its sale and tag': ({ saleId, epc }) => ({ saleId, epcs: [epc] }),
    'its line and tag': ({ saleId, epc }) => ({ saleId, lines: [{ lineId: '1', epcs: [epc] }] }),
  }
  const PAIRS = Object.keys(WAYS).flatMap((first) => Object.keys(WAYS).map((second) => [first, second] as const))
  it.each(PAIRS)('raises the stock once for a piece that comes back by %s, and again by %s', async (first, second) => {
    const { productId, ean } = shop.products[0]
    await shop.ok('setStock', { storeId: shop.storeId, productId, quantity: 50 })
    for (const isNamed of [true, false]) {
      const { epc } = await shop.newItem(shop.products[0])
      const purchaseId = await sell({ ean, priceUnit: 4_990, quantity: 3, ...(isNamed && { epcs: [epc] }) })
      const sold = { purchaseId, saleId: `r${number}`, epc }
      const before = await stockOf()
      const resellable = { resellable: true }
      expect(await back(purchaseId, undefined, { purchaseId: undefined, ...WAYS[first]?.(sold), ...resellable })) //
        .toBe(4_990)
      expect(await back(purchaseId, undefined, { purchaseId: undefined, ...WAYS[second]?.(sold), ...resellable })) //
        .toBe('already_refunded')
      expect(await stockOf()).toBe(before + 1)
    }
  })
})
