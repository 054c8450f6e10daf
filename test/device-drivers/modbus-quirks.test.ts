import { describe, expect, test } from 'vitest'
import { crc16 } from '../../device-drivers/modbus/protocol/frames.ts'
import {
  type RelayBoardOptions,
  type RelayBoardQuirks,
  RELAY_BOARD_EX_WORKS,
  RelayBoard,
} from '../../simulators/devices/modbus.ts'
import { memoryPair } from '../../device-drivers/transports/memory.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { ADDRESS, entries, forEver, workbench, writesTo } from './workbench.ts'

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'))
/** A door without a confirming input, on a Modbus RTU line. */
const LOCK = { framing: 'rtu', confirmInput: undefined }
const NOBODY = { units: [9] }

function rtu(quirks: RelayBoardQuirks, door: Record<string, unknown> = {}, board: Partial<RelayBoardOptions> = {}) {
  const bench = workbench({ door: { ...LOCK, ...door }, board: { ...board, quirks } })
  const status = () => {
    const found = bench.supervisor.status('door')
    if (!found) throw new Error('no such device')
    return found
  }
  const siren = (seconds: number) =>
    bench.world.settle(bench.supervisor.execute('door', { kind: 'signal', signal: 'siren', seconds }, forEver()))
  return { ...bench, status, siren }
}

describe('an adapter that repeats what the agent sends', () => {
  test('is no board: without a board on the line the device is never ready, and no release is confirmed', async () => {
    const bench = rtu({ echo: true }, {}, NOBODY)
    await bench.world.advance(30_000)
    expect(bench.states.filter(({ state }) => state === 'ready')).toEqual([])
    expect(bench.status()).toMatchObject({ state: 'degraded', findings: [{ code: 'echo', isWarning: false }] })
    expect(bench.status().detail).toContain('"echo": "none"')
    expect(await bench.world.settle(bench.release())).toMatchObject({ outcome: 'failed', commanded: false })
  })

  test('does not confirm the siren of a missing board either', async () => {
    const bench = rtu({ echo: true }, { siren: { output: 1 } }, NOBODY)
    await bench.world.advance(10_000)
    expect(await bench.siren(5)).toMatchObject({ outcome: 'unknown' })
    await bench.world.advance(60_000)
    expect(bench.states.filter(({ state }) => state === 'ready')).toEqual([])
  })

  test('is named as a warning, and the board behind it works', async () => {
    const bench = rtu({ echo: true }, { siren: { output: 1 } })
    await bench.untilReady()
    expect(bench.status().findings).toMatchObject([{ code: 'echo', isWarning: true }])
    expect((await bench.world.settle(bench.release())).outcome).toBe('confirmed')
    expect((await bench.siren(1)).outcome).toBe('confirmed')
    await bench.world.advance(60_000)
    expect(bench.states.filter(({ state }) => state === 'degraded')).toEqual([])
    expect(bench.events.filter(({ event }) => event.type === 'noise')).toEqual([])
  })

  test('and a board whose cable breaks behind it is lost, and found again', async () => {
    const bench = rtu({ echo: true })
    await bench.untilReady()
    bench.board.faults.on({ kind: 'dead' })
    await bench.until(() => bench.status().state !== 'ready', 6_000)
    const from = bench.states.length
    await bench.world.advance(40_000)
    expect(bench.states.slice(from).filter(({ state }) => state === 'ready')).toEqual([])
    bench.board.faults.heal()
    await bench.untilReady()
    expect(bench.status().findings).toMatchObject([{ code: 'echo', isWarning: true }])
  })

  test('is told from a board that knows only Write Single Coil', async () => {
    const silent = rtu({ echo: true, silentFunctions: [1, 2] })
    await silent.untilReady()
    expect((await silent.world.settle(silent.release())).outcome).toBe('confirmed')
    const quiet = rtu({ silentFunctions: [1, 2] })
    await quiet.untilReady()
    expect(quiet.status().findings).toEqual([])
  })

  test('is told from a board that repeats what it does not know, by a value that Modbus forbids', async () => {
    const bench = rtu({ repeatedFunctions: [1, 2] })
    await bench.untilReady()
    expect(bench.status().findings).toEqual([])
    expect(bench.board.writes.some(({ on }) => on)).toBe(false)
    expect((await bench.world.settle(bench.release())).outcome).toBe('confirmed')
  })

  test('cannot be told from a board that repeats everything, until the settings say that there is no echo', async () => {
    const repeatedFunctions = [1, 2, 5]
    const bench = rtu({ repeatedFunctions })
    await bench.world.advance(20_000)
    expect(bench.status()).toMatchObject({ state: 'degraded', findings: [{ code: 'echo', isWarning: false }] })
    const accepted = rtu({ repeatedFunctions }, { echo: 'none' })
    await accepted.untilReady()
    expect(accepted.status().findings).toEqual([])
  })

  test('needs a board with inputs to read them', async () => {
    const bench = rtu({ echo: true }, { confirmInput: 0 }, NOBODY)
    await bench.world.advance(20_000)
    expect(bench.states.filter(({ state }) => state === 'ready')).toEqual([])
    expect(bench.status().detail).toContain('the line only repeated the request')
  })

  test.each([
    ['confirmInput', { confirmInput: 0 }],
    ['the hardware pulse', { hardwarePulse: 'waveshare' }],
  ])('leaves releases with %s right', async (_, door) => {
    const bench = rtu({ echo: true }, door, { flash: true })
    await bench.untilReady()
    expect((await bench.world.settle(bench.release())).outcome).toBe('confirmed')
    await bench.world.advance(2_000)
    expect(bench.board.log.filter(({ coil }) => coil === 0).map(({ on }) => on)).toEqual([true, false])
  })
})

