import { afterAll, beforeAll, expect, it } from 'vitest'
import { findProduct } from '../../../../cloud/shop/catalogue/queries.ts'
import {
  LISTINGS_AT_ONCE,
  refreshListings,
  refreshDocuments,
} from '../../../../cloud/shop/catalogue/refresh-documents.ts'
import { listingsIn as numbersIn } from '../../../../cloud/shop/catalogue/search-queries.ts'
import { OTHER_LISTINGS } from '../../../../cloud/shop/catalogue/write-products.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import { virtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'
import { newEan, newEpc } from '../../../support/shop.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'

/** More stores than one transaction writes, for two transactions of the job. */
const STORES = OTHER_LISTINGS + 2 * LISTINGS_AT_ONCE - 10

onEveryDatabase('a changed product in other stores', (kind) => {
  let cloud: TestCloud
  let database: Database
  let key: string
  let ean: string
  let storeIds: string[]
  let productId: string
  const ok = (operation: string, body: Json): Promise<Json> => cloud.ok(key, operation, body)
  const update = (fields: Json, storeId = storeIds[0]) => ok('updateProduct', { productId, storeId, ...fields })
  const refresh = () => refreshListings(database, cloud.cloud.services)
  const queue = () => database.reads.selectFrom('listing_refresh').selectAll().execute()
  const last = () => storeIds.at(-1) ?? ''

  beforeAll(async () => {
    // The time stands still, so that only the test runs the job.
    cloud = await startTestCloud(kind, { platform: virtualPlatform({ startMs: Date.now() }) })
    database = cloud.db.database
    key = await cloud.key('secret')
    ean = newEan()
    const products = [{ ean, name: 'Alt', priceCent: 100 }]
    storeIds = (await liveStores(cloud, key, { count: STORES, products, mode: 'test' })).sort()
    productId = (await ok('fetchProduct', { ean, storeId: storeIds[0] })).productId
  })
  afterAll(() => cloud.stop())

  /** Everything that the catalogue derives from products and prices. */
  const derived = async () => ({
    documents: await database.reads
      .selectFrom('store_product')
      .selectAll()
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
    ).map((row) => ({ ...row, products: numbersIn(row) })),
    counts: await database.reads
      .selectFrom('product_count')
      .select((eb) => ['store_id', 'category', eb.fn.sum('products').as('products')] as const)
      .groupBy(['store_id', 'category'])
      .having((eb) => eb.fn.sum('products'), '<>', 0)
      .orderBy('store_id')
      .orderBy('category')
      .execute(),
  })

  /** Asserts that all listings are as a rebuild from products and prices would write them. */
  const expectComplete = async () => {
    expect(await queue()).toEqual([])
    const found = await derived()
    await database.write((db) =>
      db.updateTable('installation').set({ value: '0' }).where('name', '=', 'catalogue-documents').execute(),
    )
    await refreshDocuments(database)
    expect(found).toEqual(await derived())
  }

  /** A database whose transactions call `before` first, which may throw. */
  const watched = (before: (holder: string | undefined) => Promise<unknown> | void): Database => ({
    ...database,
    reads: database.reads,
    write: async (work, scope) => {
      await before(scope?.holder)
      return database.write(work, scope)
    },
  })

  it('is written at once for its own store and a fixed number of others, and for the rest by the job', async () => {
    await update({ name: 'Neu Wort', category: 'Brot' })
    const names = async () =>
      (await database.reads.selectFrom('store_product').select('doc').execute()).filter(
        ({ doc }) => (JSON.parse(doc) as Json).name === 'Neu Wort',
      ).length
    expect(await names()).toBe(OTHER_LISTINGS + 1)
    expect(await queue()).toHaveLength(1)
    const found = async (q: string) => (await ok('searchProducts', { storeId: last(), q })).products.length
    expect([await found('alt'), await found('wort')]).toEqual([1, 0])
    await refresh()
    expect([await found('alt'), await found('wort')]).toEqual([0, 1])
    expect((await ok('fetchProducts', { storeId: last(), category: 'brot' })).total).toBe(1)
    await expectComplete()
  })

  it('is returned, scanned and sold by its row at once, before the job', async () => {
    await update({ name: 'Bier', vat: 7, deposit: 0.25, flags: { requiresHumanVerification: true } })
    const facts = { name: 'Bier', vat: 7, deposit: 0.25, flags: { requiresHumanVerification: true }, price: 1 }
    const stored = async () =>
      (await ok('fetchProducts', { storeId: last() })).products.find((each: Json) => each.ean === ean)
    expect((await stored()).name).toBe('Neu Wort')
    expect(await ok('fetchProduct', { storeId: last(), ean })).toMatchObject(facts)
    expect(await ok('fetchProduct', { storeId: last(), productId })).toMatchObject(facts)
    const { sessionId } = await ok('checkIn', { storeId: last(), userId: 'shopper-1' })
    await ok('startCheckout', { sessionId, items: [{ ean, quantity: 1 }] })
    expect(
      await database.reads
        .selectFrom('purchase_line')
        .select(['name', 'vat', 'price_cent'])
        .where('ean', '=', ean)
        .execute(),
    ).toEqual([{ name: 'Bier', vat: 7, price_cent: 100 }])
    expect(
      await database.reads.selectFrom('purchase').select('approval').where('store_id', '=', last()).executeTakeFirst(),
    ).toMatchObject({ approval: 'awaiting' })
    // A new price is in the document of its store at once, and does not change with the job.
    await update({ price: 3 }, last())
    expect(await stored()).toMatchObject({ ...facts, price: 3 })
    await refresh()
    expect(await stored()).toMatchObject({ ...facts, price: 3 })
    await expectComplete()
  })

  it('is right whatever happens before and between the transactions of the job', async () => {
    await update({ name: 'Erster Name', category: 'Eins' })
    const [near, far] = [storeIds[OTHER_LISTINGS + 5] ?? '', storeIds.at(-2) ?? '']
    let step = 0
    const steps = [
      () => ok('removeProductFromStore', { productId, storeId: far }),
      () => update({ name: 'Zweiter Name', category: 'Zwei' }, far === near ? near : last()),
      () => ok('registerProductToStore', { productId, storeId: far, price: 9 }),
      () => update({ price: 4 }, near),
      () => ok('removeProductFromStore', { productId, storeId: last() }),
      () => update({ name: 'Dritter Name', category: null }),
    ]
    await steps[step++]?.()
    await steps[step++]?.()
    await refreshListings(
      watched(() => steps[step++]?.()),
      cloud.cloud.services,
    )
    expect(cloud.errors).toEqual([])
    expect(step).toBeGreaterThanOrEqual(steps.length)
    await refresh()
    await expectComplete()
    expect((await ok('searchProducts', { storeId: far, q: 'dritter' })).products).toMatchObject([{ price: 9 }])
    await ok('registerProductToStore', { productId, storeId: last(), price: 3 })
  })

  it('follows after a transaction of the job failed, and logs the failure', async () => {
    await update({ name: 'Nach dem Absturz' })
    const errors: string[] = []
    const log = { ...cloud.cloud.services.log, error: (...what: unknown[]) => void errors.push(JSON.stringify(what)) }
    let writes = 0
    const failing = watched(() => {
      if (++writes === 2) throw new Error('crash')
    })
    await refreshListings(failing, { log, platform: cloud.cloud.services.platform })
    expect(writes).toBe(2)
    expect(errors.join()).toContain('listings of changed products')
    expect((await queue()).map((row) => row.after_store > '')).toEqual([true])
    await refresh()
    await expectComplete()
  })

  it('reaches all stores although the product changes before each transaction', async () => {
    await update({ name: 'Lauf 0' })
    let changes = 0
    const log = { ...cloud.cloud.services.log, error: () => undefined }
    const endless = watched(() => {
      if (changes === 4) throw new Error('the run ends')
      return update({ name: `Lauf ${++changes}` })
    })
    await refreshListings(endless, { log, platform: cloud.cloud.services.platform })
    const { doc } = await database.reads
      .selectFrom('store_product')
      .select('doc')
      .where('store_id', '=', last())
      .executeTakeFirstOrThrow()
    expect(doc).toMatch(/"Lauf [1-4]"/)
    await refresh()
    await expectComplete()
  })

  it('publishes the items in all stores, also if the product is as before when the job runs', async () => {
    await refresh()
    await ok('registerProtectedItems', { storeId: last(), items: [{ ean, epc: newEpc() }] })
    const waiting = () =>
      database.reads.selectFrom('item_refresh').select('store_id').where('product_id', '=', productId).execute()
    await database.write((db) => db.deleteFrom('item_refresh').execute())
    const { name } = await ok('fetchProduct', { productId, storeId: last() })
    await update({ name: 'Kurz anders' })
    await update({ name })
    expect(await waiting()).toEqual([])
    await refresh()
    expect(await waiting()).toEqual([{ store_id: last() }])
    await expectComplete()
  })

  it('leaves no words of many products that lose the same words at once', async () => {
    const eans = Array.from({ length: 25 }, newEan)
    const named = (name: string) => eans.map((each, i) => ({ ean: each, name: `${name} ${i}`, price: 1, vat: 7 }))
    for (const storeId of storeIds.slice(0, 12))
      await ok('bulkImportProducts', { storeId, products: named('Gleiche Worte') })
    await ok('bulkImportProducts', { storeId: storeIds[0], products: named('Worte') })
    expect(await queue()).not.toEqual([])
    await refresh()
    expect((await ok('searchProducts', { storeId: storeIds[3], q: 'gleiche' })).products).toEqual([])
    expect((await ok('searchProducts', { storeId: storeIds[3], q: 'worte', limit: 50 })).products).toHaveLength(25)
    await expectComplete()
  })

  it('gives each account its turn', async () => {
    const other = await cloud.key('secret', 'test', { account: 'Nordkai' })
    const otherEan = newEan()
    const products = [{ ean: otherEan, name: 'Fremd', priceCent: 100 }]
    const stores = (await liveStores(cloud, other, { count: STORES, products, mode: 'test' })).sort()
    await update({ name: 'Viele Filialen' })
    await cloud.ok(other, 'updateProduct', { ean: otherEan, storeId: stores[0], name: 'Andere' })
    const holders: (string | undefined)[] = []
    await refreshListings(
      watched((holder) => void holders.push(holder)),
      cloud.cloud.services,
    )
    // Three turns of the first account, one of the other one, and each finds that nothing is left.
    expect(holders).toHaveLength(6)
    expect(new Set(holders.slice(0, 2)).size).toBe(2)
    await expectComplete()
  })

  it('is the same with changes from two stores and several processes at once', async () => {
    const second = await cloud.db.again()
    try {
      await Promise.all([
        ...Array.from({ length: 8 }, (_, i) => update({ name: `Gleich ${i}`, price: 1 + i }, storeIds[i % 2])),
        ...Array.from({ length: 4 }, (_, i) => update({ price: 5 + i }, last())),
        ...Array.from({ length: 4 }, () => refresh()),
        ...Array.from({ length: 4 }, () => refreshListings(second, cloud.cloud.services)),
      ])
      await refresh()
      const row = await findProduct(database.reads, await tenantOf(), { ean }, last())
      expect(row?.name).toMatch(/^Gleich/)
      expect(row?.price_cent).toBeGreaterThanOrEqual(500)
      await expectComplete()
    } finally {
      await second.close()
    }
  })

  const tenantOf = async () =>
    (
      await database.reads
        .selectFrom('product')
        .select('tenant')
        .where('product_id', '=', productId)
        .executeTakeFirstOrThrow()
    ).tenant

  it('logs no error', () => {
    expect(cloud.errors).toEqual([])
  })
})
