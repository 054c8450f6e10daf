import { describe, expect, test } from 'vitest'
import { MESSAGES } from '../../device-drivers/llrp/protocol/messages.ts'
import type { MessageName } from '../../device-drivers/llrp/protocol/messages.ts'
import { memoryPair } from '../../device-drivers/transports/memory.ts'
import { llrpReader } from '../../simulators/devices/llrp.ts'
import { describeDriver } from './conformance.ts'
import { EPC, GATE, gateBench, writesTo } from './gate-bench.ts'
import { entries, RELEASE } from './workbench.ts'

const of = (...names: MessageName[]) => names.map((name) => MESSAGES[name].type)

describeDriver('llrp', {
  entry: { antennas: GATE.antennas, siren: GATE.siren, release: { gpo: 3, pulseMs: 200 } },
  // The time of three keepalives, and of messages in transit.
  noticedWithinMs: 16_000,
  release: RELEASE,
  device(platform) {
    const reader = llrpReader({ platform, bootMs: 3_000 })
    return {
      serve: reader.serve,
      mute: () => reader.hang(true),
      heal() {
        reader.hang(false)
        reader.faults.heal()
      },
      stir: () => reader.see(EPC),
      fits: (event) => event.type === 'tags' && event.reads.some(({ tag }) => 'epc' in tag && tag.epc === EPC),
      releases: () => reader.writes.filter(({ gpo, on }) => gpo === 3 && on).length,
      loseAnswer: () => void reader.faults.on({ kind: 'mute', functions: of('SET_READER_CONFIG'), times: Infinity }),
      rest: () => reader.reboot(),
    }
  },
})

