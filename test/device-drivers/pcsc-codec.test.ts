import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  answerBuffer,
  bodyBytes,
  decodeBody,
  decodeRequest,
  encodeBody,
  encodeRequest,
  PCSC_BODIES,
  PCSC_COMMANDS,
  type PcscBody,
  type PcscCommand,
  decodeReaderStates,
  encodeReaderStates,
  READER_STATES_BYTES,
} from '../../device-drivers/pcsc/protocol/messages.ts'
import { splitAnswer, hex, unhex } from '../../device-drivers/pcsc/protocol/apdu.ts'

const NAME = 'Virtual PCD 00 00'
const ATR = '3B8F8001804F0CA000000306030003000000000068'
const name128 = `${hex(new TextEncoder().encode(NAME))}${'00'.repeat(111)}`

/**
 * Recorded on x86-64 between libpcsclite1 1.9.9-2 and pcscd 1.9.9-2 of Debian 12 (socat -r/-R on the socket)
 * while a C program called SCardEstablishContext, ListReaders, Connect, BeginTransaction, Transmit, EndTransaction,
 * Reconnect, Disconnect and ReleaseContext on a card of vsmartcard-vpcd.
 */
const RECORDED: readonly [
  command: PcscCommand,
  request: string,
  answer: string,
  requestBody: PcscBody,
  answerBody: PcscBody,
][] = [
  [
    'version',
    '0c00000011000000 040000000400000000000000',
    '040000000400000000000000',
    { major: 4, minor: 4, rv: 0 },
    { major: 4, minor: 4, rv: 0 },
  ],
  [
    'establishContext',
    '0c00000001000000 020000000000000000000000',
    '02000000e055635d00000000',
    { scope: 2, context: 0, rv: 0 },
    { scope: 2, context: 0x5d6355e0, rv: 0 },
  ],
  ['getReadersState', '0000000012000000', '', {}, {}],
  [
    'connect',
    `9800000004000000 e055635d ${name128} 0200000003000000000000000000000000000000`,
    `e055635d ${name128} 0200000003000000c9f1666c0200000000000000`,
    { context: 0x5d6355e0, reader: NAME, shareMode: 2, protocols: 3, card: 0, protocol: 0, rv: 0 },
    { context: 0x5d6355e0, reader: NAME, shareMode: 2, protocols: 3, card: 0x6c66f1c9, protocol: 2, rv: 0 },
  ],
  [
    'beginTransaction',
    '0800000007000000 c9f1666c00000000',
    'c9f1666c00000000',
    { card: 0x6c66f1c9, rv: 0 },
    { card: 0x6c66f1c9, rv: 0 },
  ],
  [
    'transmit',
    '2000000009000000 c9f1666c02000000100000000500000003000000100000000201000000000000 ffca000000',
    'c9f1666c02000000100000000500000001000000100000000700000000000000 04112233449000',
    {
      card: 0x6c66f1c9,
      sendProtocol: 2,
      sendPciLength: 16,
      sendLength: 5,
      receiveProtocol: 3,
      receivePciLength: 16,
      receiveLength: 258,
      rv: 0,
    },
    {
      card: 0x6c66f1c9,
      sendProtocol: 2,
      sendPciLength: 16,
      sendLength: 5,
      receiveProtocol: 1,
      receivePciLength: 16,
      receiveLength: 7,
      rv: 0,
    },
  ],
  [
    'endTransaction',
    '0c00000008000000 c9f1666c0000000000000000',
    'c9f1666c0000000000000000',
    { card: 0x6c66f1c9, disposition: 0, rv: 0 },
    { card: 0x6c66f1c9, disposition: 0, rv: 0 },
  ],
  [
    'reconnect',
    '1800000005000000 c9f1666c0200000003000000010000000200000000000000',
    'c9f1666c0200000003000000010000000200000000000000',
    { card: 0x6c66f1c9, shareMode: 2, protocols: 3, initialization: 1, protocol: 2, rv: 0 },
    { card: 0x6c66f1c9, shareMode: 2, protocols: 3, initialization: 1, protocol: 2, rv: 0 },
  ],
  [
    'disconnect',
    '0c00000006000000 c9f1666c0000000000000000',
    'c9f1666c0000000000000000',
    { card: 0x6c66f1c9, disposition: 0, rv: 0 },
    { card: 0x6c66f1c9, disposition: 0, rv: 0 },
  ],
  [
    'releaseContext',
    '0800000002000000 e055635d00000000',
    'e055635d00000000',
    { context: 0x5d6355e0, rv: 0 },
    { context: 0x5d6355e0, rv: 0 },
  ],
  ['waitReaderStateChange', '0000000013000000', '', {}, {}],
  ['stopWaitingReaderStateChange', '0000000014000000', '', {}, {}],
]