describe('boards as their makers ship them', () => {
  test('LC-Tech: address 255 over RTU, frame of its manual', async () => {
    // Manual of LC-Tech relay boards: relay 0 on at address 255.
    const frame = hex('FF 05 00 00 FF 00 99 E4')
    expect(crc16(frame, 0, 6)).toBe(0xe499)
    const bench = rtu({}, { unit: 255 }, RELAY_BOARD_EX_WORKS)
    await bench.untilReady()
    expect((await bench.world.settle(bench.release())).outcome).toBe('confirmed')
  })

  test('Waveshare 32 relays: the simulated board reverses bytes as the published capture', async () => {
    // simonvetter/modbus#47: coil 11 of 32 is on.
    const world = virtualPlatform()
    const board = new RelayBoard({ platform: world, framing: 'rtu', quirks: { size: 32, reversedBytes: true } })
    const { near, far } = memoryPair()
    void board.serve(far)
    board.coils[11] = true
    await near.write(hex('01 01 00 00 00 20 3D D2'), forEver())
    const first = near.bytes[Symbol.asyncIterator]().next()
    expect((await world.settle(first)).value).toEqual(hex('01 01 04 00 00 08 00 FC 11'))
  })

  test('Waveshare 32 relays: outputs beyond 8 cause no false fault, and a stuck one is seen', async () => {
    const bench = rtu(
      { size: 32, reversedBytes: true },
      { siren: { output: 9 }, amber: { output: 8 }, green: { output: 1 } },
    )
    await bench.untilReady()
    await bench.siren(20)
    await bench.world.advance(10_000)
    const faults = () => bench.events.flatMap(({ event }) => (event.type === 'fault' ? [event.detail] : []))
    expect(faults()).toEqual([])
    bench.board.coils[8] = true
    await bench.world.advance(2_000)
    expect(faults()).toEqual(['output 8 was on and is switched off again'])
    expect(bench.board.coils[8]).toBe(false)
  })

  test.each(['rtu', 'tcp'])('boards that ignore Read Coils stay ready over %s', async (framing) => {
    const bench = rtu({ silentFunctions: [1] }, { framing, siren: { output: 1 } })
    await bench.untilReady()
    const from = bench.states.length
    await bench.world.advance(120_000)
    expect(bench.states.slice(from)).toEqual([])
    bench.board.faults.on({ kind: 'dead' })
    await bench.until(() => bench.status().state !== 'ready', 6_000)
  })

  test.each(['rtu', 'tcp'])('slow boards work over %s', async (framing) => {
    const bench = rtu({ answerMs: 400 }, { framing })
    await bench.untilReady()
    expect((await bench.world.settle(bench.release())).outcome).toBe('confirmed')
  })
})

