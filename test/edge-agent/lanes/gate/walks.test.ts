import { describe, expect, it } from 'vitest'
import type { DeviceStatus } from '../../../../device-drivers/device-connection.ts'
import { DeviceEntry } from '../../../../device-drivers/registry.ts'
import { supervise } from '../../../../device-drivers/supervisor.ts'
import { memoryPort } from '../../../../device-drivers/transports/memory.ts'
import { gateTagOf } from '../../../../edge-agent/lanes/gate/tags/deduplicate.ts'
import type { Platform } from '../../../../policy/platform.ts'
import { pushingReader, USUAL_TTL_MS } from '../../../../simulators/devices/http-ingest.ts'
import { ImpinjReader, STOCK_PRESET } from '../../../../simulators/devices/impinj-iot.ts'
import { llrpReader } from '../../../../simulators/devices/llrp.ts'
import { mqttBroker } from '../../../../simulators/devices/mqtt-broker.ts'
import { ThingMagicReader } from '../../../../simulators/devices/thingmagic.ts'
import { M100Pad } from '../../../../simulators/devices/uhf-m100.ts'
import { VENDOR_MODE, ZebraReader, type ZebraReaderMode } from '../../../../simulators/devices/zebra-iotc.ts'
import { entries } from '../../../device-drivers/workbench.ts'
import { gateWorld } from './gate-world.ts'

/** Durations of a walk through both fields, ms: from a run to a slow walk. */
const WALKS_MS = [500, 700, 1_000, 1_500, 2_500]
const READ_EVERY_MS = 50
const SHELF_TAG = '3034007D00011C40FFFFFFF0'

interface Reader {
  see(epc: string, sighting: { antenna: number }): void
}

interface Kind {
  readonly entry: Record<string, unknown>
  /** Starts the reader; returns it with what serves its links, for a reader to which the agent connects. */
  start(platform: Platform, push: (body: string) => void): { reader: Reader; port?: ReturnType<typeof memoryPort> }
}

const SIDES = { antennas: { inside: [1], outside: [2] } }
const LLRP = { driver: 'llrp', link: { tcp: '10.0.0.7:5084' }, ...SIDES }
const IMPINJ = { driver: 'impinj-iot', link: { http: '10.0.0.9' }, password: 'impinj', ...SIDES }
const ZEBRA = { driver: 'zebra-iotc', link: { mqtt: '10.0.0.5' }, topics: 'zebra/FX9600F0F4B5', ...SIDES }
const PUSH = { driver: 'http-ingest', link: { push: 'gate-1' }, secret: 'a-secret-of-gate-1-alone', ...SIDES }

const llrp = (settings: object, target: 'A' | 'both'): Kind => ({
  entry: { ...LLRP, ...settings },
  start(platform) {
    const reader = llrpReader({ platform, target })
    return { reader, port: memoryPort((link) => void reader.serve(link)) }
  },
})

const impinj = (settings: object): Kind => ({
  entry: { ...IMPINJ, ...settings },
  start(platform) {
    const reader = new ImpinjReader({ platform, password: 'impinj', preset: STOCK_PRESET })
    return { reader, port: memoryPort((link) => void reader.serve(link)) }
  },
})

const zebra = (settings: object, mode: ZebraReaderMode): Kind => ({
  entry: { ...ZEBRA, ...settings },
  start(platform) {
    const broker = mqttBroker()
    const reader = new ZebraReader({ platform, bus: broker, mode })
    return { reader, port: memoryPort((link) => void broker.serve(link)) }
  },
})

const pushed = (mapping: 'keonn' | 'impinj', ttlMs: number): Kind => ({
  entry: { ...PUSH, mapping },
  start(platform, push) {
    const reader = pushingReader({
      platform,
      format: mapping,
      ttlMs,
      async post(body) {
        push(body)
        return true
      },
    })
    return { reader }
  },
})

/** A reader without directions, in whose field a tag is while it is seen. */
const module = (entry: object, make: (platform: Platform) => ThingMagicReader | M100Pad): Kind => ({
  entry: { link: { tcp: '10.0.0.7:4001' }, ...entry },
  start(platform) {
    const reader = make(platform)
    const seenAt = new Map<string, number>()
    const { clock, timers } = platform
    return {
      reader: {
        see(epc) {
          if (!seenAt.has(epc)) reader.put({ epc })
          seenAt.set(epc, clock.elapsed())
          timers.after(2 * READ_EVERY_MS, () => {
            if (clock.elapsed() - (seenAt.get(epc) ?? 0) < 2 * READ_EVERY_MS) return
            reader.take(epc)
            seenAt.delete(epc)
          })
        },
      },
      port: memoryPort((link) => void reader.serve(link)),
    }
  },
})

