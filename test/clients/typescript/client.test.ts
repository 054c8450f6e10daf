import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest'
import { isGet, mayChange } from '../../../clients/typescript/exchange.ts'
import {
  createClient,
  UntagError,
  type AnswerOf,
  type ClientPlatform,
  type RequestOf,
  listIn,
} from '../../../clients/typescript/client.ts'
import { exampleAnswer } from '../../../cloud/service/description/examples.ts'
import { describeApi } from '../../../cloud/service/description/openapi.ts'
import { OPERATION_TABLE } from '../../../cloud/service/operation-table.ts'
import { newEpc, openShop, type Shop } from '../../support/shop.ts'

const BASE_URL = 'https://shop.example/api/v1'
const OK = { success: true }

interface Sent {
  url: string
  init: RequestInit
  headers: Headers
}

type Reply = Response | Error | 'never'

/** A platform in which waiting takes no time. It records requests and delays, and answers with `replies`. */
function world(replies: Reply[] = []) {
  const sent: Sent[] = []
  const waited: number[] = []
  let nowMs = 1_795_165_200_000
  let serial = 0
  const platform: ClientPlatform = {
    fetch(url, init) {
      sent.push({ url, init, headers: new Headers(init.headers) })
      const reply = replies.shift() ?? answer(OK)
      if (reply === 'never')
        return new Promise((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
      return reply instanceof Error ? Promise.reject(reply) : Promise.resolve(reply)
    },
    now: () => nowMs,
    after(ms, task) {
      // Timers of 25 s and more are timeouts of attempts and never fire. Shorter timers are delays and fire at once.
      if (ms < 25_000) {
        waited.push(ms)
        queueMicrotask(() => ((nowMs += ms), task()))
      }
      return () => undefined
    },
    random: () => 0.5,
    unique: () => `key-${++serial}`,
  }
  return {
    sent,
    waited,
    platform,
    client: (more: object = {}) => createClient({ baseUrl: `${BASE_URL}/`, key: 'untag_test_sk_x', platform, ...more }),
  }
}

function answer(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(typeof body === 'string' ? body : JSON.stringify(body), {
    status,
    headers: { 'x-request-id': 'req_1', ...headers },
  })
}

const busy = (headers: Record<string, string> = {}) =>
  answer({ error: 'too many requests', code: 'resource-exhausted', requestId: 'req_2' }, 429, headers)

describe('the client', () => {
  it('sends JSON, and an Idempotency-Key with calls that may change something', async () => {
    const { sent, client } = world()
    const api = client()
    await api.fetchStores({ city: 'Hamburg' })
    await api.checkIn({ storeId: 'st_1' })
    await api.checkIn({ storeId: 'st_1' }, { idempotencyKey: 'mine' })
    await api.getReceiptFromToken({ token: 'A&B=C' })
    expect(
      sent.map(({ url, init, headers }) => [
        init.method,
        url,
        headers.get('authorization'),
        headers.get('idempotency-key'),
        init.body ?? null,
      ]),
    ).toEqual([
      ['POST', `${BASE_URL}/fetchStores`, 'Bearer untag_test_sk_x', null, '{"city":"Hamburg"}'],
      ['POST', `${BASE_URL}/checkIn`, 'Bearer untag_test_sk_x', 'key-1', '{"storeId":"st_1"}'],
      ['POST', `${BASE_URL}/checkIn`, 'Bearer untag_test_sk_x', 'mine', '{"storeId":"st_1"}'],
      ['GET', `${BASE_URL}/getReceiptFromToken?token=A%26B%3DC`, 'Bearer untag_test_sk_x', null, null],
    ])
  })

  it('returns a CSV or NDJSON export as text', async () => {
    const csv = 'transactionId\r\npur_1\r\n'
    const { sent, client } = world([
      answer(csv, 200, { 'content-type': 'text/csv; charset=utf-8' }),
      answer('{"a":1}\n{"a":2}\n', 200, { 'content-type': 'application/x-ndjson' }),
      answer({ ...OK, sales: [] }),
    ])
    const api = client()
    const text = await api.exportSalesData({ from: '2026-11-01', to: '2026-11-30', format: 'csv' })
    expectTypeOf(text).toEqualTypeOf<string>()
    expect(text).toBe(csv)
    expect(await api.exportEpcisEvents({ storeId: 'st_1', format: 'ndjson' })).toBe('{"a":1}\n{"a":2}\n')
    const json = await api.exportSalesData({ from: '2026-11-01', to: '2026-11-30' })
    expectTypeOf(json).toEqualTypeOf<AnswerOf<'exportSalesData'>>()
    expect(json.sales).toEqual([])
    expect(sent.map(({ init }) => JSON.parse(String(init.body)).format)).toEqual(['csv', 'ndjson', undefined])
  })

  it('retries 429, 503 and broken connections with the same Idempotency-Key and growing delays, then gives up', async () => {
    const { sent, waited, client } = world([
      busy(),
      answer('', 503),
      new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } }),
    ])
    expect(await client().checkIn({ storeId: 'st_1' })).toEqual(OK)
    expect(new Set(sent.map((s) => s.headers.get('idempotency-key')))).toEqual(new Set(['key-1']))
    expect(waited).toEqual([125, 250, 500])
    const hopeless = world([busy(), busy(), busy(), busy(), busy()])
    await expect(hopeless.client().fetchStores()).rejects.toMatchObject({
      name: 'UntagError',
      status: 429,
      code: 'resource-exhausted',
      requestId: 'req_2',
    })
    expect(hopeless.sent.length).toBe(4)
    const impatient = world([busy()])
    await expect(impatient.client({ retry: { retries: 0 } }).fetchStores()).rejects.toBeInstanceOf(UntagError)
  })

  it('retries until an attempt that lost its connection has a response', async () => {
    const running = answer(
      {
        error: 'the same request is still running: try again after Retry-After',
        code: 'already-exists',
        reason: 'idempotency_in_progress',
        requestId: 'req_3',
      },
      409,
      { 'retry-after': '5' },
    )
    const { sent, waited, client } = world([new TypeError('fetch failed', { cause: { code: 'ECONNRESET' } }), running])
    expect(
      await client().startCheckout({ sessionId: 'ses_1', items: [{ ean: '4012345678901', quantity: 1 }] }),
    ).toEqual(OK)
    expect(sent.map((s) => s.headers.get('idempotency-key'))).toEqual(['key-1', 'key-1', 'key-1'])
    expect(waited).toEqual([125, 5_125])
    const used = answer(
      { error: 'used', code: 'already-exists', reason: 'idempotency_key_reused', requestId: 'req_4' },
      409,
    )
    await expect(world([used]).client().checkIn({ storeId: 'st_1' })).rejects.toMatchObject({
      status: 409,
      reason: 'idempotency_key_reused',
    })
  })

  it('continues by cursor after a first page with an offset', async () => {
    const { sent, client } = world([
      answer({ ...OK, products: [1], total: 9, nextCursor: 'prd_1' }),
      answer({ ...OK, products: [2], total: 9 }),
    ])
    const found: unknown[] = []
    for await (const product of client().pages('fetchProducts', { storeId: 'st_1', offset: 7 })) found.push(product)
    expect(found).toEqual([1, 2])
    expect(sent.map(({ init }) => JSON.parse(String(init.body)))).toEqual([
      { storeId: 'st_1', offset: 7 },
      { storeId: 'st_1', cursor: 'prd_1' },
    ])
  })

  it('waits as long as Retry-After requires, up to a limit', async () => {
    const { waited, client } = world([
      busy({ 'retry-after': '2' }),
      busy({ 'retry-after': new Date(1_795_165_200_000 + 2_125 + 3_000).toUTCString() }),
    ])
    await client().fetchStores()
    expect(waited[0]).toBe(2_125)
    expect(waited[1]).toBeGreaterThan(2_000)
    expect(waited[1]).toBeLessThan(3_500)
    const long = world([busy({ 'retry-after': '3600' })])
    await expect(long.client().fetchStores()).rejects.toMatchObject({ retryAfterMs: 3_600_000 })
    expect(long.waited).toEqual([])
  })

  it('does not retry a rejected call, and throws the reason', async () => {
    const body = {
      error: 'price: must be …',
      code: 'invalid-argument',
      reason: 'x',
      details: [{ path: 'price', code: 'invalid', message: 'm' }],
      allowedNext: ['a'],
      requestId: 'req_9',
      requiredUpgrade: 'GROW',
      currentPackage: 'GO',
    }
    const { sent, client } = world([answer(body, 400)])
    const error = await client()
      .fetchStores()
      .catch((caught: unknown) => caught)
    expect(error).toBeInstanceOf(UntagError)
    const { error: message, ...fields } = body
    expect(error).toMatchObject({ message, status: 400, ...fields })
    expect(sent.length).toBe(1)
    await expect(
      world([answer('<html>', 404)])
        .client()
        .fetchStores(),
    ).rejects.toMatchObject({ status: 404, code: 'not-found', requestId: 'req_1' })
    await expect(
      world([answer('<html>', 200)])
        .client()
        .fetchStores(),
    ).rejects.toMatchObject({ code: 'bad-answer' })
  })

  it('reads an endless answer only up to its limit', async () => {
    let parts = 0
    const endless = () => {
      const body = new ReadableStream<Uint8Array>({
        pull(to) {
          parts++
          to.enqueue(new Uint8Array(1_048_576).fill(0x20))
        },
      })
      return new Response(body)
    }
    await expect(world([endless()]).client().fetchStores()).rejects.toMatchObject({
      code: 'bad-answer',
      message: 'the answer is too large',
    })
    expect(parts).toBeLessThan(80)
  })

  it.each(['timeout', 'signal'])(
    'ends an endless body at its %s, also of a fetch that ignores the signal',
    async (by) => {
      const { platform } = world([
        new Response(new ReadableStream({ start: (body) => body.enqueue(new Uint8Array(1)) })),
      ])
      const calling = new AbortController()
      const client = createClient({
        baseUrl: BASE_URL,
        retry: { retries: 0 },
        platform: {
          ...platform,
          after: (ms, task) => {
            // After the first bytes of the body.
            if (ms === 30_000) setImmediate(by === 'timeout' ? task : () => calling.abort(new Error('enough')))
            return () => undefined
          },
        },
      })
      const ended = client.fetchStores({}, { timeoutMs: 30_000, signal: calling.signal })
      await expect(ended).rejects.toMatchObject(by === 'timeout' ? { code: 'timeout' } : { message: 'enough' })
    },
  )

  it('ends a call at its signal or its timeout', async () => {
    const reason = new Error('enough')
    const calling = new AbortController()
    const waiting = world(['never']).client().fetchStores({}, { signal: calling.signal })
    calling.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    await expect(
      world()
        .client()
        .fetchStores({}, { signal: AbortSignal.abort(reason) }),
    ).rejects.toBe(reason)
    const late = world(['never'])
    await expect(late.client({ retry: { retries: 0 } }).fetchStores({}, { timeoutMs: 10 })).rejects.toMatchObject({
      code: 'timeout',
      status: 0,
    })
    const pausing = new AbortController()
    const { platform } = world([busy()])
    const stuck = createClient({
      baseUrl: BASE_URL,
      platform: { ...platform, after: () => () => pausing.abort(reason) },
    }).fetchStores({}, { signal: pausing.signal })
    await expect(stuck).rejects.toBe(reason)
  })

  it('is no promise, and has only methods with names of operations', async () => {
    const api = world().client()
    expect(await Promise.resolve(api)).toBe(api)
    expect((api as unknown as Record<string, unknown>)['then']).toBeUndefined()
    expect(api.fetchStores).toBe(api.fetchStores)
    expect(JSON.stringify(api)).toBe('{}')
  })

  it('has typed requests and responses', () => {
    const api = world().client()
    expectTypeOf(api.fetchProducts).parameter(0).toEqualTypeOf<RequestOf<'fetchProducts'> | undefined>()
    expectTypeOf<RequestOf<'fetchStore'>['storeId']>().toEqualTypeOf<string>()
    expectTypeOf<AnswerOf<'fetchProducts'>['products'][number]['vat']>().toEqualTypeOf<7 | 19>()
    expectTypeOf<AnswerOf<'fetchPurchase'>['status']>().toEqualTypeOf<
      'CREATED' | 'PENDING_PAYMENT' | 'SUCCESS' | 'UNLOADED' | 'CANCELLED'
    >()
    expectTypeOf<NonNullable<RequestOf<'uploadImageToProduct'>['snapshot']>>().toEqualTypeOf<Blob>()
    expectTypeOf(api.pages('fetchProducts', {})).toEqualTypeOf<
      AsyncGenerator<AnswerOf<'fetchProducts'>['products'][number], void, undefined>
    >()
    const parameters = (operation: 'noSuchOperation') => operation
    expectTypeOf(parameters).parameter(0).not.toExtend<keyof typeof api>()
  })
})