describe('connecting', () => {
  test('identifies, configures and starts the reader in the order of the standard, then reports tags', async () => {
    const { world, reader, untilReady, state, reads, events } = gateBench({
      gate: { passageInput: 3, amber: { gpo: 2 }, transmitPowerDbm: 27.4, session: 2 },
    })
    await untilReady()
    expect(reader.received).toEqual([
      'GET_READER_CAPABILITIES',
      'DELETE_ROSPEC',
      'DELETE_ACCESSSPEC',
      'SET_READER_CONFIG',
      'GET_READER_CONFIG',
      'GET_READER_CONFIG',
      'GET_READER_CONFIG',
      'ADD_ROSPEC',
      'ENABLE_ROSPEC',
      'GET_ROSPECS',
      'ENABLE_EVENTS_AND_REPORTS',
    ])
    expect(state()).toMatchObject({
      detail: 'maker 0 UHF reader (model 1, 4 antennas) at tcp:10.0.0.7:5084',
      identity: { firmwareVersion: 'simulated 1.0', serialNumber: '001625FFFE000001' },
    })
    expect([writesTo(reader, 1), writesTo(reader, 2), writesTo(reader, 3)]).toEqual([[false], [false], []])

    await world.advance(5_000)
    reader.see(EPC, { antenna: 1, rssiDbm: -61 })
    reader.see('E2801160600002054A9C1234E2801160', { antenna: 2 })
    reader.see(EPC, { antenna: 4 })
    await world.advance(1)
    const seenAtMs = world.clock.elapsed() - 1
    expect(reads()).toEqual([
      { tag: { epc: EPC }, antenna: 1, rssiDbm: -61, seenAtMs },
      { tag: { epc: 'E2801160600002054A9C1234E2801160' }, antenna: 2, rssiDbm: -55, seenAtMs },
    ])
    expect(events.filter((event) => event.type !== 'tags')).toEqual([])
  })

  test('deletes the AccessSpecs that another program has left', async () => {
    const bench = gateBench({ reader: { hasForeignAccessSpec: true } })
    expect(bench.reader.accessSpecs).toEqual([77])
    await bench.untilReady()
    expect(bench.reader.accessSpecs).toEqual([])
  })

  // Hop table and channel: of an FX9600 (1/1), of a European reader on its third channel, and of a hopping Impinj reader.
  test.each([
    [1, 1],
    [0, 3],
    [1, 0],
  ])('changes only the power of a reader with hop table %i and channel %i', async (...channel) => {
    const bench = gateBench({ gate: { transmitPowerDbm: 27 }, reader: { channel } })
    await bench.untilReady()
  })

  test('becomes ready at a reader that takes 0.9 s for each answer', async () => {
    const bench = gateBench({ gate: { passageInput: 3, transmitPowerDbm: 27 }, reader: { answerDelayMs: 900 } })
    await bench.until(() => bench.state().state === 'ready', 12_000)
    expect(bench.states.map(({ state }) => state)).toEqual(['opening', 'identifying', 'ready'])
  })

  test('uses all antennas by default', async () => {
    const bench = gateBench({ gate: { antennas: undefined } })
    await bench.untilReady()
    for (const antenna of [1, 2, 3, 4]) bench.reader.see(EPC, { antenna })
    await bench.world.advance(1)
    expect(bench.reads().map(({ antenna }) => antenna)).toEqual([1, 2, 3, 4])
  })

  test('tells the operator that another client is connected, and recovers by itself', async () => {
    const bench = gateBench()
    bench.reader.occupy(true)
    await bench.world.advance(60_000)
    expect(bench.states.map(({ state }) => state)).not.toContain('ready')
    expect(bench.state().detail).toContain('another program is connected to this reader and it serves one at a time')
    bench.reader.occupy(false)
    await bench.untilReady()
  })

  test('reports an attempt of another client to connect', async () => {
    const bench = gateBench()
    await bench.untilReady()
    const { near, far } = memoryPair()
    await Promise.all([bench.reader.serve(far), near.close()])
    await bench.world.advance(10)
    expect(bench.faults()).toEqual(['another program tried to connect to this reader'])
    expect(bench.state().state).toBe('ready')
  })

  test('reports a reader that accepts the connection and sends nothing', async () => {
    const bench = gateBench()
    bench.reader.hang(true)
    await bench.until(() => bench.state().state === 'degraded')
    expect(bench.state().detail).toContain('sends no connection event')
    bench.reader.hang(false)
    await bench.untilReady()
  })

  test.each<[Record<string, unknown>, string]>([
    [{ antennas: { outside: [5] } }, 'antennas: there is no antenna 5; the reader has 4; check the settings of gate'],
    [{ siren: { gpo: 5 } }, 'there is no output (GPO) 5; the reader has 4; check the settings of gate'],
    [{ inputs: [9] }, 'there is no input (GPI) 9; the reader has 4; check the settings of gate'],
    [
      { transmitPowerDbm: 9 },
      'transmitPowerDbm: the reader transmits with at least 10 dBm; check the settings of gate',
    ],
  ])('rejects settings that the reader cannot execute: %j', async (gate, detail) => {
    const bench = gateBench({ gate })
    await bench.until(() => bench.state().state === 'degraded')
    expect(bench.state().detail).toBe(detail)
    expect(bench.reader.received).not.toContain('SET_READER_CONFIG')
  })

  test('reports a refused step of the set-up', async () => {
    const bench = gateBench()
    bench.reader.faults.on({ kind: 'exception', code: 401, functions: of('ADD_ROSPEC'), times: 1 })
    await bench.until(() => bench.state().state === 'degraded')
    expect(bench.state().detail).toBe('the reader refuses ADD_ROSPEC: device error (401), simulated')
    await bench.untilReady()
  })

  test.each([
    'GET_READER_CAPABILITIES',
    'DELETE_ROSPEC',
    'SET_READER_CONFIG',
    'GET_READER_CONFIG',
    'ADD_ROSPEC',
    'ENABLE_ROSPEC',
  ] as const)('retries until ready after a pulled plug, a lost, garbled or refused answer at %s', async (name) => {
    for (const kind of ['cut-before-answer', 'cut-after-answer', 'mute', 'dead', 'garble'] as const) {
      const bench = gateBench()
      bench.reader.faults.on({ kind, functions: of(name), times: 2 })
      await bench.untilReady()
      bench.reader.see(EPC)
      await bench.world.advance(1)
      expect(bench.reads(), kind).toHaveLength(1)
      await bench.supervisor.stop()
    }
  })

  test('recovers when the plug is pulled during the set-up or when ready', async () => {
    const bench = gateBench()
    for (let after = 0; after < 12; after++) {
      const steps = bench.reader.received.length + after
      await bench.until(() => bench.reader.received.length >= steps)
      bench.port.unplug()
      await bench.until(() => bench.state().state === 'absent' || bench.state().state === 'degraded')
      bench.port.plug()
      await bench.untilReady()
    }
  })
})

