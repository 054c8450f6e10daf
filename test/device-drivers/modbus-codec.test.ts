import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { crc16, rtuCodec, tcpCodec } from '../../device-drivers/modbus/protocol/frames.ts'
import {
  type ModbusFrame,
  MODBUS_FUNCTIONS,
  type FunctionName,
  answers,
  decodeAnswer,
  decodeRequest,
  encodePdu,
  encodeRefusal,
  pduLength,
  type Direction,
  type ModbusMessage,
} from '../../device-drivers/modbus/protocol/pdu.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'
import { chopped, concat } from './pieces.ts'

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'))
const names = Object.keys(MODBUS_FUNCTIONS) as FunctionName[]

const requests = fc.constantFrom(...names).chain((name): fc.Arbitrary<ModbusMessage> => {
  const f = MODBUS_FUNCTIONS[name]
  const value = f.unit === 'bit' ? fc.integer({ min: 0, max: 1 }) : fc.integer({ min: 0, max: 65_535 })
  const address = fc.integer({ min: 0, max: 65_535 })
  const most = fc.integer({ min: 1, max: f.most })
  if (f.access === 'read') return fc.tuple(address, most).map(([at, quantity]) => span(name, at, quantity))
  return fc
    .record({ address, values: fc.array(value, { minLength: 1, maxLength: f.most }) })
    .map(({ address: at, values }) => ({ name, address: at, quantity: values.length, values }))
})

/** The answer of a board to this request, as the codec decodes it. */
function answerTo(request: ModbusMessage): ModbusMessage {
  const f = MODBUS_FUNCTIONS[request.name]
  if (f.access === 'write one') return request
  if (f.access === 'write many') return { ...request, values: [] }
  const count = f.unit === 'bit' ? Math.ceil(request.quantity / 8) * 8 : request.quantity
  const values = Array.from({ length: count }, (_, i) => (f.unit === 'bit' ? i & 1 : i * 257))
  return { name: request.name, address: 0, quantity: 0, values }
}

const frameOf = (pdu: Uint8Array, transaction = 0): ModbusFrame => ({ transaction, unit: 1, pdu })

describe('golden frames', () => {
  test('encodes write coil 0 ON to unit 1', () => {
    const pdu = encodePdu('request', { name: 'writeSingleCoil', address: 0, quantity: 1, values: [1] })
    expect(rtuCodec('answer').encode(frameOf(pdu))).toEqual(hex('01 05 00 00 FF 00 8C 3A'))
    expect(tcpCodec('answer').encode(frameOf(pdu, 0x1501))).toEqual(hex('15 01 00 00 00 06 01 05 00 00 FF 00'))
  })

  // The examples of the Modbus application protocol V1.1b3, chapter 6.
  test.each<[string, string, ModbusMessage, string, ModbusMessage]>([
    ['6.1', '01 0013 0013', span('readCoils', 0x13, 0x13), '01 03 CD6B05', bits('readCoils', 'CD6B05')],
    [
      '6.2',
      '02 00C4 0016',
      span('readDiscreteInputs', 0xc4, 0x16),
      '02 03 ACDB35',
      bits('readDiscreteInputs', 'ACDB35'),
    ],
    ['6.3', '03 006B 0003', span('readHoldingRegisters', 0x6b, 3), '03 06 022B 0000 0064', words([0x22b, 0, 0x64])],
    ['6.5', '05 00AC FF00', one('writeSingleCoil', 0xac, 1), '05 00AC FF00', one('writeSingleCoil', 0xac, 1)],
    ['6.6', '06 0001 0003', one('writeSingleRegister', 1, 3), '06 0001 0003', one('writeSingleRegister', 1, 3)],
    [
      '6.11',
      '0F 0013 000A 02 CD01',
      { name: 'writeMultipleCoils', address: 0x13, quantity: 10, values: [1, 0, 1, 1, 0, 0, 1, 1, 1, 0] },
      '0F 0013 000A',
      span('writeMultipleCoils', 0x13, 10),
    ],
    [
      '6.12',
      '10 0001 0002 04 000A 0102',
      { name: 'writeMultipleRegisters', address: 1, quantity: 2, values: [10, 0x102] },
      '10 0001 0002',
      span('writeMultipleRegisters', 1, 2),
    ],
  ])('%s', (_, request, message, answer, decoded) => {
    expect(encodePdu('request', message)).toEqual(hex(request))
    expect(decodeRequest(hex(request))).toEqual(message)
    expect(decodeAnswer(hex(answer))).toEqual(decoded)
    expect(answers(decoded, message)).toBe(true)
  })

  test('decodes a refusal', () => {
    expect(encodeRefusal({ functionCode: 1, exception: 2 })).toEqual(hex('81 02'))
    expect(decodeAnswer(hex('81 02'))).toEqual({ functionCode: 1, exception: 2 })
  })

  test('computes the CRC of the check string', () => {
    expect(crc16(new TextEncoder().encode('123456789'))).toBe(0x4b37)
  })
})

