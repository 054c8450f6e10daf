import fc from 'fast-check'
import { createServer, request as nodeRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { impinjEvent } from '../../device-drivers/impinj-iot/protocol/requests.ts'
import {
  encodeChunk,
  encodeRequest,
  encodeResponse,
  HttpParser,
  type HttpPiece,
} from '../../device-drivers/kit/protocol/http-message.ts'
import { jsonLines, readJson, textOfBytes } from '../../device-drivers/kit/protocol/json-lines.ts'
import { utcUsOf } from '../../device-drivers/kit/protocol/tag-sighting.ts'
import { restClient } from '../../device-drivers/kit/http/rest-client.ts'
import { openLink } from '../../device-drivers/transports/link-settings.ts'
import { SharedLinks } from '../../device-drivers/transports/shared-links.ts'
import { serveTcp, serveHttp } from '../../simulators/devices/serve.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'
import { chopped, concat } from './pieces.ts'
import { realPlatform } from './platform.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

/** The pieces; joins the data of each message. */
function summary(pieces: readonly HttpPiece[]): unknown[] {
  const out: unknown[] = []
  let data: Uint8Array[] = []
  for (const piece of pieces) {
    if (piece.kind === 'data') data.push(piece.bytes)
    else if (piece.kind === 'response') out.push(piece.status)
    else if (piece.kind === 'request') out.push(`${piece.method} ${piece.path}`)
    else {
      out.push(Buffer.concat(data).toString('utf8'))
      data = []
    }
  }
  return out
}

describe('HTTP messages', () => {
  test('decodes what was encoded, in any chunks and one message after the other', () => {
    const body = fc.string({ maxLength: 300, unit: 'binary' })
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(
            fc.integer({ min: 200, max: 599 }).filter((s) => s !== 204 && s !== 304),
            fc.array(body, { maxLength: 4 }),
            fc.boolean(),
          ),
          { maxLength: 5 },
        ),
        fc.integer({ min: 1, max: 50 }),
        (answers, size) => {
          const sent = answers.map(([status, parts, inChunks]) =>
            inChunks
              ? concat([encodeResponse(status, {}), ...parts.filter((p) => p !== '').map(encodeChunk), encodeChunk('')])
              : encodeResponse(status, { a: 'b' }, parts.join('')),
          )
          const parser = new HttpParser('responses')
          const pieces = chopped(concat(sent), size).flatMap((chunk) => parser.push(chunk))
          expect(parser.fault).toBeNull()
          // Each unpaired surrogate becomes one replacement character.
          const plain = (text: string) => Buffer.from(text, 'utf8').toString('utf8')
          expect(summary(pieces)).toEqual(
            answers.flatMap(([status, parts, inChunks]) => [
              status,
              inChunks ? parts.map(plain).join('') : plain(parts.join('')),
            ]),
          )
        },
      ),
    )
  })

  test('ends a response without a length with the connection, and expects no body of 100 and 204', () => {
    const parser = new HttpParser('responses')
    const pieces = parser.push(
      bytes('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\nHTTP/1.0 200 OK\r\n\r\nabc'),
    )
    expect(summary([...pieces, ...parser.end()])).toEqual([204, '', 200, 'abc'])
    expect(parser.fault).toBeNull()
  })

  test.each([
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n'],
    ['a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['another coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'],
    ['a negative chunk', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n'],
    ['a chunk that is too long', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n'],
    ['a folded header', 'HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n'],
    ['an endless line', `HTTP/1.1 200 ${'x'.repeat(9_000)}`],
    ['endless headers', `HTTP/1.1 200 OK\r\n${'a: b\r\n'.repeat(101)}`],
  ])('reports a fault: %s', (_, text) => {
    const parser = new HttpParser('responses')
    parser.push(bytes(text))
    expect(parser.fault).not.toBeNull()
    expect(parser.push(bytes('HTTP/1.1 200 OK\r\n\r\n'))).toEqual([])
  })

  test('neither throws nor grows over 250,000 random chunks', () => {
    const random = seededRandom(3)
    const pieces = Array.from({ length: 499 }, (_, i) =>
      i % 5 === 0 ? bytes('HTTP/1.1 200 OK\r\n\r\n') : random.bytes(1 + (i % 29)),
    )
    let parser = new HttpParser('responses')
    for (let i = 0; i < 250_000; i++) {
      parser.push(pieces[(i * 7) % pieces.length] as Uint8Array)
      if (parser.fault !== null) parser = new HttpParser('responses')
    }
  })

  test('works with Node’s own server and client over TCP', async () => {
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk: Buffer) => (body += chunk.toString()))
      request.on('end', () => {
        response.setHeader('x-seen', `${request.method} ${request.url} ${request.headers.host} ${body}`)
        if (request.url === '/chunks') for (const part of ['eins ', 'zwei ', 'drei']) response.write(part)
        response.end(request.url === '/chunks' ? '' : 'fertig')
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const links = new SharedLinks(openLink, realPlatform)
    const rest = restClient({
      link: { http: `127.0.0.1:${port}` },
      links,
      platform: realPlatform,
      timeoutMs: 5_000,
      headers: {},
    })
    await rest.connect(new AbortController().signal, () => {})
    const chunks = await rest.request({ method: 'GET', path: '/chunks' })
    expect(chunks).toMatchObject({ kind: 'answered', status: 200, body: 'eins zwei drei' })
    const put = await rest.request({ method: 'PUT', path: '/a?b=c', body: { ä: 1 } })
    expect(
      put.kind === 'answered' && Buffer.from(put.headers.get('x-seen') ?? '', 'latin1').toString('latin1'),
    ).toContain(`PUT /a?b=c 127.0.0.1:${port} {`)
    expect(put).toMatchObject({ body: 'fertig' })
    await links.close()
    server.close()

    const ours = await serveTcp({
      port: 0,
      serve: (link) =>
        serveHttp(link, ({ method, path, body }) => ({ status: 201, body: `${method} ${path} ${body}` })),
    })
    const answer = await new Promise<string>((resolve, reject) => {
      const call = nodeRequest(
        { port: ours.port, host: '127.0.0.1', method: 'POST', path: '/x', headers: { 'transfer-encoding': 'chunked' } },
        (response) => {
          let text = `${response.statusCode} `
          response.on('data', (chunk: Buffer) => (text += chunk.toString()))
          response.on('end', () => resolve(text))
        },
      )
      call.on('error', reject)
      call.write('ab')
      call.end('cd')
    })
    expect(answer).toBe('201 POST /x abcd')
    await ours.close()
  })

  test('counts the length of a request in bytes', () => {
    const parser = new HttpParser('requests')
    expect(summary(parser.push(encodeRequest({ method: 'POST', path: '/', headers: {}, body: '€' })))).toEqual([
      'POST /',
      '€',
    ])
  })
})

describe('JSON lines', () => {
  test('parses values in any chunks, ignores empty lines, and reports and skips invalid or long ones', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.json({ maxDepth: 2 }), fc.constant(''), fc.constant('no json')), { maxLength: 20 }),
        fc.integer({ min: 1, max: 40 }),
        (lines, size) => {
          const reader = jsonLines(4_096)
          const values = chopped(bytes(lines.map((line) => `${line}\r\n`).join('')), size).flatMap((chunk) =>
            reader.push(chunk).map(({ value }) => value),
          )
          expect(values).toEqual(
            lines.filter((line) => line !== '' && line !== 'no json').map((line) => JSON.parse(line) as unknown),
          )
          expect(reader.takeNoise() === null).toBe(!lines.includes('no json'))
          expect(reader.held).toBe(0)
        },
      ),
    )
    const reader = jsonLines(16)
    expect(reader.push(bytes(`"${'x'.repeat(100_000)}`))).toEqual([])
    expect(reader.held).toBeLessThanOrEqual(16)
    expect(reader.push(bytes('"\n7\n'))).toEqual([{ value: 7, text: '7' }])
    expect(reader.takeNoise()?.bytes).toBeGreaterThan(100_000)
  })
})

