import { describe, expect, test } from 'vitest'
import { MODBUS_BUS, type BusAnswer, type BusRequest } from '../../device-drivers/modbus/bus.ts'
import type { Noise } from '../../device-drivers/kit/protocol/codec.ts'
import {
  type ModbusFraming,
  decodeRequest,
  encodePdu,
  type ModbusMessage,
} from '../../device-drivers/modbus/protocol/pdu.ts'
import { rtuCodec, tcpCodec } from '../../device-drivers/modbus/protocol/frames.ts'
import { memoryPair } from '../../device-drivers/transports/memory.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { forEver } from './workbench.ts'

const coil = (address: number, on = true): ModbusMessage => ({
  name: 'writeSingleCoil',
  address,
  quantity: 1,
  values: [on ? 1 : 0],
})
const inputs: ModbusMessage = { name: 'readDiscreteInputs', address: 0, quantity: 8, values: [] }
const inputsAre = (first: number): ModbusMessage => ({ ...inputs, quantity: 0, values: [first, 0, 0, 0, 0, 0, 0, 0] })

/** A bus; the test plays the boards. */
function scripted(framing: ModbusFraming) {
  const world = virtualPlatform()
  const { near, far, cut } = memoryPair()
  const bus = MODBUS_BUS[framing].start(near, { tcp: 'board:502' }, world)
  const make = framing === 'rtu' ? rtuCodec : tcpCodec
  const [requestCodec, answerCodec] = [make('request'), make('answer')]
  const received: { at: number; transaction: number; message: ModbusMessage }[] = []
  const noise: Noise[] = []
  bus.onNoise((n) => void noise.push(n))
  void (async () => {
    for await (const chunk of far.bytes) {
      for (const { transaction, pdu } of requestCodec.push(chunk)) {
        received.push({ at: world.clock.elapsed(), transaction, message: decodeRequest(pdu) as ModbusMessage })
      }
    }
  })().catch(() => {})
  const send = (message: ModbusMessage, more: Partial<BusRequest> = {}): Promise<BusAnswer> =>
    bus.request({ unit: 1, message, timeoutMs: 500, lane: 'command', ...more })
  const answerWith = (message: ModbusMessage, { unit = 1, transaction = received.at(-1)?.transaction ?? 0 } = {}) =>
    far.write(answerCodec.encode({ transaction, unit, pdu: encodePdu('answer', message) }), forEver())
  return { world, bus, near, far, cut, received, noise, send, answerWith }
}

describe.each(['rtu', 'tcp'] as const)('bus over %s', (framing) => {
  test('accepts only the answer to the open request: same unit, function, address and value', async () => {
    const { world, received, noise, send, answerWith } = scripted(framing)
    let answered: BusAnswer | null = null
    void send(coil(3)).then((answer) => (answered = answer))
    await world.advance(5)
    expect(received).toHaveLength(1)
    if (framing === 'rtu') await answerWith(coil(3), { unit: 2 })
    await answerWith(coil(4))
    await answerWith(coil(3, false))
    await answerWith(inputsAre(1))
    await world.advance(5)
    expect(answered).toBeNull()
    await answerWith(coil(3))
    await world.advance(5)
    expect(answered).toEqual({ kind: 'answered', values: [1] })
    expect(noise).toHaveLength(framing === 'rtu' ? 4 : 3)
  })

  test('does not take a late answer for the next one', async () => {
    const { world, received, send, answerWith } = scripted(framing)
    const first = send(inputs)
    await world.advance(500)
    expect(await first).toEqual({ kind: 'lost', possiblySent: true, detail: 'unit 1 gave no answer within 500 ms' })
    const late = received[0]?.transaction ?? 0
    const second = send(inputs)
    await world.advance(50)
    await answerWith(inputsAre(1), { transaction: late })
    await world.advance(200)
    expect(received).toHaveLength(2)
    await answerWith(inputsAre(0))
    expect(await world.settle(second)).toMatchObject({ kind: 'answered', values: [0, 0, 0, 0, 0, 0, 0, 0] })
  })

  test('sends one request at a time, commands before polls, each lane in order', async () => {
    const { world, received, send, answerWith } = scripted(framing)
    const requests = [
      send(coil(0)),
      send(coil(10), { lane: 'poll' }),
      send(coil(11), { lane: 'poll' }),
      send(coil(1)),
      send(coil(2)),
    ]
    const order: number[] = []
    for (let i = 0; i < 5; i++) {
      await world.advance(10)
      expect(received).toHaveLength(i + 1)
      const message = received[i]?.message ?? coil(99)
      order.push(message.address)
      await answerWith(message)
    }
    await world.settle(Promise.all(requests))
    expect(order).toEqual([0, 1, 2, 10, 11])
  })

  test('queues at most 64 requests in a lane, and does not send cancelled ones', async () => {
    const { world, received, send } = scripted(framing)
    const cancelled = new AbortController()
    const all = Array.from({ length: 70 }, (_, i) => send(coil(i), { signal: cancelled.signal, timeoutMs: 20 }))
    await world.advance(1)
    cancelled.abort()
    const answers = await world.settle(Promise.all(all))
    expect(answers.filter((answer) => answer.kind === 'lost' && answer.detail.startsWith('64 requests'))).toHaveLength(
      5,
    )
    expect(received).toHaveLength(1)
    expect(answers.map((answer) => answer.kind === 'lost' && answer.possiblySent)).toEqual(
      Array.from({ length: 70 }, (_, i) => i === 0),
    )
  })

  test('reports the open request as possibly sent and queued ones as not sent when the link is cut', async () => {
    const { world, bus, cut, send } = scripted(framing)
    const both = Promise.all([send(coil(0)), send(coil(1))])
    await world.advance(5)
    cut()
    const detail = 'the memory link was cut'
    expect(await world.settle(both)).toEqual([
      { kind: 'lost', possiblySent: true, detail },
      { kind: 'lost', possiblySent: false, detail },
    ])
    expect(await send(coil(2))).toEqual({ kind: 'lost', possiblySent: false, detail })
    expect(await bus.ended).toBe(detail)
  })

  test('returns an exception', async () => {
    const { world, far, received, send } = scripted(framing)
    const answered = send(coil(9))
    await world.advance(5)
    const codec = framing === 'rtu' ? rtuCodec('answer') : tcpCodec('answer')
    await far.write(
      codec.encode({ transaction: received[0]?.transaction ?? 0, unit: 1, pdu: Uint8Array.of(0x85, 2) }),
      forEver(),
    )
    expect(await world.settle(answered)).toEqual({ kind: 'exception', code: 2 })
  })
})

// goburrow/modbus#54: some devices answer with their own unit, whatever the request says.
test('accepts an answer with the transaction number of its request from another unit, and names the unit', async () => {
  const { world, send, answerWith } = scripted('tcp')
  const answered = send(coil(3), { unit: 3 })
  await world.advance(5)
  await answerWith(coil(3), { unit: 1 })
  expect(await world.settle(answered)).toEqual({ kind: 'answered', values: [1], otherUnit: 1 })
})

test('keeps 3.5 characters of silence between an RTU answer and the next request', async () => {
  const { world, received, send, answerWith } = scripted('rtu')
  const both = Promise.all([send(coil(0)), send(coil(1))])
  await world.advance(10)
  const answeredAt = world.clock.elapsed()
  await answerWith(coil(0))
  await world.advance(20)
  // 9600 baud: 3.5 × 11 bits = 4.01 ms.
  expect((received[1]?.at ?? 0) - answeredAt).toBeGreaterThanOrEqual(4)
  await answerWith(coil(1))
  await world.settle(both)
})
