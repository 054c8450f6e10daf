import { describe, expect, test } from 'vitest'
import { MODBUS_BUS } from '../../device-drivers/drivers/modbus/bus.ts'
import type { BusAnswer, BusRequest } from '../../device-drivers/drivers/modbus/bus.ts'
import type { Noise } from '../../device-drivers/protocols/codec.ts'
import type { ModbusFraming } from '../../device-drivers/protocols/modbus/frame.ts'
import { decodeRequest, encodePdu } from '../../device-drivers/protocols/modbus/pdu.ts'
import type { ModbusMessage } from '../../device-drivers/protocols/modbus/pdu.ts'
import { rtuCodec } from '../../device-drivers/protocols/modbus/rtu.ts'
import { tcpCodec } from '../../device-drivers/protocols/modbus/tcp.ts'
import { memoryPair } from '../../device-drivers/transports/memory.ts'
import { virtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import { forEver } from './workbench.ts'

const coil = (address: number, on = true): ModbusMessage => ({
  name: 'writeSingleCoil',
  address,
  quantity: 1,
  values: [on ? 1 : 0],
})
const inputs: ModbusMessage = { name: 'readDiscreteInputs', address: 0, quantity: 8, values: [] }
const inputsAre = (first: number): ModbusMessage => ({ ...inputs, quantity: 0, values: [first, 0, 0, 0, 0, 0, 0, 0] })

/** A bus whose other end the test controls. */
function scripted(framing: ModbusFraming) {
  const world = virtualPlatform()
  const { near, far, cut } = memoryPair()
  const bus = MODBUS_BUS[framing].start(near, { tcp: 'board:502' }, world)
  const make = framing === 'rtu' ? rtuCodec : tcpCodec
  const [hears, speaks] = [make('request'), make('answer')]
  const heard: { at: number; transaction: number; message: ModbusMessage }[] = []
  const noise: Noise[] = []
  bus.onNoise((n) => void noise.push(n))
  void (async () => {
    for await (const chunk of far.bytes) {
      for (const { transaction, pdu } of hears.push(chunk)) {
        heard.push({ at: world.clock.elapsed(), transaction, message: decodeRequest(pdu) as ModbusMessage })
      }
    }
  })().catch(() => {})
  const ask = (message: ModbusMessage, more: Partial<BusRequest> = {}): Promise<BusAnswer> =>
    bus.request({ unit: 1, message, timeoutMs: 500, lane: 'command', ...more })
  const say = (message: ModbusMessage, { unit = 1, transaction = heard.at(-1)?.transaction ?? 0 } = {}) =>
    far.write(speaks.encode({ transaction, unit, pdu: encodePdu('answer', message) }), forEver())
  return { world, bus, near, far, cut, heard, noise, ask, say }
}

describe.each(['rtu', 'tcp'] as const)('bus over %s', (framing) => {
  test('accepts only the answer to the open request: same unit, function, address and value', async () => {
    const { world, heard, noise, ask, say } = scripted(framing)
    let told: BusAnswer | null = null
    void ask(coil(3)).then((answer) => (told = answer))
    await world.advance(5)
    expect(heard).toHaveLength(1)
    await say(coil(3), { unit: 2 })
    await say(coil(4))
    await say(coil(3, false))
    await say(inputsAre(1))
    await world.advance(5)
    expect(told).toBeNull()
    await say(coil(3))
    await world.advance(5)
    expect(told).toEqual({ kind: 'answered', values: [1] })
    expect(noise).toHaveLength(4)
  })

  test('does not take a late answer for the next one', async () => {
    const { world, heard, ask, say } = scripted(framing)
    const first = ask(inputs)
    await world.advance(500)
    expect(await first).toEqual({ kind: 'lost', possiblySent: true, detail: 'unit 1 gave no answer within 500 ms' })
    const late = heard[0]?.transaction ?? 0
    const second = ask(inputs)
    await world.advance(50)
    await say(inputsAre(1), { transaction: late })
    await world.advance(200)
    expect(heard).toHaveLength(2)
    await say(inputsAre(0))
    expect(await world.settle(second)).toMatchObject({ kind: 'answered', values: [0, 0, 0, 0, 0, 0, 0, 0] })
  })

  test('sends one request at a time, commands before polls, each lane in order', async () => {
    const { world, heard, ask, say } = scripted(framing)
    const asked = [
      ask(coil(0)),
      ask(coil(10), { lane: 'poll' }),
      ask(coil(11), { lane: 'poll' }),
      ask(coil(1)),
      ask(coil(2)),
    ]
    const order: number[] = []
    for (let i = 0; i < 5; i++) {
      await world.advance(10)
      expect(heard).toHaveLength(i + 1)
      const message = heard[i]?.message ?? coil(99)
      order.push(message.address)
      await say(message)
    }
    await world.settle(Promise.all(asked))
    expect(order).toEqual([0, 1, 2, 10, 11])
  })

  test('queues at most 64 requests in a lane, and does not send cancelled ones', async () => {
    const { world, heard, ask } = scripted(framing)
    const takenBack = new AbortController()
    const all = Array.from({ length: 70 }, (_, i) => ask(coil(i), { signal: takenBack.signal, timeoutMs: 20 }))
    await world.advance(1)
    takenBack.abort()
    const answers = await world.settle(Promise.all(all))
    expect(answers.filter((answer) => answer.kind === 'lost' && answer.detail.startsWith('64 requests'))).toHaveLength(
      5,
    )
    expect(heard).toHaveLength(1)
    expect(answers.map((answer) => answer.kind === 'lost' && answer.possiblySent)).toEqual(
      Array.from({ length: 70 }, (_, i) => i === 0),
    )
  })

  test('reports the open request as possibly sent and queued ones as not sent when the link is cut', async () => {
    const { world, bus, cut, ask } = scripted(framing)
    const both = Promise.all([ask(coil(0)), ask(coil(1))])
    await world.advance(5)
    cut()
    const detail = 'the memory link was cut'
    expect(await world.settle(both)).toEqual([
      { kind: 'lost', possiblySent: true, detail },
      { kind: 'lost', possiblySent: false, detail },
    ])
    expect(await ask(coil(2))).toEqual({ kind: 'lost', possiblySent: false, detail })
    expect(await bus.ended).toBe(detail)
  })

  test('returns an exception', async () => {
    const { world, far, heard, ask } = scripted(framing)
    const told = ask(coil(9))
    await world.advance(5)
    const codec = framing === 'rtu' ? rtuCodec('answer') : tcpCodec('answer')
    await far.write(
      codec.encode({ transaction: heard[0]?.transaction ?? 0, unit: 1, pdu: Uint8Array.of(0x85, 2) }),
      forEver(),
    )
    expect(await world.settle(told)).toEqual({ kind: 'exception', code: 2 })
  })
})

test('keeps 3.5 characters of silence between an RTU answer and the next request', async () => {
  const { world, heard, ask, say } = scripted('rtu')
  const both = Promise.all([ask(coil(0)), ask(coil(1))])
  await world.advance(10)
  const answeredAt = world.clock.elapsed()
  await say(coil(0))
  await world.advance(20)
  // 9600 baud: 3.5 × 11 bits = 4.01 ms.
  expect((heard[1]?.at ?? 0) - answeredAt).toBeGreaterThanOrEqual(4)
  await say(coil(1))
  await world.settle(both)
})
