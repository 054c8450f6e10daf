import { createCipheriv } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MAX_OSDP_BYTES, osdpChecksum, osdpCodec, osdpCrc } from '../../device-drivers/osdp/protocol/frame.ts'
import type { OsdpFrame } from '../../device-drivers/osdp/protocol/frame.ts'
import {
  buzzer,
  decodeCapabilities,
  decodeCard,
  decodeIdentity,
  led,
  nakText,
  outputOnFor,
} from '../../device-drivers/osdp/protocol/messages.ts'
import {
  decryptData,
  DEFAULT_KEY,
  deviceCryptogram,
  encryptData,
  firstReplyMac,
  osdpMac,
  panelCryptogram,
  secureChannel,
  sessionKeys,
} from '../../device-drivers/osdp/protocol/secure-channel.ts'
import { describeCodec } from './codec-conformance.ts'

const hex = (text: string) => Uint8Array.from(Buffer.from(text.replaceAll(' ', ''), 'hex'))
const NOTHING = new Uint8Array(0)
const frameOf = (rest: Partial<OsdpFrame>): OsdpFrame => ({
  address: 0,
  reply: false,
  sequence: 0,
  check: 'crc',
  security: null,
  code: 0x60,
  data: NOTHING,
  mac: null,
  ...rest,
})

// SIA OSDP, Annex E, as the tests of libosdp give it (goToMain/libosdp, tests/unit-tests/test-sc-sia-vectors.c,
// Apache-2.0); the bytes are retyped.
describe('SIA OSDP Annex E', () => {
  test.each([
    ['53 7F 0D 00 04 6E 00 80 25 00 00', '6E 38'],
    ['53 00 09 00 04 61 00', 'C0 66'],
  ])('CRC of %s', (message, crc) => {
    const found = osdpCrc(hex(message))
    expect(Uint8Array.of(found & 0xff, found >>> 8)).toEqual(hex(crc))
  })

  test.each([
    ['53 7F 0C 00 00 6E 00 80 25 00 00', 0x0f],
    ['53 00 08 00 00 61 00', 0x44],
  ])('checksum of %s', (message, sum) => {
    expect(osdpChecksum(hex(message))).toBe(sum)
  })

  test('decodes the same messages as frames', () => {
    expect(osdpCodec().encode(frameOf({ code: 0x61, data: hex('00') }))).toEqual(hex('FF 53 00 09 00 04 61 00 C0 66'))
    expect(
      osdpCodec().encode(frameOf({ address: 0x7f, check: 'checksum', code: 0x6e, data: hex('00 80 25 00 00') })),
    ).toEqual(hex('FF 53 7F 0C 00 00 6E 00 80 25 00 00 0F'))
  })

  test('derives session keys, cryptograms and the first MAC', () => {
    const panelRandom = hex('B0B1B2B3B4B5B6B7')
    const deviceRandom = hex('A0A1A2A3A4A5A6A7')
    const keys = sessionKeys(DEFAULT_KEY, panelRandom)
    expect(keys).toEqual({
      mac1: hex('5E86C676603BDEE2D8BEAFE178637332'),
      mac2: hex('6FDA86E857777E81132035758239172E'),
      enc: hex('BF8DC2A8329ACB8C67C6D0CD9A451682'),
    })
    const panel = panelCryptogram(keys, panelRandom, deviceRandom)
    expect(panel).toEqual(hex('26D3356E07762D262801FC8E6665A891'))
    expect(deviceCryptogram(keys, panelRandom, deviceRandom)).toEqual(hex('FDE5D2F428EC16312471EA3C02BD7796'))
    expect(firstReplyMac(keys, panel)).toEqual(hex('B2A30057EB98BA2229EC1F875662B524'))
  })
})

