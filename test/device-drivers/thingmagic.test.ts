import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DeviceEvent } from '../../device-drivers/kit/device.ts'
import { THINGMAGIC, thingMagicCodec, type ThingMagicFrame } from '../../device-drivers/thingmagic/protocol/frame.ts'
import {
  decodeThingMagicTag,
  decodeVersion,
  isBootLoader,
  setAntennas,
  setReadPower,
  START_READING,
  STOP_READING,
  REPORT_EVERY_READ,
  thingMagicCommand,
  useAsOutput,
} from '../../device-drivers/thingmagic/protocol/messages.ts'
import { supervise } from '../../device-drivers/supervisor.ts'
import { memoryPort } from '../../device-drivers/transports/memory.ts'
import type { Fault } from '../../simulators/devices/faults.ts'
import { ThingMagicReader } from '../../simulators/devices/thingmagic.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { describeCodec } from './codec-conformance.ts'
import { describeDriver } from './conformance.ts'
import { ADDRESS, entries, forEver, RELEASE } from './workbench.ts'

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(/\s/g, ''), 'hex'))

// Frames that an M6e Nano and its maker's program exchanged, as SparkFun's library publishes them ("Example
// Communication Logs", MIT), retyped.
describe('golden frames', () => {
  test.each<[string, ThingMagicFrame]>([
    ['FF 00 03 1D 0C', thingMagicCommand(THINGMAGIC.version)],
    ['FF 00 0C 1D 03', thingMagicCommand(THINGMAGIC.currentProgram)],
    ['FF 02 92 0A 8C 4B D5', setReadPower(27)],
    ['FF 03 91 02 01 01 42 C5', setAntennas([1])],
    ['FF 03 9A 01 0C 00 A3 5D', REPORT_EVERY_READ],
    ['FF 10 2F 00 00 01 22 00 00 05 07 22 10 00 1B 03 E8 01 FF DD 2B', START_READING],
    ['FF 03 2F 00 00 02 5E 86', STOP_READING],
  ])('command %s', (bytes, frame) => {
    expect(thingMagicCodec('host').encode(frame)).toEqual(hex(bytes))
    expect(thingMagicCodec('reader').push(hex(bytes))).toEqual([frame])
  })

  const one = (bytes: string): ThingMagicFrame => {
    const [frame] = thingMagicCodec('host').push(hex(bytes))
    if (!frame) throw new Error('no frame')
    return frame
  }

  test('decodes replies', () => {
    expect(
      decodeVersion(one('FF 14 03 00 00 14 12 08 00 30 00 00 02 20 15 03 10 01 03 01 47 00 00 00 10 EB FF')),
    ).toEqual({ hardware: '30.00.00.02', firmware: '01.03.01.47' })
    expect(isBootLoader(one('FF 01 0C 00 00 52 63 03'))).toBe(false)
    expect(one('FF 00 22 04 00 84 E0')).toEqual({ opcode: 0x22, status: 0x0400, data: new Uint8Array(0) })
    expect(one('FF 01 2F 00 00 02 30 E6')).toEqual({ opcode: 0x2f, status: 0, data: hex('02') })
    expect(one('FF 00 9A 00 00 A6 33').status).toBe(0)
  })

  test.each([
    [
      'FF 28 22 00 00 10 00 1B 01 FF 01 01 C4 11 0E 16 40 00 00 01 27 00 00 05 00 00 0F 00 80 30 00 00 00 00 00 00 00 00 00 00 00 15 45 E9 4A 56 1D',
      '000000000000000000001545',
      -60,
    ],
    [
      'FF 20 22 00 00 10 00 1B 01 FF 01 01 C7 11 0E 08 30 00 00 00 0F 00 00 05 00 00 0F 00 40 10 00 59 6F 59 6F F3 13 89 90',
      '596F596F',
      -57,
    ],
    [
      'FF 28 22 00 00 10 00 1B 01 FF 01 01 C9 11 0E 08 30 00 00 00 13 00 00 05 00 00 0F 00 80 30 00 E2 00 10 26 76 0E 01 79 15 90 71 25 19 85 57 97',
      'E2001026760E017915907125',
      -55,
    ],
  ])('decodes a tag: %s', (bytes, epc, rssiDbm) => {
    expect(decodeThingMagicTag(one(bytes))).toEqual({ epc, rssiDbm, antenna: 1 })
  })

  // The XI bit of the PC announces XPC_W1, and its first bit XPC_W2 (ISO/IEC 18000-63); the tag of the third frame above.
  test.each([
    ['3A00', '0080'],
    ['4200', '80800001'],
  ])('leaves the XPC words of a tag with PC %s out of its EPC', (pc, xpc) => {
    const plain = one(
      'FF 28 22 00 00 10 00 1B 01 FF 01 01 C9 11 0E 08 30 00 00 00 13 00 00 05 00 00 0F 00 80 30 00 E2 00 10 26 76 0E 01 79 15 90 71 25 19 85 57 97',
    )
    const head = plain.data.subarray(0, plain.data.length - 18)
    const bits = 8 * (16 + xpc.length / 2)
    const data = Uint8Array.of(...head, bits >> 8, bits & 0xff, ...hex(`${pc} ${xpc} E2001026760E017915907125 1985`))
    expect(decodeThingMagicTag({ ...plain, data })).toMatchObject({ epc: 'E2001026760E017915907125' })
  })

  test('rejects frames without a tag', () => {
    const good = one(
      'FF 20 22 00 00 10 00 1B 01 FF 01 01 C7 11 0E 08 30 00 00 00 0F 00 00 05 00 00 0F 00 40 10 00 59 6F 59 6F F3 13 89 90',
    )
    for (let cut = 0; cut < good.data.length; cut++)
      expect(decodeThingMagicTag({ ...good, data: good.data.subarray(0, cut) })).toBeNull()
    expect(decodeThingMagicTag({ ...good, status: 0x0400 })).toBeNull()
    // After the metadata follow the number of bits (2 bytes), PC (2), EPC, CRC (2). No tag has an EPC of more than 496
    // bits.
    const ofBytes = (epc: number) =>
      Uint8Array.of(
        ...good.data.subarray(0, 22),
        (8 * (epc + 4)) >> 8,
        (8 * (epc + 4)) & 0xff,
        ...Array<number>(epc + 4).fill(0xa9),
      )
    expect(decodeThingMagicTag({ ...good, data: ofBytes(62) })).toMatchObject({ epc: 'A9'.repeat(62) })
    expect(decodeThingMagicTag({ ...good, data: ofBytes(64) })).toBeNull()
    fc.assert(fc.property(fc.uint8Array({ maxLength: 255 }), (data) => void decodeThingMagicTag({ ...good, data })))
  })
})

