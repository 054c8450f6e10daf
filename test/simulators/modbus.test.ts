import { describe, expect, test } from 'vitest'
import { encodePdu, type ModbusMessage } from '../../device-drivers/modbus/protocol/pdu.ts'
import { rtuCodec, tcpCodec } from '../../device-drivers/modbus/protocol/frames.ts'
import { memoryPair } from '../../device-drivers/transports/memory.ts'
import type { Fault } from '../../simulators/devices/faults.ts'
import { RelayBoard, type RelayBoardOptions } from '../../simulators/devices/modbus.ts'
import { letPromisesSettle, virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'

const forEver = () => new AbortController().signal
const coil = (address: number, on: boolean): ModbusMessage => ({
  name: 'writeSingleCoil',
  address,
  quantity: 1,
  values: [on ? 1 : 0],
})
const inputs: ModbusMessage = { name: 'readDiscreteInputs', address: 0, quantity: 8, values: [] }

/** A board on a memory link. The test sends single frames. */
function onLink(options: Partial<RelayBoardOptions> = {}) {
  const world = virtualPlatform()
  const board = new RelayBoard({ platform: world, ...options })
  const { near, far } = memoryPair()
  const served = board.serve(far)
  const codec = (options.framing === 'rtu' ? rtuCodec : tcpCodec)('answer')
  const answers: { transaction: number; pdu: string }[] = []
  const raw: Uint8Array[] = []
  let ended = false
  void (async () => {
    for await (const chunk of near.bytes) {
      raw.push(chunk)
      for (const frame of codec.push(chunk))
        answers.push({ transaction: frame.transaction, pdu: Buffer.from(frame.pdu).toString('hex') })
    }
    ended = true
  })()
  async function ask(pdu: ModbusMessage | string, unit = 1): Promise<string | undefined> {
    const bytes = typeof pdu === 'string' ? Uint8Array.from(Buffer.from(pdu, 'hex')) : encodePdu('request', pdu)
    const before = answers.length
    await near.write(codec.encode({ transaction: 7, unit, pdu: bytes }), forEver())
    await letPromisesSettle()
    return answers.slice(before).map((answer) => answer.pdu)[0]
  }
  return { world, board, near, ask, answers, raw, served, ended: () => ended }
}

describe.each(['tcp', 'rtu'] as const)('relay board over %s', (framing) => {
  test('moves a lock after its delay, and logs the time', async () => {
    const { world, board, ask } = onLink({ framing, locks: [{ coil: 2, input: 3, openMs: 40, closeMs: 10 }] })
    expect(await ask(coil(2, true))).toBe('050002ff00')
    expect(await ask(inputs)).toBe('020100')
    await world.advance(40)
    expect(await ask(inputs)).toBe('020108')
    expect(await ask(coil(2, false))).toBe('0500020000')
    await world.advance(10)
    expect(board.inputs[3]).toBe(false)
    expect(board.log).toEqual([
      { at: 0, coil: 2, on: true },
      { at: 40, coil: 2, on: false },
    ])
  })

  test('moves a lock without delay before the next read', async () => {
    const { ask } = onLink({ framing, locks: [{ coil: 0, input: 0, openMs: 0, closeMs: 0 }] })
    await ask(coil(0, true))
    expect(await ask(inputs)).toBe('020101')
    await ask(coil(0, false))
    expect(await ask(inputs)).toBe('020100')
  })

  test('does not open a lock with a pulse that is too short', async () => {
    const { world, board, ask } = onLink({ framing })
    await ask(coil(0, true))
    await world.advance(20)
    await ask(coil(0, false))
    await world.advance(100)
    expect(board.inputs[0]).toBe(false)
  })

  test('simulates a stuck input, a sensor and a power failure', async () => {
    const { board, ask } = onLink({ framing })
    board.stick(1, true)
    board.setInput(5, true)
    expect(await ask(inputs)).toBe('020122')
    board.stick(1, null)
    await ask(coil(4, true))
    board.restart()
    expect([board.coils.some(Boolean), board.inputs[5]]).toEqual([false, true])
  })

  test('answers only at its unit addresses', async () => {
    const { ask } = onLink({ framing, units: [1, 9] })
    expect(await ask(coil(0, true), 9)).toBe('050000ff00')
    expect(await ask(coil(0, true), 2)).toBeUndefined()
    expect(await ask(coil(0, true), 0)).toBeUndefined()
  })

  test('rejects unknown addresses and invalid values', async () => {
    const { ask } = onLink({ framing })
    expect(await ask(coil(8, true))).toBe('8502')
    expect(await ask('0100010008')).toBe('8102')
    expect(await ask('0500001234')).toBe('8503')
  })

  test('applies mute, dead, exception and delay within their limits', async () => {
    const { world, board, ask, answers } = onLink({ framing })
    const hit = async (fault: Fault, message = coil(0, true)) => {
      const off = board.faults.on(fault)
      const answer = await ask(message)
      off()
      return answer
    }
    expect(await hit({ kind: 'mute' })).toBeUndefined()
    expect(board.coils[0]).toBe(true)
    expect(await hit({ kind: 'dead' }, coil(0, false))).toBeUndefined()
    expect(board.coils[0]).toBe(true)
    expect(await hit({ kind: 'exception', code: 6 }, coil(0, false))).toBe('8506')
    expect(await hit({ kind: 'mute', functions: [2] }, coil(0, false))).toBe('0500000000')
    expect(await hit({ kind: 'mute', unit: 2 }, coil(0, false))).toBe('0500000000')

    board.faults.on({ kind: 'exception', code: 4, after: 1, times: 1 })
    expect([await ask(inputs), await ask(inputs), await ask(inputs)]).toEqual(['020100', '8204', '020100'])

    board.faults.on({ kind: 'delay', ms: 300 })
    expect(await ask(inputs)).toBeUndefined()
    const before = answers.length
    await world.advance(300)
    expect(answers.length).toBe(before + 1)
  })

  test('keeps answers after noise readable, and garbled ones invalid', async () => {
    const { board, ask, answers } = onLink({ framing })
    board.faults.on({ kind: 'noise', bytes: Uint8Array.of(0x55, 0x66, 0x77), times: 1 })
    await ask(inputs)
    expect(answers).toHaveLength(1)
    board.faults.on({ kind: 'garble', times: 1 })
    await ask(inputs)
    // RTU: the CRC is wrong, so there is no frame. TCP: the transaction number is not 7.
    expect(answers.slice(1).map((answer) => answer.transaction === 7)).toEqual(framing === 'rtu' ? [] : [false])
  })

  test.each(['cut-before-answer', 'cut-after-answer'] as const)('%s', async (kind) => {
    const { board, ask, ended, served } = onLink({ framing })
    board.faults.on({ kind })
    expect(await ask(coil(0, true))).toBe(kind === 'cut-before-answer' ? undefined : '050000ff00')
    await served
    expect([board.coils[0], ended()]).toEqual([true, true])
  })

  test('bounds its logs', async () => {
    const { board, ask } = onLink({ framing, locks: [] })
    for (let i = 0; i < 10_100; i++) await ask(coil(0, i % 2 === 0))
    expect([board.log.length, board.writes.length]).toEqual([10_000, 10_000])
  })
})
