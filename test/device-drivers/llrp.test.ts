import { describe, expect, test } from 'vitest'
import { MESSAGES } from '../../device-drivers/protocols/llrp/messages.ts'
import type { MessageName } from '../../device-drivers/protocols/llrp/messages.ts'
import { memoryPair } from '../../device-drivers/transports/memory.ts'
import { llrpReader } from '../../simulators/devices/llrp.ts'
import { describeDriver } from './conformance.ts'
import { EPC, GATE, gateBench, writesTo } from './gate-bench.ts'
import { entries, RELEASE } from './workbench.ts'

const of = (...names: MessageName[]) => names.map((name) => MESSAGES[name].type)

describeDriver('llrp', {
  entry: { antennas: GATE.antennas, siren: GATE.siren, release: { gpo: 3, pulseMs: 200 } },
  // Three keepalives, and what is under way.
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
  test('the reader is asked, set up and started in the order of the standard; then tags are told', async () => {
    const { world, reader, untilReady, state, reads, events } = gateBench({
      gate: { passageInput: 3, amber: { gpo: 2 }, transmitPowerDbm: 27.4, session: 2 },
    })
    await untilReady()
    expect(reader.received).toEqual([
      'GET_READER_CAPABILITIES',
      'DELETE_ROSPEC',
      'SET_READER_CONFIG',
      'GET_READER_CONFIG',
      'ADD_ROSPEC',
      'ENABLE_ROSPEC',
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

  test('without antennas all are used', async () => {
    const bench = gateBench({ gate: { antennas: undefined } })
    await bench.untilReady()
    for (const antenna of [1, 2, 3, 4]) bench.reader.see(EPC, { antenna })
    await bench.world.advance(1)
    expect(bench.reads().map(({ antenna }) => antenna)).toEqual([1, 2, 3, 4])
  })

  test('another client has the reader: the operator is told what to do; it goes on by itself', async () => {
    const bench = gateBench()
    bench.reader.occupy(true)
    await bench.world.advance(60_000)
    expect(bench.states.map(({ state }) => state)).not.toContain('ready')
    expect(bench.state().detail).toContain('another program is connected to this reader and it serves one at a time')
    bench.reader.occupy(false)
    await bench.untilReady()
  })

  test('somebody else tries to connect to a reader that is ours', async () => {
    const bench = gateBench()
    await bench.untilReady()
    const { near, far } = memoryPair()
    await Promise.all([bench.reader.serve(far), near.close()])
    await bench.world.advance(10)
    expect(bench.faults()).toEqual(['another program tried to connect to this reader'])
    expect(bench.state().state).toBe('ready')
  })

  test('it accepts the connection and says nothing', async () => {
    const bench = gateBench()
    bench.reader.hang(true)
    await bench.until(() => bench.state().state === 'degraded')
    expect(bench.state().detail).toContain('does not greet')
    bench.reader.hang(false)
    await bench.untilReady()
  })

  test.each<[Record<string, unknown>, string]>([
    [{ antennas: { outside: [5] } }, 'antennas: there is no antenna 5; the reader has 4; check the settings of gate'],
    [{ siren: { gpo: 5 } }, 'there is no output (GPO) 5; the reader has 4; check the settings of gate'],
    [{ inputs: [9] }, 'there is no input (GPI) 9; the reader has 4; check the settings of gate'],
    [{ transmitPowerDbm: 9 }, 'transmitPowerDbm: the reader sends with 10 dBm at least; check the settings of gate'],
  ])('settings that the reader cannot carry out: %j', async (gate, detail) => {
    const bench = gateBench({ gate })
    await bench.until(() => bench.state().state === 'degraded')
    expect(bench.state().detail).toBe(detail)
    expect(bench.reader.received).not.toContain('SET_READER_CONFIG')
  })

  test('the reader refuses a step', async () => {
    const bench = gateBench()
    bench.reader.faults.on({ kind: 'exception', code: 401, functions: of('ADD_ROSPEC'), times: 1 })
    await bench.until(() => bench.state().state === 'degraded')
    expect(bench.state().detail).toBe('the reader refuses ADD_ROSPEC: device error (401), told to refuse')
    await bench.untilReady()
  })

  test.each([
    'GET_READER_CAPABILITIES',
    'DELETE_ROSPEC',
    'SET_READER_CONFIG',
    'GET_READER_CONFIG',
    'ADD_ROSPEC',
    'ENABLE_ROSPEC',
  ] as const)(
    'the plug pulled, no answer, a garbled or refused one at %s: tried anew until it is ready',
    async (name) => {
      for (const kind of ['cut-before-answer', 'cut-after-answer', 'mute', 'dead', 'garble'] as const) {
        const bench = gateBench()
        bench.reader.faults.on({ kind, functions: of(name), times: 2 })
        await bench.untilReady()
        bench.reader.see(EPC)
        await bench.world.advance(1)
        expect(bench.reads(), kind).toHaveLength(1)
        await bench.supervisor.stop()
      }
    },
  )

  test('while it is set up, and whenever it is ready, the plug may be pulled', async () => {
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
  test('keepalives are answered, and an idle reader stays ready', async () => {
    const bench = gateBench()
    await bench.untilReady()
    await bench.world.advance(10 * 60_000)
    expect(bench.reader.received.filter((name) => name === 'KEEPALIVE_ACK').length).toBeGreaterThan(115)
    expect(bench.port.opened).toBe(1)
  })

  test('nothing for three periods: lost, and connected anew', async () => {
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

  test('a reboot: everything is set up again, with the siren that still has to sound', async () => {
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

  test('garbage between two messages is told and survived; what never makes sense is no reader', async () => {
    const bench = gateBench()
    await bench.untilReady()
    bench.reader.garbage(new Uint8Array(300).fill(0xee))
    bench.reader.see(EPC)
    await bench.world.advance(10)
    expect(bench.events).toEqual([
      { type: 'noise', bytes: 300, detail: 'bytes that are no LLRP message' },
      { type: 'tags', reads: [expect.objectContaining({ tag: { epc: EPC } })] },
    ])
    expect(bench.port.opened).toBe(1)
    for (let i = 0; i < 10; i++) {
      bench.reader.garbage(new Uint8Array(8_000).fill(0x3c))
      await bench.world.advance(10)
    }
    expect(bench.states.map(({ detail }) => detail)).toContain(
      'what answers there does not speak LLRP; check address and port (5084)',
    )
    await bench.untilReady()
  })

  test('closing switches off, stops the reader and says good-bye', async () => {
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

  test('defaults', () => {
    expect(entries(GATE)).toEqual([
      { ...GATE, inputs: [], session: 1, tagPopulation: 32, keepaliveMs: 5_000, requestTimeoutMs: 3_000 },
    ])
  })

  test.each<[Record<string, unknown>, string]>([
    [{ antennas: {} }, 'antennas: name at least one antenna'],
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
  ])('%j', (more, fault) => {
    expect(wrong(more)).toThrow(fault)
  })

  test('a reader serves one device', () => {
    expect(() => entries(GATE, { ...GATE, deviceId: 'other', siren: { gpo: 2 } })).toThrow(
      'belongs to devices[0] alone',
    )
  })
})
