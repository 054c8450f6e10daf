import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { goodData, splitAnswer, statusText, readUid, hex, unhex } from '../../device-drivers/pcsc/protocol/apdu.ts'
import { parseAtr, tagTechnology } from '../../device-drivers/pcsc/protocol/atr.ts'
import { easAlarmFrame, easFrame, isIcodeSli, tagAnswer } from '../../device-drivers/pcsc/protocol/icode-eas.ts'
import {
  MAX_NDEF_BYTES,
  readType2,
  readType5,
  type NdefRead,
  ndefTexts,
} from '../../device-drivers/pcsc/protocol/ndef.ts'
import { transceive, transparentAnswer } from '../../device-drivers/pcsc/protocol/transparent.ts'
import { storageAtr } from '../../simulators/devices/nfc-tags.ts'

describe('technology from the ATR', () => {
  // ATRs of real cards, from smartcard_list.txt of pcsc-tools (github.com/LudovicRousseau/pcsc-tools).
  test.each([
    [
      'Oyster card, first generation (MIFARE Classic 1K)',
      '3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 01 00 00 00 00 6A',
      'MifareClassic',
    ],
    [
      'OV-chipkaart (MIFARE Classic 4K)',
      '3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 02 00 00 00 00 69',
      'MifareClassic',
    ],
    [
      'MIFARE Ultralight or Ultralight C',
      '3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 03 00 00 00 00 68',
      'MifareUltralight',
    ],
    [
      'ISO 14443 A-3, no chip named (Düsseldorf public library)',
      '3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 00 00 00 00 00 6B',
      'NfcA',
    ],
    ['Topaz, NFC Forum Type 1', '3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 F0 04 00 00 00 00 9F', 'NfcA'],
    ['Atmel CryptoRF (14443 B-3)', '3B 8F 80 01 80 4F 0C A0 00 00 03 06 07 00 00 00 00 00 00 6F', 'NfcB'],
    ['Chinese ID card', '3B 8F 80 01 80 4F 0C A0 00 00 03 06 07 FF B0 00 00 00 00 20', 'NfcB'],
    ['Philips I-Code', '3B 8F 80 01 80 4F 0C A0 00 00 03 06 0B 00 14 00 00 00 00 77', 'NfcV'],
    ['Infineon my-d vicinity', '3B 8F 80 01 80 4F 0C A0 00 00 03 06 0B 00 0E 00 00 00 00 6D', 'NfcV'],
    ['Texas Instruments Tag-it', '3B 8F 80 01 80 4F 0C A0 00 00 03 06 0B 00 12 00 00 00 00 71', 'NfcV'],
    ['ST M24LR04E', '3B 8F 80 01 80 4F 0C A0 00 00 03 06 0B 00 13 00 00 00 00 70', 'NfcV'],
    ['HID iCLASS 16K CL (ISO 15693-2)', '3B 8F 80 01 80 4F 0C A0 00 00 03 06 0A 00 1C 00 00 00 00 7E', 'NfcV'],
    ['DESFire', '3B 81 80 01 80 80', 'IsoDep'],
    ['Snapper, New Zealand', '3B 84 80 01 01 10 00 06 12', 'IsoDep'],
    ['Ireland ePassport', '3B 88 80 01 42 41 45 49 44 31 2E 30 6D', 'IsoDep'],
    ['FeliCa (Suica)', '3B 8F 80 01 80 4F 0C A0 00 00 03 06 11 00 3B 00 00 00 00 42', undefined],
    ['HID Prox, 125 kHz', '3B 8F 80 01 80 4F 0C A0 00 00 03 06 40 00 00 00 00 00 00 28', undefined],
    [
      'Xperia in Android Beam mode: no standard given',
      '3B 8F 80 01 80 4F 0C A0 00 00 03 06 00 00 00 00 00 00 00 68',
      undefined,
    ],
    ['a card with contacts', '3B 65 00 00 20 63 CB 68 00', undefined],
  ] as const)('%s', (_, atr, technology) => {
    expect(parseAtr(unhex(atr))?.checked).toBe(true)
    expect(tagTechnology(unhex(atr))).toBe(technology)
  })

  // By PC/SC part 3, supplement 2.02, tables of SS and NN.
  test.each([
    [0x03, 0x0026, 'MifareClassic'],
    [0x03, 0x0036, 'MifareClassic'],
    [0x03, 0x003a, 'MifareUltralight'],
    [0x03, 0x003d, 'MifareUltralight'],
    [0x0b, 0x0035, 'NfcV'],
    [0x0c, 0x0003, 'NfcV'],
    [0x05, 0x0001, 'NfcB'],
  ] as const)('SS %i, NN %i', (standard, chip, technology) => {
    expect(tagTechnology(storageAtr(standard, chip))).toBe(technology)
  })

  test('ignores an ATR with one wrong bit', () => {
    const atr = storageAtr(0x0b, 0x0014)
    fc.assert(
      fc.property(fc.integer({ min: 1, max: atr.length - 1 }), fc.integer({ min: 0, max: 7 }), (at, bit) => {
        expect(tagTechnology(atr.with(at, (atr[at] ?? 0) ^ (1 << bit)))).toBeUndefined()
      }),
    )
  })

  test('accepts any bytes', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => void tagTechnology(bytes)))
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => void tagTechnology(Uint8Array.of(0x3b, ...bytes))),
    )
  })
})

