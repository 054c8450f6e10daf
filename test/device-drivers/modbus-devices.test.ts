import { describe, expect, test } from 'vitest'
import { decodeRequest, encodePdu } from '../../device-drivers/modbus/protocol/pdu.ts'
import { rtuCodec } from '../../device-drivers/modbus/protocol/frames.ts'
import { RelayBoard, type RelayBoardOptions } from '../../simulators/devices/modbus.ts'
import { describeDriver } from './conformance.ts'
import { RELEASE, workbench, writesTo } from './workbench.ts'

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'))
const DOOR = { driver: 'modbus', output: 0, confirmInput: 0, pulseMs: 200, passageInput: 4 }

const RIGS: Record<string, { entry: Record<string, unknown>; board?: Partial<RelayBoardOptions> }> = {
  'modbus over TCP': { entry: DOOR },
  'modbus RTU': { entry: { ...DOOR, framing: 'rtu' }, board: { framing: 'rtu' } },
  'modbus RTU with a hardware pulse': {
    entry: { ...DOOR, framing: 'rtu', hardwarePulse: 'waveshare' },
    board: { framing: 'rtu', flash: true },
  },
}
for (const [name, { entry, board: options }] of Object.entries(RIGS)) {
  describeDriver('modbus', {
    name,
    entry,
    release: RELEASE,
    device(platform) {
      const board = new RelayBoard({ platform, ...options })
      return {
        serve: board.serve,
        mute: () => void board.faults.on({ kind: 'dead' }),
        heal: () => {
          board.faults.heal()
          board.stick(0, null)
        },
        stir() {
          board.setInput(4, true)
          platform.timers.after(200, () => board.setInput(4, false))
        },
        fits: (event) => event.type === 'passage',
        releases: () => board.writes.filter(({ coil, on }) => coil === 0 && on).length,
        loseAnswer() {
          // The input must not change, or it would replace the lost answer.
          board.stick(0, false)
          board.faults.on({ kind: 'mute', functions: [5], times: 1 })
        },
      }
    },
  })
}

describe('the "flash on" command of Waveshare boards', () => {
  // Waveshare wiki, Modbus RTU Relay, development protocol: relay 0 for 700 ms, relay 1 for 800 ms.
  test.each([
    ['01 05 02 00 00 07 8D B0', 0x0200, 7],
    ['01 05 02 01 00 08 9C 74', 0x0201, 8],
  ])('%s', (bytes, address, flash) => {
    const message = { name: 'writeSingleCoil', address, quantity: 1, values: [1], flash } as const
    expect(rtuCodec('answer').encode({ transaction: 0, unit: 1, pdu: encodePdu('request', message) })).toEqual(
      hex(bytes),
    )
    expect(decodeRequest(hex(bytes).subarray(1, 6))).toEqual(message)
  })

  test('the board ends the pulse after the agent is gone', async () => {
    const bench = workbench({
      door: { hardwarePulse: 'waveshare', confirmInput: undefined, pulseMs: 700 },
      board: { flash: true },
    })
    await bench.untilReady()
    expect(await bench.world.settle(bench.release())).toMatchObject({ outcome: 'confirmed' })
    bench.port.unplug()
    await bench.world.advance(600)
    expect(bench.board.coils[0]).toBe(true)
    await bench.world.advance(150)
    expect(bench.board.coils[0]).toBe(false)
  })

  // The agent stalls: the lock opens and shuts between two reads.
  test('reports unknown if the input was not read for the length of the pulse', async () => {
    const bench = workbench({
      door: { hardwarePulse: 'waveshare', pulseMs: 200 },
      board: { flash: true, locks: [{ coil: 0, input: 0, openMs: 5, closeMs: 5 }] },
    })
    await bench.untilReady()
    bench.board.stick(0, false)
    const commandResult = bench.release()
    bench.board.faults.on({ kind: 'delay', ms: 250, functions: [2], after: 1, times: 1 })
    expect(await bench.world.settle(commandResult)).toMatchObject({ outcome: 'unknown', commanded: true })
    bench.board.faults.heal()
    expect(await bench.world.settle(bench.release())).toMatchObject({
      outcome: 'failed',
      detail: expect.stringMatching(/^no_confirmation/),
    })
  })

  test('reports refused and stays locked if the board does not support it', async () => {
    const bench = workbench({ door: { hardwarePulse: 'waveshare' } })
    await bench.untilReady()
    expect(await bench.world.settle(bench.release())).toMatchObject({
      outcome: 'failed',
      commanded: true,
      detail: expect.stringMatching(/^refused/),
    })
    expect(bench.board.log).toEqual([])
  })
})

