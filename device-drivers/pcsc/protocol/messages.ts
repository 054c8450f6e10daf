import { assert } from '../../../policy/assert.ts'

/** Values of `rv` (pcsc-lite `src/PCSC/pcsclite.h`) with texts for a person. Windows and macOS have the same codes. */
const CODES: Record<number, string> = {
  0x80100001: 'PC/SC failed within itself',
  0x80100003: 'the connection to the card is not valid any more',
  0x80100004: 'PC/SC does not take this request',
  0x80100008: 'the answer of the card is too long',
  0x80100009: 'no such reader',
  0x8010000a: 'no answer in time',
  0x8010000b: 'another program is using the card',
  0x8010000c: 'no card on the reader',
  0x8010000f: 'the card speaks another protocol',
  0x80100010: 'the reader is not ready',
  0x80100011: 'PC/SC does not take this request',
  0x80100013: 'the reader failed to speak with the card',
  0x80100016: 'the reader failed to speak with the card',
  0x80100017: 'the reader was unplugged',
  0x8010001d: 'the smart-card service is not running',
  0x8010001e: 'the smart-card service has stopped',
  0x8010002e: 'no reader is plugged in',
  0x8010002f: 'the reader failed to speak with the card',
  0x80100066: 'the card does not answer',
  0x80100067: 'the card has no power',
  0x80100068: 'the card was reset by another program',
  0x80100069: 'the card was taken away',
  0x8010006a: 'PC/SC does not let this user use cards (polkit)',
}

export const SUCCESS = 0
export const INTERNAL_ERROR = 0x80100001
export const INVALID_HANDLE = 0x80100003
export const INVALID_PARAMETER = 0x80100004
export const INSUFFICIENT_BUFFER = 0x80100008
export const UNKNOWN_READER = 0x80100009
export const SHARING_VIOLATION = 0x8010000b
export const NO_CARD = 0x8010000c
export const NOT_TRANSACTED = 0x80100016
export const SERVICE_STOPPED = 0x8010001e
export const REMOVED = 0x80100069

/** A text of a code, such as `no card on the reader (0x8010000C)`. */
export function returnText(rv: number): string {
  return `${CODES[rv] ?? 'PC/SC refused'} (0x${rv.toString(16).toUpperCase().padStart(8, '0')})`
}

/** Buffers bytes from pcscd until the pending answer is complete. */
interface AnswerBuffer {
  /** Adds bytes. Returns false if too many bytes are buffered, which means that the peer uses another protocol. */
  push(chunk: Uint8Array): boolean
  /** Removes and returns the next `length` bytes. Returns null while these bytes are incomplete. */
  take(length: number): Uint8Array | null
  readonly held: number
}

/** Makes a buffer of at most `limit` bytes. */
export function answerBuffer(limit: number): AnswerBuffer {
  let held: Uint8Array = new Uint8Array(0)

  return {
    push(chunk) {
      if (held.length + chunk.length > limit) return false
      const joined = new Uint8Array(held.length + chunk.length)
      joined.set(held)
      joined.set(chunk, held.length)
      held = joined
      return true
    },
    take(length) {
      if (held.length < length) return null
      const taken = held.slice(0, length)
      held = held.slice(length)
      return taken
    },
    get held() {
      return held.length
    },
  }
}

/**
 * Messages between pcscd and its clients: pcsc-lite `src/winscard_msg.h`, protocols 4:4 (pcsc-lite 1.8.24, 2018) and
 * 4:5 (2.3.0, 2024). These messages are the same in both protocols. A request is a header {size of the body, command}
 * and a body. An answer has no header, so the client must know its request. The answer is the body of the request, with
 * its fields filled in. Requests and answers are C structs in the machine's byte order.
 */
export const PCSC_COMMANDS = {
  establishContext: 0x01,
  releaseContext: 0x02,
  connect: 0x04,
  reconnect: 0x05,
  disconnect: 0x06,
  beginTransaction: 0x07,
  endTransaction: 0x08,
  transmit: 0x09,
  version: 0x11,
  getReadersState: 0x12,
  waitReaderStateChange: 0x13,
  stopWaitingReaderStateChange: 0x14,
} as const
export type PcscCommand = keyof typeof PCSC_COMMANDS