describe('UID', () => {
  test.each([
    ['04A2B3C4D5E680', 'MifareUltralight', '04A2B3C4D5E680'],
    ['9A3B7C11', 'MifareClassic', '9A3B7C11'],
    ['08A2B3C4D5E680', 'NfcA', '08A2B3C4D5E680'],
    ['E00401500A1B2C3D', 'NfcV', 'E00401500A1B2C3D'],
    ['3D2C1B0A500104E0', 'NfcV', 'E00401500A1B2C3D'],
    ['E00401500A1B2CE0', 'NfcV', 'E00401500A1B2CE0'],
    ['E02C1B0A500104E0', 'NfcV', 'E00401500A1B2CE0'],
    ['E01104110A0704E0', 'NfcV', 'E004070A110411E0'],
    ['04112233445566778899', 'IsoDep', '04112233445566778899'],
  ] as const)('%s (%s) is %s', (reported, technology, uid) => {
    expect(readUid(unhex(reported), technology)).toEqual({ uid })
  })

  test.each([
    ['08A1B2C3', 'IsoDep', /random/],
    ['08A1B2C3', undefined, /random/],
    ['00000000', 'NfcA', /blank/],
    ['FFFFFFFFFFFFFF', 'NfcA', /blank/],
    ['0401500A1B2C3D11', 'NfcV', /without E0/],
    ['04A2B3C4', 'NfcV', /ISO 15693 UID of 4 bytes/],
    ['04A2B3C4D5', 'NfcA', /of 5 bytes/],
    ['', undefined, /of 0 bytes/],
  ] as const)('rejects %s (%s)', (reported, technology, why) => {
    expect(readUid(unhex(reported), technology)).toEqual({ refused: expect.stringMatching(why) })
  })

  test('gives both orders of an ISO 15693 UID the same id', () => {
    const uid = fc
      .uint8Array({ minLength: 8, maxLength: 8 })
      .map((bytes) => bytes.with(0, 0xe0))
      .filter((bytes) => bytes[7] !== 0xe0)
    fc.assert(
      fc.property(uid, (bytes) => void expect(readUid(bytes.toReversed(), 'NfcV')).toEqual(readUid(bytes, 'NfcV'))),
    )
  })
})