function bits(name: FunctionName, packed: string): ModbusMessage {
  return {
    name,
    address: 0,
    quantity: 0,
    values: [...hex(packed)].flatMap((byte) => Array.from({ length: 8 }, (_, i) => (byte >> i) & 1)),
  }
}
function span(name: FunctionName, address: number, quantity: number): ModbusMessage {
  return { name, address, quantity, values: [] }
}
function words(values: number[]): ModbusMessage {
  return { name: 'readHoldingRegisters', address: 0, quantity: 0, values }
}
function one(name: FunctionName, address: number, value: number): ModbusMessage {
  return { name, address, quantity: 1, values: [value] }
}

describe('encoding and decoding', () => {
  test('decodes requests and answers in any chunks, over RTU and TCP', () => {
    fc.assert(
      fc.property(
        requests,
        fc.integer({ min: 0, max: 65_535 }),
        fc.integer({ min: 1, max: 300 }),
        (request, transaction, size) => {
          for (const direction of ['request', 'answer'] as const) {
            const message = direction === 'request' ? request : answerTo(request)
            const pdu = encodePdu(direction, message)
            expect(pduLength(direction, pdu, 0)).toBe(pdu.length)
            expect(direction === 'request' ? decodeRequest(pdu) : decodeAnswer(pdu)).toEqual(message)
            for (const codec of [rtuCodec(direction), tcpCodec(direction)]) {
              const bytes = codec.encode({ transaction, unit: 17, pdu })
              const got = chopped(bytes, size).flatMap((chunk) => codec.push(chunk))
              expect(got.map((frame) => [frame.unit, frame.pdu])).toEqual([[17, pdu]])
              expect([codec.held, codec.takeNoise()]).toEqual([0, null])
            }
          }
          expect(answers(answerTo(request), request)).toBe(true)
        },
      ),
    )
  })

  test('rejects an answer to another request', () => {
    const on = one('writeSingleCoil', 0, 1)
    const others = [one('writeSingleCoil', 0, 0), one('writeSingleCoil', 1, 1), one('writeSingleRegister', 0, 1)]
    for (const other of others) expect(answers(other, on)).toBe(false)
    expect(answers({ functionCode: 6, exception: 1 }, on)).toBe(false)
    const read = { name: 'readDiscreteInputs', address: 0, quantity: 9, values: [] } as const
    expect(answers(bits('readDiscreteInputs', 'FF'), read)).toBe(false)
  })

  test('rejects invalid requests', () => {
    expect(decodeRequest(hex('2B 0E 01 00'))).toEqual({ functionCode: 0x2b, exception: 1 })
    for (const bad of ['01 0000 0000', '01 0000 07D1', '05 0000 1234', '0F 0000 0008 02 FF00', '10 0000 0001 02 00']) {
      expect(decodeRequest(hex(bad))).toMatchObject({ exception: 3 })
    }
    for (const bad of ['', '07', '01 00', '01 02 FF', '05 0000 1234', '81', '03 01 00', 'AB 01'])
      expect(decodeAnswer(hex(bad))).toBeNull()
  })
})

