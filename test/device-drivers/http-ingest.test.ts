import fc from 'fast-check'
import { Hono } from 'hono'
import pino from 'pino'
import { describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/drivers/device.ts'
import { MAX_PUSHED_BYTES } from '../../device-drivers/drivers/http-ingest.ts'
import { mapper } from '../../device-drivers/protocols/ingest/mapping.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import type { ByteLink } from '../../device-drivers/transports/byte-link.ts'
import { pushPort } from '../../device-drivers/transports/push-port.ts'
import { ingestRoutes } from '../../edge-agent/http/routes/ingest-routes.ts'
import { rateLimitedLog, LINES_PER_MINUTE } from '../../policy/rate-limited-log.ts'
import { pushingReader } from '../../simulators/devices/http-ingest.ts'
import type { PushFormat } from '../../simulators/devices/http-ingest.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
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
  ingestRoutes(app, { devices: () => devices, port, platform: world, refusals })
  const post = (body: string, headers: Record<string, string> = {}, method = 'POST') =>
    app.request('/ingest/gate-1', {
      method,
      body,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${SECRET}`, ...headers },
    })
  const reads = () => events.flatMap((event) => (event.type === 'tags' ? event.reads : []))
  const state = () => supervisor.status('gate')?.state
  return { world, port, supervisor, app, events, warnings, post, reads, state, ready: () => world.advance(50) }
}

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

  test('rejects bodies that are too long, no JSON, of another type or too frequent, without effect', async () => {
    const b = bench()
    await b.ready()
    expect((await b.post('{')).status).toBe(400)
    expect((await b.post('{}', { 'content-type': 'text/plain' })).status).toBe(415)
    expect((await b.post(`"${'x'.repeat(MAX_PUSHED_BYTES)}"`)).status).toBe(413)
    const endless = new ReadableStream<Uint8Array>({ pull: (to) => to.enqueue(new Uint8Array(65_536).fill(0x20)) })
    const streamed = new Request('http://x/ingest/gate-1', {
      method: 'POST',
      body: endless,
      duplex: 'half',
      headers: { authorization: `Bearer ${SECRET}`, 'content-type': 'application/json' },
    } as RequestInit)
    expect((await b.app.request(streamed)).status).toBe(413)
    const statuses = []
    for (let i = 0; i < 120; i++) statuses.push((await b.post('{"reads":[]}')).status)
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(15)
    await b.world.advance(1_000)
    expect((await b.post('{"reads":[]}')).status).toBe(200)
    // Maximum depth of a path; the code does not recurse.
    expect((await b.post('['.repeat(200_000) + ']'.repeat(200_000))).status).toBe(200)
    await b.world.advance(10)
    expect(b.events.filter((event) => event.type === 'tags')).toEqual([])
    expect(b.state()).toBe('ready')
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

  test('answers 404 without a device of this driver, and supports no commands', async () => {
    const app = new Hono()
    ingestRoutes(app, {
      devices: () => entries({ deviceId: 's', driver: 'scanner', link: { tcp: '10.0.0.7:502' }, feeds: 'x' }),
      port: pushPort(),
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
    expect(mapper('impinj')([])).toEqual({ sightings: [], faults: [], strange: 0 })
    expect(
      mapper('impinj')([{ eventType: 'tagInventory', tagInventoryEvent: { epcHex: EPC, antennaPort: 1 } }, { x: 1 }]),
    ).toEqual({ sightings: [{ epc: EPC, antenna: 1 }], faults: [], strange: 1 })
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