describe('NDEF', () => {
  // Examples of the NFC Forum's specifications: RTD URI 1.0 (A.1, A.2), RTD Text 1.0 (3.2.1), Smart Poster.
  test.each([
    ['http://www.nfc.com', 'D1010855016E66632E636F6D'],
    ['tel:+35891234567', 'D1010D55052B3335383931323334353637'],
    ['Hello, World!', 'D101105402656E48656C6C6F2C20576F726C6421'],
  ])('%s', (text, message) => {
    expect(ndefTexts(unhex(message))).toEqual([text])
  })

  test('decodes several records, long form, ids and UTF-16, and skips unreadable ones', () => {
    const uri = '91 01 04 55 04 612E62' // https://a.b
    const withId = '19 01 04 02 55 6964 04 632E64' // id "id", https://c.d
    const utf16 = '11 01 07 54 82 656E 00410042'
    const mime = '12 03 02 612F62 0102'
    const badUtf8 = '11 01 03 55 04 FFFE'
    const last = '41 01 00000004 55 03 652E66' // http://e.f, long form
    expect(ndefTexts(unhex([uri, withId, utf16, mime, badUtf8, last, uri].join('')))).toEqual([
      'https://a.b',
      'https://c.d',
      'AB',
      'http://e.f',
    ])
  })

  test('accepts any bytes, and returns no control characters', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const texts = ndefTexts(bytes)
        expect(texts.length).toBeLessThanOrEqual(16)
        for (const text of texts) expect(text).not.toMatch(/\p{Cc}/u)
      }),
      { numRuns: 2_000 },
    )
  })

  /** Reads a memory like a tag, and records the reads. */
  function readFrom(read: NdefRead, memory: Uint8Array, unit: number, most = Infinity) {
    const addresses: number[] = []
    let step = read.next()
    while (!step.done) {
      const { address, length } = step.value
      addresses.push(address)
      const at = address * unit
      step = read.next(at + length <= memory.length ? memory.slice(at, at + Math.min(length, most)) : null)
    }
    return { message: step.value, addresses }
  }

  test('reads a factory-new NTAG213 with a link (Type 2)', () => {
    const memory = new Uint8Array(180)
    // Lock control TLV, then the message (NTAG21x data sheet, 8.5.6).
    memory.set(unhex('E1101200 0103A00C34 030BD1010755 04 612E622F7272 FE'), 12)
    const { message, addresses } = readFrom(readType2(), memory, 4)
    expect(ndefTexts(message ?? new Uint8Array(0))).toEqual(['https://a.b/rr'])
    expect(addresses).toEqual([3, 7])
  })

  test('reads a tag over a reader that returns 4 bytes for each read', () => {
    const memory = new Uint8Array(180)
    memory.set(unhex('E1101200 0103A00C34 030BD1010755 04 612E622F7272 FE'), 12)
    const { message, addresses } = readFrom(readType2(), memory, 4, 4)
    expect(ndefTexts(message ?? new Uint8Array(0))).toEqual(['https://a.b/rr'])
    expect(addresses).toEqual([3, 4, 5, 6, 7, 8])
  })

  test.each([
    // NFC Forum Smart Poster RTD 1.1, the example "Hello, world" with a title and a link of its own.
    [
      'smart poster',
      'D102 18 5370 9101 05 54 02 656E 4869 5101 0B 55 01 6E66632D666F72756D2E',
      ['http://www.nfc-forum.'],
    ],
    ['smart poster without a link', 'D102 09 5370 D101 05 54 02 656E 4869', []],
    ['absolute URI', 'D3 0C 00 68747470733A2F2F652E662F', ['https://e.f/']],
  ])('reads a %s', (_, bytes, texts) => expect(ndefTexts(unhex(bytes))).toEqual(texts))

  test('reads a Type 5 tag with NULL and proprietary TLVs', () => {
    const memory = new Uint8Array(112)
    memory.set(unhex('E1400D01 00 FD021122 0308D1010455 04 632E64 FE'))
    const { message } = readFrom(readType5(), memory, 4)
    expect(ndefTexts(message ?? new Uint8Array(0))).toEqual(['https://c.d'])
  })

  test.each([
    ['no capability container', '00000000'],
    ['no data', 'E1100000'],
    ['nothing but a terminator', 'E1101200FE'],
    ['an empty message', 'E11012000300FE'],
    ['a message longer than the tag', 'E110120003FF0400D101'],
    ['a length cut off', 'E110010003FF04'],
  ])('finds no message: %s', (_, bytes) => {
    const memory = new Uint8Array(180)
    memory.set(unhex(bytes), 12)
    expect(readFrom(readType2(), memory, 4).message).toBeNull()
    memory.set(unhex(bytes), 0)
    expect(readFrom(readType5(), memory, 4).message).toBeNull()
  })

  test('reads any tag with few reads, none beyond the stated size, and returns only complete messages', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1_100, maxLength: 1_100 }),
        fc.integer({ min: 0, max: 255 }),
        (noise, size) => {
          for (const [read, first, unit, each] of [
            [readType2(), 12, 4, 16],
            [readType5(), 0, 4, 4],
          ] as const) {
            const memory = noise.slice()
            memory.set([0xe1, 0x10, size, 0], first)
            const { message, addresses } = readFrom(read, memory, unit)
            expect(message?.length ?? 0).toBeLessThanOrEqual(MAX_NDEF_BYTES)
            expect(Math.max(...addresses) * unit).toBeLessThan(first + 4 + size * 8)
            expect(addresses.length).toBeLessThanOrEqual(1 + Math.ceil((MAX_NDEF_BYTES * 3 + 20) / each))
          }
        },
      ),
    )
  })
})

