import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { receiptText } from '../../../../cloud/shop/receipts/receipt-text.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'

inFullSizeOnEveryDatabase('deposits and weighed goods', (kind) => {
  let shop: Shop
  let water: Json
  let beer: Json
  beforeAll(async () => {
    shop = await openShop(kind)
    const insert = (fields: Json) => shop.ok('insertProduct', { storeId: shop.storeId, ean: newEan(), ...fields })
    water = await insert({ name: 'Mineralwasser 0,75 l', price: 0.99, vat: 7, deposit: 0.15 })
    beer = await insert({ name: 'Kasten Bier', price: 14.99, vat: 19, deposit: 3.1, depositVat: 7 })
    await insert({ ean: '2810270000000', name: 'Gouda am Stück', price: 12.9, vat: 7 })
    await insert({ ean: '2957770000007', name: 'Äpfel lose', price: 3.49, vat: 7 })
  })
  afterAll(() => shop.stop())

  const start = async (items: Json[], call: 'ok' | 'call' = 'ok') => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    return shop[call]('startCheckout', { sessionId, items }) as Promise<Json>
  }
  const receiptOf = async ({ transactionId }: Json) => (await shop.ok('fetchPurchase', { transactionId })).receipt

  describe('a deposit', () => {
    it('is a field of the product that can be changed and cleared', async () => {
      expect(water).toMatchObject({ deposit: 0.15 })
      expect(beer).toMatchObject({ deposit: 3.1, depositVat: 7 })
      const change = (fields: Json) =>
        shop.ok('updateProduct', { storeId: shop.storeId, productId: beer.productId, ...fields })
      expect((await change({ deposit: null, depositVat: null })).deposit).toBeUndefined()
      expect(await change({ deposit: 3.1, depositVat: 7 })).toMatchObject({ deposit: 3.1, depositVat: 7 })
      expect(
        (await shop.call('updateProduct', { storeId: shop.storeId, productId: beer.productId, deposit: 0.123 })).status,
      ).toBe(400)
    })

    it('can be imported', async () => {
      const ean = newEan()
      const file = `ean,name,price,vat,deposit,deposit_vat\n${ean},Cola 1 l,"1,19",7,"0,25",19\n${newEan()},schlecht,1,7,viel,\n`
      const form = { storeId: shop.storeId, file }
      const answer = await shop.cloud.sendForm(shop.key, 'importProducts', form)
      expect(answer.body).toMatchObject({ imported: 1, errors: [{ field: 'deposit' }] })
      expect(await shop.ok('fetchProduct', { ean, storeId: shop.storeId })).toMatchObject({
        price: 1.19,
        deposit: 0.25,
        depositVat: 19,
      })
    })

    it('is a separate line after its goods: untagged, taxed, on every receipt', async () => {
      const bought = await shop.buy([
        { ean: water.ean, quantity: 6, priceUnit: 99 },
        { ean: beer.ean, quantity: 1 },
        { ean: shop.products[0].ean, quantity: 1 },
      ])
      const [goods, deposit, crate, crateDeposit] = bought.items
      expect([goods.name, deposit.name, crate.name, crateDeposit.name]).toEqual([
        'Mineralwasser 0,75 l',
        'Pfand',
        'Kasten Bier',
        'Pfand',
      ])
      expect([deposit, crateDeposit]).toMatchObject([
        { depositOf: goods.itemLineId, price: 0.15, quantity: 6 },
        { depositOf: crate.itemLineId, price: 3.1 },
      ])
      const shirtCent = Math.round(shop.products[0].price * 100)
      const reduced = 6 * 99 + 6 * 15 + 310
      const receipt = await receiptOf(bought)
      expect(receipt.totalCent).toBe(reduced + 1_499 + shirtCent)
      expect(receipt.vatBreakdown['7'].net + receipt.vatBreakdown['7'].tax).toBe(reduced)
      expect(receipt.vatBreakdown['19'].net + receipt.vatBreakdown['19'].tax).toBe(1_499 + shirtCent)
      // Water, beer and shirt are tagged in this test; deposits are never tagged.
      const verified = await shop.ok('verifySecurityTagDeactivation', { purchaseId: bought.transactionId })
      const units = new Map(verified.items.map((item: Json) => [item.itemLineId, item.taggedUnits]))
      expect([goods, deposit, crate, crateDeposit].map((line) => units.get(line.itemLineId))).toEqual([6, 0, 1, 0])
      const page = await shop.cloud.get(new URL(receipt.receiptUrl).pathname)
      expect(page.text).toContain('+ Pfand')
      expect(receiptText(receipt)).toContain('  + Pfand')
      expect(receiptText(receipt)).toMatch(/\n {2}\+ Pfand +0,90\n {2}6 x 0,15\n/)
      const token = receipt.receiptUrl.split('/').at(-1)
      expect((await shop.cloud.get(`/api/v1/getReceiptFromToken?token=${token}`)).body.items[1]).toMatchObject({
        name: 'Pfand',
        depositOf: goods.itemLineId,
      })
    })

    it('is refunded once with its goods', async () => {
      const bought = await shop.buy([
        { ean: water.ean, quantity: 2 },
        { ean: beer.ean, quantity: 1 },
      ])
      const [goods, deposit, crate, crateDeposit] = bought.items
      const refund = (lineIds: string[]) =>
        shop.call('refundPayment', {
          transactionId: bought.transactionId,
          lines: lineIds.map((itemLineId) => ({ itemLineId })),
        })
      expect((await refund([goods.itemLineId])).body.refund).toMatchObject({
        amount: 2.28,
        lines: [goods.itemLineId, deposit.itemLineId].sort().map((itemLineId) => ({ itemLineId, quantity: 2 })),
      })
      expect(await refund([deposit.itemLineId])).toMatchObject({ status: 409, body: { reason: 'already_refunded' } })
      expect((await refund([crateDeposit.itemLineId])).body.refund).toMatchObject({ amount: 3.1 })
      expect((await refund([crate.itemLineId])).body.refund).toMatchObject({
        amount: 14.99,
        lines: [{ itemLineId: crate.itemLineId, quantity: 1 }],
      })
    })
  })

  describe('weighed goods', () => {
    it('cost the price on their label or weight times price, and never carry tags', async () => {
      const bought = await shop.buy([
        { ean: '2810275005024', quantity: 1 },
        { ean: '2957776004085', quantity: 2, priceUnit: 142 },
      ])
      expect(bought.items).toMatchObject([
        { name: 'Gouda am Stück', price: 5.02 },
        { name: 'Äpfel lose', price: 1.42, quantity: 2, weightGrams: 408 },
      ])
      const receipt = await receiptOf(bought)
      expect(receipt).toMatchObject({ totalCent: 502 + 284, securityTagStatus: 'deactivated' })
      expect(receipt.items[1]).toMatchObject({
        ean: '2957770000007',
        barcode: '2957776004085',
        weightGrams: 408,
        pricePerKgCent: 349,
      })
      expect(receiptText(receipt)).toContain('  0,408 kg x 3,49 EUR/kg')
      expect((await shop.cloud.get(new URL(receipt.receiptUrl).pathname)).text).toContain('0.408 kg x 3.49 EUR/kg')
    })

    it('are rejected if misread, without label, with tags, or at another price', async () => {
      const item = await shop.newItem({ ean: '2810270000000' })
      const refusals = await Promise.all(
        [
          { ean: '2810275005124' },
          { ean: '2810270000000' },
          { ean: '2810275005024', epcs: [item.epc] },
          { ean: '2899995005027' },
        ].map(async (line) => {
          const { status, body } = await start([{ ...line, quantity: 1 }], 'call')
          return [status, body.details?.[0]?.code ?? body.reason]
        }),
      )
      expect(refusals).toEqual([
        [400, 'label_misread'],
        [400, 'label_missing'],
        [400, 'weighed_item'],
        [400, 'product_unknown'],
      ])
      expect(await start([{ ean: '2810275005024', quantity: 1, priceUnit: 1 }], 'call')).toMatchObject({
        status: 409,
        body: { reason: 'price_changed' },
      })
    })

    it('are found by the code on their label', async () => {
      const find = (ean: string) => shop.call('fetchProduct', { ean, storeId: shop.storeId })
      expect((await find('2957776004085')).body).toMatchObject({
        ean: '2957770000007',
        price: 3.49,
        label: { barcode: '2957776004085', price: 1.42, weightGrams: 408 },
      })
      expect((await find('2957770000007')).body.label).toBeUndefined()
      expect((await find('2957776004185')).status).toBe(404)
      expect((await shop.ok('searchProducts', { storeId: shop.storeId, q: '2810275005024' })).products).toMatchObject([
        { name: 'Gouda am Stück' },
      ])
    })

    it('are read with the layouts of their own store', async () => {
      const set = (inStoreCodes: Json) => shop.ok('updateStore', { storeId: shop.storeId, inStoreCodes })
      expect(await set(['21IIIIIWWWWWC'])).toMatchObject({ inStoreCodes: ['21IIIIIWWWWWC'] })
      await shop.ok('insertProduct', { storeId: shop.storeId, ean: '2112345000008', name: 'Nüsse', price: 20, vat: 7 })
      expect((await start([{ ean: '2112345002507', quantity: 1 }])).items).toMatchObject([
        { name: 'Nüsse', price: 5, weightGrams: 250 },
      ])
      expect(await start([{ ean: '2810275005024', quantity: 1 }], 'call')).toMatchObject({ status: 400 })
      expect((await shop.call('updateStore', { storeId: shop.storeId, inStoreCodes: ['99IIIIIWWWWWC'] })).status).toBe(
        400,
      )
      expect((await set(null)).inStoreCodes).toBeUndefined()
      expect((await start([{ ean: '2810275005024', quantity: 1 }])).total).toBe(5.02)
    })
  })
})
