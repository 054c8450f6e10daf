import { assert } from '../../../policy/assert.ts'

/** A protocol data unit with its addressing, for RTU and TCP. */
export interface ModbusFrame {
  /** Number that the answer repeats. Always 0 in RTU. */
  readonly transaction: number
  /** Address of the board on its bus, 0…255. */
  readonly unit: number
  /** Function code and body. */
  readonly pdu: Uint8Array
}

/** RTU for serial lines and raw serial device servers; TCP with the MBAP header. */
export type ModbusFraming = 'rtu' | 'tcp'

/**
 * The function codes of relay and input boards (Modbus application protocol V1.1b3, chapter 6). Driver and simulator
 * encode and decode all requests and answers from this table.
 *
 *   access      request                               answer
 *   read        address, quantity                     byte count, data
 *   write one   address, value                        the same
 *   write many  address, quantity, byte count, data   address, quantity
 */
interface ModbusFunction {
  readonly code: number
  readonly access: 'read' | 'write one' | 'write many'
  /** A bit is a coil or input; a word is a 16-bit register. */
  readonly unit: 'bit' | 'word'
  /** Maximum bits or words in one request. */
  readonly most: number
}

export const MODBUS_FUNCTIONS = {
  readCoils: { code: 0x01, access: 'read', unit: 'bit', most: 2_000 },
  readDiscreteInputs: { code: 0x02, access: 'read', unit: 'bit', most: 2_000 },
  readHoldingRegisters: { code: 0x03, access: 'read', unit: 'word', most: 125 },
  writeSingleCoil: { code: 0x05, access: 'write one', unit: 'bit', most: 1 },
  writeSingleRegister: { code: 0x06, access: 'write one', unit: 'word', most: 1 },
  writeMultipleCoils: { code: 0x0f, access: 'write many', unit: 'bit', most: 1_968 },
  writeMultipleRegisters: { code: 0x10, access: 'write many', unit: 'word', most: 123 },
} as const satisfies Record<string, ModbusFunction>

export type FunctionName = keyof typeof MODBUS_FUNCTIONS

const BY_CODE: ReadonlyMap<number, FunctionName> = new Map(
  (Object.keys(MODBUS_FUNCTIONS) as FunctionName[]).map((name) => [MODBUS_FUNCTIONS[name].code, name]),
)

/** The function of a code, or null if the code is not supported. */
function functionOf(code: number): FunctionName | null {
  return BY_CODE.get(code) ?? null
}

/** Bit of the function code that marks an exception. */
const EXCEPTION_BIT = 0x80

/** Names of exception codes (V1.1b3, chapter 7). */
const MODBUS_EXCEPTIONS: Readonly<Record<number, string>> = {
  1: 'illegal function',
  2: 'illegal data address',
  3: 'illegal data value',
  4: 'device failure',
  5: 'accepted, still working on it',
  6: 'device busy',
  8: 'memory parity error',
  10: 'gateway has no path to the unit',
  11: 'the unit behind the gateway did not answer',
}

export const ILLEGAL_FUNCTION = 1
export const ILLEGAL_DATA_ADDRESS = 2
const ILLEGAL_DATA_VALUE = 3

/** A text of an exception code, such as `exception 2 (illegal data address)`. */
export function exceptionText(code: number): string {
  return `exception ${code} (${MODBUS_EXCEPTIONS[code] ?? 'unknown code'})`
}

/** Content of a request or answer. Fields that this kind of message lacks are 0 or empty. */
export interface ModbusMessage {
  readonly name: FunctionName
  /** First coil, input or register, from 0. */
  readonly address: number
  /** Number of coils, inputs or registers. */
  readonly quantity: number
  /**
   * Bits as 0 or 1, registers as 0…65535. An answer has whole bytes, so it may have up to 7 bits more than requested.
   */
  readonly values: readonly number[]
  /** Only in `writeSingleCoil`: duration of a pulse that the board ends, in units of 100 ms (see `FLASH_COILS`). */
  readonly flash?: number
}

/**
 * First address of the pulse command of relay boards of Waveshare and compatible boards. Write Single Coil at this
 * address plus the coil's number switches the coil on for a time. The value is this time in units of 100 ms (Waveshare
 * wiki, Modbus RTU Relay: `01 05 02 00 00 07 8D B0`).
 */
export const FLASH_COILS = 0x0200
/** Longest pulse of this command, in units of 100 ms. */
const LONGEST_FLASH = 0x7fff

/** An exception; `exception` is a key of `MODBUS_EXCEPTIONS`. */
export interface ModbusRefusal {
  readonly functionCode: number
  readonly exception: number
}

export type Direction = 'request' | 'answer'

const COIL_ON = 0xff00

const word = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
const toBytes = (n: number): [number, number] => [n >>> 8, n & 0xff]

function dataLength(f: ModbusFunction, quantity: number): number {
  return f.unit === 'bit' ? Math.ceil(quantity / 8) : quantity * 2
}

function pack(f: ModbusFunction, values: readonly number[]): number[] {
  if (f.unit === 'word') return values.flatMap(toBytes)
  const bytes = Array.from({ length: dataLength(f, values.length) }, () => 0)
  values.forEach((bit, i) => {
    if (bit) bytes[i >> 3] = (bytes[i >> 3] ?? 0) | (1 << (i & 7))
  })
  return bytes
}

function unpack(f: ModbusFunction, data: Uint8Array, quantity: number): number[] {
  if (f.unit === 'word') return Array.from({ length: quantity }, (_, i) => word(data, i * 2))
  return Array.from({ length: quantity }, (_, i) => ((data[i >> 3] ?? 0) >> (i & 7)) & 1)
}

type Form = 'span' | 'one' | 'many' | 'data'