describe('EAS of ICODE tags', () => {
  const UID = 'E00401500A1B2C3D'

  test('encodes addressed frames with the UID last byte first', () => {
    expect(hex(easFrame('reset', UID))).toBe('22A3043D2C1B0A500104E0')
    expect(hex(easFrame('set', UID))).toBe('22A2043D2C1B0A500104E0')
    expect(hex(easAlarmFrame(UID))).toBe('22A5043D2C1B0A500104E0')
    expect([
      isIcodeSli(UID),
      isIcodeSli('E00402500A1B2C3D'),
      isIcodeSli('E01601500A1B2C3D'),
      isIcodeSli('04A2B3C4D5E680'),
    ]).toEqual([true, false, false, false])
  })

  test('decodes answers of tags', () => {
    expect(tagAnswer(unhex('00'))).toEqual({ refused: null })
    expect(tagAnswer(unhex('0112'))).toEqual({ refused: 'the EAS bit is locked' })
    expect(tagAnswer(unhex('0177'))).toEqual({ refused: 'error 77' })
    expect(tagAnswer(unhex(''))).toBeNull()
  })

  test('encodes transparent sessions like public drivers of the ACR1552U', () => {
    // Reading block 0 (02 20 00) within 50 ms.
    expect(hex(transceive(unhex('022000')))).toBe('FFC200010C5F460450C30000950302200000')
    expect(transparentAnswer(unhex('C003009000 920100 96020000 9705 00E1400D01 9000'))).toEqual({
      kind: 'done',
      frame: unhex('00E1400D01'),
    })
    expect(transparentAnswer(unhex('C003009000 9000'))).toEqual({ kind: 'done', frame: null })
    expect(transparentAnswer(unhex('C003016401 9000'))).toEqual({ kind: 'no_answer' })
    expect(transparentAnswer(unhex('C003009000 96020100 970100 9000'))).toEqual({ kind: 'no_answer' })
    expect(transparentAnswer(unhex('C003016A81 9000'))).toEqual({ kind: 'refused', status: 0x6a81 })
    expect(transparentAnswer(unhex('6A81'))).toEqual({ kind: 'refused', status: 0x6a81 })
    for (const reported of ['', '6401', '6400', '6300', '6F00'])
      expect(transparentAnswer(unhex(reported))).toEqual({ kind: 'no_answer' })
    expect(transparentAnswer(unhex('C003016282 960200009705 00E1400D01 9000'))).toEqual({
      kind: 'done',
      frame: unhex('00E1400D01'),
    })
  })

  test('accepts any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        transparentAnswer(bytes)
        transparentAnswer(Uint8Array.of(...bytes, 0x90, 0x00))
        tagAnswer(bytes)
        const answer = splitAnswer(bytes)
        if (bytes.length >= 2)
          expect([...(answer?.data ?? []), (answer?.status ?? 0) >> 8, (answer?.status ?? 0) & 0xff]).toEqual([
            ...bytes,
          ])
        else expect(goodData(answer)).toBeNull()
      }),
    )
    expect(statusText(0x6a81)).toBe('the reader does not do this (6A81)')
  })
})
