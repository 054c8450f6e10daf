import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_PACKET_BYTES, mqttCodec } from '../../device-drivers/kit/protocol/mqtt-packet.ts'
import type { MqttPacket } from '../../device-drivers/kit/protocol/mqtt-packet.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'
import { chopped, concat } from './pieces.ts'

const topic = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' })
const messageId = fc.integer({ min: 1, max: 65_535 })
const payload = fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes))
const publish = { cmd: fc.constant('publish' as const), topic, payload, retain: fc.boolean() }
const packet: fc.Arbitrary<MqttPacket> = fc.oneof(
  fc.record({
    cmd: fc.constant('connect' as const),
    clientId: topic,
    keepalive: fc.integer({ min: 0, max: 65_535 }),
    username: topic,
    password: payload,
  }),
  fc.record({
    cmd: fc.constant('connack' as const),
    returnCode: fc.integer({ min: 0, max: 5 }),
    sessionPresent: fc.boolean(),
  }),
  fc.record({ ...publish, qos: fc.constant(1 as const), dup: fc.boolean(), messageId }),
  fc.record({ ...publish, qos: fc.constant(0 as const), dup: fc.constant(false) }),
  fc.record({
    cmd: fc.constant('subscribe' as const),
    messageId,
    subscriptions: fc.array(fc.record({ topic, qos: fc.constantFrom(0 as const, 1 as const) }), {
      minLength: 1,
      maxLength: 4,
    }),
  }),
  fc.record({
    cmd: fc.constant('suback' as const),
    messageId,
    granted: fc.array(fc.constantFrom(0, 1, 128), { minLength: 1, maxLength: 4 }),
  }),
  fc.record({ cmd: fc.constant('puback' as const), messageId }),
  fc.record({ cmd: fc.constantFrom('pingreq' as const, 'pingresp' as const, 'disconnect' as const) }),
)

/** Hex such as `30 03 0001 61` as bytes; ignores spaces. */
const bytesOf = (hex: string) => Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'))

/** A CONNECT packet with these flags and this payload. */
const connect = (flags: string, rest: string, version = '04') => {
  const body = `0004 4d515454 ${version} ${flags} 000a ${rest}`
  return `10 ${bytesOf(body).length.toString(16).padStart(2, '0')} ${body}`
}

