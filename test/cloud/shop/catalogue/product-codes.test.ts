import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { CODES, NO_CODES, UPC_CODES, type WrittenCode } from '../../../support/product-codes.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'

/** Every door through which a product code enters the cloud takes the same texts, and answers the same form. */
inFullSizeOnEveryDatabase('a product code in the cloud', (kind) => {
  let shop: Shop
  let sessionId: string
  beforeAll(async () => {
    shop = await openShop(kind)
    await shop.ok('updateAccountSettings', { acceptUpc: true })
    ;({ sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'shopper-1' }))
  })
  afterAll(() => shop.stop())

  const fields = { name: 'Stift', price: 1.99, vat: 19 }
  const csv = (text: string) => `ean,name,price,vat\n"${text}",Stift,1.99,19\n`
  const productOf = async (ean: string) => (await shop.call('fetchProduct', { ean, storeId: shop.storeId })).body
  const remove = (ean: string) => shop.ok('removeProductFromStore', { storeId: shop.storeId, ean })

  /** Doors that store a product, in this order. The first adds it, the others find it. */
  const WRITERS: Record<string, (text: string) => Promise<Json>> = {
    insertProduct: (text) => shop.ok('insertProduct', { storeId: shop.storeId, barcode: text, ...fields }),
    bulkImportProducts: (text) =>
      shop.ok('bulkImportProducts', { storeId: shop.storeId, products: [{ ean: text, ...fields }] }),
    importProducts: async (text) =>
      (await shop.cloud.sendForm(shop.key, 'importProducts', { storeId: shop.storeId, file: csv(text) })).body,
    syncPOS: (text) =>
      shop.ok('syncPOS', { storeId: shop.storeId, system: 'generic', records: [{ ean: text, ...fields }] }),
  }

  /** Doors that name a product; each returns the EAN of the product that it found. */
  const READERS: Record<string, (text: string) => Promise<unknown>> = {
    'fetchProduct in a store': async (text) => (await productOf(text)).ean,
    'fetchProduct without store': async (text) => (await shop.ok('fetchProduct', { barcode: text })).ean,
    searchProducts: async (text) =>
      /[\u0000-\u001f]/.test(text) || text.length > 100
        ? undefined
        : (await shop.ok('searchProducts', { storeId: shop.storeId, q: text })).products[0]?.ean,
    updateProduct: async (text) => (await shop.ok('updateProduct', { storeId: shop.storeId, ean: text, price: 2 })).ean,
    registerProductToStore: async (text) =>
      (await shop.ok('registerProductToStore', { storeId: shop.storeId, ean: text })).ean,
    startCheckout: async (text) =>
      (await shop.ok('startCheckout', { sessionId, items: [{ ean: text, quantity: 1 }] })).items[0].ean,
    submitClickCollectOrder: async (text) => {
      const order = { storeId: shop.storeId, userId: 'shopper-1', items: [{ ean: text, quantity: 1 }] }
      return (await shop.ok('submitClickCollectOrder', order)).items[0].ean
    },
    createOffer: async (text) => {
      const offer = { title: 'Winter', validFrom: '2030-01-01T00:00:00Z', validTo: '2030-02-01T00:00:00Z' }
      const products = [{ ean: text, price: 1 }]
      // The sandbox checks the products of an offer, and stores no offers.
      await shop.ok('createOffer', { ...offer, storeIds: [shop.storeId], products })
    },
    registerProtectedItems: async (text) => {
      const epc = newEpc()
      const { errors } = await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [{ epc, ean: text }] })
      return errors[0] ?? (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).ean
    },
    'syncERP stock': async (text) => {
      const records = [{ ean: text, quantity: 3 }]
      const sync = { storeId: shop.storeId, system: 'generic', dataType: 'stock', records }
      return (await shop.ok('syncERP', sync)).errors?.[0]
    },
    fetchPurchaseHistory: async (text) =>
      (await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, ean: text })).purchases[0]?.items[0].ean,
  }

  it.each([...CODES, ...UPC_CODES])('is stored and found: $what', async ({ text, ean }: WrittenCode) => {
    for (const [door, write] of Object.entries(WRITERS)) {
      const answer = await write(text)
      expect([door, answer.errors ?? [], answer.ean ?? ean]).toEqual([door, [], ean])
      expect(await productOf(ean)).toMatchObject({ ean, name: 'Stift' })
    }
    for (const [door, read] of Object.entries(READERS)) expect([door, (await read(text)) ?? ean]).toEqual([door, ean])
    await shop.ok('startCheckout', { sessionId, items: [{ ean, quantity: 1 }] })
    await remove(text)
    expect(await productOf(ean)).toMatchObject({ code: 'not-found' })
  })

  it.each(NO_CODES)('is none, and the error says what to do: %s', async (_, text) => {
    const { body } = await shop.call('insertProduct', { storeId: shop.storeId, ean: text, ...fields })
    expect(body).toMatchObject({ code: 'invalid-argument', details: [{ path: 'ean' }] })
    expect(body.error).toMatch(/^ean: ".*" .*(?:send|compare|format|scan)/)
    const found = (await shop.call('fetchProduct', { storeId: shop.storeId, ean: text })).body
    expect(found).toMatchObject({ code: 'not-found', error: expect.stringMatching(/^no such product: "/) })
  })

  it('of a UPC needs acceptUpc, and the error names it', async () => {
    expect(await shop.ok('fetchAccountSettings')).toEqual({ success: true, acceptUpc: true })
    await shop.ok('updateAccountSettings', { acceptUpc: false })
    const [{ text, ean }] = UPC_CODES as [WrittenCode]
    const remedy = `${ean} is a UPC, which this account does not accept: set acceptUpc with updateAccountSettings`
    const inserted = await shop.call('insertProduct', { storeId: shop.storeId, ean: text, ...fields })
    expect(inserted.body.details).toEqual([{ path: 'ean', code: 'upc_not_accepted', message: remedy }])
    for (const door of ['bulkImportProducts', 'importProducts', 'syncPOS']) {
      const { errors } = await WRITERS[door]!(text)
      expect([door, errors]).toEqual([door, [expect.objectContaining({ code: 'upc_not_accepted', field: 'ean' })]])
      expect(errors[0].message).toBe(`ean: ${remedy}`)
    }
    const refused = await shop.call('startCheckout', { sessionId, items: [{ ean: text, quantity: 1 }] })
    expect(refused.body.error).toContain(remedy)
    expect(await productOf(ean)).toMatchObject({ code: 'not-found' })
    await shop.ok('updateAccountSettings', { acceptUpc: true })
  })

  it('in a tag names the product, also in EPC+ and behind control words, but not in an unprogrammed tag', async () => {
    // GS1 TDS 2.3 E.3: the SGTIN-96 of 09506000134352, with the protocol control word of a reader in front.
    const [ean, sgtin] = ['9506000134352', '3066C4409047E140075BCD15']
    await shop.ok('insertProduct', { storeId: shop.storeId, ean, ...fields })
    const register = (epc: string) => shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [{ epc }] })
    expect(await register(`3000${sgtin}`)).toMatchObject({ registered: 1 })
    expect(await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc: sgtin })).toMatchObject({
      ean,
      epc: sgtin,
    })
    // An SGTIN+ of the same product with the serial 7: header, filter 3, GTIN, one digit.
    const plus = 'F7309506000134352017'
    expect(await register(plus)).toMatchObject({ registered: 1 })
    expect(await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc: plus })).toMatchObject({ ean })
    for (const epc of ['0'.repeat(24), '300833B2DDD9014000000000', 'E28068940000000000000000'])
      expect((await register(epc)).errors).toMatchObject([{ code: 'tag_unprogrammed' }])
  })

  it('of eight digits with a leading 1 is an EAN-8, unless only its UPC-A is a product', async () => {
    const [eight, upcA] = ['11234502', '0112000003452']
    await shop.ok('insertProduct', { storeId: shop.storeId, ean: upcA, ...fields })
    for (const door of ['bulkImportProducts', 'importProducts', 'syncPOS'])
      expect([door, (await WRITERS[door]!(eight)).errors ?? []]).toEqual([door, []])
    for (const [door, read] of Object.entries(READERS))
      expect([door, (await read(eight)) ?? upcA]).toEqual([door, upcA])
    expect(await productOf(`]E4${eight}`)).toMatchObject({ code: 'not-found' })
    const [both, otherUpcA] = ['19876502', '0198000007652']
    for (const ean of [both, otherUpcA]) await shop.ok('insertProduct', { storeId: shop.storeId, ean, ...fields })
    expect([(await productOf(both)).ean, (await productOf(`]E0${both}`)).ean]).toEqual([both, otherUpcA])
  })
})
