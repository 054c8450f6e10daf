import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { foldText } from '../../../../policy/fold-text.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('the catalogue', (kind) => {
  let shop: Shop
  let here: string
  let there: string
  beforeAll(async () => {
    shop = await openShop(kind)
    here = shop.storeId
    there = shop.otherStoreId
  })
  afterAll(() => shop.stop())

  const insert = (fields: Json = {}, storeId = here) =>
    shop.call('insertProduct', { storeId, ean: newEan(), name: 'Hafermilch', price: 1.99, vat: 7, ...fields })
  const inserted = async (fields: Json = {}, storeId = here): Promise<Json> => {
    const answer = await insert(fields, storeId)
    expect([answer.status, answer.text]).toEqual([200, answer.text])
    return answer.body
  }
  const inStore = (productId: string, storeId = here) => shop.ok('fetchProduct', { productId, storeId })
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

  const WHOLE = {
    oldPrice: 2.49,
    brand: 'Lindwerk',
    category: 'getränke neu',
    unit: 'l',
    description: 'Aus deutschem Hafer.',
    imageUrl: 'https://shop.example/hafer.jpg',
    weight: '1 kg',
    isOrganic: true,
    isVegan: false,
    allergens: ['Hafer'],
    nutrition: {
      calories: 46,
      fat: 1.5,
      saturatedFat: 0.2,
      carbohydrates: 7,
      sugar: 4,
      protein: 1,
      fiber: 0.8,
      salt: 0.1,
      nutriScore: 'B',
      per: '100ml',
      source: 'merchant',
      confidence: 0.9,
    },
    tagged: false,
    flags: { requiresHumanVerification: true },
  }

  it('stores every field, returns it in every form, and emits one event', async () => {
    const before = (await events('product.created')).length
    const { success: _success, ...product } = await inserted({ ...WHOLE, name: 'HAFER-Milch Ö' })
    expect(product).toMatchObject({
      ...WHOLE,
      price: 1.99,
      nameLower: 'hafer-milch ö',
      brandLower: 'lindwerk',
      fromPos: false,
      posProductId: null,
      storeId: here,
    })
    expect(Date.parse(product.createdAt)).toBe(Date.parse(product.updatedAt))
    const { success: _also, ...fetched } = await inStore(product.productId)
    expect(fetched).toEqual(product)
    const { products } = await shop.ok('fetchProducts', { storeId: here, category: 'getränke neu' })
    expect(products).toEqual([product])
    const get = await shop.cloud.get(`/api/v1/fetchProduct?barcode=${product.ean}&storeId=${here}`, {
      authorization: `Bearer ${shop.key}`,
    })
    expect(get.body).toEqual({ success: true, ...product })
    const { storeId: _here, ...global } = product
    expect(await shop.ok('fetchProduct', { id: product.productId })).toEqual({ success: true, ...global })
    const created = (await events('product.created')).slice(before)
    expect(created.map((e) => JSON.parse(e.data) as Json)).toEqual([
      { productId: product.productId, storeId: here, ean: product.ean, name: 'HAFER-Milch Ö', price: 1.99 },
    ])
    expect(created[0]?.store_id).toBe(here)
  })

  it.each<[string, Json, string]>([
    ['an ean with a leading zero', { ean: '0012345678905' }, 'ean'],
    ['an ean of 12 digits', { ean: '401234567890' }, 'ean'],
    ['an ean with a letter', { ean: '401234567890x' }, 'ean'],
    ['an ean that is a number', { ean: 4012345678901 }, 'ean'],
    ['two eans', { barcode: '40123455' }, 'ean'],
    ['no name', { name: undefined }, 'name'],
    ['a blank name', { name: '   ' }, 'name'],
    ['121 characters of name', { name: 'x'.repeat(121) }, 'name'],
    ['301 characters of description', { description: 'x'.repeat(301) }, 'description'],
    ['a price below 0', { price: -0.01 }, 'price'],
    ['a price over 1,000,000', { price: 1_000_000.01 }, 'price'],
    ['3 decimals', { price: 1.999 }, 'price'],
    ['decimals that would round to nothing', { price: 1e-9 }, 'price'],
    ['a price as text', { price: '1.99' }, 'price'],
    ['an old price with 3 decimals', { oldPrice: 0.001 }, 'oldPrice'],
    ['a vat of 16', { vat: 16 }, 'vat'],
    ['a field of nutrition that is none', { nutrition: { calorie: 1 } }, 'nutrition.calorie'],
    ['negative fat', { nutrition: { fat: -1 } }, 'nutrition.fat'],
    ['a nutri-score of F', { nutrition: { nutriScore: 'F' } }, 'nutrition.nutriScore'],
    ['more than full confidence', { nutrition: { confidence: 1.1 } }, 'nutrition.confidence'],
    ['51 allergens', { allergens: Array.from({ length: 51 }, () => 'x') }, 'allergens'],
    ['an image that is no address', { imageUrl: 'javascript:alert(1)' }, 'imageUrl'],
    ['a field of the system', { fromPos: true }, 'fromPos'],
  ])('rejects %s', async (_, fields, path) => {
    const before = await totals(here)
    const answer = await insert(fields)
    expect(answer).toMatchObject({ status: 400, body: { code: 'invalid-argument' } })
    expect(answer.body.details[0].path).toBe(path)
    expect(await totals(here)).toEqual(before)
  })

  it('accepts an EAN-8, a wrong check digit with a warning, and barcode as synonym of ean', async () => {
    expect(await inserted({ ean: undefined, barcode: '96385074' })).toMatchObject({ ean: '96385074' })
    const { warnings } = await inserted({ ean: '4099999999990' })
    expect(warnings).toEqual([expect.stringContaining('check digit')])
  })

  it('identifies a product by its EAN in every store: one productId, one price per store', async () => {
    const ean = newEan()
    const first = await inserted({ ean, price: 3, brand: 'Nordhain' })
    expect(await insert({ ean })).toMatchObject({
      status: 409,
      body: { code: 'already-exists', reason: 'product_exists' },
    })
    const second = await inserted({ ean, price: 4, oldPrice: 5, name: 'Ganz anders' }, there)
    expect(second).toMatchObject({
      productId: first.productId,
      price: 4,
      oldPrice: 5,
      name: 'Hafermilch',
      brand: 'Nordhain',
      warnings: [expect.stringContaining('name was not changed')],
    })
    expect(await inStore(first.productId)).toMatchObject({ price: 3 })
    expect(await shop.ok('fetchProduct', { ean })).toMatchObject({ price: 3 })

    const updated = await shop.ok('updateProduct', {
      productId: first.productId,
      storeId: there,
      price: 4.5,
      name: 'Haferdrink',
      brand: null,
    })
    expect(updated).toMatchObject({ price: 4.5, name: 'Haferdrink', nameLower: 'haferdrink', storeId: there })
    expect(updated.brand).toBeUndefined()
    expect(await inStore(first.productId)).toMatchObject({ price: 3, name: 'Haferdrink' })
    expect(await shop.ok('fetchProduct', { ean })).toMatchObject({ price: 3 })
  })

  it('the global price follows the only store that sells a product', async () => {
    const { productId } = await inserted({ price: 1 })
    await shop.ok('updateProduct', { productId, storeId: here, price: 2, oldPrice: 3 })
    expect(await shop.ok('fetchProduct', { productId })).toMatchObject({ price: 2, oldPrice: 3 })
  })

  it('refuses an old price below the price, and removes one that a new price reaches', async () => {
    const refused = { status: 400, body: { details: [{ path: 'oldPrice' }] } }
    expect(await insert({ price: 2, oldPrice: 1.99 })).toMatchObject(refused)
    const { productId } = await inserted({ price: 2, oldPrice: 2.5 })
    const change = (fields: Json) => shop.call('updateProduct', { productId, storeId: here, ...fields })
    const register = (fields: Json, storeId = here) =>
      shop.call('registerProductToStore', { productId, storeId, ...fields })
    expect(await change({ oldPrice: 1.99 })).toMatchObject(refused)
    expect(await register({ oldPrice: 1.99 })).toMatchObject(refused)
    expect(await register({ price: 3, oldPrice: 2 })).toMatchObject(refused)
    expect(await register({ oldPrice: 1.99 }, there)).toMatchObject(refused)
    expect((await register({ price: 2.2, oldPrice: 2.6 }, there)).body).toMatchObject({ price: 2.2, oldPrice: 2.6 })
    expect((await register({ oldPrice: 2.8 })).body).toMatchObject({ price: 2, oldPrice: 2.8 })
    expect((await change({ price: 2.4 })).body).toMatchObject({ price: 2.4, oldPrice: 2.8 })
    expect((await change({ price: 2.8 })).body).not.toHaveProperty('oldPrice')
    expect((await register({ oldPrice: null }, there)).body).not.toHaveProperty('oldPrice')
    const { errors } = await shop.ok('bulkImportProducts', {
      storeId: here,
      products: [{ ean: newEan(), name: 'x', price: 2, oldPrice: 1, vat: 7 }],
    })
    expect(errors).toEqual([expect.objectContaining({ field: 'oldPrice' })])
  })

  it('accepts its own response, with changes only in fields that may change', async () => {
    const product = await inserted(WHOLE)
    const again = await shop.ok('updateProduct', product)
    expect(again).toEqual(product)
    expect(await shop.ok('updateProduct', { ...product, name: 'Neu' })).toMatchObject({ name: 'Neu', nameLower: 'neu' })
    for (const wrong of [
      { createdAt: '2020-01-01T00:00:00Z' },
      { fromPos: true },
      { posProductId: 'x' },
      { nameLower: 'x' },
      { ean: newEan() },
      { media: { snapshot: 'https://x.example/' } },
    ]) {
      const answer = await shop.call('updateProduct', { productId: product.productId, storeId: here, ...wrong })
      expect([Object.keys(wrong)[0], answer.status, answer.body.details?.[0]]).toEqual([
        Object.keys(wrong)[0],
        400,
        expect.objectContaining({ path: Object.keys(wrong)[0], code: 'system_field' }),
      ])
    }
    const cleared = await shop.ok('updateProduct', {
      productId: product.productId,
      storeId: here,
      nutrition: null,
      allergens: null,
      oldPrice: null,
      category: null,
    })
    expect(cleared).not.toHaveProperty('nutrition')
    expect(cleared).not.toHaveProperty('oldPrice')
    expect(await totals(here, 'getränke neu')).toEqual(expect.arrayContaining([1]))
  })

  it('registers a product in another store at the global or another price, and removes it', async () => {
    const { productId, ean } = await inserted({ price: 7 })
    const before = await totals(there)
    expect((await shop.call('fetchProduct', { productId, storeId: there })).status).toBe(404)
    expect(await shop.ok('registerProductToStore', { productId, storeId: there })).toMatchObject({
      price: 7,
      storeId: there,
    })
    expect(await shop.ok('registerProductToStore', { productId, storeId: there, price: 8 })).toMatchObject({ price: 8 })
    expect(await shop.ok('registerProductToStore', { productId, storeId: there })).toMatchObject({ price: 8 })
    expect(await totals(there)).toEqual(before.map((n) => n + 1))
    expect((await shop.call('registerProductToStore', { productId: 'prd_x', storeId: there })).status).toBe(404)

    await shop.ok('removeProductFromStore', { productId, storeId: there })
    expect((await shop.call('removeProductFromStore', { productId, storeId: there })).status).toBe(404)
    expect((await shop.call('fetchProduct', { productId, storeId: there })).status).toBe(404)
    expect(await totals(there)).toEqual(before)
    expect((await shop.ok('searchProducts', { storeId: there, q: ean })).products).toEqual([])
    await shop.ok('removeProductFromStore', { productId, storeId: here })
    expect(await inserted({ ean, name: 'Wieder da' }, there)).toMatchObject({ productId, name: 'Wieder da' })
  })

  it('64 concurrent inserts in two stores create one product', async () => {
    const ean = newEan()
    const before = [...(await totals(here)), ...(await totals(there))]
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, i) => insert({ ean, price: i + 1 }, i % 2 === 0 ? here : there)),
    )
    const good = answers.filter((a) => a.status === 200)
    expect(answers.filter((a) => a.status === 409)).toHaveLength(62)
    expect(good.map((a) => a.body.storeId).toSorted()).toEqual([here, there].toSorted())
    expect(new Set(good.map((a) => a.body.productId)).size).toBe(1)
    for (const { body } of good) expect((await inStore(body.productId, body.storeId)).price).toBe(body.price)
    expect([...(await totals(here)), ...(await totals(there))]).toEqual(before.map((n) => n + 1))
  })

  it('returns the same product for all its names, and nothing for names of different products', async () => {
    const { productId, ean } = await inserted({ price: 3 })
    await shop.ok('registerProductToStore', { productId, storeId: there, price: 4 })
    const other = newEan()
    for (const [storeId, price] of [
      [here, 3],
      [there, 4],
    ] as const) {
      const byId = await inStore(productId, storeId)
      expect(byId.price).toBe(price)
      for (const names of [{ ean }, { barcode: ean }, { ean, barcode: ean }, { id: productId }])
        expect(await shop.ok('fetchProduct', { ...names, storeId })).toEqual(byId)
      for (const names of [
        { ean, barcode: other },
        { ean: other, barcode: ean },
      ])
        expect(await shop.call('fetchProduct', { ...names, storeId })).toMatchObject({
          status: 400,
          body: { details: [{ path: 'ean' }] },
        })
      expect(await shop.call('fetchProduct', { id: productId, barcode: ean, storeId })).toMatchObject({
        status: 400,
        body: { details: [{ path: 'barcode' }] },
      })
      expect((await shop.call('fetchProduct', { ean: other, storeId })).status).toBe(404)
      // Scanners also send codes of other kinds (Code 128, QR). No product has such a code.
      for (const scanned of ['123456789012345', 'A'.repeat(128), 'A'.repeat(129), '(01)0400', 'Ä', '']) {
        expect((await shop.call('fetchProduct', { barcode: scanned, storeId })).status).toBe(404)
        expect((await shop.call('removeProductFromStore', { ean: scanned, storeId })).status).toBe(404)
      }
    }
  })

  it('hides products of other stores from a key that is bound to stores', async () => {
    const { productId, ean } = await inserted()
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [there] })
    for (const names of [{ productId }, { ean }, { productId, storeId: here }, { ean, storeId: here }])
      expect((await shop.cloud.call(bound, 'fetchProduct', names)).status).toBe(404)
    expect((await shop.cloud.call(bound, 'updateProduct', { productId, storeId: here, price: 1 })).status).toBe(404)
  })

  it('stored documents equal newly rendered ones', async () => {
    const { reads } = shop.cloud.db.database
    const { toProduct, pricedAt } = await import('../../../../cloud/shop/catalogue/render.ts')
    const { listingsIn } = await import('../../../../cloud/shop/catalogue/search-queries.ts')
    const { searchTermsOf } = await import('../../../../cloud/shop/catalogue/search-queries.ts')
    const products = new Map(
      (await reads.selectFrom('product').selectAll().execute()).map((row) => [row.product_id, row]),
    )
    const listings = await reads.selectFrom('store_product').selectAll().execute()
    const expectedTerms: string[] = []
    for (const listing of listings) {
      const product = products.get(listing.product_id)
      if (!product) throw new Error('a listing without its product')
      expect(listing.doc).toBe(JSON.stringify(toProduct(pricedAt(product, listing))))
      expect(listing.category).toBe(product.category?.trim() ? foldText(product.category) : null)
      expectedTerms.push(...searchTermsOf(product).map((word) => `${listing.store_id} ${word} ${listing.listing_no}`))
    }
    const rows = await reads.selectFrom('product_word').selectAll().execute()
    expect(rows.filter(({ products: listed }) => listed === '')).toEqual([])
    const storedTerms = rows.flatMap((row) => listingsIn(row).map((no) => `${row.store_id} ${row.word} ${no}`))
    expect(storedTerms.toSorted()).toEqual(expectedTerms.toSorted())
    for (const { store_id, category, count } of await reads
      .selectFrom('product_count')
      .select((eb) => ['store_id', 'category', eb.fn.sum<number>('products').as('count')] as const)
      .groupBy(['store_id', 'category'])
      .execute()) {
      expect(
        listings.filter((l) => l.store_id === store_id && (category === '' || l.category === category)),
      ).toHaveLength(count)
    }
  })

  it('lists and counts a category in every spelling, and returns it as it was sent, in NFC', async () => {
    const typed = ['Süße Säfte', 'SÜSSE SÄFTE', ' süße  säfte', 'Su\u0308ße Sa\u0308fte', '  ']
    for (const category of typed) await inserted({ ean: newEan(), category })
    for (const category of typed.slice(0, 4)) expect(await totals(here, category)).toEqual([4, 4])
    const { products } = await shop.ok('fetchProducts', { storeId: here, category: 'süße säfte' })
    expect(products.map((product: Json) => product.category)).toEqual(
      typed.slice(0, 4).map((category) => category.normalize()),
    )
    expect(await totals(here, '  ')).toEqual(await totals(here))
    const [first, second] = products
    await shop.ok('updateProduct', { productId: first.productId, storeId: here, category: 'SÜẞE SÄFTE' })
    expect(await totals(here, 'süße säfte')).toEqual([4, 4])
    await shop.ok('updateProduct', { productId: first.productId, storeId: here, category: 'Säfte' })
    await shop.ok('removeProductFromStore', { productId: second.productId, storeId: here })
    expect(await totals(here, 'SÜSSE SÄFTE')).toEqual([2, 2])
  })

  it('rebuilds all documents that an older version wrote', async () => {
    const { database } = shop.cloud.db
    const { refreshDocuments } = await import('../../../../cloud/shop/catalogue/refresh-documents.ts')
    const { listingsIn } = await import('../../../../cloud/shop/catalogue/search-queries.ts')
    const dump = async () => ({
      documents: await database.reads
        .selectFrom('store_product')
        .select(['store_id', 'product_id', 'category', 'doc'])
        .orderBy('store_id')
        .orderBy('product_id')
        .execute(),
      words: (
        await database.reads
          .selectFrom('product_word')
          .selectAll()
          .orderBy('store_id')
          .orderBy('word')
          .orderBy('block')
          .execute()
      ).map((row) => ({ ...row, products: listingsIn(row) })),
      counts: await database.reads
        .selectFrom('product_count')
        .select((eb) => ['store_id', 'category', eb.fn.sum('products').as('products')] as const)
        .groupBy(['store_id', 'category'])
        .having((eb) => eb.fn.sum('products'), '>', 0)
        .orderBy('store_id')
        .orderBy('category')
        .execute(),
    })
    const before = await dump()
    await database.write(async (db) => {
      await db.updateTable('store_product').set({ doc: '', category: null }).execute()
      await db.deleteFrom('product_word').execute()
      await db.deleteFrom('product_count').execute()
      await db.updateTable('installation').set({ value: '0' }).where('name', '=', 'catalogue-documents').execute()
    })
    await refreshDocuments(database)
    expect(await dump()).toEqual(before)
  })

  describe('pages', () => {
    it('lists each product that stays exactly once, while others are added and removed', async () => {
      const size = 7
      const remaining = new Set<string>()
      let cursor: string | undefined
      for (let page: Json = {}; !remaining.size || page.nextCursor; cursor = page.nextCursor) {
        page = await shop.ok('fetchProducts', { storeId: here, limit: 100, ...(cursor && { cursor }) })
        for (const product of page.products) remaining.add(product.productId)
      }
      const gone = [...remaining][size - 1] ?? ''
      const seen: string[] = []
      cursor = undefined
      do {
        const answers: Json[] = await Promise.all([
          shop.ok('fetchProducts', { storeId: here, limit: size, ...(cursor && { cursor }) }),
          ...(seen.length < 60 ? [insert(), insert()] : []),
        ])
        const [page] = answers
        seen.push(...page.products.map((p: Json) => p.productId))
        cursor = page.nextCursor
        // Removes the product that the cursor of the first page names.
        if (seen.length === size) await shop.ok('removeProductFromStore', { storeId: here, productId: gone })
      } while (cursor !== undefined)
      expect(new Set(seen).size).toBe(seen.length)
      expect([...remaining].filter((id) => !seen.includes(id))).toEqual([])
    })

    it('supports offset or cursor but not both, with defaults of 50 and 100', async () => {
      const all = await shop.ok('fetchProducts', { storeId: here, limit: 500 })
      expect(all.total).toBe(all.products.length)
      expect((await shop.ok('fetchProducts', { storeId: here, offset: 3, limit: 2 })).products).toEqual(
        all.products.slice(3, 5),
      )
      expect((await shop.call('fetchProducts', { storeId: here, offset: 1, cursor: 'prd_x' })).status).toBe(400)
      expect((await shop.ok('fetchProducts', { storeId: here })).products).toHaveLength(50)
      const older = await shop.cloud.get(`/api/v1/fetchProducts?storeId=${here}`, {
        authorization: `Bearer ${shop.key}`,
      })
      expect(older.body.data).toHaveLength(Math.min(100, all.total))
      expect(older.body.total).toBe(all.total)
    })
  })

  describe('search', () => {
    const names = async (q: string, limit = 20) =>
      (await shop.ok('searchProducts', { storeId: here, q, limit })).products.map((p: Json) => p.name) as string[]

    it('finds prefixes of words in name, brand and EAN, ignoring accents and case', async () => {
      const ean = newEan()
      await inserted({ ean, name: 'Xylo-Käse Straße mild', brand: 'Zübbel' })
      await inserted({ name: 'Xylophon' })
      expect(await names('xylo')).toEqual(['Xylo-Käse Straße mild', 'Xylophon'])
      for (const q of ['XYLO käs', 'kase xylo', 'strasse zub', 'zübbel', ean, ean.slice(0, 12), 'xylo, mild!'])
        expect([q, (await names(q))[0]]).toEqual([q, 'Xylo-Käse Straße mild'])
      for (const q of ['äse', 'xylo nichts', '!!!', `${ean}0`]) expect([q, await names(q)]).toEqual([q, []])
      expect(await names('xylo', 1)).toHaveLength(1)
    })

    it('returns the same as a scan of all products', async () => {
      const { queryTermsOf, searchTermsOf } = await import('../../../../cloud/shop/catalogue/search-queries.ts')
      const { products } = await shop.ok('fetchProducts', { storeId: here, limit: 500 })
      const words = products.flatMap((p: Json) => p.nameLower.split(' ')) as string[]
      const prefix = fc
        .constantFrom(...words)
        .chain((word) => fc.integer({ min: 1, max: 4 }).map((n) => word.slice(0, n)))
      await fc.assert(
        fc.asyncProperty(fc.array(prefix, { minLength: 1, maxLength: 3 }), async (prefixes) => {
          const q = prefixes.join(' ')
          const found = (await shop.ok('searchProducts', { storeId: here, q, limit: 500 })).products.map(
            (p: Json) => p.productId,
          ) as string[]
          const wanted = queryTermsOf(q)
          const expected = products.filter(
            (p: Json) =>
              wanted.length > 0 &&
              wanted.every((w) =>
                searchTermsOf({ name_lower: p.nameLower, brand_lower: p.brandLower ?? null, ean: p.ean }).some((x) =>
                  x.startsWith(w),
                ),
              ),
          )
          expect(found.toSorted()).toEqual(expected.map((p: Json) => p.productId).toSorted())
        }),
        { numRuns: 40 },
      )
    })
  })

  it('stores prices exactly to the cent', async () => {
    const { productId } = await inserted()
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 100_000_000 }), async (cents) => {
        await shop.ok('updateProduct', { productId, storeId: here, price: cents / 100 })
        const row = await shop.cloud.db.database.reads
          .selectFrom('store_product')
          .select('price_cent')
          .where('product_id', '=', productId)
          .executeTakeFirstOrThrow()
        expect(row.price_cent).toBe(cents)
        expect((await inStore(productId)).price).toBe(cents / 100)
      }),
      { numRuns: 30 },
    )
  })

  it('logs no error', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
