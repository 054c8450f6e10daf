import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeXlsxSheet } from '../../../../cloud/shop/catalogue/import/xlsx-sheet.ts'
import { COLUMNS } from '../../../../cloud/shop/catalogue/import/sheet.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'
import { formBody } from '../../../support/form-body.ts'

inFullSizeOnEveryDatabase('importProducts', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  async function send(
    file: Uint8Array | string,
    fields: Record<string, string> = {},
    headers: Record<string, string> = {},
    name = 'x.csv',
  ) {
    const form = new FormData()
    for (const [field, value] of Object.entries({ storeId: shop.storeId, ...fields })) form.set(field, value)
    form.set('file', new File([file as Uint8Array<ArrayBuffer>], name))
    const sent = await formBody(form)
    const response = await shop.cloud.cloud.app.request('/api/v1/importProducts', {
      method: 'POST',
      headers: { authorization: `Bearer ${shop.key}`, ...sent.headers, ...headers },
      body: sent.body,
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: (text.startsWith('{') ? JSON.parse(text) : undefined) as Json,
    }
  }
  const total = async () => (await shop.ok('fetchProducts', { storeId: shop.storeId, limit: 1 })).total as number
  const linesOf = (count: number) =>
    Array.from({ length: count }, (_, i) => `${newEan()},Artikel ${i},${(i / 100).toFixed(2)},7`)
  const csvOf = (lines: readonly string[]) => `ean,name,price,vat\n${lines.join('\n')}`
  const imports = async () =>
    (
      await shop.cloud.db.database.reads
        .selectFrom('outbox_event')
        .selectAll()
        .where('type', '=', 'product.bulk_imported')
        .execute()
    ).length

  it('imports a workbook in batches, reports progress, and responds like a bulk import', async () => {
    const [before, eventsBefore] = [await total(), await imports()]
    const rows = Array.from({ length: 1_200 }, (_, i) => [
      newEan(),
      `Produkt ${i}`,
      i / 100,
      19,
      'import',
      'Stück',
      'Lindwerk',
      null,
      i % 2 === 0,
      null,
    ])
    rows.push(['123', 'schlecht', -1, 7, null, null, null, null, null, null])
    const file = await writeXlsxSheet('Produkte', [COLUMNS, ...rows])
    const answer = await send(file, {}, { accept: 'text/event-stream' })
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
    const events = answer.text
      .trim()
      .split('\n\n')
      .map((block) => block.split('\n').map((line) => line.replace(/^\w+: /, '')) as [string, string])
    expect(events.map(([event]) => event)).toEqual(['progress', 'progress', 'progress', 'result'])
    expect(events.slice(0, 3).map(([, data]) => (JSON.parse(data) as Json).done)).toEqual([500, 1_000, 1_200])
    const result: Json = JSON.parse(events[3]?.[1] ?? '')
    expect(result).toMatchObject({
      success: true,
      imported: 1_200,
      updated: 0,
      rows: 1_201,
      dryRun: false,
      errorCount: 2,
    })
    expect(result.errors).toMatchObject([
      { index: 1_200, row: 1_202, ean: '123', field: 'ean' },
      { index: 1_200, row: 1_202, field: 'price' },
    ])
    expect([await total(), await imports()]).toEqual([before + 1_200, eventsBefore + 1])
    expect(await shop.ok('fetchProduct', { ean: rows[7]?.[0], storeId: shop.storeId })).toMatchObject({
      name: 'Produkt 7',
      price: 0.07,
      vat: 19,
      isOrganic: false,
      brand: 'Lindwerk',
    })
  })

  it('a dry run changes nothing, and the import then has the same result', async () => {
    const before = [await total(), await imports()]
    const file = csvOf([...linesOf(600), 'x,y,1,7'])
    const tried = await send(file, { dryRun: 'true' })
    expect(tried.body).toMatchObject({ imported: 600, updated: 0, rows: 601, dryRun: true, errorCount: 1 })
    expect([await total(), await imports()]).toEqual(before)
    expect((await send(file)).body).toEqual({ ...tried.body, dryRun: false })
    expect((await send(file, { dryRun: 'true' })).body).toMatchObject({ imported: 600, updated: 600 })
    expect((await send(file)).body).toMatchObject({ imported: 600, updated: 600 })
  })

  it('rejects an unusable file and imports nothing of it', async () => {
    const before = [await total(), await imports()]
    const answer = await send(csvOf(linesOf(10_001)), {}, { accept: 'text/event-stream' })
    expect(answer).toMatchObject({
      status: 400,
      body: { code: 'invalid-argument', details: [{ path: 'file', code: 'too_many_rows' }] },
    })
    expect((await send('hello')).body.details[0].code).toBe('no_header')
    expect((await send(csvOf(linesOf(1)), { storeId: 'st_x' })).status).toBe(404)
    expect((await send(csvOf(linesOf(1)), { dryRun: 'maybe' })).status).toBe(400)
    expect((await send(new Uint8Array(21 * 1024 * 1024))).status).toBe(413)
    expect((await shop.call('importProducts', { storeId: shop.storeId })).status).toBe(415)
    expect(
      (await shop.cloud.sendForm(shop.key, 'importProducts', { storeId: shop.storeId })).body.details[0],
    ).toMatchObject({ path: 'file' })
    expect([await total(), await imports()]).toEqual(before)
  })

  it('runs once per Idempotency-Key', async () => {
    const file = csvOf(linesOf(3))
    const [before, key] = [await imports(), `key-${newEan()}`]
    const [first, second] = [
      await send(file, {}, { 'idempotency-key': key }),
      await send(file, {}, { 'idempotency-key': key }),
    ]
    expect([second.status, second.text, second.headers.get('idempotency-replayed')]).toEqual([200, first.text, 'true'])
    expect(await imports()).toBe(before + 1)
    expect((await send(csvOf(linesOf(3)), {}, { 'idempotency-key': key })).status).toBe(409)
  })

  it('imports 10,000 rows', async () => {
    const before = await total()
    expect((await send(csvOf(linesOf(10_000)))).body).toMatchObject({ imported: 10_000, errorCount: 0 })
    expect(await total()).toBe(before + 10_000)
  })

  it('returns templates that can be imported', async () => {
    const csv = await shop.cloud.get('/templates/products.csv')
    expect(csv.headers.get('content-disposition')).toContain('products.csv')
    const xlsx = await shop.cloud.cloud.app.request('/templates/products.xlsx')
    for (const file of [csv.text, new Uint8Array(await xlsx.arrayBuffer())])
      expect((await send(file, { dryRun: 'true' })).body).toMatchObject({ imported: 1, errorCount: 0 })
  })

  it('logs no error', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