/** A gate whose only reader is `kind`. In its learning minute if `isNew`. */
async function gateWith(kind: Kind, isNew: boolean) {
  const gate = gateWorld({ isNew })
  const { world } = gate
  const sink = { push: (_body: string) => {} }
  const { reader, port } = kind.start(world, (body) => sink.push(body))
  const ingest = memoryPort((link) => {
    sink.push = (body) => void link.write(new TextEncoder().encode(`${body}\n`), new AbortController().signal)
  })
  const [device] = entries({ deviceId: 'gate', ...kind.entry })
  const sides = SIDES.antennas
  const hasSides = kind.entry['antennas'] === sides
  const supervisor = supervise({
    devices: [device!],
    platform: world,
    openLink: (_, signal) => (port ?? ingest).open(signal),
    onEvent(_, event) {
      if (event.type !== 'tags') return
      for (const { tag, antenna, seenAtMs } of event.reads) {
        if (!hasSides) gate.lane.see(gateTagOf(tag), 'none', seenAtMs)
        if (!hasSides) continue
        const zone = sides.inside.includes(antenna ?? 0)
          ? 'inside'
          : sides.outside.includes(antenna ?? 0)
            ? 'outside'
            : null
        if (zone) gate.lane.see(gateTagOf(tag), zone, seenAtMs)
      }
    },
  })
  await world.advance(1_000)

  /** A tag passes the field inside, then the field outside; in the middle both antennas read it. */
  async function walk(epc: string, durationMs: number): Promise<boolean> {
    const before = gate.alarms.filter((alarm) => alarm.epc === epc).length
    for (let ms = 0; ms < durationMs; ms += READ_EVERY_MS) {
      if (ms < 0.55 * durationMs) reader.see(epc, { antenna: 1 })
      if (ms > 0.45 * durationMs) reader.see(epc, { antenna: 2 })
      await world.advance(READ_EVERY_MS)
    }
    await world.advance(3_000)
    return gate.alarms.filter((alarm) => alarm.epc === epc).length > before
  }

  /** Durations of the walks without an alarm, with the same goods each time. */
  async function missed(epcs: readonly string[]): Promise<number[]> {
    const list: number[] = []
    for (const [i, durationMs] of WALKS_MS.entries()) if (!(await walk(epcs[i]!, durationMs))) list.push(durationMs)
    return list
  }

  const goods = WALKS_MS.map(() => gate.item('sellable'))
  return {
    gate,
    reader,
    status: (): DeviceStatus => supervisor.status('gate')!,
    first: () => missed(goods),
    /** The same goods leave once more, after their tracks are forgotten. */
    async again() {
      await world.advance(75_000)
      return missed(goods)
    },
    /** A tag on a shelf beside the gate is read for a time. */
    async shelf(seconds: number) {
      for (let ms = 0; ms < seconds * 1_000; ms += READ_EVERY_MS) {
        reader.see(SHELF_TAG, { antenna: 1 })
        await world.advance(READ_EVERY_MS)
      }
    },
    stop: () => world.settle(supervisor.stop()),
  }
}

const ADVISED: Readonly<Record<string, Kind>> = {
  'llrp, target A only': llrp({}, 'A'),
  'llrp, both targets': llrp({}, 'both'),
  'llrp, both targets in session 1': llrp({ session: 1 }, 'both'),
  'impinj-iot': impinj({}),
  'zebra-iotc, setMode': zebra({ setMode: true }, VENDOR_MODE),
  'http-ingest, Keonn with TTL 0': pushed('keonn', 0),
  'http-ingest, Impinj without an interval': pushed('impinj', 0),
  thingmagic: module({ driver: 'thingmagic', region: 'europe' }, (platform) => new ThingMagicReader({ platform })),
  'uhf-m100': module({ driver: 'uhf-m100' }, (platform) => new M100Pad({ platform })),
}

/** Vendors' defaults and usual settings. `first`: already the first walks of goods are missed. */
const DEFAULTS: Readonly<
  Record<string, { kind: Kind; code: string; misses: 'first' | 'later'; shelfSeconds?: number }>
> = {
  'zebra-iotc, SIMPLE': { kind: zebra({}, VENDOR_MODE), code: 'reader_mode', misses: 'first' },
  'zebra-iotc, PORTAL': { kind: zebra({}, { type: 'PORTAL' }), code: 'reader_filters', misses: 'first' },
  'zebra-iotc, CONVEYOR in session 0': {
    kind: zebra({}, { type: 'CONVEYOR', query: { session: 'S0' } }),
    code: 'reader_filters',
    misses: 'later',
  },
  'impinj-iot, preset of a stock': { kind: impinj({ preset: 'default' }), code: 'reader_session', misses: 'first' },
  'http-ingest, Keonn with a TTL of 1 s': {
    kind: pushed('keonn', USUAL_TTL_MS),
    code: 'reader_filters',
    misses: 'first',
    shelfSeconds: 210,
  },
}

describe('walks through a gate of each reader', () => {
  it('cover all UHF readers', () => {
    const names = DeviceEntry.options.flatMap(({ shape }) => ('nearDbm' in shape ? [shape.driver.value] : []))
    expect(new Set(Object.values(ADVISED).map(({ entry }) => entry['driver']))).toEqual(new Set(names))
  })

  describe.each([
    ['in the learning minute', true],
    ['after it', false],
  ])('%s', (_, isNew) => {
    it.each(Object.entries(ADVISED))('all alarm with %s', async (_name, kind) => {
      const b = await gateWith(kind, isNew)
      expect([b.status().state, await b.first(), await b.again()]).toEqual(['ready', [], []])
      await b.shelf(60)
      expect(b.status().state).toBe('ready')
      await b.stop()
    })

    it.each(Object.entries(DEFAULTS))('are missed with %s, and the device is degraded', async (_name, row) => {
      const b = await gateWith(row.kind, isNew)
      const first = await b.first()
      const later = await b.again()
      expect((row.misses === 'first' ? first : later).length).toBeGreaterThan(0)
      if (row.shelfSeconds !== undefined) await b.shelf(row.shelfSeconds)
      expect(b.status().state).toBe('degraded')
      expect(b.status().findings.map(({ code }) => code)).toContain(row.code)
      await b.stop()
    })
  })

  it('of less than a second are missed in session 1 by a reader that queries target A only, which is warned of', async () => {
    const b = await gateWith(llrp({ session: 1 }, 'A'), false)
    expect((await b.first()).length).toBeGreaterThan(0)
    expect(b.status()).toMatchObject({ state: 'ready', findings: [{ code: 'reader_session', isWarning: true }] })
    await b.stop()
  })
})