describeCodec<ThingMagicFrame>('ThingMagic', {
  make: () => thingMagicCodec('host'),
  frames: fc.record({
    opcode: fc.constantFrom(...Object.values(THINGMAGIC)),
    status: fc.integer({ min: 0, max: 0xffff }),
    data: fc.uint8Array({ maxLength: 255 }),
  }),
  sample: (n) => ({ opcode: THINGMAGIC.readMany, status: 0, data: Uint8Array.of(1, 2, 3, n) }),
  mostHeld: 255 + 7,
  begin: 0xff,
})

const EPC = '3074257BF7194E4000001A85'

const stirredEpc = (n: number) => `E280${n.toString(16).toUpperCase().padStart(20, '0')}`

describeDriver('thingmagic', {
  entry: { region: 'europe', green: { output: 1 } },
  noticedWithinMs: 10_000,
  device(platform) {
    const reader = new ThingMagicReader({ platform })
    let stirred = 0
    return {
      serve: reader.serve,
      mute: () => void reader.faults.on({ kind: 'dead' }),
      heal: reader.faults.heal,
      rest: reader.restart,
      stir: () => reader.put({ epc: stirredEpc(++stirred) }),
      leave: () => reader.take(stirredEpc(stirred)),
      fits: (event) =>
        event.type === 'tags' && event.reads.some(({ tag }) => 'epc' in tag && tag.epc.startsWith('E280')),
    }
  },
})