const FORMS: Record<Direction, Record<ModbusFunction['access'], Form>> = {
  request: { read: 'span', 'write one': 'one', 'write many': 'many' },
  answer: { read: 'data', 'write one': 'one', 'write many': 'span' },
}

const ENCODE: Record<Form, (f: ModbusFunction, m: ModbusMessage) => number[]> = {
  span: (_, m) => [...toBytes(m.address), ...toBytes(m.quantity)],
  one: (f, m) => [
    ...toBytes(m.address),
    ...toBytes(m.flash ?? (f.unit === 'word' ? (m.values[0] ?? 0) : m.values[0] ? COIL_ON : 0)),
  ],
  many: (f, m) => [...toBytes(m.address), ...toBytes(m.quantity), dataLength(f, m.quantity), ...pack(f, m.values)],
  data: (f, m) => [dataLength(f, m.values.length), ...pack(f, m.values)],
}

/** Encodes the protocol data unit: function code and body. */
export function encodePdu(direction: Direction, message: ModbusMessage): Uint8Array {
  const f = MODBUS_FUNCTIONS[message.name]
  assert(message.quantity <= f.most && message.values.length <= f.most + 7, `at most ${f.most} in one ${message.name}`)
  return Uint8Array.from([f.code, ...ENCODE[FORMS[direction][f.access]](f, message)])
}

/** Encodes an exception. */
export function encodeRefusal(refusal: ModbusRefusal): Uint8Array {
  return Uint8Array.from([refusal.functionCode | EXCEPTION_BIT, refusal.exception])
}

/**
 * Length of the protocol data unit that begins at `at`, bytes. Returns `more` while its first bytes are missing, and
 * `unknown` for an unsupported function code.
 */
export function pduLength(direction: Direction, bytes: Uint8Array, at: number): number | 'more' | 'unknown' {
  const code = bytes[at]
  if (code === undefined) return 'more'
  if (direction === 'answer' && code & EXCEPTION_BIT) return functionOf(code & ~EXCEPTION_BIT) ? 2 : 'unknown'
  const name = functionOf(code)
  if (!name) return 'unknown'
  const form = FORMS[direction][MODBUS_FUNCTIONS[name].access]
  if (form === 'span' || form === 'one') return 5
  const countAt = at + (form === 'many' ? 5 : 1)
  const count = bytes[countAt]
  return count === undefined ? 'more' : countAt - at + 1 + count
}

function decodeBody(f: ModbusFunction, form: Form, pdu: Uint8Array): Omit<ModbusMessage, 'name'> | null {
  if (form === 'data') {
    const count = pdu[1] ?? 0
    const quantity = f.unit === 'bit' ? count * 8 : count / 2
    if (count === 0 || pdu.length !== 2 + count || !Number.isInteger(quantity)) return null
    return { address: 0, quantity: 0, values: unpack(f, pdu.subarray(2), quantity) }
  }
  const [address, second] = [word(pdu, 1), word(pdu, 3)]
  if (form === 'one') {
    const isFlash = f.unit === 'bit' && (address & 0xff00) === FLASH_COILS && second > 0 && second <= LONGEST_FLASH
    if (isFlash && pdu.length === 5) return { address, quantity: 1, values: [1], flash: second }
    if (pdu.length !== 5 || (f.unit === 'bit' && second !== 0 && second !== COIL_ON)) return null
    return { address, quantity: 1, values: [f.unit === 'bit' ? (second ? 1 : 0) : second] }
  }
  if (second < 1 || second > f.most) return null
  if (form === 'span') return pdu.length === 5 ? { address, quantity: second, values: [] } : null
  if (pdu.length !== 6 + dataLength(f, second) || pdu[5] !== dataLength(f, second)) return null
  return { address, quantity: second, values: unpack(f, pdu.subarray(6), second) }
}

function decode(direction: Direction, name: FunctionName, pdu: Uint8Array): ModbusMessage | null {
  const f = MODBUS_FUNCTIONS[name]
  const body = decodeBody(f, FORMS[direction][f.access], pdu)
  return body ? { name, ...body } : null
}

/** Decodes a request as a board does. For an invalid request, returns the exception to send. */
export function decodeRequest(pdu: Uint8Array): ModbusMessage | ModbusRefusal {
  const functionCode = pdu[0] ?? 0
  const name = functionOf(functionCode)
  if (!name) return { functionCode, exception: ILLEGAL_FUNCTION }
  return decode('request', name, pdu) ?? { functionCode, exception: ILLEGAL_DATA_VALUE }
}

/** Decodes an answer; null if malformed. */
export function decodeAnswer(pdu: Uint8Array): ModbusMessage | ModbusRefusal | null {
  const code = pdu[0] ?? 0
  const name = functionOf(code & ~EXCEPTION_BIT)
  if (!name) return null
  if (code & EXCEPTION_BIT)
    return pdu.length === 2 ? { functionCode: code & ~EXCEPTION_BIT, exception: pdu[1] ?? 0 } : null
  return decode('answer', name, pdu)
}

/**
 * True if `answer` can belong to `request`. RTU frames have no transaction number, so all fields that the answer
 * repeats must be equal. A late answer to an earlier request must not count as the answer.
 */
export function answers(answer: ModbusMessage | ModbusRefusal, request: ModbusMessage): boolean {
  const f = MODBUS_FUNCTIONS[request.name]
  if ('exception' in answer) return answer.functionCode === f.code
  if (answer.name !== request.name) return false
  if (f.access === 'read') return dataLength(f, answer.values.length) === dataLength(f, request.quantity)
  const sameValue =
    f.access === 'write many' || (answer.values[0] === request.values[0] && answer.flash === request.flash)
  return answer.address === request.address && answer.quantity === request.quantity && sameValue
}