describe.each<[string, (direction: Direction) => ReturnType<typeof rtuCodec>]>([
  ['RTU', rtuCodec],
  ['TCP', tcpCodec],
])('%s on a noisy line', (kind, make) => {
  const good = (value: number) => encodePdu('answer', one('writeSingleCoil', value, 1))

  test('finds each valid frame after garbage or an incomplete frame', () => {
    const random = seededRandom(11)
    let lost = 0
    for (let round = 0; round < 2_000; round++) {
      const codec = make('answer')
      const [n = 0, cut = 0, size = 0] = random.bytes(3)
      // 50…7F are no function codes, so this noise cannot begin a frame. The incomplete frames can.
      const garbage = random.bytes(n % 60).map((byte) => 0x50 | (byte & 0x2f))
      const half = codec.encode(frameOf(good(1))).subarray(0, cut % 8)
      const frames = Array.from({ length: 1 + (n % 4) }, (_, i) => codec.encode(frameOf(good(100 + i), 100 + i)))
      const got = chopped(concat([garbage, half, ...frames]), 1 + (size % 40)).flatMap((chunk) => codec.push(chunk))
      got.push(...codec.silence())
      const seen = new Set(got.map((frame) => frame.pdu[2]))
      if (frames.some((_, i) => !seen.has(100 + i))) lost++
      expect(codec.held).toBe(0)
    }
    expect(lost).toBe(0)
  })

  test('stays bounded over 250,000 random chunks and does not slow down', () => {
    const random = seededRandom(5)
    const codec = make('answer')
    const frame = codec.encode(frameOf(good(7), 7))
    const blocks: number[] = []
    let most = 0
    let frames = 0
    let sent = 0
    for (let block = 0; block < 10; block++) {
      const chunks = Array.from({ length: 25_000 }, (_, i) => (i % 50 === 0 ? frame : random.bytes(1 + (i % 23))))
      sent += chunks.filter((chunk) => chunk === frame).length
      const from = process.cpuUsage()
      for (const chunk of chunks) {
        frames += codec.push(chunk).length
        most = Math.max(most, codec.held)
        if (chunk === frame) frames += codec.silence().length
      }
      blocks.push(process.cpuUsage(from).user)
    }
    expect(most).toBeLessThan(kind === 'RTU' ? 256 : 260)
    expect(frames).toBeGreaterThanOrEqual(sent * 0.95)
    expect(codec.takeNoise()?.bytes).toBeGreaterThan(1_000_000)
    const [first = 1, ...rest] = blocks
    expect(Math.min(...rest)).toBeLessThan(first * 5 + 50_000)
  })

  test('discards an endless stream without a frame as it arrives', () => {
    for (const filler of [0x00, 0x01, 0x02, 0x10, 0x55, 0x81, 0xff]) {
      const codec = make('answer')
      for (let i = 0; i < 1_000; i++) codec.push(new Uint8Array(100).fill(filler))
      codec.silence()
      expect(codec.held).toBe(0)
      expect(codec.takeNoise()?.bytes).toBeGreaterThan(90_000)
    }
  })
})

test('releases a valid RTU frame behind a wrong length at silence', () => {
  const codec = rtuCodec('answer')
  const frame = codec.encode(frameOf(encodePdu('answer', one('writeSingleCoil', 3, 1))))
  expect(codec.push(concat([hex('01 02 FF'), frame]))).toEqual([])
  expect(codec.silence()).toHaveLength(1)
  expect(codec.takeNoise()?.bytes).toBe(3)
})

test('passes an unknown RTU function to the board, also after noise', () => {
  const codec = rtuCodec('request')
  const frame = codec.encode(frameOf(hex('2B 0E 01 00')))
  expect(codec.push(concat([hex('FF FF'), frame]))).toEqual([])
  expect(codec.silence().map((got) => got.pdu)).toEqual([hex('2B 0E 01 00')])
})

test('detects one flipped bit anywhere in an RTU frame', () => {
  const frame = rtuCodec('answer').encode(frameOf(encodePdu('answer', one('writeSingleCoil', 0, 1))))
  for (let bit = 0; bit < frame.length * 8; bit++) {
    const codec = rtuCodec('answer')
    const turned = frame.slice()
    turned[bit >> 3] = (turned[bit >> 3] ?? 0) ^ (1 << (bit & 7))
    expect([...codec.push(turned), ...codec.silence()]).toEqual([])
  }
})