describe('MQTT codec', () => {
  test('decodes what it encoded, in chunks of any size', () => {
    fc.assert(
      fc.property(fc.array(packet, { maxLength: 6 }), fc.integer({ min: 1, max: 60 }), (packets, size) => {
        const codec = mqttCodec()
        const read = chopped(concat(packets.map((one) => codec.encode(one))), size).flatMap((bytes) =>
          codec.push(bytes),
        )
        expect([codec.held, codec.fault]).toEqual([0, null])
        expect(read).toHaveLength(packets.length)
        expect(read).toMatchObject(packets)
      }),
    )
  })

  test('encodes the examples of the standard: a CONNECT header, a remaining length of two bytes', () => {
    const codec = mqttCodec()
    expect([...codec.encode({ cmd: 'connect', clientId: '', keepalive: 10 })]).toEqual([
      0x10, 12, 0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 2, 0, 10, 0, 0,
    ])
    const message = { cmd: 'publish', topic: 'a/b', qos: 1, retain: false, dup: false, messageId: 10 } as const
    expect([...codec.encode({ ...message, payload: Buffer.alloc(316) })].slice(0, 10)).toEqual([
      0x32, 0xc3, 0x02, 0, 3, 0x61, 0x2f, 0x62, 0, 10,
    ])
  })

  test.each([
    ['CONNECT with a will, a user and a password', connect('f6', '0001 61 0001 77 0002 ff00 0001 75 0002 fffe')],
    ['CONNACK', '20 02 00 00'],
    ['PUBLISH of QoS 0 without a payload', '30 03 0001 61'],
    ['PUBLISH that is sent again', '3a 06 0001 61 0001 ff'],
    ['PUBLISH to a topic that begins with U+FEFF', '30 05 0003 efbbbf'],
    ['PUBLISH to a topic with U+FFFD', '30 05 0003 efbfbd'],
    ['SUBACK with a refusal', '90 04 0001 01 80'],
    ['PINGRESP', 'd0 00'],
  ])('decodes %s', (_, hex) => {
    const codec = mqttCodec()
    const [read, ...more] = codec.push(bytesOf(hex))
    expect([codec.fault, more]).toEqual([null, []])
    expect(codec.encode(read as MqttPacket)).toEqual(Buffer.from(bytesOf(hex)))
  })

  test.each([
    ['a packet that is longer than the limit', '30 81 80 40'],
    ['the longest length there is', '30 ff ff ff 7f'],
    ['a length of five bytes', '30 ff ff ff ff 01'],
    ['PUBLISH of QoS 2', '34'],
    ['PUBLISH of QoS 3', '36'],
  ])('rejects %s by its header alone', (_, hex) => {
    const codec = mqttCodec()
    expect(codec.push(bytesOf(hex))).toEqual([])
    expect(codec.fault).toMatch(/^a (packet over \d+ bytes|message of QoS 2)$/)
    expect(codec.held).toBe(0)
  })

  test.each([
    ['type 0', '00 00'],
    ['PUBREC', '50 02 0001'],
    ['PUBREL', '62 02 0001'],
    ['PUBCOMP', '70 02 0001'],
    ['UNSUBSCRIBE', 'a2 05 0001 0001 61'],
    ['UNSUBACK', 'b0 02 0001'],
    ['AUTH of MQTT 5', 'f0 00'],
    ['reserved flags of CONNACK', '21 02 00 00'],
    ['reserved flags of SUBSCRIBE', '80 06 0001 0001 61 01'],
    ['reserved flags of PINGRESP', 'd8 00'],
    ['reserved flags of DISCONNECT', 'e1 00'],
    ['reserved acknowledge flags of CONNACK', '20 02 02 00'],
    ['the reserved flag of CONNECT', connect('03', '0001 61')],
    ['a reserved code of SUBACK', '90 03 0001 03'],
    ['reserved options of SUBSCRIBE', '82 06 0001 0001 61 04'],
    ['CONNECT of MQTT 3.1', '10 0f 0006 4d5149736470 03 02 000a 0001 61'],
    ['CONNECT of MQTT 5', connect('02', '00 0001 61', '05')],
    ['CONNECT of MQTT 5 with a property twice', connect('02', '0a 11 00000001 11 00000002 0001 61', '05')],
    ['CONNECT of a bridge', connect('02', '0001 61', '84')],
    ['CONNECT with another protocol', '10 0d 0004 4d515458 04 02 000a 0001 61'],
    ['CONNECT with a password but no user', connect('42', '0001 61 0001 70')],
    ['CONNECT with a will of QoS 3', connect('1e', '0001 61 0001 77 0001 78')],
    ['CONNECT without the will that it announces', connect('06', '0001 61')],
    ['CONNECT that ends in its client id', connect('02', '0005 61')],
    ['an identifier of 0 in PUBLISH', '32 05 0001 61 0000'],
    ['an identifier of 0 in PUBACK', '40 02 0000'],
    ['an identifier of 0 in SUBSCRIBE', '82 06 0000 0001 61 01'],
    ['an identifier of 0 in SUBACK', '90 03 0000 01'],
    ['PUBLISH that ends in its topic', '30 03 0005 61'],
    ['PUBLISH that ends before its identifier', '32 03 0001 61'],
    ['CONNACK without a code', '20 01 00'],
    ['CONNACK without a body', '20 00'],
    ['PUBACK without a body', '40 00'],
    ['PUBACK with half an identifier', '40 01 00'],
    ['SUBSCRIBE without topics', '82 02 0001'],
    ['SUBSCRIBE without the options of its topic', '82 05 0001 0001 61'],
    ['SUBACK without codes', '90 02 0001'],
    ['surplus bytes in CONNACK', '20 03 00 00 00'],
    ['surplus bytes in CONNECT', connect('02', '0001 61 ff')],
    ['surplus bytes in PUBACK', '40 03 0001 00'],
    ['surplus bytes in PINGRESP', 'd0 01 00'],
    ['surplus bytes in DISCONNECT', 'e0 02 0000'],
    ['a length in more bytes than it needs', '30 83 00 0001 61'],
    ['a topic that is no UTF-8', '30 03 0001 ff'],
    ['a topic with half a character', '30 04 0002 61c3'],
    ['a topic with a surrogate in UTF-8', '30 05 0003 eda080'],
    ['a topic with an overlong character', '30 04 0002 c080'],
    ['a topic with a null character', '30 03 0001 00'],
    ['a topic of SUBSCRIBE that is no UTF-8', '82 06 0001 0001 ff 01'],
    ['a client id that is no UTF-8', connect('02', '0001 ff')],
    ['a user that is no UTF-8', connect('82', '0001 61 0001 ff')],
  ])('rejects %s, and reads nothing afterwards', (_, hex) => {
    // The codec must not take missing bytes from the next packet, and must not decode that packet.
    const stream = concat([bytesOf('d0 00'), bytesOf(hex), bytesOf('20 02 00 00 20 02 00 00')])
    for (const size of [1, 3, stream.length]) {
      const codec = mqttCodec()
      const read = chopped(stream, size).flatMap((bytes) => codec.push(bytes))
      expect(codec.fault).toBeTypeOf('string')
      expect(codec.held).toBe(0)
      expect(read).toMatchObject([{ cmd: 'pingresp' }])
      expect(read).toHaveLength(1)
    }
  })

  test.each<[string, MqttPacket]>([
    [
      'a topic over 65,535 bytes',
      { cmd: 'publish', topic: 'ä'.repeat(32_768), payload: Buffer.alloc(0), qos: 0, retain: false, dup: false },
    ],
    ['a client id over 65,535 bytes', { cmd: 'connect', clientId: 'a'.repeat(65_536) }],
    ['an identifier of 0', { cmd: 'puback', messageId: 0 }],
    [
      'a message of QoS 2',
      { cmd: 'publish', topic: 'a', payload: Buffer.alloc(0), qos: 2, retain: false, dup: false, messageId: 1 },
    ],
    ['an identifier over 65,535', { cmd: 'puback', messageId: 65_536 }],
    ['a password without a user', { cmd: 'connect', clientId: 'a', password: Buffer.from('secret') }],
    ['a password over 65,535 bytes', { cmd: 'connect', clientId: 'a', username: 'u', password: Buffer.alloc(65_536) }],
  ])('refuses to encode %s', (_, wrong) => {
    expect(() => mqttCodec().encode(wrong)).toThrow()
  })

  test('keeps a payload when later packets arrive in the same memory', () => {
    const codec = mqttCodec()
    const chunk = Uint8Array.from(bytesOf('30 04 0001 61 31'))
    const [first] = codec.push(chunk)
    chunk.fill(0x32, 5)
    codec.push(chunk)
    expect(first).toMatchObject({ payload: Buffer.from('1') })
  })

  test('decodes a packet of maximum length in single bytes without buffering each of them', () => {
    const codec = mqttCodec()
    const length = MAX_PACKET_BYTES
    const head = Uint8Array.of(0x30, (length & 0x7f) | 0x80, ((length >> 7) & 0x7f) | 0x80, length >> 14, 0, 1, 0x61)
    codec.push(head)
    const byte = Uint8Array.of(0x62)
    const before = process.memoryUsage()
    let read: MqttPacket[] = []
    for (let n = 0; n < length - 3; n++) read = codec.push(byte)
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    expect(read).toMatchObject([{ cmd: 'publish', topic: 'a' }])
    expect(heapUsed + arrayBuffers - before.heapUsed - before.arrayBuffers).toBeLessThan(60 * 1024 * 1024)
  })

  test('stays bounded for any input', () => {
    const random = seededRandom(4)
    let codec = mqttCodec()
    for (let i = 0; i < 20_000; i++) {
      codec.push(random.bytes(1 + (i % 23)))
      expect(codec.held).toBeLessThan(1_100_000)
      if (codec.fault !== null) codec = mqttCodec()
    }
  })
})