/** Maximum length of a reader's name with its final 0, bytes. */
const NAME_BYTES = 128
/** Bytes of `{size, command}` before each request. */
const HEADER_BYTES = 8
/** Maximum length of a short APDU, bytes: 255 bytes of data, and room for header and status. */
export const MAX_APDU_BYTES = 264

const HANDLE = ['card', 'rv'] as const

/** The fields of each body in order; each has 4 bytes, except `reader`. */
export const PCSC_BODIES = {
  establishContext: ['scope', 'context', 'rv'],
  releaseContext: ['context', 'rv'],
  connect: ['context', 'reader', 'shareMode', 'protocols', 'card', 'protocol', 'rv'],
  reconnect: ['card', 'shareMode', 'protocols', 'initialization', 'protocol', 'rv'],
  disconnect: ['card', 'disposition', 'rv'],
  beginTransaction: HANDLE,
  endTransaction: ['card', 'disposition', 'rv'],
  /** The bytes for the card follow the request. The card's answer follows pcscd's answer if `rv` is 0. */
  transmit: [
    'card',
    'sendProtocol',
    'sendPciLength',
    'sendLength',
    'receiveProtocol',
    'receivePciLength',
    'receiveLength',
    'rv',
  ],
  version: ['major', 'minor', 'rv'],
  getReadersState: [],
  waitReaderStateChange: [],
  stopWaitingReaderStateChange: [],
} as const satisfies Record<PcscCommand, readonly string[]>

/** Fields of the message with which pcscd ends a `waitReaderStateChange`. */
export const CHANGE_FIELDS = ['timeOut', 'rv'] as const

type Field = Exclude<(typeof PCSC_BODIES)[PcscCommand][number] | (typeof CHANGE_FIELDS)[number], 'reader'>
/** Numbers are unsigned 32 bit; default 0. */
export type PcscBody = { [field in Field]?: number } & { reader?: string }

const LITTLE = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1
const width = (field: string) => (field === 'reader' ? NAME_BYTES : 4)

/** Length of a body, in requests and answers, bytes. */
export function bodyBytes(fields: readonly string[]): number {
  return fields.reduce((sum, field) => sum + width(field), 0)
}

/** Reads a C string of at most `NAME_BYTES - 1` bytes. */
function nameAt(bytes: Uint8Array, at: number): string {
  const end = bytes.indexOf(0, at)
  const limit = at + NAME_BYTES - 1
  return new TextDecoder().decode(bytes.subarray(at, end < 0 || end > limit ? limit : end))
}

/** Decodes the fields of a body; ignores extra bytes. */
export function decodeBody(fields: readonly string[], bytes: Uint8Array): PcscBody {
  assert(bytes.length >= bodyBytes(fields), 'a body is read whole')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const body: Record<string, number | string> = {}
  let at = 0
  for (const field of fields) {
    body[field] = field === 'reader' ? nameAt(bytes, at) : view.getUint32(at, LITTLE)
    at += width(field)
  }
  return body
}

/** Encodes the fields of a body. */
export function encodeBody(fields: readonly string[], body: PcscBody): Uint8Array {
  const bytes = new Uint8Array(bodyBytes(fields))
  const view = new DataView(bytes.buffer)
  let at = 0
  for (const field of fields) {
    if (field === 'reader') bytes.set(new TextEncoder().encode(body.reader ?? '').subarray(0, NAME_BYTES - 1), at)
    else view.setUint32(at, (body as Record<string, number | undefined>)[field] ?? 0, LITTLE)
    at += width(field)
  }
  return bytes
}

/** Encodes a request; `data` follows the body of a transmit. */
export function encodeRequest(
  command: PcscCommand,
  body: PcscBody = {},
  data: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const inner = encodeBody(PCSC_BODIES[command], body)
  const bytes = new Uint8Array(HEADER_BYTES + inner.length + data.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, inner.length, LITTLE)
  view.setUint32(4, PCSC_COMMANDS[command], LITTLE)
  bytes.set(inner, HEADER_BYTES)
  bytes.set(data, HEADER_BYTES + inner.length)
  return bytes
}

export interface PcscRequest {
  readonly command: PcscCommand
  readonly body: PcscBody
  readonly data: Uint8Array
  /** Length of the whole request, bytes. */
  readonly length: number
}