/** The bytes of the recorded table of readers that are not 0. */
function recordedStates(): Uint8Array {
  const table = new Uint8Array(READER_STATES_BYTES)
  const put = (at: number, bytes: string) => table.set(unhex(bytes), at)
  put(0, name128)
  put(128, '01000000 34000000 00000000')
  put(140, ATR)
  put(176, '15000000')
  put(184, hex(new TextEncoder().encode('Virtual PCD 00 01')))
  put(184 + 132, '02000000')
  return table
}

const isLittle = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1

describe.runIf(isLittle)('messages of pcscd, as recorded', () => {
  test.each(RECORDED)('%s', (command, request, answer, requestBody, answerBody) => {
    const bytes = unhex(request)
    const found = decodeRequest(bytes)
    expect(found).toMatchObject({ command, body: requestBody, length: bytes.length })
    const data = command === 'transmit' ? unhex('ffca000000') : new Uint8Array(0)
    expect(hex(encodeRequest(command, requestBody, data))).toBe(hex(bytes))
    const fields = PCSC_BODIES[command]
    const body = unhex(answer).subarray(0, bodyBytes(fields))
    expect(decodeBody(fields, body)).toEqual(answerBody)
    expect(hex(encodeBody(fields, answerBody))).toBe(hex(body))
    if (command === 'transmit')
      expect(splitAnswer(unhex(answer).subarray(32))).toEqual({ data: unhex('0411223344'), status: 0x9000 })
  })

  test('decodes the table of readers', () => {
    const table = recordedStates()
    const states = decodeReaderStates(table)
    expect(states).toEqual([
      { name: NAME, eventCounter: 1, cardPresent: true, atr: unhex(ATR) },
      { name: 'Virtual PCD 00 01', eventCounter: 0, cardPresent: false, atr: new Uint8Array(0) },
    ])
    expect(decodeReaderStates(encodeReaderStates(states))).toEqual(states)
  })

  test('gives a card that powers up (ATR length 34) no ATR', () => {
    const table = recordedStates()
    table[176] = 34
    expect(decodeReaderStates(table)[0]).toMatchObject({ cardPresent: true, atr: new Uint8Array(0) })
  })
})

describe('messages of pcscd', () => {
  const commands = Object.keys(PCSC_COMMANDS) as PcscCommand[]
  const reader = fc.string({ unit: 'grapheme-ascii', maxLength: 127 }).filter((text) => !text.includes('\0'))
  const word = fc.integer({ min: 0, max: 0xffff_ffff })

  test('decodes what it encoded, with any bytes afterwards', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...commands),
        fc.array(word, { minLength: 8, maxLength: 8 }),
        reader,
        fc.uint8Array({ maxLength: 264 }),
        fc.uint8Array({ maxLength: 40 }),
        (command, words, name, apdu, rest) => {
          const body: Record<string, number | string> = {}
          PCSC_BODIES[command].forEach((field, i) => (body[field] = field === 'reader' ? name : (words[i] ?? 0)))
          const data = command === 'transmit' ? apdu : new Uint8Array(0)
          if (command === 'transmit') body['sendLength'] = data.length
          const bytes = encodeRequest(command, body, data)
          expect(decodeRequest(Uint8Array.from([...bytes, ...rest]))).toEqual({
            command,
            body,
            data,
            length: bytes.length,
          })
          for (const cut of [0, 7, bytes.length - 1])
            expect(decodeRequest(bytes.subarray(0, Math.min(cut, bytes.length - 1)))).toBeNull()
        },
      ),
    )
  })

  test('decodes any bytes without a throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: READER_STATES_BYTES, maxLength: READER_STATES_BYTES }), (bytes) => {
        const states = decodeReaderStates(bytes)
        expect(states.length).toBeLessThanOrEqual(16)
        for (const state of states) expect(state.atr.length).toBeLessThanOrEqual(33)
        decodeRequest(bytes)
      }),
    )
  })

  test('rejects a wrong length, an unknown command and a long APDU', () => {
    const bytes = encodeRequest('version', { major: 4, minor: 4 })
    expect(decodeRequest(bytes.with(0, 13))).toBe('bad')
    expect(decodeRequest(bytes.with(4, 0x20))).toBe('bad')
    expect(decodeRequest(encodeRequest('transmit', { sendLength: 65_536 }))).toBe('bad')
  })

  test('buffers answers in any chunks, up to a limit', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 20 }),
        fc.integer({ min: 1, max: 60 }),
        (chunks, want) => {
          const buffer = answerBuffer(1_000)
          const all = chunks.flatMap((chunk) => [...chunk])
          for (const chunk of chunks) expect(buffer.push(chunk)).toBe(true)
          const got: number[] = []
          for (let taken = buffer.take(want); taken; taken = buffer.take(want)) got.push(...taken)
          expect(got).toEqual(all.slice(0, got.length))
          expect(all.length - got.length).toBe(buffer.held)
          expect(buffer.held).toBeLessThan(want)
          expect(buffer.push(new Uint8Array(1_001))).toBe(false)
        },
      ),
    )
  })
})
