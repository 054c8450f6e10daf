import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { codeSamples } from '../../../../cloud/service/description/code-samples.ts'
import { fieldsOf } from '../../../../cloud/service/description/fields.ts'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'

const PATHS = ['/openapi.json', '/postman.json', '/llms.txt', '/llms-full.txt', '/docs']
const operations = [...OPERATION_TABLE.values()]

describe('API documents', () => {
  let cloud: TestCloud
  beforeAll(async () => {
    cloud = await startTestCloud('sqlite')
  })
  afterAll(() => cloud.stop())

  it.each(PATHS)('%s is compressed, and sent only once to a client that caches it', async (path) => {
    const plain = await cloud.cloud.app.request(path)
    const packed = await cloud.cloud.app.request(path, { headers: { 'accept-encoding': 'br, gzip;q=0.8' } })
    expect([plain.headers.get('content-encoding'), packed.headers.get('content-encoding')]).toEqual([null, 'gzip'])
    expect(gunzipSync(await packed.arrayBuffer()).toString()).toBe(await plain.text())
    expect(packed.headers.get('etag')).not.toBe(plain.headers.get('etag'))
    for (const response of [plain, packed]) expect(response.headers.get('vary')).toBe('accept-encoding')
    for (const etag of [
      plain.headers.get('etag'),
      `W/${plain.headers.get('etag')}`,
      `"x", ${plain.headers.get('etag')}`,
      '*',
    ]) {
      const again = await cloud.cloud.app.request(path, { headers: { 'if-none-match': etag ?? '' } })
      expect([again.status, await again.text()]).toEqual([304, ''])
    }
    expect(
      (await cloud.cloud.app.request(path, { headers: { 'if-none-match': '"other"', 'accept-encoding': 'gzip;q=0' } }))
        .status,
    ).toBe(200)
    expect(
      (await cloud.cloud.app.request(path, { headers: { 'accept-encoding': 'gzip;q=0' } })).headers.get(
        'content-encoding',
      ),
    ).toBeNull()
    expect((await cloud.cloud.app.request(path, { method: 'HEAD' })).status).toBe(200)
    expect((await cloud.cloud.app.request(path, { method: 'POST' })).status).toBe(404)
  })

  it('as plain text name every operation; the long version contains all fields', async () => {
    const [short, long] = [(await cloud.get('/llms.txt')).text, (await cloud.get('/llms-full.txt')).text]
    expect(short).toMatch(/^# untag\n\n> .+\n/)
    for (const { name, summary } of operations) {
      expect(short).toContain(`- [${name}](https://shop.example/docs#${name}): ${summary}\n`)
      expect(long).toContain(`\n### ${name}\n\n${summary}\n`)
    }
    expect(long).toContain('- `items` CheckoutLine[]: required; 1–500 items')
    expect(long).toMatch(/\n### Product\n\n- `productId` string: required/)
    for (const text of [short, long]) expect(text).not.toMatch(/undefined|\[object|NaN/)
    expect(short.length).toBeLessThan(26_000)
  })

  it('as a Postman collection contain every operation in the folder of its area', async () => {
    const { info, variable, auth, item } = (await cloud.get('/postman.json')).body
    expect(info.schema).toBe('https://schema.getpostman.com/json/collection/v2.1.0/collection.json')
    expect(variable).toEqual([
      expect.objectContaining({ key: 'baseUrl', value: 'https://shop.example/api/v1' }),
      expect.objectContaining({ key: 'key', value: '' }),
    ])
    expect(auth).toEqual({ type: 'bearer', bearer: [{ key: 'token', value: '{{key}}', type: 'string' }] })
    const requests = new Map<string, Json>(
      item.flatMap((folder: Json) => folder.item.map((each: Json) => [each.name, { ...each, folder: folder.name }])),
    )
    expect([...requests.keys()].sort()).toEqual(operations.map((o) => o.name).sort())
    for (const operation of operations) {
      const { folder, request, response } = requests.get(operation.name)
      expect([folder, request.method, request.url.host, request.url.path]).toEqual([
        operation.area,
        operation.getOnly ? 'GET' : 'POST',
        ['{{baseUrl}}'],
        [operation.name],
      ])
      if (request.body?.mode === 'raw')
        expect(operation.request.safeParse(JSON.parse(request.body.raw)).success).toBe(true)
      expect(request.auth?.type).toBe(operation.callers.includes('anyone') ? 'noauth' : undefined)
      expect(operation.response.safeParse(JSON.parse(response[0].body)).success).toBe(true)
    }
  })
})

describe('documentation parts', () => {
  it('show type, limits and need of every field', () => {
    const components = {
      Line: { type: 'object', required: ['ean'], properties: { ean: { type: 'string', minLength: 8, maxLength: 13 } } },
    }
    const schema = {
      type: 'object',
      required: ['id', 'lines'],
      properties: {
        id: { type: 'string', description: 'An opaque id, 1–128 printable characters.' },
        lines: { type: 'array', minItems: 1, maxItems: 500, items: { $ref: '#/components/schemas/Line' } },
        lat: { type: 'number', minimum: -90, maximum: 90 },
        radius: { type: 'number', minimum: 0, exclusiveMinimum: true, nullable: true },
        vat: { type: 'number', enum: [7, 19] },
        prices: { type: 'object', additionalProperties: { type: 'number' } },
        note: { type: 'string', maxLength: 250, description: 'For people.' },
        kinds: { type: 'array', items: { type: 'string', enum: ['a', 'b'] } },
      },
    }
    const row = (expand: boolean) =>
      fieldsOf(schema, components, expand).map((f) =>
        [f.name, f.type, f.required, f.limits, f.description, f.refersTo].filter(
          (x) => x !== '' && x !== undefined && x !== false,
        ),
      )
    const common = [
      ['lat', 'number', '-90 to 90'],
      ['radius', 'number | null', '> 0'],
      ['vat', '7 | 19'],
      ['prices', 'map of number'],
      ['note', 'string', '≤ 250 characters', 'For people.'],
      ['kinds', '(a | b)[]'],
    ]
    expect(row(false)).toEqual([['id', 'id', true], ['lines', 'Line[]', true, '1–500 items', 'Line'], ...common])
    expect(row(true)).toEqual([
      ['id', 'id', true],
      ['lines', 'object[]', true, '1–500 items'],
      ['lines[].ean', 'string', true, '8–13 characters'],
      ...common,
    ])
  })

  it('show calls that are valid in a shell, TypeScript and Python', () => {
    const { fetchProducts } = Object.fromEntries(OPERATION_TABLE) as Json
    const odd = { ...fetchProducts, example: { category: "Kids' “wear” \\ 10", isOpen: true, gone: null, 'x-y': [1] } }
    const [curl, typescript, python] = codeSamples(odd, 'https://shop.example/api/v1').map((s) => s.code)
    expect(curl).toContain(String.raw`-d '{"category":"Kids'\'' “wear” \\ 10","isOpen":true,"gone":null,"x-y":[1]}'`)
    expect(typescript).toContain(
      String.raw`untag.fetchProducts({ category: 'Kids\' “wear” \\ 10', isOpen: true, gone: null, 'x-y': [1] })`,
    )
    expect(python).toContain(
      String.raw`json={"category": "Kids' “wear” \\ 10", "isOpen": True, "gone": None, "x-y": [1]}`,
    )
  })
})
