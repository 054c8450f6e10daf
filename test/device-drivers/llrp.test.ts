import { describe, expect, test } from 'vitest'
import { MESSAGES } from '../../device-drivers/protocols/llrp/messages.ts'
import type { MessageName } from '../../device-drivers/protocols/llrp/messages.ts'
import { memoryPair } from '../../device-drivers/transports/memory.ts'
import { EPC, GATE, gateBench, writesTo } from './gate-bench.ts'
import { entries, RELEASE } from './workbench.ts'

const HOUR = 3_600_000
const of = (...names: MessageName[]) => names.map((name) => MESSAGES[name].type)

describe('connecting', () => {
  test('the reader is asked, set up and started in the order of the standard; then tags are told', async () => {
    const { world, reader, untilReady, state, reads, events } = gateBench({ gate: { passageInput: 3, amber: { gpo: 2 }, transmitPowerDbm: 27.4, session: 2 } })
    await untilReady()
    expect(reader.received).toEqual([
      'GET_READER_CAPABILITIES', 'DELETE_ROSPEC', 'SET_READER_CONFIG', 'GET_READER_CONFIG', 'ADD_ROSPEC', 'ENABLE_ROSPEC', 'ENABLE_EVENTS_AND_REPORTS',
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

  test.each(['GET_READER_CAPABILITIES', 'DELETE_ROSPEC', 'SET_READER_CONFIG', 'GET_READER_CONFIG', 'ADD_ROSPEC', 'ENABLE_ROSPEC'] as const)(
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
    expect(bench.states.map(({ detail }) => detail)).toContain('what answers there does not speak LLRP; check address and port (5084)')
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

describe('when a tag was seen', () => {
  test.each([
    ['right', { clockAheadMs: 0 }],
    ['three hours behind', { clockAheadMs: -3 * HOUR }],
    ['a day ahead', { clockAheadMs: 24 * HOUR }],
    ['not there (stamps since its start)', { hasClock: false }],
  ])('reads kept while the network was away carry their true time; the reader’s clock is %s', async (_, reader) => {
    const bench = gateBench({ reader, gate: { passageInput: 3 } })
    await bench.untilReady()
    await bench.world.advance(1_234)
    const seen: number[] = []
    bench.port.unplug()
    for (let i = 0; i < 100; i++) {
      await bench.world.advance(3_000)
      bench.reader.see(EPC, { antenna: 2 })
      seen.push(bench.world.clock.elapsed())
    }
    bench.reader.setInput(3, true)
    await bench.world.advance(5_000)
    bench.port.plug()
    await bench.untilReady()
    await bench.world.advance(100)
    expect(bench.reads().map(({ seenAtMs }) => Math.round(seenAtMs))).toEqual(seen)
    // Somebody who went by then does not go by now.
    expect(bench.events.some((event) => event.type === 'passage' || event.type === 'input')).toBe(false)
    bench.reader.see(EPC)
    bench.reader.setInput(3, false)
    bench.reader.setInput(3, true)
    await bench.world.advance(1)
    expect(bench.reads().at(-1)?.seenAtMs).toBe(bench.world.clock.elapsed() - 1)
    expect(bench.events.slice(-3)).toEqual([{ type: 'input', input: 3, on: false }, { type: 'input', input: 3, on: true }, { type: 'passage' }])
  })

  test('the reader’s clock is set while it runs: never in the future, and right again within seconds', async () => {
    const bench = gateBench()
    await bench.untilReady()
    for (const aheadMs of [2 * HOUR, -5 * HOUR, -5 * HOUR - 3_000, 0]) {
      bench.reader.setClock(aheadMs)
      for (let i = 0; i < 40; i++) {
        bench.reader.see(EPC)
        await bench.world.advance(500)
        expect(bench.reads().at(-1)!.seenAtMs).toBeLessThanOrEqual(bench.world.clock.elapsed())
      }
      bench.reader.see(EPC)
      await bench.world.advance(0)
      expect(bench.world.clock.elapsed() - bench.reads().at(-1)!.seenAtMs, `${aheadMs}`).toBeLessThan(50)
    }
    expect(bench.port.opened).toBe(1)
  })

  test('a clock that drifts four seconds a day does not make reads old', async () => {
    const bench = gateBench()
    await bench.untilReady()
    for (let hour = 0; hour < 48; hour++) {
      bench.reader.setClock((-4_000 / 24) * hour)
      for (let i = 0; i < 60; i++) {
        bench.reader.see(EPC)
        await bench.world.advance(HOUR / 60)
      }
      bench.reader.see(EPC)
      await bench.world.advance(0)
      expect(bench.world.clock.elapsed() - bench.reads().at(-1)!.seenAtMs).toBeLessThan(400)
    }
  })

  test('more than the reader can keep is a fault, told once', async () => {
    const bench = gateBench({ reader: { mostKept: 50 } })
    await bench.untilReady()
    bench.port.unplug()
    await bench.world.advance(100)
    for (let i = 0; i < 80; i++) bench.reader.see(EPC)
    bench.port.plug()
    await bench.untilReady()
    await bench.world.advance(10)
    expect(bench.faults()).toEqual(['the reader’s report buffer ran over: tag reads were lost'])
    expect(bench.reads()).toHaveLength(50)
  })
})

describe('what else the reader tells', () => {
  test('inputs, passages, exceptions, antennas', async () => {
    const bench = gateBench({ gate: { passageInput: 1, inputs: [2] } })
    await bench.untilReady()
    bench.reader.setInput(1, true)
    bench.reader.setInput(2, true)
    bench.reader.setInput(3, true)
    bench.reader.setInput(1, false)
    bench.reader.setAntenna(2, false)
    bench.reader.setAntenna(2, true)
    bench.reader.exception('PA temperature')
    await bench.world.advance(10)
    expect(bench.events).toEqual([
      { type: 'input', input: 1, on: true },
      { type: 'passage' },
      { type: 'input', input: 2, on: true },
      { type: 'input', input: 1, on: false },
      { type: 'fault', detail: 'antenna 2 is not connected; check its cable' },
      { type: 'fault', detail: 'antenna 2 is connected again' },
      { type: 'fault', detail: 'the reader reports an exception: PA temperature' },
    ])
  })

  test('with a beam the reader transmits only while somebody is there', async () => {
    const bench = gateBench({ gate: { readOnBeam: { gpi: 2, seconds: 4 } } })
    await bench.untilReady()
    bench.reader.see(EPC)
    expect(bench.reader.isReading).toBe(false)
    bench.reader.setInput(2, true)
    bench.reader.see(EPC)
    await bench.world.advance(4_100)
    expect([bench.reader.isReading, bench.reads().length]).toEqual([false, 1])
  })

  test('ten seconds of 1,500 reads a second: all of them, in order, in events of at most 1,000', async () => {
    const bench = gateBench()
    await bench.untilReady()
    const epc = (n: number) => n.toString(16).toUpperCase().padStart(24, '0')
    for (let n = 0; n < 15_000; n++) {
      bench.reader.see(epc(n))
      if (n % 15 === 14) await bench.world.advance(10)
    }
    await bench.world.advance(10)
    expect(bench.reads().map(({ tag }) => ('epc' in tag ? tag.epc : ''))).toEqual(Array.from({ length: 15_000 }, (_, n) => epc(n)))
    expect(Math.max(...bench.events.map((event) => (event.type === 'tags' ? event.reads.length : 0)))).toBeLessThanOrEqual(1_000)
  })
})

describe('siren and lamps', () => {
  test('on, longer, off by time, off by command', async () => {
    const bench = gateBench({ gate: { green: { gpo: 4 } } })
    await bench.untilReady()
    expect(await bench.world.settle(bench.siren(5))).toEqual({ outcome: 'confirmed', commanded: true, detail: 'acknowledged' })
    await bench.world.advance(3_000)
    await bench.world.settle(bench.siren(5))
    await bench.world.advance(4_900)
    expect(bench.reader.gpos[1]).toBe(true)
    await bench.world.advance(200)
    expect(bench.reader.gpos[1]).toBe(false)
    await bench.world.settle(bench.execute({ kind: 'signal', signal: 'green', seconds: 60 }))
    expect(bench.reader.gpos[4]).toBe(true)
    await bench.world.settle(bench.execute({ kind: 'signal', signal: 'green', seconds: 0 }))
    expect(bench.reader.gpos[4]).toBe(false)
    expect(await bench.world.settle(bench.execute({ kind: 'signal', signal: 'amber', seconds: 1 }))).toMatchObject({ outcome: 'failed', commanded: false, detail: expect.stringContaining('not_supported: no amber is configured; add "amber": { "gpo": … }') })
  })

  test('asked for while the reader is away, it sounds as soon as it is back', async () => {
    const bench = gateBench()
    await bench.untilReady()
    bench.port.unplug()
    await bench.world.advance(100)
    expect(await bench.world.settle(bench.siren(120))).toMatchObject({ outcome: 'failed', commanded: false, detail: expect.stringContaining('not_ready') })
    bench.port.plug()
    await bench.untilReady()
    expect(bench.reader.gpos[1]).toBe(true)
  })

  test('an answer that is lost: unknown; the connection is made anew and the outputs written as wanted', async () => {
    const bench = gateBench()
    await bench.untilReady()
    bench.reader.faults.on({ kind: 'dead', functions: of('SET_READER_CONFIG'), times: 1 })
    expect(await bench.world.settle(bench.siren(60))).toEqual({
      outcome: 'unknown', commanded: true, detail: 'answer_lost: no answer to SET_READER_CONFIG within 3000 ms; it is written again while its time lasts',
    })
    expect(bench.reader.gpos[1]).toBe(false)
    await bench.untilReady()
    expect(bench.reader.gpos[1]).toBe(true)
  })

  test('an OFF that is lost is written again; one that is refused is a fault', async () => {
    const bench = gateBench()
    await bench.untilReady()
    await bench.world.settle(bench.siren(2))
    bench.reader.faults.on({ kind: 'dead', functions: of('SET_READER_CONFIG'), times: 1 })
    await bench.world.advance(2_100)
    expect(bench.reader.gpos[1]).toBe(true)
    await bench.until(() => bench.port.opened === 2)
    await bench.untilReady()
    expect(bench.reader.gpos[1]).toBe(false)
    await bench.world.settle(bench.siren(2))
    bench.reader.faults.on({ kind: 'exception', code: 401, functions: of('SET_READER_CONFIG'), times: 1 })
    await bench.world.advance(2_100)
    expect(bench.faults()).toEqual(['output 1 could not be switched off: device error (401), told to refuse'])
  })
})

describe('a barrier', () => {
  const barrier = { release: { gpo: 3, pulseMs: 500 } }

  test('is opened once for each release, and closed', async () => {
    const bench = gateBench({ gate: barrier })
    await bench.untilReady()
    expect(await bench.world.settle(bench.execute(RELEASE))).toEqual({ outcome: 'confirmed', commanded: true, detail: 'acknowledged' })
    expect(bench.reader.gpos[3]).toBe(true)
    await bench.world.advance(600)
    expect(writesTo(bench.reader, 3)).toEqual([false, true, false])
  })

  test.each<[Parameters<ReturnType<typeof gateBench>['reader']['faults']['on']>[0], string, boolean, number]>([
    [{ kind: 'mute' }, 'unknown', true, 1],
    [{ kind: 'dead' }, 'unknown', true, 0],
    [{ kind: 'garble' }, 'unknown', true, 1],
    [{ kind: 'cut-before-answer' }, 'unknown', true, 1],
    [{ kind: 'exception', code: 101 }, 'failed', true, 0],
    [{ kind: 'cut-after-answer' }, 'confirmed', true, 1],
  ])('%j: %s', async (fault, outcome, commanded, ons) => {
    const bench = gateBench({ gate: barrier })
    await bench.untilReady()
    bench.reader.faults.on({ ...fault, functions: of('SET_READER_CONFIG'), times: 1 })
    expect(await bench.world.settle(bench.execute(RELEASE))).toMatchObject({ outcome, commanded })
    await bench.world.advance(10_000)
    await bench.untilReady()
    expect(writesTo(bench.reader, 3).filter(Boolean)).toHaveLength(ons)
    expect(bench.reader.gpos[3]).toBe(false)
  })

  test('is not opened when the reader is away, nor where there is none', async () => {
    const bench = gateBench({ gate: barrier })
    await bench.untilReady()
    bench.port.unplug()
    expect(await bench.world.settle(bench.execute(RELEASE))).toMatchObject({ outcome: 'failed', commanded: false })
    bench.port.plug()
    await bench.untilReady()
    expect(writesTo(bench.reader, 3)).not.toContain(true)
    const without = gateBench()
    await without.untilReady()
    expect(await without.world.settle(without.execute(RELEASE))).toMatchObject({ outcome: 'failed', commanded: false, detail: expect.stringContaining('not_supported') })
  })
})

describe('killing a tag', () => {
  const kill = { kill: { password: '12AB34CD' } }
  const order = { kind: 'release', tag: { epc: EPC } } as const
  const tags = new Map([[EPC, '12AB34CD']])

  test('that is there and knows the password', async () => {
    const bench = gateBench({ gate: kill, reader: { killPasswords: tags } })
    await bench.untilReady()
    const told = bench.execute(order)
    await bench.world.advance(100)
    bench.reader.see('AA'.repeat(12))
    bench.reader.see(EPC)
    expect(await bench.world.settle(told)).toEqual({ outcome: 'confirmed', commanded: true, detail: 'acknowledged: the tag is dead' })
    const before = bench.reads().length
    bench.reader.see(EPC)
    await bench.world.advance(10)
    expect(bench.reads()).toHaveLength(before)
  })

  test.each([
    ['without a password', new Map<string, string>(), 'refused: its kill password is zero'],
    ['with another', new Map([[EPC, '00000001']]), 'refused: the tag says no'],
  ])('%s: failed', async (_, killPasswords, detail) => {
    const bench = gateBench({ gate: kill, reader: { killPasswords } })
    await bench.untilReady()
    const told = bench.execute(order)
    await bench.world.advance(100)
    bench.reader.see(EPC)
    expect(await bench.world.settle(told)).toMatchObject({ outcome: 'failed', commanded: true, detail: expect.stringContaining(detail) })
  })

  test('that does not come: unknown, and it is not killed later', async () => {
    const bench = gateBench({ gate: kill, reader: { killPasswords: tags } })
    await bench.untilReady()
    expect(await bench.world.settle(bench.execute(order))).toMatchObject({ outcome: 'unknown', commanded: true })
    bench.reader.see(EPC)
    bench.reader.see(EPC)
    await bench.world.advance(10)
    expect(bench.reads()).toHaveLength(2)
  })

  test('is not tried where the reader says that it cannot, nor without the tag’s name', async () => {
    const bench = gateBench({ gate: kill, reader: { accessSpecs: 0 } })
    await bench.untilReady()
    expect(await bench.world.settle(bench.execute(order))).toMatchObject({ outcome: 'failed', commanded: false, detail: expect.stringContaining('not_supported') })
    const able = gateBench({ gate: kill })
    await able.untilReady()
    for (const tag of [undefined, { tagUid: '04A1' }, { epc: 'xyz' }, { epc: '30' }]) {
      const command = tag ? ({ kind: 'release', tag } as const) : RELEASE
      expect(await able.world.settle(able.execute(command))).toMatchObject({ outcome: 'failed', commanded: false, detail: expect.stringContaining('not_supported') })
    }
    expect(able.reader.received).not.toContain('ADD_ACCESSSPEC')
  })
})

describe('settings', () => {
  const wrong = (more: Record<string, unknown>) => () => entries({ ...GATE, ...more })

  test('defaults', () => {
    expect(entries(GATE)).toEqual([{ ...GATE, inputs: [], session: 1, tagPopulation: 32, keepaliveMs: 5_000, requestTimeoutMs: 3_000 }])
  })

  test.each<[Record<string, unknown>, string]>([
    [{ antennas: {} }, 'antennas: name at least one antenna'],
    [{ siren: { gpo: 0 } }, 'siren.gpo: give the number of the output (GPO) of the siren as the reader counts them, from 1'],
    [{ amber: { gpo: 1 } }, 'GPO 1 at tcp:10.0.0.7:5084 is taken by'],
    [{ link: { serial: '/dev/ttyS0', baudRate: 9600 } }, 'link.tcp: give host and port'],
    [{ kill: { password: '00000000' } }, 'kill.password: give the kill password'],
    [{ kill: { password: '00000001' }, release: { gpo: 2 } }, 'kill: a release either pulses an output or kills the tag'],
    [{ session: 4 }, 'session: give a Gen2 session, 0 to 3'],
    [{ transmitPowerDbm: 40 }, 'transmitPowerDbm: give dBm'],
    [{ sirene: {} }, 'sirene: no such setting'],
  ])('%j', (more, fault) => {
    expect(wrong(more)).toThrow(fault)
  })

  test('a reader serves one device', () => {
    expect(() => entries(GATE, { ...GATE, deviceId: 'other', siren: { gpo: 2 } })).toThrow('belongs to devices[0] alone')
  })
})