// Frames of libosdp's tests (tests/unit-tests/test-cp-phy.c, Apache-2.0), retyped.
describe('frames of libosdp', () => {
  const one = (bytes: string): OsdpFrame | undefined => osdpCodec().push(hex(bytes))[0]

  test('commands', () => {
    expect(
      osdpCodec()
        .encode(frameOf({ address: 0x65 }))
        .subarray(1),
    ).toEqual(hex('53 65 08 00 04 60 60 90'))
    expect(
      osdpCodec()
        .encode(frameOf({ address: 0x65, code: 0x61, data: hex('00') }))
        .subarray(1),
    ).toEqual(hex('53 65 09 00 04 61 00 D9 7A'))
  })

  test('replies', () => {
    const reply = { address: 0x65, reply: true, sequence: 1 }
    expect(one('53 E5 07 00 01 40 80')).toEqual(frameOf({ ...reply, check: 'checksum', code: 0x40 }))
    expect(one('53 E5 09 00 05 41 01 0E 8F')).toEqual(frameOf({ ...reply, code: 0x41, data: hex('01') }))
    expect(one('53 E5 1B 00 0D 03 14 01 78 A0A1A2A3A4A5A6A7A8A9AAABACADAEAF CA BA')).toEqual(
      frameOf({ ...reply, security: hex('14 01'), code: 0x78, data: hex('A0A1A2A3A4A5A6A7A8A9AAABACADAEAF') }),
    )
    expect(one('53 E5 0D 00 09 02 16 40 00 00 00 00 5A')).toEqual(
      frameOf({ ...reply, check: 'checksum', security: hex('16'), code: 0x40, mac: hex('00000000') }),
    )
  })
})

// NIST SP 800-38A F.2.1, and what libosdp derives from it (tests/unit-tests/test-sc.c).
describe('MAC and encryption', () => {
  const key = hex('2b7e151628aed2a6abf7158809cf4f3c')
  const iv = hex('000102030405060708090a0b0c0d0e0f')
  const keys = { enc: key, mac1: key, mac2: key }
  const before = iv.map((byte) => ~byte)
  const plain = hex(
    '6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411e5fbc1191a0a52eff69f2445df4f9b17ad2b417be66c3710',
  )

  test('computes a MAC over whole and partial blocks', () => {
    expect(osdpMac(keys, iv, plain.subarray(0, 16))).toEqual(hex('7649abac8119b246cee98e9b12e9197d'))
    expect(osdpMac(keys, iv, plain)).toEqual(hex('3ff1caa1681fac09120eca307586e1a7'))
    expect(osdpMac(keys, iv, iv.subarray(0, 15))).toEqual(hex('c5311f3d23d086ea86f5ee7f85247b40'))
  })

  test('encrypts data', () => {
    expect(encryptData(keys, before, iv.subarray(0, 15))).toEqual(hex('c5311f3d23d086ea86f5ee7f85247b40'))
    expect(encryptData(keys, before, iv)).toEqual(
      hex('7df76b0c1ab899b33e42f047b91b546fe2fe5bd6c1dfcdd19124f03e1a134d3b'),
    )
    expect(encryptData(keys, before, NOTHING)).toEqual(hex('4c08220c79d9191022dc6674874ceaf8'))
    expect(decryptData(keys, before, hex('c5311f3d23d086ea86f5ee7f85247b40'))).toEqual(iv.subarray(0, 15))
    expect(decryptData(keys, before, new Uint8Array(15))).toBeNull()
    const zeros = createCipheriv('aes-128-cbc', key, iv).setAutoPadding(false).update(new Uint8Array(16))
    expect(decryptData(keys, before, Uint8Array.from(zeros))).toBeNull()
  })
})

const bytes = (maxLength: number) => fc.uint8Array({ maxLength })
const ends = fc.record({
  address: fc.integer({ min: 0, max: 127 }),
  reply: fc.boolean(),
  sequence: fc.integer({ min: 0, max: 3 }),
  check: fc.constantFrom('crc' as const, 'checksum' as const),
  code: fc.integer({ min: 0, max: 255 }),
  data: bytes(200),
})
const frames = fc
  .tuple(
    ends,
    fc.constantFrom(null, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18),
    fc.uint8Array({ minLength: 4, maxLength: 4 }),
  )
  .map(([end, type, mac]): OsdpFrame => ({
    ...end,
    security: type === null ? null : Uint8Array.of(type, 1),
    mac: type !== null && type >= 0x15 ? mac : null,
  }))

