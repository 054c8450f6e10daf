import { afterAll, beforeAll, expect, it } from 'vitest'
import { refreshListings } from '../../../../cloud/shop/catalogue/refresh-documents.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'

inFullSizeOnEveryDatabase('bulkImportProducts', (kind) => {
  let shop: Shop
  let here: string
  let there: string
  beforeAll(async () => {
    shop = await openShop(kind)
    here = shop.storeId
    there = shop.otherStoreId
  })
  afterAll(() => shop.stop())

  const inserted = (fields: Json) =>
    shop.ok('insertProduct', { storeId: here, name: 'Hafermilch', price: 1.99, vat: 7, ...fields })
  const events = (type: string) =>
    shop.cloud.db.database.reads.selectFrom('outbox_event').selectAll().where('type', '=', type).execute()
  const totals = async (storeId: string, category?: string): Promise<[number, number]> => {
    let [seen, cursor]: [number, string | undefined] = [0, undefined]
    for (;;) {
      const page: Json = await shop.ok('fetchProducts', {
        storeId,
        limit: 100,
        ...(cursor && { cursor }),
        ...(category && { category }),
      })
      seen += page.products.length
      cursor = page.nextCursor
      if (cursor === undefined) return [page.total, seen]
    }
  }

  it('imports valid rows, reports the errors of the others, and changes existing products', async () => {
    const before = (await events('product.bulk_imported')).length
    const [a, b, c] = [newEan(), newEan(), newEan()]
    await inserted({ ean: a, brand: 'Bleibt' })
    const good = { name: 'Neu', price: 2, vat: 19 }
    const answer = await shop.ok('bulkImportProducts', {
      storeId: here,
      products: [
        { ean: a, ...good },
        { barcode: b, ...good },
        { ean: '0123', ...good, prise: 1 },
        { ean: c, name: 'x'.repeat(121), price: 1.234, vat: 8 },
        { ean: b, ...good },
        'no object',
        { ean: '4099999999983', ...good },
      ],
    })
    expect(answer).toMatchObject({ imported: 3, updated: 1, errorCount: 7 })
    expect(answer.errors.map((e: Json) => [e.index, e.ean, e.field, e.code])).toEqual([
      [2, '0123', 'ean', 'invalid_value'],
      [2, '0123', 'prise', 'unknown_field'],
      [3, c, 'name', 'too_big'],
      [3, c, 'price', 'invalid_value'],
      [3, c, 'vat', 'invalid_value'],
      [4, b, 'ean', 'repeated'],
      [5, null, '', 'invalid_type'],
    ])
    expect(answer.errors[4].message).toBe('vat: must be 7 or 19')
    expect(answer.errors[1].message).toContain('did you mean "price"?')
    expect(answer.warnings).toHaveLength(1)
    expect(await shop.ok('fetchProduct', { ean: a, storeId: here })).toMatchObject({
      name: 'Neu',
      price: 2,
      brand: 'Bleibt',
    })
    expect((await events('product.bulk_imported')).length).toBe(before + 1)
  })

  it('accepts 500 rows but not 501, also for a second store and repeatedly, with correct counts', async () => {
    const products = Array.from({ length: 500 }, (_, i) => ({
      ean: newEan(),
      name: `Artikel ${i}`,
      price: i / 100,
      vat: 7,
      category: `kategorie ${i % 3}`,
    }))
    const before = await totals(here)
    expect(await shop.ok('bulkImportProducts', { storeId: here, products })).toMatchObject({
      imported: 500,
      updated: 0,
      errors: [],
    })
    expect(await shop.ok('bulkImportProducts', { storeId: here, products })).toMatchObject({
      imported: 500,
      updated: 500,
      errors: [],
    })
    expect(await totals(here)).toEqual(before.map((n) => n + 500))
    expect(await totals(here, 'kategorie 0')).toEqual([167, 167])
    const moved = products.map((p) => ({ ...p, price: 9, category: 'kategorie 0' }))
    expect(await shop.ok('bulkImportProducts', { storeId: there, products: moved })).toMatchObject({
      imported: 500,
      updated: 0,
    })
    await refreshListings(shop.cloud.db.database, shop.cloud.cloud.services)
    expect(await totals(here, 'kategorie 0')).toEqual([500, 500])
    expect(await shop.ok('fetchProduct', { ean: products[1]?.ean, storeId: here })).toMatchObject({
      price: 0.01,
      category: 'kategorie 0',
    })
    const [one] = products
    expect((await shop.call('bulkImportProducts', { storeId: here, products: [...products, one] })).status).toBe(400)
    expect((await shop.call('bulkImportProducts', { storeId: here, products: [] })).status).toBe(400)
  })

  it('logs no error', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