async function ready(settings: Record<string, unknown> = {}, options: { bootLoader?: boolean } = {}) {
  const world = virtualPlatform()
  const reader = new ThingMagicReader({ platform: world, ...options })
  const port = memoryPort((link) => void reader.serve(link))
  const events: DeviceEvent[] = []
  const supervisor = supervise({
    devices: entries({
      deviceId: 'reader',
      driver: 'thingmagic',
      link: { tcp: ADDRESS },
      region: 'europe',
      ...settings,
    }),
    platform: world,
    openLink: (_, signal) => port.open(signal),
    onEvent: (_, event) => void events.push(event),
  })
  await world.advance(50)
  const signal = (seconds: number) =>
    world.settle(supervisor.execute('reader', { kind: 'signal', signal: 'green', seconds }, forEver()))
  return { world, reader, port, events, supervisor, signal }
}

describe('a ThingMagic reader', () => {
  test.each([false, true])(
    'reports its identity and applies its settings (boot loader first: %s)',
    async (bootLoader) => {
      const { supervisor, reader } = await ready({ powerDbm: 21.5 }, { bootLoader })
      expect(supervisor.status('reader')?.identity).toEqual({
        description: `ThingMagic reader 30.00.00.02 at tcp:${ADDRESS}`,
        firmwareVersion: '01.03.01.47',
      })
      expect([reader.region, reader.powerDbm, reader.reading]).toEqual([8, 21.5, true])
    },
  )

  test('is not ready with more power than it supports, and names the setting', async () => {
    const { supervisor } = await ready({ powerDbm: 31 })
    expect(supervisor.status('reader')?.detail).toBe(
      'the reader refuses a power of 31 dBm: status 0103 (power too high); check the settings of reader',
    )
  })

  test('reports a tag, repeats it, and reports that it left', async () => {
    const { world, reader, events } = await ready()
    reader.put({ epc: EPC, rssiDbm: -48 })
    await world.advance(600)
    reader.take(EPC)
    await world.advance(1_500)
    expect(events[0]).toEqual({
      type: 'tags',
      reads: [{ tag: { epc: EPC }, rssiDbm: -48, antenna: 1, seenAtMs: expect.any(Number) }],
    })
    expect(events.at(-1)).toEqual({ type: 'tag_gone', tag: { epc: EPC } })
    expect(events.length).toBeLessThanOrEqual(5)
  })

  test('reads again within seconds after a power failure, with its settings', async () => {
    const { world, reader, supervisor } = await ready()
    reader.restart()
    await world.advance(20_000)
    expect(reader.reading).toBe(true)
    expect(reader.region).toBe(8)
    expect(supervisor.status('reader')?.state).toBe('ready')
  })

  test('is degraded while only reports arrive that it cannot read', async () => {
    const { world, reader, supervisor } = await ready()
    for (let n = 0; n < 3; n++) {
      expect(supervisor.status('reader')?.state).toBe('ready')
      reader.report(0, [0x00, 0x10, 0x00, 0x1b, 0x01, 0xff, 0x09])
      await world.advance(50)
    }
    expect(supervisor.status('reader')).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'unreadable_data', detail: expect.stringContaining('00 10 00 1b 01 ff 09') }],
    })
    reader.put({ epc: EPC })
    await world.advance(100)
    expect(supervisor.status('reader')?.state).toBe('ready')
  })

  test('is degraded while an antenna is missing, with one finding for all reports', async () => {
    const { world, reader, supervisor, events } = await ready({ antennas: [1, 2] })
    reader.put({ epc: EPC })
    for (let n = 0; n < 100; n++) {
      reader.report(0x0505)
      await world.advance(100)
    }
    expect(supervisor.status('reader')).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'reader_antenna', detail: expect.stringContaining('is an antenna connected?') }],
    })
    expect(events.filter(({ type }) => type === 'finding' || type === 'fault')).toHaveLength(1)
    await world.advance(5_100)
    expect(supervisor.status('reader')?.state).toBe('ready')
  })

  test('reports another status of the running read once a minute', async () => {
    const { world, reader, events } = await ready()
    for (let n = 0; n < 50; n++) {
      reader.report(0x0501)
      await world.advance(100)
    }
    expect(events.filter(({ type }) => type === 'fault')).toHaveLength(1)
  })

  test('reports heat once', async () => {
    const { world, reader, events } = await ready()
    reader.heat(true)
    await world.advance(30_000)
    expect(events.filter((event) => event.type === 'fault')).toHaveLength(1)
  })

  test('makes a pin an output, because all are inputs after power-up', async () => {
    const { reader } = await ready({ green: { output: 2 }, siren: { output: 1 } })
    expect([...reader.outputs].sort()).toEqual([
      [1, false],
      [2, false],
    ])
    expect([...useAsOutput(2, true).data]).toEqual([1, 2, 1, 1])
  })

  test('switches a lamp on and off by time, restores it after a reconnect, and continues reading', async () => {
    const { world, reader, port, signal } = await ready({ green: { output: 2 } })
    expect(await signal(10)).toMatchObject({ outcome: 'confirmed' })
    expect([reader.outputs.get(2), reader.reading]).toEqual([true, true])
    reader.restart()
    port.cut()
    await world.advance(3_000)
    expect([reader.outputs.get(2), reader.reading]).toEqual([true, true])
    await world.advance(8_000)
    expect([reader.outputs.get(2), reader.reading]).toEqual([false, true])
  })

  const faulty = [
    ['its stop is lost', { kind: 'dead', functions: [THINGMAGIC.tagOperation], times: 1 }],
    ['it is lost', { kind: 'dead', functions: [THINGMAGIC.setOutput], times: 1 }],
    ['its answer is lost', { kind: 'mute', functions: [THINGMAGIC.setOutput], times: 1 }],
    ['its answer is garbled', { kind: 'garble', functions: [THINGMAGIC.setOutput], times: 1 }],
    ['it is lost five times', { kind: 'dead', functions: [THINGMAGIC.setOutput], times: 5 }],
  ] satisfies [string, Fault][]

  test.each(faulty)('switches a lamp on although %s', async (_, fault) => {
    const { world, reader, signal } = await ready({ green: { output: 1 } })
    reader.faults.on(fault)
    expect((await signal(30)).outcome).not.toBe('confirmed')
    await world.advance(20_000)
    expect([reader.outputs.get(1), reader.reading]).toEqual([true, true])
    await world.advance(12_000)
    expect([reader.outputs.get(1), reader.reading]).toEqual([false, true])
  })

  test.each([
    ...faulty,
    [
      'the module refuses it once',
      { kind: 'exception', code: 0x0101, functions: [THINGMAGIC.setOutput], times: 1 },
    ] satisfies [string, Fault],
  ])('switches a lamp off although %s', async (_, fault) => {
    const { world, reader, signal } = await ready({ green: { output: 1 } })
    await signal(5)
    reader.faults.on(fault)
    await world.advance(25_000)
    expect([reader.outputs.get(1), reader.reading]).toEqual([false, true])
  })

  test('switches a lamp on or off whose time comes during the set-up', async () => {
    for (const atMs of Array.from({ length: 75 }, (_, n) => n * 20)) {
      const { world, reader, port, signal, supervisor } = await ready({ green: { output: 1 } })
      reader.faults.on({ kind: 'delay', ms: 60 })
      port.cut()
      await world.advance(atMs)
      void supervisor.execute('reader', { kind: 'signal', signal: 'green', seconds: 5 }, forEver())
      await world.advance(3_000)
      expect([atMs, reader.outputs.get(1)]).toEqual([atMs, true])
      await signal((atMs + 20) / 1_000)
      port.cut()
      await world.advance(10_000)
      expect([atMs, reader.outputs.get(1), reader.reading]).toEqual([atMs, false, true])
    }
  })

  test('repeats a lost OFF of a lamp when it is closed', async () => {
    const { world, reader, supervisor, signal } = await ready({ green: { output: 1 }, requestTimeoutMs: 300 })
    await signal(60)
    reader.faults.on({ kind: 'dead', functions: [THINGMAGIC.setOutput], times: 1 })
    await world.settle(supervisor.stop())
    expect([reader.outputs.get(1), reader.reading]).toEqual([false, false])
  })

  test('supports no release, and stops reading when it is closed', async () => {
    const { world, reader, supervisor } = await ready({ green: { output: 1 } })
    expect(await world.settle(supervisor.execute('reader', RELEASE, forEver()))).toMatchObject({
      outcome: 'failed',
      commanded: false,
    })
    await world.settle(supervisor.stop())
    expect(reader.reading).toBe(false)
  })
})