describe('the interlock of an AM or RF deactivator', () => {
  const armed = (more: Record<string, unknown> = {}) =>
    workbench({
      door: { confirmInput: 1, pulseMs: 5_000, interlock: { armedInput: 0 }, ...more },
      board: { locks: [{ coil: 0, input: 0, openMs: 5, closeMs: 5 }] },
    })

  test('arms until the deactivation is seen, switches off at once and checks the contact', async () => {
    const bench = armed()
    await bench.untilReady()
    const commandResult = bench.release()
    await bench.world.advance(1_000)
    expect(bench.board.coils[0]).toBe(true)
    bench.board.setInput(1, true)
    await bench.world.advance(50)
    expect(bench.board.coils[0]).toBe(false)
    expect(await commandResult).toMatchObject({ outcome: 'confirmed', commanded: true })
    await bench.world.advance(5_000)
    expect(writesTo(bench.board, 0).filter(Boolean)).toHaveLength(1)
    expect(bench.events.filter(({ event }) => event.type === 'fault')).toEqual([])
  })

  test('fails without a deactivation after the pulse, and switches off at once when the caller aborts', async () => {
    const bench = armed()
    await bench.untilReady()
    expect(await bench.world.settle(bench.release())).toMatchObject({
      outcome: 'failed',
      detail: expect.stringMatching(/^no_confirmation/),
    })
    expect(bench.board.coils[0]).toBe(false)
    const end = new AbortController()
    const commandResult = bench.supervisor.execute('door', RELEASE, end.signal)
    await bench.world.advance(1_000)
    expect(bench.board.coils[0]).toBe(true)
    end.abort()
    await bench.world.advance(50)
    expect(bench.board.coils[0]).toBe(false)
    expect(await bench.world.settle(commandResult)).toMatchObject({ outcome: 'unknown', commanded: true })
  })

  test('reports a contact that does not fall', async () => {
    const bench = armed()
    await bench.untilReady()
    bench.board.stick(0, true)
    void bench.world.settle(bench.release())
    await bench.world.advance(8_000)
    expect(bench.events.filter(({ event }) => event.type === 'fault').map(({ event }) => event)).toEqual([
      {
        type: 'fault',
        detail: 'output 0 was switched off and its contact (input 0) still shows on: is the relay stuck?',
      },
    ])
  })
})