describe('messages of readers', () => {
  const read = (message: Uint8Array) => {
    const { items, unreadable } = readJson(textOfBytes(message))
    return { values: items.map(({ value }) => value), unreadable }
  }

  test.each([
    ['a UTF-8 byte order mark', Buffer.from('\ufeff{"a":1}'), [{ a: 1 }], ''],
    ['UTF-16, little end first', Buffer.from('\ufeff{"a":1}', 'utf16le'), [{ a: 1 }], ''],
    ['UTF-16, big end first', Buffer.from('\ufeff{"a":1}', 'utf16le').swap16(), [{ a: 1 }], ''],
    ['objects side by side', Buffer.from('{"a":"}"}{"b":["\\"]"]}'), [{ a: '}' }, { b: ['"]'] }], ''],
    ['objects on lines', Buffer.from('{"a":1}\r\n{"b":2}\r\n'), [{ a: 1 }, { b: 2 }], ''],
    ['objects with commas', Buffer.from('{"a":1},\n[2],'), [{ a: 1 }, [2]], ''],
    ['a message that was cut off', Buffer.from('{"a":1}{"b":'), [{ a: 1 }], '{"b":'],
    ['nothing but text', Buffer.from('epc=3034'), [], 'epc=3034'],
    ['a part that is no JSON', Buffer.from('{"a":1}{b}{"c":3}'), [{ a: 1 }, { c: 3 }], '{b}'],
    ['an empty message', Buffer.from(' \r\n'), [], ''],
  ])('with %s', (_, message, values, unreadable) => expect(read(message)).toEqual({ values, unreadable }))
})