describe('the operation rules of the client', () => {
  const operations = [...OPERATION_TABLE.values()]
  const { operations: described, components } = describeApi(OPERATION_TABLE, BASE_URL)

  it('match the table of operations', () => {
    for (const { name, changes, getOnly } of operations)
      expect(
        { name, mayChange: mayChange(name), isGet: isGet(name) },
        'clients/typescript/exchange.ts takes an operation for one that changes or only reads by its name; list exceptions there',
      ).toEqual({ name, mayChange: changes, isGet: getOnly })
  })

  it('find the list of every paged operation', () => {
    const paged = described.filter(
      ({ operation }) => 'nextCursor' in ((operation.response as unknown as { shape?: object }).shape ?? {}),
    )
    expect(paged.length).toBeGreaterThan(3)
    for (const { operation, response } of paged) {
      expect([
        operation.name,
        listIn(exampleAnswer(response, components, {}) as Record<string, unknown>).length,
      ]).toEqual([operation.name, 1])
    }
  })
})

describe('the client at a cloud', () => {
  let shop: Shop
  let api: ReturnType<typeof createClient>
  beforeAll(async () => {
    shop = await openShop('sqlite')
    api = createClient({
      baseUrl: BASE_URL,
      key: shop.key,
      platform: {
        fetch: async (url, init) => shop.cloud.cloud.app.request(new URL(url).pathname + new URL(url).search, init),
      },
    })
  })
  afterAll(() => shop.stop())

  it('completes a purchase, reads its receipt and requests a release', async () => {
    const { sessionId } = await api.checkIn({ storeId: shop.storeId })
    const { transactionId } = await api.startCheckout({
      sessionId,
      items: [{ ean: shop.products[0].ean, quantity: 1 }],
    })
    expect((await api.completeTestCheckout({ transactionId })).status).toBe('SUCCESS')
    const { token } = await api.generateReceiptQR({ purchaseId: transactionId })
    const anyone = createClient({
      baseUrl: BASE_URL,
      platform: {
        fetch: async (url, init) => shop.cloud.cloud.app.request(url.replace('https://shop.example', ''), init),
      },
    })
    expect((await anyone.getReceiptFromToken({ token })).id).toBe(transactionId)
    const { authorized, reason } = await api.verifyProtectedItem({
      deviceId: shop.devices.exit_gate,
      protectionAction: 'authorize_exit',
      epc: newEpc(),
    })
    expect([authorized, reason]).toEqual([false, 'item_unknown'])
  })

  it('yields the items of all pages from any cursor or offset', async () => {
    const all: string[] = []
    for await (const product of api.pages('fetchProducts', { storeId: shop.storeId, limit: 7 }))
      all.push(product.productId)
    const { total, products, nextCursor } = await api.fetchProducts({ storeId: shop.storeId, limit: 7 })
    expect(new Set(all).size).toBe(total)
    expect(all.slice(0, 7)).toEqual(products.map((p) => p.productId))
    const rest: string[] = []
    for await (const { productId } of api.pages('fetchProducts', {
      storeId: shop.storeId,
      limit: 500,
      cursor: nextCursor,
    }))
      rest.push(productId)
    expect(rest).toEqual(all.slice(7))
  })

  it('throws the reason of a rejection', async () => {
    await expect(api.fetchStore({ storeId: 'st_nobody' })).rejects.toMatchObject({
      status: 404,
      code: 'not-found',
      requestId: expect.stringMatching(/^req_/),
    })
    await expect(api.startCheckout({ sessionId: 'ses_x', items: [] })).rejects.toMatchObject({
      details: [{ path: 'items' }],
    })
  })

  it('sends files as forms', async () => {
    const image = new Blob(
      [
        Buffer.from(
          'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
          'base64',
        ),
      ],
      { type: 'image/png' },
    )
    const { imageUrl, width } = await api.uploadImageToProduct({
      productId: shop.products[0].productId,
      snapshot: image,
    })
    expect([imageUrl, width]).toEqual([expect.stringContaining('/images/'), 1])
  })
})