describe('a cabinet', () => {
  const cabinet = () =>
    workbench({
      door: { confirmInput: 0, pulseMs: 5_000, door: { input: 2, openSeconds: 30 }, siren: { output: 3, seconds: 10 } },
    })
  const faults = (bench: ReturnType<typeof cabinet>) =>
    bench.events.flatMap(({ event }) => (event.type === 'fault' ? [event.detail] : []))

  test('relocks when the door opens, and raises no alarm if it is shut in time', async () => {
    const bench = cabinet()
    await bench.untilReady()
    expect(await bench.world.settle(bench.release())).toMatchObject({ outcome: 'confirmed' })
    expect(bench.board.coils[0]).toBe(true)
    bench.board.setInput(2, true)
    await bench.world.advance(100)
    expect(bench.board.coils[0]).toBe(false)
    await bench.world.advance(20_000)
    bench.board.setInput(2, false)
    await bench.world.advance(60_000)
    expect(faults(bench)).toEqual([])
    expect(bench.board.log.some(({ coil }) => coil === 3)).toBe(false)
  })

  test('reports an open door with the siren, and ends both when it is shut', async () => {
    const bench = cabinet()
    await bench.untilReady()
    await bench.world.settle(bench.release())
    bench.board.setInput(2, true)
    await bench.world.advance(31_000)
    expect(faults(bench)).toEqual(['the door has been open for 30 s'])
    expect(bench.board.coils[3]).toBe(true)
    bench.board.setInput(2, false)
    await bench.world.advance(100)
    expect(bench.board.coils[3]).toBe(false)
  })

  test('reports a forced door with the siren, but not a door that was open at the start', async () => {
    const bench = cabinet()
    bench.board.setInput(2, true)
    await bench.untilReady()
    await bench.world.advance(1_000)
    expect(faults(bench)).toEqual([])
    bench.board.setInput(2, false)
    await bench.world.advance(1_000)
    bench.board.setInput(2, true)
    await bench.world.advance(100)
    expect(faults(bench)).toEqual(['the door was opened without a release'])
    expect(bench.board.coils[3]).toBe(true)
    bench.port.cut()
    await bench.world.advance(5_000)
    expect(faults(bench)).toHaveLength(1)
    await bench.world.settle(bench.supervisor.stop())
    await bench.world.advance(100_000)
    expect(bench.world.pending).toBe(0)
  })
})

describe('people counter', () => {
  async function counting() {
    const bench = workbench({ door: { beams: { outside: 5, inside: 6 } } })
    await bench.untilReady()
    const walk = async (...inputs: number[]) => {
      for (const input of inputs) {
        bench.board.setInput(input, true)
        await bench.world.advance(150)
        bench.board.setInput(input, false)
        await bench.world.advance(150)
      }
    }
    const people = () => bench.events.flatMap(({ event }) => (event.type === 'person' ? [event.direction] : []))
    const passages = () => bench.events.filter(({ event }) => event.type === 'passage').length
    return { bench, walk, people, passages }
  }

  test('counts persons in and out, but not halfway or slow ones', async () => {
    const { bench, walk, people, passages } = await counting()
    await walk(5, 6)
    await walk(6, 5)
    await bench.world.advance(5_000)
    await walk(5, 5)
    await bench.world.advance(5_000)
    await walk(6)
    await bench.world.advance(5_000)
    await walk(5)
    expect(people()).toEqual(['in', 'out'])
    expect(passages()).toBe(1)
  })

  test('reports a blocked beam, and counts no passage after a reconnect', async () => {
    const { bench, people } = await counting()
    bench.board.setInput(5, true)
    await bench.world.advance(31_000)
    bench.port.cut()
    await bench.world.advance(20_000)
    expect(bench.events.filter(({ event }) => event.type === 'fault').map(({ event }) => event)).toEqual([
      { type: 'fault', detail: 'the outside beam has been broken for 30 s: is something in the way, or is it dirty?' },
    ])
    expect(people()).toEqual([])
  })
})

test('rejects settings that do not fit', async () => {
  const { checkDevices } = await import('../../device-drivers/kit/check-devices.ts')
  const entry = { deviceId: 'd', driver: 'modbus', link: { tcp: '10.0.0.7:502' }, output: 0 }
  expect(checkDevices([{ ...entry, hardwarePulse: 'waveshare', pulseMs: 250 }])).toEqual({
    errors: ['devices[0].pulseMs: the board counts in 100 ms: give 100, 200, … (and an output below 256)'],
  })
  expect(checkDevices([{ ...entry, interlock: {} }])).toEqual({
    errors: ['devices[0].confirmInput: give the input that shows a deactivation, at which the interlock closes'],
  })
})
