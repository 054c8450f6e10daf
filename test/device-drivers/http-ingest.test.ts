import fc from 'fast-check'
import { Hono } from 'hono'
import pino from 'pino'
import { describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import { MAX_PUSHED_BYTES } from '../../device-drivers/http-ingest/driver.ts'
import { mapper } from '../../device-drivers/http-ingest/protocol/mapping.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { pushPort } from '../../device-drivers/transports/memory.ts'
import { ingestRoutes } from '../../edge-agent/http/routes/ingest-routes.ts'
import { rateLimitedLog, LINES_PER_MINUTE } from '../../policy/rate-limited-log.ts'
import { pushingReader } from '../../simulators/devices/http-ingest.ts'
import type { PushFormat } from '../../simulators/devices/http-ingest.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { describeDriver } from './conformance.ts'
import { entries, forEver, RELEASE } from './workbench.ts'

const EPC = '3034257BF400B800000000C8'
const SECRET = 'a-secret-of-gate-1-alone'
const ENTRY = { driver: 'http-ingest', link: { push: 'gate-1' }, secret: SECRET, mapping: 'keonn' }

describeDriver('http-ingest', {
  entry: ENTRY,
  answers: false,
  device() {
    let link: ByteLink | null = null
    const body = JSON.stringify({ reads: [{ epc: EPC }] })
    return {
      async serve(opened) {
        link = opened
        try {
          for await (const _ of opened.bytes) continue
        } catch {
          // The link was cut.
        }
      },
      mute: () => {},
      heal: () => {},
      stir: () => link?.write(new TextEncoder().encode(`${body}\n`), forEver()).catch(() => {}),
      fits: (event) =>
        event.type === 'tags' &&
        event.reads[0] !== undefined &&
        'epc' in event.reads[0].tag &&
        event.reads[0].tag.epc === EPC,
    }
  },
})

const HOST = '192.168.1.20:8090'

function bench(settings: Record<string, unknown> = {}) {
  const world = virtualPlatform()
  const port = pushPort()
  const devices = entries({ deviceId: 'gate', ...ENTRY, ...settings })
  const events: DeviceEvent[] = []
  const warnings: string[] = []
  const supervisor = supervise({
    devices,
    platform: world,
    openLink: (link, signal) =>
      'push' in link ? port.open(link.push, signal) : Promise.reject(new Error('no such link')),
    onEvent: (_, event) => void events.push(event),
  })
  const app = new Hono()
  const log = pino({ level: 'warn' }, { write: (line: string) => void warnings.push(line) })
  const refusals = rateLimitedLog((fields, message) => log.warn(fields, message), world)
  ingestRoutes(app, { devices: () => devices, port, hosts: () => [HOST], platform: world, refusals })
  const post = (body: string, headers: Record<string, string> = {}, method = 'POST') =>
    app.request('/ingest/gate-1', {
      method,
      body,
      headers: { 'content-type': 'application/json', host: HOST, authorization: `Bearer ${SECRET}`, ...headers },
    })
  const reads = () => events.flatMap((event) => (event.type === 'tags' ? event.reads : []))
  const state = () => supervisor.status('gate')?.state
  return { world, port, supervisor, app, events, warnings, post, reads, state, ready: () => world.advance(50) }
}

// Body of AdvanNet's template with an AdvanMux (wiki.keonn.com): port of the reader, then ports of the multiplexers.
test.each([
  [{ antenna: '2' }, 2],
  [{ antenna: '1', mux1: '0', mux2: '0' }, 1],
  [{ antenna: '1', mux1: '', mux2: '' }, 1],
  [{ antenna: '1', mux1: '3', mux2: '0' }, 10_300],
  [{ antenna: '1', mux1: '3', mux2: '1' }, 10_301],
  [{ antenna: '4', mux1: 16, mux2: 16 }, 41_616],
  [{ antenna: '1', mux1: 'x' }, undefined],
  [{ antenna: '1', mux1: '100' }, undefined],
])('a Keonn reader numbers the antennas behind its multiplexers: %o', (fields, antenna) => {
  const { sightings } = mapper('keonn')({ reads: [{ epc: EPC, ...fields }] })
  expect(sightings).toEqual([{ epc: EPC, ...(antenna === undefined ? {} : { antenna }) }])
})

describe('http-ingest', () => {
  test.each(['keonn', 'impinj'] as const)(
    'reports reads of a %s reader with antenna, signal and age, and keeps the age of late reads',
    async (format: PushFormat) => {
      const b = bench({ mapping: format })
      await b.ready()
      let isReachable = true
      const reader = pushingReader({
        platform: b.world,
        format,
        post: async (body) => isReachable && (await b.post(body)).status === 200,
      })
      reader.see(EPC, { antenna: 2, rssiDbm: -62 })
      await b.world.advance(50)
      isReachable = false
      reader.see(EPC)
      const seenAt = b.world.clock.elapsed()
      await b.world.advance(20_000)
      isReachable = true
      await b.world.advance(2_000)
      expect(b.reads()).toEqual([
        { tag: { epc: EPC }, antenna: 2, rssiDbm: -62, seenAtMs: 50 },
        { tag: { epc: EPC }, antenna: 1, rssiDbm: -55, seenAtMs: seenAt },
      ])
      expect(reader.waiting).toBe(0)
    },
  )

  test('treats reads of a fast clock as live, and ignores timestamps with "arrival"', async () => {
    for (const [offset, clock] of [
      [3_600_000, 'reader'],
      [-3_600_000, 'arrival'],
    ] as const) {
      const b = bench({ clock })
      await b.ready()
      const reader = pushingReader({
        platform: b.world,
        format: 'keonn',
        post: async (body) => (await b.post(body)).status === 200,
      })
      reader.setClock(offset)
      reader.see(EPC)
      await b.world.advance(10)
      expect(b.reads().map(({ seenAtMs }) => seenAtMs)).toEqual([50])
    }
  })

  /** Walks with a tag, inside then outside, until the reader has reported it about `reads` times. */
  async function walkPast(b: ReturnType<typeof bench>, format: PushFormat, ttlMs: number, reads: number) {
    const reader = pushingReader({
      platform: b.world,
      format,
      ttlMs,
      post: async (body) => (await b.post(body)).status === 200,
    })
    for (let n = 0; n < reads; n++) {
      reader.see(EPC, { antenna: 1 + (n % 2) })
      await b.world.advance(Math.max(ttlMs, 100))
    }
    reader.stop()
  }

  test.each([
    ['keonn', 'set the inventory tag TTL of its HTTP service to 0'],
    ['impinj', '"dual-target" or session 0'],
    [{ reads: 'reads[*]', epc: 'epc', antenna: 'antenna', seenAt: 'ts' }, 'set the time between two reports of a tag'],
  ] as const)(
    'finds out that a reader filters, names the setting, and notices the change: %o',
    async (mapping, advice) => {
      const b = bench({ mapping })
      await b.ready()
      const format = mapping === 'impinj' ? mapping : 'keonn'
      await walkPast(b, format, 1_000, 200)
      expect(b.state()).toBe('ready')
      await walkPast(b, format, 1_000, 1)
      expect(b.supervisor.status('gate')).toMatchObject({
        state: 'degraded',
        findings: [{ code: 'reader_filters', isWarning: false, detail: expect.stringContaining(advice) }],
      })
      expect(b.supervisor.status('gate')?.detail).toContain(
        'after each of 200 reads it did not report the tag again within 0.4 s',
      )
      await walkPast(b, format, 0, 10)
      expect([b.state(), b.supervisor.status('gate')?.findings]).toEqual(['ready', []])
    },
  )

  test('finds out that a reader reports each tag only once', async () => {
    const b = bench({ mapping: { reads: '$', epc: 'id' } })
    await b.ready()
    const once = (n: number) => b.post(JSON.stringify({ id: EPC.slice(0, -4) + String(1_000 + n) }))
    for (let n = 0; n < 202; n++) {
      expect(b.state()).toBe('ready')
      await once(n)
      await b.world.advance(500)
    }
    expect(b.supervisor.status('gate')?.findings).toMatchObject([{ code: 'reader_filters' }])
  })

  test('does not take a list that groups the reads by tag for a filter', async () => {
    const b = bench()
    await b.ready()
    for (let n = 0; n < 10; n++) {
      const at = b.world.clock.wall()
      const reads = Array.from({ length: 400 }, (_, i) => ({
        epc: EPC.slice(0, -4) + String(1_000 + Math.floor(i / 10)),
        antenna: 1 + (i % 2),
        ts: new Date(at - 1_000 + 100 * (i % 10)).toISOString(),
      }))
      await b.post(JSON.stringify({ reads }))
      await b.world.advance(1_000)
    }
    expect(b.supervisor.status('gate')).toMatchObject({ state: 'ready', findings: [] })
  })

  test('names the antenna that reads in place of a configured one', async () => {
    const b = bench({ antennas: { inside: [1], outside: [2] } })
    await b.ready()
    for (const antenna of ['1', '3', '3', '3']) await b.post(JSON.stringify({ reads: [{ epc: EPC, antenna }] }))
    await b.world.advance(10)
    expect(b.supervisor.status('gate')).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'reader_antenna', detail: expect.stringContaining('set "outside": [3]') }],
    })
    await b.post(JSON.stringify({ reads: [{ epc: EPC, antenna: '2' }] }))
    await b.world.advance(10)
    expect(b.state()).toBe('ready')
  })

  test('is degraded while an Impinj reader reports that it does not read, or lacks an antenna', async () => {
    const b = bench({ mapping: 'impinj', antennas: { inside: [1], outside: [2] } })
    await b.ready()
    const event = (name: string, value: object) =>
      b.post(JSON.stringify([{ timestamp: '2026-11-28T10:00:00Z', eventType: name, [`${name}Event`]: value }]))
    await event('inventoryStatus', { inventoryStatus: 'idle' })
    await event('antennaDisconnected', { antennaPort: 2 })
    await b.world.advance(10)
    expect(b.supervisor.status('gate')?.findings.map(({ code }) => code)).toEqual(['reader_mode', 'reader_antenna'])
    await event('inventoryStatus', { inventoryStatus: 'running' })
    await event('tagInventory', { epcHex: EPC, antennaPort: 2 })
    await b.world.advance(10)
    expect(b.supervisor.status('gate')).toMatchObject({ state: 'ready', findings: [] })
  })

  test.each([
    ['secret', { authorization: 'Bearer wrong' }, 401, "'a request with a wrong secret'"],
    ['host name', { host: 'reader.example' }, 403, 'a request to a host name that "hosts"'],
  ])('is degraded while all requests have a wrong %s', async (_, headers, status, sample) => {
    const b = bench()
    await b.ready()
    for (let n = 0; n < 3; n++) {
      expect((await b.post(JSON.stringify({ reads: [{ epc: EPC }] }), headers)).status).toBe(status)
      await b.world.advance(10)
    }
    expect(b.supervisor.status('gate')).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'unreadable_data', detail: expect.stringContaining(sample) }],
    })
    await b.post(JSON.stringify({ reads: [{ epc: EPC }] }))
    await b.world.advance(10)
    expect(b.state()).toBe('ready')
  })

  test('keeps what it found over a silence of the reader', async () => {
    const b = bench({ silentAfterSeconds: 30 })
    await b.ready()
    await walkPast(b, 'keonn', 1_000, 202)
    await b.world.advance(60_000)
    expect([b.state(), b.supervisor.status('gate')?.findings]).toEqual(['identifying', []])
    await walkPast(b, 'keonn', 1_000, 3)
    await b.world.advance(20_000)
    expect(b.supervisor.status('gate')?.findings).toMatchObject([{ code: 'reader_filters' }])
  })

  test.each([0, 100, 250])('does not count a TTL of %i ms as a filter', async (ttlMs) => {
    const b = bench()
    await b.ready()
    await walkPast(b, 'keonn', ttlMs, 500)
    expect([b.state(), b.supervisor.status('gate')?.findings]).toEqual(['ready', []])
  })

  test('accepts the secret as bearer token, password or header, rejects others, and reports wrong ones once a minute', async () => {
    const b = bench()
    await b.ready()
    const body = JSON.stringify({ reads: [{ epc: EPC }] })
    const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
    expect((await b.post(body, { authorization: basic(`admin:${SECRET}`) })).status).toBe(200)
    expect((await b.post(body, { authorization: '', 'x-untag-secret': SECRET }, 'PUT')).status).toBe(200)
    for (const authorization of ['', `Bearer ${SECRET}x`, 'Bearer ', basic('admin:'), basic(SECRET), 'Basic !!']) {
      const answer = await b.post(body, { authorization })
      if (authorization === basic(SECRET)) continue
      expect([authorization, answer.status]).toEqual([authorization, 401])
    }
    expect(
      (
        await b.app.request('/ingest/another', {
          method: 'POST',
          body,
          headers: { authorization: 'Bearer no such device' },
        })
      ).status,
    ).toBe(401)
    expect((await b.app.request('/ingest/gate-1')).status).toBe(404)
    // One fault for each request with a wrong secret.
    expect(b.warnings).toHaveLength(5)
    for (let n = 0; n < 100; n++) await b.post(body, { authorization: 'Bearer wrong' })
    expect(b.warnings).toHaveLength(LINES_PER_MINUTE)
    await b.world.advance(10)
    expect(b.reads().length).toBe(3)
  })

  test('takes only as many bytes as a reader needs, so that one reader does not slow the other lanes', async () => {
    const b = bench()
    await b.ready()
    const body = JSON.stringify({
      reads: Array.from({ length: 4_900 }, (_, n) => ({ epc: `3${n}`.padStart(24, '0') })),
    })
    const statuses: number[] = []
    for (let second = 0; second < 10; second++) {
      for (let n = 0; n < 20; n++) statuses.push((await b.post(body)).status)
      await b.world.advance(1_000)
    }
    const taken = statuses.filter((status) => status === 200).length
    // 200 bodies were sent: a burst of 1,600 KiB, then 800 KiB a second.
    expect(taken * body.length).toBeLessThan((1_600 + 10 * 800) * 1_024 + 2 * body.length)
    expect(taken).toBeGreaterThan(10)
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
  })

  test('rejects bodies that are too long, no JSON, of another type or too frequent, without effect', async () => {
    const b = bench()
    await b.ready()
    expect((await b.post('{')).status).toBe(400)
    expect((await b.post('epc=1', { 'content-type': 'text/plain' })).status).toBe(415)
    expect((await b.post(`"${'x'.repeat(MAX_PUSHED_BYTES)}"`)).status).toBe(413)
    const endless = new ReadableStream<Uint8Array>({ pull: (to) => to.enqueue(new Uint8Array(65_536).fill(0x20)) })
    const streamed = new Request('http://x/ingest/gate-1', {
      method: 'POST',
      body: endless,
      duplex: 'half',
      headers: { host: HOST, authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
    } as RequestInit)
    expect((await b.app.request(streamed)).status).toBe(413)
    const statuses = []
    for (let i = 0; i < 120; i++) statuses.push((await b.post('{"reads":[]}')).status)
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(15)
    await b.world.advance(1_000)
    expect((await b.post('{"reads":[]}')).status).toBe(200)
    for (const body of ['['.repeat(200_000) + ']'.repeat(200_000), '[]'.repeat(250_000)])
      expect((await b.post(body)).status).toBe(413)
    await b.world.advance(10)
    expect(b.events.filter((event) => event.type === 'tags')).toEqual([])
    expect(b.state()).toBe('degraded')
    await b.world.advance(1_000)
    await b.post(JSON.stringify({ reads: [{ epc: EPC }] }))
    await b.world.advance(10)
    expect(b.state()).toBe('ready')
  })

  test.each<[string, string | Buffer, Record<string, string>]>([
    ['a byte order mark', `\ufeff{"reads":[{"epc":"${EPC}"}]}`, {}],
    ['another content type', `{"reads":[{"epc":"${EPC}"}]}`, { 'content-type': 'text/plain' }],
    ['a form’s content type', `{"reads":[{"epc":"${EPC}"}]}`, { 'content-type': 'application/x-www-form-urlencoded' }],
    ['several objects in a body', `{"devid":"A"}\n{"reads":[{"epc":"${EPC}"}]}`, {}],
    ['a single read without its list', `{"reads":{"epc":"${EPC}"}}`, {}],
  ])('reads a body with %s', async (_, body, headers) => {
    const b = bench()
    await b.ready()
    expect((await b.post(body as string, headers)).status).toBe(200)
    await b.world.advance(10)
    expect(b.reads()).toMatchObject([{ tag: { epc: EPC } }])
  })

  test.each([
    ['of another shape', JSON.stringify({ data: { tags: [{ id: EPC }] } }), 200, `'{"data":{"tags":[{"id":"${EPC}`],
    ['without an EPC', JSON.stringify({ reads: [{ tid: EPC }] }), 200, `'{"reads":[{"tid":"${EPC}"}]}'`],
    ['that are a form', `epc=${EPC}`, 400, `'epc=${EPC}'`],
  ])('is degraded while only bodies arrive %s, and ready again at the first read', async (_, body, status, sample) => {
    const b = bench()
    await b.ready()
    for (let n = 0; n < 3; n++) {
      expect(b.state()).toBe('ready')
      // Keepalives between the bodies prove nothing.
      for (const each of [body, '{"reads":[]}', '[]', '{}', ''])
        expect((await b.post(each)).status).toBe(each === body ? status : 200)
      await b.world.advance(1_100)
    }
    expect(b.supervisor.status('gate')).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'unreadable_data', detail: expect.stringContaining(sample), isWarning: false }],
    })
    expect(b.events.filter((event) => event.type === 'noise').length).toBe(3)
    expect(b.events.filter((event) => event.type === 'fault')).toEqual([
      { type: 'fault', detail: expect.stringContaining(sample) },
    ])
    await b.post(JSON.stringify({ reads: [{ epc: EPC }] }))
    await b.world.advance(10)
    expect(b.state()).toBe('ready')
    for (let n = 0; n < 50; n++) await b.post('{"reads":[]}')
    await b.world.advance(10)
    expect(b.state()).toBe('ready')
  })

  test('shows a sample of unreadable bodies at most every 10 minutes, and the finding again after a lost link', async () => {
    const b = bench({ silentAfterSeconds: 100 })
    await b.ready()
    for (let minute = 0; minute < 25; minute++) {
      await b.post('{"tags":[]}')
      await b.world.advance(60_000)
    }
    expect(b.events.filter((event) => event.type === 'fault')).toHaveLength(3)
    b.supervisor.restart('gate')
    await b.world.advance(1_000)
    for (let n = 0; n < 2; n++) {
      await b.post('{"tags":[]}')
      await b.world.advance(60_000)
    }
    expect(b.supervisor.status('gate')?.findings).toMatchObject([{ code: 'unreadable_data' }])
  })

  test('reports a reader as lost after silence, and as ready at its next push', async () => {
    const b = bench({ mapping: 'impinj', silentAfterSeconds: 30 })
    await b.ready()
    const reader = pushingReader({
      platform: b.world,
      format: 'impinj',
      lingerMs: 10_000,
      post: async (body) => (await b.post(body)).status === 200,
    })
    await b.world.advance(300_000)
    expect(b.state()).toBe('ready')
    reader.stop()
    await b.world.advance(40_000)
    expect(b.supervisor.status('gate')).toMatchObject({ state: expect.stringMatching(/degraded|identifying|opening/) })
    await b.world.advance(300_000)
    expect(b.state()).not.toBe('ready')
    expect(
      (await b.post(JSON.stringify([{ eventType: 'tagInventory', tagInventoryEvent: { epcHex: EPC } }]))).status,
    ).toBe(200)
    await b.world.advance(16_000)
    expect(b.reads()).toHaveLength(1)
    expect(b.state()).toBe('ready')
    await b.world.settle(b.supervisor.stop())
    expect((await b.post('[]')).status).toBe(503)
  })

  test('does not count a request with a wrong secret as a sign of life, nor end a silence with it', async () => {
    const b = bench({ silentAfterSeconds: 30 })
    await b.ready()
    const stranger = () => b.post('{"reads":[]}', { authorization: `Bearer ${SECRET}x` })
    for (let second = 0; second < 30; second += 10) {
      expect((await stranger()).status).toBe(401)
      await b.world.advance(10_000)
    }
    expect(b.supervisor.status('gate')?.detail).toMatch(/^nothing was pushed for 30 s/)
    await stranger()
    await b.world.advance(20_000)
    expect(b.state()).not.toBe('ready')
    await b.post('{"reads":[]}')
    await b.world.advance(20_000)
    expect(b.state()).toBe('ready')
  })

  test('refuses an address that guesses secrets, and no request with the right one', async () => {
    const b = bench()
    await b.ready()
    const from = (remoteAddress: string, secret: string) =>
      b.app.request(
        '/ingest/gate-1',
        {
          method: 'POST',
          body: '[]',
          headers: { 'content-type': 'application/json', host: HOST, authorization: `Bearer ${secret}` },
        },
        { incoming: { socket: { remoteAddress } } },
      )
    const statuses: number[] = []
    for (let n = 0; n < 60; n++) statuses.push((await from('10.0.0.9', `guess-${n}`)).status)
    expect(statuses).toEqual([...Array.from({ length: 50 }, () => 401), ...Array.from({ length: 10 }, () => 429)])
    const refused = await from('10.0.0.9', 'guess-60')
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
    // A reader behind the same proxy.
    expect((await from('10.0.0.9', SECRET)).status).toBe(200)
    await b.world.advance(1_000)
    expect((await from('10.0.0.9', 'guess-61')).status).toBe(401)
  })

  test('answers 404 without a device of this driver, and supports no commands', async () => {
    const app = new Hono()
    ingestRoutes(app, {
      devices: () => entries({ deviceId: 's', driver: 'scanner', link: { tcp: '10.0.0.7:502' }, feeds: 'x' }),
      port: pushPort(),
      hosts: () => [HOST],
      platform: virtualPlatform(),
      refusals: { write: () => undefined },
    })
    expect((await app.request('/ingest/gate-1', { method: 'POST' })).status).toBe(404)
    const b = bench()
    await b.ready()
    expect(await b.supervisor.execute('gate', RELEASE, forEver())).toMatchObject({
      outcome: 'failed',
      commanded: false,
      detail: expect.stringContaining('not_supported'),
    })
  })
})

