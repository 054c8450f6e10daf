import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { genericSystem } from '../../../../simulators/services/generic-system.ts'
import { shopifySystem } from '../../../../simulators/services/pos-shopify.ts'
import { vendorGoods, type SimulatedVendor } from '../../../../simulators/services/vendor-server.ts'
import type { Json } from '../../../support/cloud.ts'
import { openConnectedStore, type ConnectedStore } from '../../../support/connected-store.ts'
import { onEveryDatabase } from '../../../support/databases.ts'

onEveryDatabase('integrations', (kind) => {
  let store: ConnectedStore
  let system: SimulatedVendor
  const open: SimulatedVendor[] = []
  const serve = async (options: Parameters<typeof genericSystem>[0] = {}) => {
    system = await genericSystem({ goods: vendorGoods(10), ...options })
    open.push(system)
    return system
  }
  beforeAll(async () => {
    store = await openConnectedStore(kind)
  })
  afterAll(() => store.stop())
  afterEach(async () => {
    for (const server of open.splice(0)) await server.close()
    expect(store.cloud.errors).toEqual([])
  })
  const rows = (table: 'integration_connection' | 'integration_pull' | 'erp_record') =>
    store.cloud.db.database.reads.selectFrom(table).selectAll().execute() as Promise<Json[]>
  const pulls = async (storeId: string) => (await rows('integration_pull')).filter((row) => row.store_id === storeId)
  const products = async (storeId: string): Promise<Json[]> =>
    (await store.ok('fetchProducts', { storeId, limit: 500 })).products

  it('reads the articles of a till, emits one event, and writes nothing if nothing has changed', async () => {
    await serve()
    const [eleven] = vendorGoods(1).products
    system.goods.products.push(
      { ...eleven!, id: '9', ean: null, name: 'ohne EAN' },
      { ...eleven!, id: '10', ean: '4012345678901', vat: 16 },
    )
    const synced = await store.ok('syncPOS', { system: 'custom', credentials: system.credentials })
    expect(synced).toMatchObject({
      system: 'custom',
      synced: { products: 10, categories: 3, priceUpdates: 0 },
      errorCount: 2,
    })
    expect(synced.errors.map((e: Json) => [e.dataType, e.index, e.externalId, e.field, e.code])).toEqual([
      ['articles', 10, '9', 'ean', 'missing'],
      ['articles', 11, '10', 'vat', 'invalid_value'],
    ])
    expect(system.requests.map(({ path, query }) => `${path} ${query.get('cursor')}`)).toEqual([
      '/api/articles null',
      '/api/articles c3',
      '/api/articles c6',
      '/api/articles c9',
    ])
    const first = (await products(store.storeId)).find((p) => p.name === 'Artikel 1')
    expect(first).toMatchObject({
      name: 'Artikel 1',
      price: 1.99,
      vat: 19,
      category: 'Hemden',
      unit: 'Stück',
      fromPos: true,
      posProductId: '1001',
    })
    expect(await store.events('integration.pos.synced')).toEqual([
      { storeId: store.storeId, system: 'custom', synced: synced.synced, failed: 2 },
    ])
    // The round is over: no cursor continues it.
    expect(await pulls(store.storeId)).toMatchObject([{ source: '', next_cursor: null, is_done: 1 }])

    const before = JSON.stringify(await products(store.storeId))
    system.goods.products.splice(10)
    expect((await store.ok('syncPOS', { system: 'generic' })).synced).toEqual({
      products: 10,
      categories: 3,
      priceUpdates: 0,
    })
    expect(JSON.stringify(await products(store.storeId))).toBe(before)
    system.goods.products[0]!.priceCent = 249
    expect((await store.ok('syncPOS', { system: 'generic' })).synced.priceUpdates).toBe(1)
  })

  it('never returns credentials, deletes them on request, and requires them before any are stored', async () => {
    await serve()
    const storeId = await store.newStore()
    expect(await store.call('syncPOS', { storeId, system: 'generic' })).toMatchObject({
      status: 400,
      body: { details: [{ path: 'credentials', code: 'missing' }] },
    })
    expect(
      await store.call('pushToPOS', { storeId, system: 'generic', dataType: 'transactions', records: [{}] }),
    ).toMatchObject({ status: 409, body: { reason: 'system_not_connected' } })
    const { baseUrl } = system.credentials
    const refused = await store.call('syncPOS', {
      storeId,
      system: 'generic',
      credentials: { baseUrl, token: 'a-wrong-token' },
    })
    expect(refused).toMatchObject({
      status: 400,
      body: { details: [{ path: 'credentials', code: 'credentials_refused' }] },
    })
    expect((await store.call('syncPOS', { storeId, system: 'generic' })).status).toBe(400)
    await store.ok('syncPOS', {
      storeId,
      system: 'generic',
      credentials: { baseUrl, username: 'untag', password: 'geheim' },
    })
    await store.ok('syncPOS', { storeId, system: 'generic' })
    const shown = JSON.stringify([
      await rows('integration_connection'),
      await rows('integration_pull'),
      store.cloud.errors,
      await store.events('integration.pos.synced'),
      refused.text,
    ])
    for (const secret of [
      'token-of-the-shop',
      'geheim',
      'a-wrong-token',
      Buffer.from('untag:geheim').toString('base64'),
      baseUrl,
    ])
      expect(shown).not.toContain(secret)
    await store.ok('syncPOS', { storeId, system: 'generic', remember: false })
    expect((await store.call('syncPOS', { storeId, system: 'generic' })).status).toBe(400)
  })

  it('lists what a store is connected to, with its last rounds, and no credentials', async () => {
    const storeId = await store.newStore()
    expect(await store.ok('fetchIntegrations', { storeId })).toEqual({ success: true, systems: [] })
    await serve()
    const credentials = system.credentials
    await store.ok('syncPOS', { storeId, system: 'generic', credentials })
    const config = { secretKey: 'sk_live_0123456789', webhookSecret: 'whsec_0123456789' }
    await store.ok('configurePSP', { storeId, provider: 'stripe', config })
    const listed = await store.ok('fetchIntegrations', { storeId })
    expect(listed).toMatchObject({
      provider: { provider: 'stripe', notificationUrl: expect.stringContaining(`/notify/stripe/${storeId}`) },
      systems: [
        {
          side: 'pos',
          system: 'generic',
          hasCredentials: true,
          rounds: [{ dataType: 'articles', isComplete: true, taken: 10, failed: 0 }],
        },
      ],
    })
    expect(JSON.stringify(listed)).not.toMatch(/sk_live|whsec|token/i)
  })

  it('leaves the stock that a system counts to that system, also when its round is over', async () => {
    const storeId = await store.newStore()
    await serve()
    const { credentials } = system
    await store.ok('syncPOS', { storeId, system: 'generic', credentials })
    const [{ productId, ean }] = (await products(storeId)) as [Json]
    const sell = async (saleId: string) => {
      const lines = [{ ean, quantity: 1, priceUnit: 100, vat: 19 }]
      const occurredAt = new Date(store.platform.clock.wall()).toISOString()
      const { errors } = await store.ok('recordSales', { storeId, sales: [{ saleId, occurredAt, lines }] })
      expect(errors).toEqual([])
      return (await store.ok('fetchStock', { storeId, productId })).stock[0].quantity
    }
    await store.ok('setStock', { storeId, productId, quantity: 10 })
    expect(await sell('1')).toBe(9)
    await store.ok('syncERP', { storeId, system: 'generic', credentials })
    const counted = (await store.ok('fetchStock', { storeId, productId })).stock[0].quantity
    expect(await sell('2')).toBe(counted)
  })

  it('names each invalid setting without values, and sends nothing to forbidden addresses', async () => {
    await serve()
    const syncPos = (credentials: Json) => store.call('syncPOS', { system: 'generic', credentials })
    const wrong = await syncPos({ baseUrl: system.baseUrl, tokn: 'secret-value', mapping: { x: 'nothing' } })
    expect(wrong.status).toBe(400)
    expect(wrong.body.details.map((d: Json) => d.path).sort()).toEqual(['credentials.mapping', 'credentials.tokn'])
    expect(wrong.text).not.toContain('secret-value')
    expect(await syncPos({ baseUrl: 'ftp://till.example' })).toMatchObject({
      status: 400,
      body: { details: [{ path: 'credentials.baseUrl', code: 'url_refused' }] },
    })
    expect((await syncPos({ baseUrl: system.baseUrl, token: 't', username: 'u' })).status).toBe(400)
    expect((await syncPos({ token: 't' })).body.error).toBe('credentials.baseUrl is missing: expected a text')
    expect((await syncPos({ baseUrl: 5 })).body.error).toBe('credentials.baseUrl: must be a text or an object')
    expect((await syncPos({ baseUrl: { a: 'b' } })).body.error).toBe(
      'credentials.baseUrl: must be a text, not an object',
    )
    expect(system.requests).toEqual([])
    expect(
      await store.call('syncPOS', { system: 'generic', storeId: 'st_x', credentials: system.credentials }),
    ).toMatchObject({ status: 404 })
  })

  it('continues after an error of the system and after a crash', async () => {
    await serve()
    const storeId = await store.newStore()
    const call = { storeId, system: 'generic', credentials: system.credentials }
    // The second page always fails.
    const cut = { ...call, credentials: { ...system.credentials } }
    const real = system.faults
    const first = store.call('syncPOS', cut)
    await untilRequests(1)
    real.push(...Array.from({ length: 5 }, () => 'unavailable' as const))
    expect(await first).toMatchObject({ status: 503, body: { code: 'unavailable', reason: 'system_unavailable' } })
    const [{ next_cursor: cursor, counts }] = (await pulls(storeId)) as [Json]
    expect(JSON.parse(counts).seen).toBe(Number(cursor.slice(1)))
    expect(await products(storeId)).toHaveLength(JSON.parse(counts).seen)
    expect((await store.events('integration.pos.synced')).filter((e) => e.storeId === storeId)).toEqual([])

    const requestsBefore = system.requests.length
    const done = await store.ok('syncPOS', call)
    expect(system.requests[requestsBefore]?.query.get('cursor')).toBe(cursor)
    expect(done.synced).toEqual({ products: 10, categories: 3, priceUpdates: 0 })
    expect((await store.events('integration.pos.synced')).filter((e) => e.storeId === storeId)).toHaveLength(1)

    // The crashed reader still holds its lease: other calls wait until it expires.
    const connections = store.cloud.db.database
    const nowMs = store.platform.clock.wall()
    await connections.write((db) =>
      db
        .updateTable('integration_connection')
        .set({ lease_id: 'lse_gone', lease_until_ms: nowMs + 60_000 })
        .where('store_id', '=', storeId)
        .execute(),
    )
    expect(await store.call('syncPOS', call)).toMatchObject({
      status: 409,
      body: { code: 'already-exists', reason: 'sync_in_progress' },
    })
    await store.platform.advance(61_000)
    expect((await store.ok('syncPOS', call)).synced.products).toBe(10)
  })

  async function untilRequests(count: number): Promise<void> {
    while (system.requests.length < count) await new Promise((resolve) => setImmediate(resolve))
  }

  it('writes a large page in several transactions under one lease', async () => {
    await serve({ goods: vendorGoods(1_203), pageSize: 1_203 })
    const storeId = await store.newStore()
    const call = { storeId, system: 'generic', credentials: system.credentials }
    // The system answers the first call only after the second one was refused.
    let release: () => void = () => undefined
    const refused = new Promise<undefined>((resolve) => (release = () => resolve(undefined)))
    system.gate = () => refused
    const others = [store.call('syncPOS', call), store.call('syncERP', call)]
    await untilRequests(2)
    expect(await store.call('syncPOS', call)).toMatchObject({
      status: 409,
      body: { code: 'already-exists', reason: 'sync_in_progress' },
    })
    release()
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([200, 200])
    expect((await store.ok('fetchProducts', { storeId, limit: 1 })).total).toBe(1_203)
    const { synced, errors, errorCount } = await store.ok('syncERP', call)
    expect([synced.stock, errors, errorCount]).toEqual([1_203, [], 0])
  })

  it('frees the system for others if the key of the reader is revoked meanwhile', async () => {
    await serve()
    const storeId = await store.newStore()
    const call = { storeId, system: 'generic', credentials: system.credentials }
    const { key, keyId } = await store.cloud.ok(store.key, 'createApiKey', { kind: 'secret', name: 'till' })
    const reading = store.cloud.call(key, 'syncPOS', call)
    await untilRequests(1)
    await store.cloud.ok(store.key, 'revokeApiKey', { keyId })
    expect(await reading).toMatchObject({ status: 401, body: { code: 'unauthenticated' } })
    expect((await store.ok('syncPOS', call)).synced.products).toBe(10)
  })

  it('stops at its time limit, and the next call continues', async () => {
    await serve()
    const storeId = await store.newStore()
    const call = { storeId, system: 'generic', credentials: system.credentials }
    let n = 0
    system.gate = () => {
      if (++n !== 3) return undefined
      store.platform.sleep(300_000)
      return 'rate_limit'
    }
    const cut = await store.ok('syncPOS', call)
    expect(cut).toMatchObject({ hasMore: true, synced: { products: 6 } })
    expect((await store.events('integration.pos.synced')).filter((e) => e.storeId === storeId)).toEqual([])
    const { hasMore, synced } = await store.ok('syncPOS', call)
    expect([hasMore, synced.products, system.requests.at(-2)?.query.get('cursor')]).toEqual([undefined, 10, 'c6'])
    expect((await store.events('integration.pos.synced')).filter((e) => e.storeId === storeId)).toHaveLength(1)
  })

  it('starts again if the cursor has expired, belongs to another source, or is a day old', async () => {
    await serve()
    const storeId = await store.newStore()
    const call = { storeId, system: 'generic', credentials: system.credentials }
    await store.ok('syncPOS', call)
    const leave = async (change: Json) => {
      const counts = JSON.stringify({ seen: 3, taken: 3, failed: 0, repriced: 0, categories: [] })
      const { hashOf } = await import('../../../../cloud/platform/operations/idempotency.ts')
      const row = {
        store_id: storeId,
        side: 'pos',
        system: 'generic',
        data_type: 'articles',
        tenant: 't',
        source: hashOf(`${system.credentials['baseUrl']} `),
        next_cursor: 'c3',
        is_done: 0,
        counts,
        started_ms: store.platform.clock.wall(),
        updated_ms: 0,
        ...change,
      }
      await store.cloud.db.database.write(async (db) => {
        await db.deleteFrom('integration_pull').where('store_id', '=', row.store_id).execute()
        await db.insertInto('integration_pull').values(row).execute()
      })
      const requestsBefore = system.requests.length
      const { synced } = await store.ok('syncPOS', call)
      expect(synced.products).toBe(10)
      return system.requests.slice(requestsBefore).map(({ query }) => query.get('cursor'))
    }
    expect(await leave({})).toEqual(['c3', 'c6', 'c9'])
    expect(await leave({ next_cursor: 'gone' })).toEqual(['gone', null, 'c3', 'c6', 'c9'])
    expect(await leave({ source: 'another' })).toEqual([null, 'c3', 'c6', 'c9'])
    expect(await leave({ started_ms: store.platform.clock.wall() - 24 * 3_600_000 })).toEqual([null, 'c3', 'c6', 'c9'])
  })

  it('returns the same response for the same Idempotency-Key, and streams progress on request', async () => {
    await serve()
    const storeId = await store.newStore()
    const body = { storeId, system: 'generic', credentials: system.credentials }
    const first = await store.call('syncPOS', body, { 'idempotency-key': 'sync-1' })
    const requestsBefore = system.requests.length
    const again = await store.call('syncPOS', body, { 'idempotency-key': 'sync-1' })
    expect([again.text, again.headers.get('idempotency-replayed'), system.requests.length]).toEqual([
      first.text,
      'true',
      requestsBefore,
    ])
    const stream = await store.call('syncPOS', body, { accept: 'text/event-stream' })
    expect(stream.headers.get('content-type')).toBe('text/event-stream')
    expect(stream.text.match(/^event: \w+/gm)).toEqual([
      ...Array.from({ length: 4 }, () => 'event: progress'),
      'event: result',
    ])
    expect(stream.text).toContain('data: {"dataType":"articles","pages":4,"records":10,"errors":0}')
  })

  it('waits as requested, repeats, and gives up in time', async () => {
    await serve()
    const call = { system: 'generic', credentials: system.credentials }
    system.faults.push('rate_limit', 'reset', 'unavailable')
    const before = store.platform.clock.elapsed()
    expect((await store.ok('syncPOS', call)).synced.products).toBe(10)
    expect(store.platform.clock.elapsed() - before).toBeGreaterThan(2_000)
    system.faults.push(...Array.from({ length: 5 }, () => 'rate_limit' as const))
    expect(await store.call('syncPOS', call)).toMatchObject({ status: 503, body: { reason: 'system_unavailable' } })
    system.faults.push('garbage')
    expect(await store.call('syncPOS', call)).toMatchObject({ status: 503, body: { reason: 'answer_not_understood' } })
    expect(system.faults).toEqual([])
  })

  it('reads an ERP: stock becomes counted stock, orders and suppliers are stored', async () => {
    await serve()
    const storeId = await store.newStore()
    await store.ok('syncPOS', { storeId, system: 'generic', credentials: system.credentials })
    Object.assign(system.goods.products[0]!, { stock: -2 })
    Object.assign(system.goods.products[1]!, { stock: 7.9 })
    Object.assign(system.goods.products[2]!, { ean: '4000000000006' })
    const { erp } = {
      erp: {
        storeId,
        system: 'generic',
        credentials: { baseUrl: system.credentials['baseUrl'], username: 'untag', password: 'geheim' },
      },
    }
    const synced = await store.ok('syncERP', erp)
    expect(synced).toMatchObject({
      synced: { stock: 9, orders: 4, suppliers: 2 },
      errorCount: 1,
      errors: [{ dataType: 'stock', index: 2, ean: '4000000000006', code: 'unknown_product' }],
    })
    const { stock } = await store.ok('fetchStock', { storeId })
    expect(stock.map((s: Json) => s.quantity).sort((a: number, b: number) => a - b)).toEqual([
      0, 7, 8, 9, 10, 11, 12, 13, 14,
    ])
    const { records, nextCursor } = await store.ok('fetchERPRecords', { storeId, dataType: 'orders', limit: 3 })
    expect(records[0]).toMatchObject({ externalId: '501', supplierId: '71', total: 100 })
    expect(
      (await store.ok('fetchERPRecords', { storeId, dataType: 'orders', cursor: nextCursor })).records,
    ).toHaveLength(1)
    expect((await store.ok('fetchERPRecords', { storeId, dataType: 'suppliers' })).records[1]).toMatchObject({
      externalId: '72',
      name: 'Lieferant 2',
    })
    expect((await store.events('integration.erp.synced')).at(-1)).toEqual({
      storeId,
      system: 'generic',
      synced: synced.synced,
      failed: 1,
    })
    expect(
      await store.ok('syncERP', {
        ...erp,
        records: [{ external_id: 'S-9', supplier_name: 'Neu' }],
        dataType: 'suppliers',
      }),
    ).toMatchObject({ synced: { suppliers: 1 } })
    expect((await rows('erp_record')).filter((row) => row.store_id === storeId)).toHaveLength(7)
  })

  it('writes records of the request with the merchant’s own field names', async () => {
    const storeId = await store.newStore()
    const records = [
      { sku: 4_006_381_333_931, names: { de: 'Marker' }, brutto: '1,99 €', steuer: '19 %', article_number: 'not this' },
      { barcode: '4012345678901', name: 'Schirm', price: 9.99, vat: 19 },
      { barcode: '4012345678901', name: 'Schirm', price: 9.99, vat: 19 },
      { barcode: '123', name: 'x', price: -1, vat: 19 },
    ]
    const mapping = { sku: 'ean', 'names.de': 'name', brutto: 'price', vat: 'steuer' }
    const answer = await store.ok('syncPOS', {
      storeId,
      system: 'custom',
      credentials: { baseUrl: 'https://till.example', mapping },
      records,
    })
    expect(answer).toMatchObject({ synced: { products: 2 }, errorCount: 2 })
    expect(answer.errors.map((e: Json) => [e.index, e.field, e.code])).toEqual([
      [2, 'ean', 'repeated'],
      [3, 'barcode', expect.any(String)],
      [3, 'price', 'too_small'],
    ])
    expect((await products(storeId)).map((p) => [p.ean, p.name, p.price, p.vat]).sort()).toEqual([
      ['4006381333931', 'Marker', 1.99, 19],
      ['4012345678901', 'Schirm', 9.99, 19],
    ])
  })

  it('reads deposits, also with the merchant’s field names', async () => {
    const storeId = await store.newStore()
    const sync = (record: Json, credentials?: Json) =>
      store.ok('syncPOS', {
        storeId,
        system: 'generic',
        records: [{ ean: '4012345678901', name: 'Cola 1 l', price: '1,19', vat: 7, ...record }],
        ...(credentials && { credentials }),
      })
    const product = async () => (await products(storeId)).find(({ ean }) => ean === '4012345678901')
    expect((await sync({ deposit: '0,25', depositVat: '19 %' })).errors).toEqual([])
    expect(await product()).toMatchObject({ price: 1.19, deposit: 0.25, depositVat: 19 })
    await sync(
      { pfand: 0.15, tax: { deposit: 0.07 } },
      { baseUrl: 'https://till.example', mapping: { pfand: 'deposit', 'tax.deposit': 'depositVat' } },
    )
    expect(await product()).toMatchObject({ deposit: 0.15, depositVat: 7 })
    expect((await sync({ deposit: 'viel' })).errors).toMatchObject([{ field: 'deposit' }])
    await sync({ deposit: '' })
    expect(await product()).toMatchObject({ deposit: 0.15, depositVat: 7 })
    await sync({ deposit: null, depositVat: null })
    expect(Object.keys((await product()) ?? {})).not.toContain('deposit')
  })

  it('clears an old price that the till removed or that is not above the new price', async () => {
    const storeId = await store.newStore()
    const sync = (record: Json, mapping?: Json) =>
      store.ok('syncPOS', {
        storeId,
        system: 'generic',
        records: [{ ean: '4012345678918', name: 'Schal', price: 19.95, vat: 19, ...record }],
        ...(mapping && { credentials: { baseUrl: 'https://till.example', mapping } }),
      })
    const prices = async () => {
      const { price, oldPrice } = (await products(storeId)).find(({ ean }) => ean === '4012345678918') ?? {}
      return [price, oldPrice]
    }
    await sync({ oldPrice: 29.95, brand: 'Deich' })
    await sync({})
    await sync({ oldPrice: '', brand: null })
    expect(await prices()).toEqual([19.95, 29.95])
    expect((await products(storeId))[0]).toMatchObject({ brand: 'Deich' })
    await sync({ price: 24.95 })
    expect(await prices()).toEqual([24.95, 29.95])
    await sync({ oldPrice: null, was: 29.95 }, { was: 'oldPrice' })
    expect(await prices()).toEqual([19.95, 29.95])
    await sync({ oldPrice: null })
    expect(await prices()).toEqual([19.95, undefined])
    for (const price of [29.95, 34.95]) {
      await sync({ oldPrice: 29.95 })
      await sync({ price })
      expect(await prices()).toEqual([price, undefined])
    }
    const [{ productId }] = (await products(storeId)) as [Json]
    expect((await store.ok('fetchProduct', { storeId: undefined, productId })).oldPrice).toBeUndefined()
    // Bulk imports clear it too.
    await sync({ oldPrice: 29.95 })
    await store.ok('bulkImportProducts', {
      storeId,
      products: [{ ean: '4012345678918', name: 'Schal', price: 30, vat: 19 }],
    })
    expect(await prices()).toEqual([30, undefined])
  })

  it('clears an old price that Shopify removed', async () => {
    const shop = await shopifySystem({ goods: vendorGoods(1) })
    const storeId = await store.newStore()
    const [goods] = shop.goods.products
    await store.ok('syncPOS', {
      storeId,
      system: 'generic',
      records: [{ ean: goods?.ean, name: 'Artikel 1', price: 1.99, oldPrice: 2.99, vat: 19 }],
    })
    await store.ok('syncPOS', { storeId, system: 'shopify', credentials: shop.credentials })
    expect((await products(storeId)).map(({ price, oldPrice }) => [price, oldPrice])).toEqual([[1.99, undefined]])
    await shop.close()
  })

  it('writes pushed records once, even if the call is repeated', async () => {
    await serve()
    const storeId = await store.newStore()
    await store.ok('syncPOS', { storeId, system: 'generic', credentials: system.credentials })
    const body = {
      storeId,
      system: 'generic',
      dataType: 'transactions',
      records: [{ transactionId: 't-1', total: 49.9 }, { total: 1 }],
    }
    const requestsBefore = system.requests.length
    system.faults.push('reset', 'rate_limit')
    const answer = await store.call('pushToPOS', body, { 'idempotency-key': 'push-1' })
    expect(answer.body).toMatchObject({
      system: 'generic',
      pushed: 1,
      errors: [{ dataType: 'transactions', index: 1, field: 'transactionId', code: 'missing' }],
    })
    const keys = system.requests.slice(requestsBefore).map(({ headers }) => headers['idempotency-key'])
    expect(keys).toHaveLength(3)
    expect(new Set(keys).size).toBe(1)
    expect(system.written).toEqual([
      { kind: 'transactions', key: keys[0], record: { transactionId: 't-1', total: 49.9 } },
    ])
    expect((await store.events('integration.pos.pushed')).at(-1)).toEqual({
      storeId,
      system: 'generic',
      dataType: 'transactions',
      pushed: 1,
      failed: 1,
    })

    // A crash lost the response: the repeated call sends the same key to the system.
    const { database } = store.cloud.db
    await database.write((db) => db.deleteFrom('idempotency').where('operation', '=', 'pushToPOS').execute())
    expect((await store.call('pushToPOS', body, { 'idempotency-key': 'push-1' })).text).toBe(answer.text)
    expect(system.written).toHaveLength(1)
    expect((await store.call('pushToERP', body)).status).toBe(409)
    for (const dataType of ['../admin', 'a/b', '', 'x?y'])
      expect((await store.call('pushToPOS', { ...body, dataType })).status).toBe(400)
  })

  it('returns mock counts in the sandbox, without requests and writes', async () => {
    await serve()
    const key = await store.cloud.key('secret', 'test')
    const { stores } = await store.cloud.ok(key, 'fetchStores')
    const { storeId } = stores[0]
    const callSandbox = (operation: string, body: Json) => store.cloud.ok(key, operation, { storeId, ...body })
    const total = (await store.cloud.ok(key, 'fetchProducts', { storeId })).total
    const credentials = { baseUrl: system.baseUrl, token: 't' }
    expect(await callSandbox('syncPOS', { system: 'generic', credentials })).toEqual({
      success: true,
      _sandbox: true,
      system: 'generic',
      synced: { products: 128, categories: 9, priceUpdates: 17 },
      errors: [],
      errorCount: 0,
    })
    expect(await callSandbox('syncERP', { system: 'generic', credentials })).toMatchObject({
      _sandbox: true,
      synced: { stock: 128, orders: 12, suppliers: 6 },
    })
    expect((await callSandbox('syncPOS', { system: 'generic', credentials: { url: 'x' } })).warnings).toEqual([
      expect.stringContaining('baseUrl'),
      expect.stringContaining('url'),
    ])
    expect(
      await callSandbox('syncPOS', {
        system: 'custom',
        records: [{ barcode: '4012345678901', name: 'x', price: 1, vat: 7 }, { barcode: 'x' }],
      }),
    ).toMatchObject({ synced: { products: 1 }, errorCount: 1 })
    expect(
      await callSandbox('pushToPOS', { system: 'shopify', dataType: 'transactions', records: [{ id: 1 }] }),
    ).toMatchObject({ _sandbox: true, system: 'shopify', pushed: 1, errors: [] })
    expect((await store.cloud.call(key, 'syncPOS', { storeId, system: 'generic' })).status).toBe(400)
    expect(system.requests).toEqual([])
    expect((await store.cloud.ok(key, 'fetchProducts', { storeId })).total).toBe(total)
    expect((await rows('integration_connection')).filter((row) => row.store_id === storeId)).toEqual([])
    expect((await store.events('integration.pos.pushed')).some((e) => e.storeId === storeId)).toBe(true)
    expect(
      await callSandbox('pushToERP', { system: 'odoo', dataType: 'transactions', records: [{ id: 1 }, { id: 2 }] }),
    ).toMatchObject({ _sandbox: true, system: 'odoo', pushed: 2 })
    expect((await store.events('integration.erp.pushed')).at(-1)).toEqual({
      storeId,
      system: 'odoo',
      dataType: 'transactions',
      pushed: 2,
    })
  })
})