describeCodec<OsdpFrame>('OSDP', {
  make: osdpCodec,
  frames,
  sample: (n) =>
    frameOf({ reply: true, sequence: 1, code: 0x50, data: Uint8Array.of(0, 0, 32, 0, 0xde, 0xad, 0xbe, n) }),
  mostHeld: MAX_OSDP_BYTES + 1,
  begin: 0x53,
  unchecked: 1,
})

describe('the secure channel', () => {
  const both = () => {
    const keys = sessionKeys(hex('00112233445566778899AABBCCDDEEFF'), hex('0102030405060708'))
    const first = hex('0F0E0D0C0B0A09080706050403020100')
    return [secureChannel(keys, first), secureChannel(keys, first)] as const
  }

  test('carries any frame in both directions, encrypted', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(bytes(64), bytes(64)), { maxLength: 8 }), (turns) => {
        const [panel, device] = both()
        for (const [data, answer] of turns) {
          const command = frameOf({ code: 0x68, data })
          const sealed = panel.seal(command)
          expect(device.open(sealed)).toEqual(command)
          if (data.length > 3) expect(Buffer.from(sealed.data).includes(Buffer.from(data))).toBe(false)
          const reply = frameOf({ reply: true, code: 0x50, data: answer })
          expect(panel.open(device.seal(reply))).toEqual(reply)
        }
      }),
    )
  })

  test('rejects a changed, repeated or missing frame, and accepts the next valid one', () => {
    const [panel, device] = both()
    const sealed = panel.seal(frameOf({ code: 0x68, data: hex('00 05 05 00') }))
    expect(device.open({ ...sealed, data: sealed.data.map((byte, i) => (i === 3 ? byte ^ 1 : byte)) })).toBeNull()
    expect(device.open({ ...sealed, sequence: 2 })).toBeNull()
    expect(device.open({ ...sealed, security: null, mac: null })).toBeNull()
    expect(device.open(sealed)?.data).toEqual(hex('00 05 05 00'))
    const reply = device.seal(frameOf({ reply: true, code: 0x40 }))
    expect(panel.open(reply)).not.toBeNull()
    expect(device.open(sealed)).toBeNull()
    panel.seal(frameOf({ code: 0x60 }))
    expect(panel.open(reply)).toBeNull()
  })
})

describe('messages', () => {
  test('encodes an output for half a second, LED and buzzer', () => {
    expect(outputOnFor(3, 500).data).toEqual(hex('03 05 05 00'))
    expect(outputOnFor(0, 60_000).data).toEqual(hex('00 05 58 02'))
    expect(led(1, 'amber', 5_000).data).toEqual(hex('00 01 02 01 00 03 00 32 00 00 00 00 00 00'))
    expect(led(1, 'green', 0).data).toEqual(hex('00 01 01 00 00 00 00 00 00 00 00 00 00 00'))
    expect(buzzer(5_000).data).toEqual(hex('00 02 05 05 05'))
    expect(buzzer(0).data).toEqual(hex('00 01 00 00 00'))
    const [, , on = 0, off = 0, times = 0] = buzzer(3_600_000).data
    expect(((on + off) * times) / 10).toBeGreaterThan(3_500)
  })

  test('decodes replies of devices', () => {
    expect(decodeIdentity(hex('CAFE01 01 02 87D61200 03 04 05'))).toEqual({
      vendor: 'CAFE01',
      model: 1,
      version: 2,
      serialNumber: '1234567',
      firmwareVersion: '3.4.5',
    })
    expect(decodeIdentity(hex('CAFE01'))).toBeNull()
    expect(decodeCapabilities(hex('01 01 04 09 01 01')).get(9)).toEqual({ level: 1, count: 1 })
    expect(decodeCard(hex('00 01 1A 00 AABBCC40'))).toEqual({ bits: 26, hex: 'AABBCC40' })
    for (const bad of ['', '00 00 00 00', '00 00 20 00 AABBCC', '00 00 FF FF']) expect(decodeCard(hex(bad))).toBeNull()
    expect(decodeCard(hex(`00 00 F0 01 ${'AB'.repeat(62)}`))).toEqual({ bits: 496, hex: 'AB'.repeat(62) })
    expect(decodeCard(hex(`00 00 F8 01 ${'AB'.repeat(63)}`))).toBeNull()
    expect(nakText(6)).toBe('NAK 6 (only in a secure channel)')
  })
})
