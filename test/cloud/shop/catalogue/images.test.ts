import sharp from 'sharp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Answer, Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { formBody } from '../../../support/form-body.ts'

const picture = (width = 40, height = 30) =>
  sharp({ create: { width, height, channels: 3, background: { r: 200, g: 30, b: 60 } } })
/** A PNG that states its size but contains no picture. */
function pngOf(width: number, height: number): Buffer {
  const head = Buffer.from('89504e470d0a1a0a0000000d494844520000000000000000080200000000000000', 'hex')
  head.writeUInt32BE(width, 16)
  head.writeUInt32BE(height, 20)
  return head
}

inFullSizeOnEveryDatabase('pictures of products', (kind) => {
  let shop: Shop
  let key: string
  let productId: string
  let jpeg: Buffer
  beforeAll(async () => {
    shop = await openShop(kind)
    key = shop.key
    productId = shop.products[0].productId
    jpeg = await picture()
      .withExif({ IFD0: { Copyright: 'secret place' } })
      .jpeg()
      .toBuffer()
  })
  afterAll(() => shop.cloud.stop())

  const json = (body: Json, headers: Record<string, string> = {}) =>
    shop.cloud.call(key, 'uploadImageToProduct', body, headers)
  async function form(fields: Record<string, string | Blob>, path = 'uploadImageToProduct'): Promise<Answer> {
    const data = new FormData()
    for (const [name, value] of Object.entries(fields)) data.set(name, value)
    const { body, headers } = await formBody(data)
    const answer = await shop.cloud.cloud.app.request(`/api/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, ...headers },
      body,
    })
    const text = await answer.text()
    return { status: answer.status, text, body: JSON.parse(text), headers: answer.headers }
  }
  const blob = (bytes: Uint8Array) => new Blob([bytes as Uint8Array<ArrayBuffer>])

  it('accepts JSON, multipart and the upload address, and serves images without metadata', async () => {
    const one = await json({ productId, imageBase64: jpeg.toString('base64') })
    expect(one.body).toMatchObject({ success: true, productId, width: 40, height: 30 })
    const two = await form({ productId, snapshot: blob(jpeg) })
    expect(two.body).toMatchObject({ imageUrl: one.body.imageUrl, media: { snapshot: one.body.imageUrl } })
    expect((await form({ productId, snapshot: blob(jpeg) }, 'upload')).body.imageUrl).toBe(one.body.imageUrl)
    expect(
      (await json({ productId, imageBase64: `data:image/jpeg;base64,${jpeg.toString('base64')}` })).body.imageUrl,
    ).toBe(one.body.imageUrl)

    const { pathname } = new URL(one.body.imageUrl)
    const served = await shop.cloud.cloud.app.request(pathname)
    expect(served.headers.get('content-type')).toBe('image/jpeg')
    expect(served.headers.get('x-content-type-options')).toBe('nosniff')
    expect(served.headers.get('cache-control')).toContain('immutable')
    const bytes = Buffer.from(await served.arrayBuffer())
    expect(jpeg.includes('secret place')).toBe(true)
    expect(bytes.includes('secret place')).toBe(false)
    expect(
      (await shop.cloud.cloud.app.request(pathname, { headers: { 'if-none-match': served.headers.get('etag') ?? '' } }))
        .status,
    ).toBe(304)
    expect(await shop.cloud.ok(key, 'fetchProduct', { productId })).toMatchObject({ imageUrl: one.body.imageUrl })
  })

  it('rotates photos upright, scales them down, and accepts PNG and WebP', async () => {
    const sideways = await picture(60, 20).withExif({}).withMetadata({ orientation: 6 }).jpeg().toBuffer()
    expect((await json({ productId, imageBase64: sideways.toString('base64') })).body).toMatchObject({
      width: 20,
      height: 60,
    })
    const large = await picture(4_000, 1_000).png().toBuffer()
    expect((await form({ productId, snapshot: blob(large) })).body).toMatchObject({
      width: 2_048,
      height: 512,
      imageUrl: expect.stringMatching(/\.png$/),
    })
    const webp = await picture().webp().toBuffer()
    expect((await form({ productId, snapshot: blob(webp) })).body.imageUrl).toMatch(/\.webp$/)
  })

  it.each<[string, () => Buffer | Promise<Buffer>, number, string]>([
    ['nothing', () => Buffer.alloc(0), 400, 'snapshot'],
    ['text', () => Buffer.from('hello'), 400, 'must be a JPEG'],
    [
      'SVG',
      () => Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>'),
      400,
      'must be a JPEG',
    ],
    ['GIF', () => picture().gif().toBuffer(), 400, 'must be a JPEG'],
    ['half a JPEG', async () => (await picture(400, 400).jpeg().toBuffer()).subarray(0, 500), 400, 'damaged'],
    ['a PNG of 65,000 × 65,000', () => pngOf(65_000, 65_000), 400, 'snapshot'],
    ['a picture of 20,000 × 10', () => picture(20_000, 10).png().toBuffer(), 400, '16384 pixels'],
    [
      '17 progressive megapixels',
      () => picture(4_200, 4_050).jpeg({ progressive: true }).toBuffer(),
      400,
      'progressive',
    ],
    ['41 megapixels', () => picture(6_500, 6_400).png().toBuffer(), 400, 'megapixels'],
    [
      'over 8 MiB',
      () => Buffer.concat([Buffer.from([0xff, 0xd8, 0xff]), Buffer.alloc(8 * 1024 * 1024)]),
      413,
      'at most',
    ],
    ['far over 8 MiB', () => Buffer.alloc(9 * 1024 * 1024), 413, 'larger'],
  ])('rejects %s', async (_, make, status, words) => {
    const before = await shop.cloud.ok(key, 'fetchProduct', { productId })
    const answer = await form({ productId, snapshot: blob(await make()) })
    expect(answer.status, answer.text).toBe(status)
    expect(answer.body.error).toContain(words)
    expect(await shop.cloud.ok(key, 'fetchProduct', { productId })).toEqual(before)
  })

  it.each<[string, Json]>([
    ['no picture', {}],
    ['a number', { imageBase64: 7 }],
    ['no Base64', { imageBase64: 'é!' }],
    ['a file in JSON', { snapshot: { name: 'x', bytes: {} } }],
    ['an unknown field', { imageBase64: 'aaaa', images: 1 }],
  ])('rejects JSON with %s', async (_, body) => {
    expect((await json({ productId, ...body })).status).toBe(400)
  })

  it('rejects malformed forms', async () => {
    const send = (type: string, body: string) =>
      shop.cloud.cloud.app.request('/api/v1/upload', {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': type },
        body,
      })
    for (const [type, body] of [
      ['multipart/form-data', 'x'],
      ['multipart/form-data; boundary=abcd', 'x'],
      ['multipart/form-data; boundary=abcd', '--abcd\r\n\r\n'],
      [
        'multipart/form-data; boundary=abcd',
        '--abcd\r\nContent-Disposition: form-data; name="snapshot"\r\n\r\nx\r\n--abcd--\r\n',
      ],
      [
        'multipart/form-data; boundary=abcd',
        `${'--abcd\r\nContent-Disposition: form-data; name="x"\r\n\r\nx\r\n'.repeat(60)}--abcd--\r\n`,
      ],
    ] as const) {
      expect((await send(type, body)).status, body.slice(0, 80)).toBe(400)
    }
    expect((await send('text/plain', 'x')).status).toBe(415)
  })

  it('responds to another account’s product as to an unknown one', async () => {
    const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger' })
    const imageBase64 = jpeg.toString('base64')
    const [foreign, unknown] = await Promise.all([
      shop.cloud.call(stranger, 'uploadImageToProduct', { productId, imageBase64 }),
      shop.cloud.call(stranger, 'uploadImageToProduct', { productId: 'prd_x', imageBase64 }),
    ])
    expect([foreign.status, foreign.body.error]).toEqual([404, unknown.body.error])
  })

  it('returns the same response for the same Idempotency-Key, and rejects it with another image', async () => {
    const body = { productId, imageBase64: jpeg.toString('base64') }
    const first = await json(body, { 'idempotency-key': 'picture-1' })
    const again = await json(body, { 'idempotency-key': 'picture-1' })
    expect(again.text).toBe(first.text)
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(
      (await json({ ...body, productId: shop.products[1].productId }, { 'idempotency-key': 'picture-1' })).body.reason,
    ).toBe('idempotency_key_reused')
    for (const name of ['x.jpg', '../keys/root.json', `${'a'.repeat(43)}.svg`, `${'a'.repeat(43)}.jpg`]) {
      expect((await shop.cloud.cloud.app.request(`/images/${encodeURIComponent(name)}`)).status).toBe(404)
    }
  })
})

describe('progress as server-sent events', () => {
  it('returns an error before the first progress event as a normal response', async () => {
    const shop = await openShop('sqlite')
    const answer = await shop.cloud.call(
      shop.key,
      'uploadImageToProduct',
      { productId: 'prd_x', imageBase64: 'aaaa' },
      { accept: 'text/event-stream' },
    )
    expect([answer.status, answer.headers.get('content-type')]).toEqual([404, 'application/json'])
    await shop.cloud.stop()
  })
})