describe('messages of readers with too much in them', () => {
  test.each([
    ['more values than a body has reads', '[]'.repeat(250_000), 'over 5000 values'],
    ['nested lists', '['.repeat(200_000) + ']'.repeat(200_000), 'over 32 levels'],
    ['nested lists that do not end', `{"reads":${'['.repeat(200_000)}`, 'over 32 levels'],
  ])('are refused as a whole: %s', (_, message, excess) => {
    const read = readJson(message)
    expect([read.items, read.excess]).toEqual([[], expect.stringContaining(excess)])
    expect(read.unreadable.length).toBeLessThanOrEqual(400)
    const lines = jsonLines(524_288)
    expect(lines.push(bytes(`${message}\n7\n`)).map(({ value }) => value)).toEqual([7])
    expect(lines.takeNoise()).toMatchObject({ bytes: message.length, detail: expect.stringContaining(excess) })
  })

  test('are read up to the limits', () => {
    expect(readJson('[]'.repeat(5_000)).items).toHaveLength(5_000)
    expect(readJson('['.repeat(32) + ']'.repeat(32)).items).toHaveLength(1)
  })
})

describe('timestamps of readers', () => {
  test.each([
    ['2023-04-03T21:50:16.699+0200', Date.UTC(2023, 3, 3, 19, 50, 16, 699)],
    ['2024-11-21T13:20:53.319-0600', Date.UTC(2024, 10, 21, 19, 20, 53, 319)],
    ['2020-01-08T15:36:53+00:00', Date.UTC(2020, 0, 8, 15, 36, 53)],
    ['2019-08-24T14:15:22Z', Date.UTC(2019, 7, 24, 14, 15, 22)],
    ['1716900123456', 1_716_900_123_456],
    [1_716_900_123, 1_716_900_123_000],
    [1_716_900_123_456_789, 1_716_900_123_456.789],
  ])('%s', (value, ms) => expect(utcUsOf(value)).toBe(Math.round(ms * 1_000)))

  test('cuts nanoseconds to microseconds', () =>
    expect(utcUsOf('2025-05-17T16:03:13.944189383Z')).toBe(Date.UTC(2025, 4, 17, 16, 3, 13) * 1_000 + 944_189))
  test.each(['', 'gestern', '2025-02-30T00:00:00Z', '2025-01-01T25:00:00Z', 5, NaN, null, {}, '12345'])(
    'rejects %j',
    (value) => expect(utcUsOf(value)).toBeNull(),
  )
  test('parses or rejects any text', () => fc.assert(fc.property(fc.anything(), (value) => void utcUsOf(value))))
})