describe('an answer with another unit', () => {
  test('over TCP names the unit to set, and drives the siren', async () => {
    const bench = rtu({ answersAs: 1 }, { framing: 'tcp', unit: 3, siren: { output: 1 } }, { units: [1, 2, 3] })
    await bench.until(() => bench.status().findings.length > 0)
    expect(bench.status()).toMatchObject({
      state: 'degraded',
      findings: [{ code: 'wrong_address', isWarning: false }],
    })
    expect(bench.status().detail).toContain('"unit": 1')
    expect(await bench.world.settle(bench.release())).toMatchObject({ outcome: 'failed', commanded: false })
    await bench.siren(5)
    expect(bench.board.coils[1]).toBe(true)
    expect(writesTo(bench.board, 1)).toEqual([false, true])
  })

  test('over RTU is no answer, and is named', async () => {
    const bench = rtu({ answersAs: 1 }, { unit: 3 }, { units: [3] })
    await bench.world.advance(10_000)
    expect(bench.states.filter(({ state }) => state === 'ready')).toEqual([])
    expect(bench.states.some(({ detail }) => detail.includes('unit 1 answered instead'))).toBe(true)
  })
})

describe('a pulse', () => {
  const link = { tcp: ADDRESS }
  const pulses = (bench: { board: { log: readonly { at: number; coil: number; on: boolean }[] } }) => {
    const changes = bench.board.log.filter(({ coil }) => coil === 0)
    return changes.flatMap(({ at, on }, i) => (on ? [] : [at - (changes[i - 1]?.at ?? at)]))
  }

  test.each(['rtu', 'tcp'])('is not stretched by a silent unit on the same %s line', async (framing) => {
    const devices = [
      { deviceId: 'door', driver: 'modbus', link, framing, unit: 1, output: 0, pulseMs: 200 },
      { deviceId: 'dead', driver: 'modbus', link, framing, unit: 2, output: 1, siren: { output: 2 } },
    ]
    const bench = workbench({ devices })
    await bench.untilReady()
    for (let i = 0; i < 30; i++) {
      await bench.world.settle(bench.release())
      await bench.world.advance(1_100)
    }
    expect(pulses(bench)).toHaveLength(30)
    expect(Math.max(...pulses(bench))).toBeLessThan(300)
  })

  test('is not stretched by the audit of a board that ignores Read Coils, and the input is not missed', async () => {
    // The first audit is 1 s after the board is ready.
    for (const waitMs of [720, 780, 840, 900, 960]) {
      const bench = rtu({ silentFunctions: [1] }, { confirmInput: 0, pulseMs: 300 }, { locks: [] })
      await bench.untilReady()
      await bench.world.advance(waitMs)
      const released = bench.release()
      await bench.until(() => bench.board.coils[0] === true)
      await bench.world.advance(295)
      bench.board.setInput(0, true)
      await bench.until(() => bench.board.coils[0] === false)
      bench.board.setInput(0, false)
      expect((await bench.world.settle(released)).outcome, `${waitMs}`).toBe('confirmed')
      expect(pulses(bench)[0], `${waitMs}`).toBeLessThan(400)
    }
  })

  test('does not keep the emergency input of another board from being read after one lost answer', async () => {
    const devices = [
      { deviceId: 'door', driver: 'modbus', link, unit: 1, output: 0, pulseMs: 9_000, opensInEmergency: true },
      { deviceId: 'fire', driver: 'modbus', link, unit: 2, emergency: { input: 5, wiring: 'normally_open' } },
    ]
    const bench = workbench({ devices, board: { units: [1, 2] } })
    await bench.until(() => bench.supervisor.statuses.every(({ state }) => state === 'ready'))
    void bench.release()
    await bench.world.advance(100)
    bench.board.faults.on({ kind: 'mute', unit: 2, times: 1 })
    await bench.world.advance(600)
    bench.board.setInput(5, true)
    await bench.world.advance(100)
    const emergencies = bench.events.flatMap(({ event }) => (event.type === 'emergency' ? [event.on] : []))
    expect(emergencies).toEqual([false, true])
  })

  test('reads the input once more before OFF', async () => {
    const bench = rtu({ answerMs: 60 }, { confirmInput: 0, pulseMs: 200, framing: 'tcp' }, { locks: [] })
    await bench.untilReady()
    const released = bench.release()
    await bench.until(() => bench.board.coils[0] === true)
    // Closed only from the end of the pulse until OFF.
    const offAt = () => bench.board.log.find(({ on }) => !on)?.at
    await bench.world.advance(262)
    bench.board.setInput(0, true)
    await bench.until(() => offAt() !== undefined)
    bench.board.setInput(0, false)
    expect((await bench.world.settle(released)).outcome).toBe('confirmed')
  })
})

test('an echo belongs to RTU lines only', () => {
  expect(() =>
    entries({ deviceId: 'door', driver: 'modbus', link: { tcp: ADDRESS }, output: 0, echo: 'none' }),
  ).toThrow('only Modbus RTU lines have an echo')
})