describe('liveness', () => {
  test('acknowledges keepalives, and keeps an idle reader ready', async () => {
    const bench = gateBench()
    await bench.untilReady()
    await bench.world.advance(10 * 60_000)
    expect(bench.reader.received.filter((name) => name === 'KEEPALIVE_ACK').length).toBeGreaterThan(115)
    expect(bench.port.opened).toBe(1)
  })

  test('reconnects after three missing keepalives', async () => {
    const bench = gateBench()
    await bench.untilReady()
    await bench.world.advance(1_000)
    bench.reader.hang(true)
    await bench.world.advance(13_000)
    expect(bench.state().state).toBe('ready')
    await bench.world.advance(3_000)
    expect(bench.states.map(({ detail }) => detail)).toContain('nothing from the reader for 15 s')
    bench.reader.hang(false)
    await bench.untilReady()
  })

  test('configures a rebooted reader again, with the remaining siren time', async () => {
    const bench = gateBench()
    await bench.untilReady()
    expect(await bench.world.settle(bench.siren(60))).toMatchObject({ outcome: 'confirmed', commanded: true })
    bench.reader.reboot()
    await bench.world.advance(100)
    expect([bench.reader.gpos[1], bench.state().state]).toEqual([false, 'degraded'])
    await bench.untilReady()
    expect([bench.reader.gpos[1], bench.reader.isReading]).toEqual([true, true])
    await bench.world.advance(61_000)
    expect(bench.reader.gpos[1]).toBe(false)
  })

  test('survives garbage between messages, and rejects a peer that never speaks LLRP', async () => {
    const bench = gateBench()
    await bench.untilReady()
    bench.reader.garbage(new Uint8Array(300).fill(0xee))
    bench.reader.see(EPC)
    await bench.world.advance(10)
    expect(bench.events).toEqual([
      { type: 'noise', bytes: 300, detail: 'bytes that are no LLRP message' },
      { type: 'fault', detail: expect.stringContaining('ee ee ee') },
      { type: 'tags', reads: [expect.objectContaining({ tag: { epc: EPC } })] },
    ])
    expect(bench.port.opened).toBe(1)
    for (let i = 0; i < 10; i++) {
      bench.reader.garbage(new Uint8Array(8_000).fill(0x3c))
      await bench.world.advance(10)
    }
    expect(bench.states.map(({ detail }) => detail)).toContain(
      'the peer does not speak LLRP; check address and port (5084)',
    )
    await bench.untilReady()
  })

  // RO_ACCESS_REPORT with a TagReportData (240): with an EPC-96 that is cut off after 4 bytes, and with an antenna only.
  test.each([
    [[0, 240, 0, 9, 0x8d, 0x30, 0x34, 0x25, 0x7b], '00 f0 00 09 8d 30 34 25 7b (hex)'],
    [[0, 240, 0, 7, 0x81, 0, 1], '00 f0 00 07 81 00 01 (hex)'],
  ])('is degraded while only reports arrive that it cannot read: %j', async (body, sample) => {
    const report = Uint8Array.from([0x04, 61, 0, 0, 0, 10 + body.length, 0, 0, 0, 9, ...body])
    const bench = gateBench()
    await bench.untilReady()
    for (let n = 0; n < 3; n++) {
      expect(bench.supervisor.status('gate')?.state).toBe('ready')
      bench.reader.garbage(report)
      await bench.world.advance(10)
    }
    expect(bench.supervisor.status('gate')).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'unreadable_data', detail: expect.stringContaining(sample) }],
    })
    bench.reader.see(EPC)
    await bench.untilReady()
  })

  test('switches off, stops the reader and closes the connection', async () => {
    const bench = gateBench()
    await bench.untilReady()
    await bench.world.settle(bench.siren(60))
    await bench.world.settle(bench.supervisor.stop())
    expect([bench.reader.gpos[1], bench.reader.isReading, bench.reader.isConnected]).toEqual([false, false, false])
    expect(bench.reader.received.slice(-3)).toEqual(['SET_READER_CONFIG', 'DELETE_ROSPEC', 'CLOSE_CONNECTION'])
  })
})

describe('settings', () => {
  const wrong = (more: Record<string, unknown>) => () => entries({ ...GATE, ...more })

  test('have defaults', () => {
    expect(entries(GATE)).toEqual([
      { ...GATE, inputs: [], tagPopulation: 32, keepaliveMs: 5_000, requestTimeoutMs: 3_000 },
    ])
  })

  test.each<[Record<string, unknown>, string]>([
    [{ antennas: {} }, 'antennas: name at least one antenna'],
    [{ antennas: { inside: [1, 2], outside: [2] } }, 'antennas: each antenna is either inside or outside'],
    [
      { siren: { gpo: 0 } },
      'siren.gpo: give the number of the output (GPO) of the siren as the reader counts them, from 1',
    ],
    [{ amber: { gpo: 1 } }, 'GPO 1 at tcp:10.0.0.7:5084 is taken by'],
    [{ link: { serial: '/dev/ttyS0', baudRate: 9600 } }, 'link.tcp: give host and port'],
    [{ kill: { password: '00000000' } }, 'kill.password: give the kill password'],
    [
      { kill: { password: '00000001' }, release: { gpo: 2 } },
      'kill: a release either pulses an output or kills the tag',
    ],
    [{ eas: { password: '1' } }, 'eas.password: give the access password of the tags'],
    [{ eas: {}, kill: { password: '00000001' } }, 'eas: a release does one thing'],
    [{ session: 4 }, 'session: give a Gen2 session, 0 to 3'],
    [{ transmitPowerDbm: 40 }, 'transmitPowerDbm: give dBm'],
    [{ sirene: {} }, 'sirene: no such setting'],
  ])('reject %j', (more, fault) => {
    expect(wrong(more)).toThrow(fault)
  })

  test('allow one device for a reader', () => {
    expect(() => entries(GATE, { ...GATE, deviceId: 'other', siren: { gpo: 2 } })).toThrow(
      'belongs to devices[0] alone',
    )
  })
})