/**
 * Published events. The fields are those of the reader's OpenAPI document 1.7.0. The first event was recorded at a
 * reader in 2025 (base64url EPC, nanoseconds), the second comes from another publication.
 */
describe('events of Impinj readers', () => {
  test('parses the published examples', () => {
    expect(
      impinjEvent({
        timestamp: '2025-05-17T16:03:13.944189383Z',
        eventType: 'tagInventory',
        tagInventoryEvent: {
          epc: '4oARkaUDAGXybMv_',
          antennaPort: 3,
          peakRssiCdbm: -7300,
          frequency: 919750,
          transmitPowerCdbm: 3000,
        },
      }),
    ).toEqual({
      kind: 'tag',
      sighting: {
        epc: 'E2801191A5030065F26CCBFF',
        antenna: 3,
        rssiDbm: -73,
        utcUs: Date.UTC(2025, 4, 17, 16, 3, 13) * 1_000 + 944_189,
      },
    })
    expect(
      impinjEvent({
        eventType: 'tagInventory',
        timestamp: '2026-07-18T12:00:00.000Z',
        tagInventoryEvent: {
          epcHex: '300833B2DDD9014000000000',
          tidHex: 'E28011606000020497CB0065',
          antennaPort: 1,
          peakRssiCdbm: -4100,
        },
      }),
    ).toEqual({
      kind: 'tag',
      sighting: { epc: '300833B2DDD9014000000000', antenna: 1, rssiDbm: -41, utcUs: Date.UTC(2026, 6, 18, 12) * 1_000 },
    })
    expect(
      impinjEvent({
        timestamp: '2026-07-18T12:00:00Z',
        eventType: 'inventoryStatus',
        inventoryStatusEvent: { inventoryStatus: 'running' },
      }),
    ).toEqual({ kind: 'reading', isReading: true })
    const transition = (gpi: unknown, change: string) =>
      impinjEvent({
        timestamp: '2026-07-18T12:00:00Z',
        eventType: 'gpiTransition',
        gpiTransitionEvent: { gpi, transition: change },
      })
    expect(transition(1, 'low-to-high')).toEqual({
      kind: 'input',
      input: 1,
      on: true,
      utcUs: Date.UTC(2026, 6, 18, 12) * 1_000,
    })
    expect(transition(2, 'high-to-low')).toMatchObject({ kind: 'input', input: 2, on: false })
    expect([transition(1, 'toString'), transition('1', 'low-to-high')]).toEqual([null, null])
    expect(
      impinjEvent({ timestamp: '2026-07-18T12:00:00Z', eventType: 'overflow', overflowEvent: { eventsPurged: 17 } }),
    ).toMatchObject({ kind: 'fault', detail: expect.stringContaining('17') })
    expect(
      impinjEvent({
        timestamp: '2026-07-18T12:00:00Z',
        eventType: 'antennaDisconnected',
        antennaDisconnectedEvent: { antennaPort: 2 },
      }),
    ).toEqual({ kind: 'antenna', antenna: 2, isConnected: false })
  })

  test('parses or rejects any value, and never returns a tag without an EPC', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        const event = impinjEvent({ tagInventoryEvent: value })
        if (event?.kind === 'tag') expect(event.sighting.epc).toMatch(/^(?:[0-9A-F]{4})+$/)
        impinjEvent(value)
      }),
    )
  })
})