describe('mappings', () => {
  /** Body of AdvanNet's HTTP service, by the template on wiki.keonn.com; `getUTC()` is in ms. */
  const KEONN = {
    devid: 'AdvanReader-01',
    devip: '192.168.1.15',
    devmac: 'b0:d5:cc:9f:fd:f8',
    reads: [{ epc: '3034257BF400B800000000C8', sku: '', serial: '', rssi: '-62', ts: '1716900123456' }],
  }

  test('parses the published Keonn example', () => {
    expect(mapper('keonn')(KEONN)).toEqual({
      sightings: [{ epc: EPC, rssiDbm: -62, utcUs: 1_716_900_123_456_000 }],
      faults: [],
      antennas: [],
      strange: 0,
    })
    expect(
      mapper('keonn')({
        reads: [{ epc: '3415AFBC0C000000000007EB', rssi: '-62', ts: '2026-06-10T09:14:32Z', antenna: 2 }],
      }).sightings,
    ).toEqual([
      { epc: '3415AFBC0C000000000007EB', antenna: 2, rssiDbm: -62, utcUs: Date.UTC(2026, 5, 10, 9, 14, 32) * 1_000 },
    ])
  })

  test('parses lists of Impinj events, and takes empty ones as keepalives', () => {
    expect(mapper('impinj')([])).toEqual({ sightings: [], faults: [], antennas: [], strange: 0 })
    expect(
      mapper('impinj')([{ eventType: 'tagInventory', tagInventoryEvent: { epcHex: EPC, antennaPort: 1 } }, { x: 1 }]),
    ).toEqual({ sightings: [{ epc: EPC, antenna: 1 }], faults: [], antennas: [], strange: 1 })
  })

  test('applies a custom mapping: nested paths, base64, parts of a dBm, a filter, a list of texts', () => {
    const own = mapper({
      reads: 'data.gates[*].tags[*]',
      epc: 'id.code',
      epcIs: 'base64',
      antenna: 'port',
      rssi: 's',
      rssiPerDbm: 10,
      seenAt: 't',
      only: { path: 'kind', equals: 'in' },
    })
    const tag = {
      id: { code: Buffer.from(EPC, 'hex').toString('base64') },
      port: '4',
      s: -555,
      t: 1_716_900_123,
      kind: 'in',
    }
    expect(
      own({ data: { gates: [{ tags: [tag, { ...tag, kind: 'out' }] }, { tags: [{ ...tag, id: {} }] }, {}] } }),
    ).toEqual({
      sightings: [{ epc: EPC, antenna: 4, rssiDbm: -55.5, utcUs: 1_716_900_123_000_000 }],
      faults: [],
      antennas: [],
      strange: 1,
    })
    expect(
      mapper({ reads: '$[*]', epc: '$', epcIs: 'hex', rssiPerDbm: 1 })([EPC.toLowerCase(), 'no']).sightings,
    ).toEqual([{ epc: EPC }])
  })

  test('accepts any body without a throw, with at most 5,000 reads and no access to prototypes', () => {
    const any = mapper({ reads: 'a[*]', epc: 'constructor.name', epcIs: 'hex', rssiPerDbm: 1 })
    fc.assert(
      fc.property(
        fc.anything(),
        (value) => void [any(value), any({ a: value }), mapper('keonn')({ reads: value }), mapper('impinj')(value)],
      ),
    )
    expect(mapper('keonn')({ reads: Array.from({ length: 6_000 }, () => ({ epc: EPC })) })).toMatchObject({
      sightings: { length: 5_000 },
      strange: 1,
    })
  })

  test('rejects impossible settings', () => {
    const faults = (settings: object) => {
      try {
        entries({ deviceId: 'gate', ...ENTRY, ...settings })
        return ''
      } catch (error) {
        return (error as Error).message
      }
    }
    expect(faults({ secret: 'short' })).toContain('devices[0].secret: give a secret')
    expect(faults({ link: { push: 'a b' } })).toContain('devices[0].link')
    expect(faults({ mapping: { reads: 'reads[*]', epc: 'epc' } })).toBe('')
    expect(faults({ mapping: { reads: 'reads[0]', epc: 'epc' } })).toContain('devices[0].mapping')
  })
})