/**
 * Decodes the request at the first byte, as pcscd does. Null while bytes are missing; `bad` for an unknown command or a
 * wrong length, after which pcscd closes the connection.
 */
export function decodeRequest(bytes: Uint8Array): PcscRequest | null | 'bad' {
  if (bytes.length < HEADER_BYTES) return null
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const size = view.getUint32(0, LITTLE)
  const code = view.getUint32(4, LITTLE)
  const command = (Object.keys(PCSC_COMMANDS) as PcscCommand[]).find((name) => PCSC_COMMANDS[name] === code)
  if (!command || size !== bodyBytes(PCSC_BODIES[command])) return 'bad'
  const end = HEADER_BYTES + size
  if (bytes.length < end) return null
  const body = decodeBody(PCSC_BODIES[command], bytes.subarray(HEADER_BYTES, end))
  const follows = command === 'transmit' ? (body.sendLength ?? 0) : 0
  if (follows > MAX_APDU_BYTES) return 'bad'
  if (bytes.length < end + follows) return null
  return { command, body, data: bytes.slice(end, end + follows), length: end + follows }
}

/** Maximum readers in pcscd up to protocol 4:5; each slot of a reader counts. */
export const MAX_READERS = 16

/**
 *     offset  0        128           132          136      140      173  176        180
 *             name     eventCounter  readerState  sharing  atr(33)  pad  atrLength  protocol   184
 *
 * `struct pubReaderStatesList` of pcsc-lite `src/eventhandler.h`. The answer to GET_READERS_STATE has 16 of these
 * structs.
 */
const STATE_BYTES = 184
export const READER_STATES_BYTES = MAX_READERS * STATE_BYTES
const MAX_ATR_BYTES = 33

const PRESENT = 0x04
const ABSENT = 0x02

/** One reader, or one slot of it. */
export interface ReaderState {
  /** Name that pcscd makes: product name, serial number if USB has one, numbers of the reader and the slot. */
  readonly name: string
  /** 16-bit counter that increases at each arrival and removal of a card. */
  readonly eventCounter: number
  readonly cardPresent: boolean
  /** Empty without a card, and for a card that does not answer. */
  readonly atr: Uint8Array
}

/** Decodes pcscd's table of readers; skips empty entries. */
export function decodeReaderStates(bytes: Uint8Array): ReaderState[] {
  assert(bytes.length >= READER_STATES_BYTES, 'the table of readers is read whole')
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const states: ReaderState[] = []
  for (let at = 0; at < READER_STATES_BYTES; at += STATE_BYTES) {
    const name = nameAt(bytes, at)
    if (name === '') continue
    const cardPresent = (view.getUint32(at + 132, LITTLE) & PRESENT) !== 0
    // While the card is starting, pcscd reports an impossible length.
    const atrLength = view.getUint32(at + 176, LITTLE)
    const atr =
      cardPresent && atrLength <= MAX_ATR_BYTES ? bytes.slice(at + 140, at + 140 + atrLength) : new Uint8Array(0)
    states.push({ name, eventCounter: view.getUint32(at + NAME_BYTES, LITTLE), cardPresent, atr })
  }
  return states
}

/** Encodes the table as pcscd does. */
export function encodeReaderStates(states: readonly ReaderState[]): Uint8Array {
  assert(states.length <= MAX_READERS, 'pcscd knows 16 readers')
  const bytes = new Uint8Array(READER_STATES_BYTES)
  const view = new DataView(bytes.buffer)
  states.forEach((state, i) => {
    const at = i * STATE_BYTES
    bytes.set(new TextEncoder().encode(state.name).subarray(0, NAME_BYTES - 1), at)
    view.setUint32(at + NAME_BYTES, state.eventCounter, LITTLE)
    view.setUint32(at + 132, state.cardPresent ? PRESENT : ABSENT, LITTLE)
    bytes.set(state.atr.subarray(0, MAX_ATR_BYTES), at + 140)
    view.setUint32(at + 176, state.atr.length, LITTLE)
  })
  return bytes
}

/** True if all relevant fields are equal. */
export function sameStates(a: readonly ReaderState[], b: readonly ReaderState[]): boolean {
  const relevantFields = (states: readonly ReaderState[]) =>
    JSON.stringify(states.map((s) => [s.name, s.eventCounter, s.cardPresent, [...s.atr]]))
  return relevantFields(a) === relevantFields(b)
}
