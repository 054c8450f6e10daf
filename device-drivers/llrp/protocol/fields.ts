/**
 * Encoding of single fields (LLRP 1.0.1, 9.1 and 16): big-endian. Flags and 2-bit numbers fill a byte from its highest
 * bit; the remaining bits are padding. Lists and texts begin with a 16-bit count.
 */
export interface FieldValues {
  flag: boolean
  u2: number
  u8: number
  u16: number
  u32: number
  s8: number
  s16: number
  /** A bigint, because microseconds since 1970 will exceed the precision of a number. */
  u64: bigint
  /** A list of bytes. */
  u8v: Uint8Array
  u16v: readonly number[]
  u32v: readonly number[]
  utf8v: string
  /** 96 bits as upper-case hex. */
  u96: string
  /** Any number of bits: their count, and whole bytes as upper-case hex, padded with zeros. */
  bits: Bits
  /** All bytes up to the end of the element. */
  rest: Uint8Array
}

interface Bits {
  readonly count: number
  readonly hex: string
}

/** `r8`: a reserved byte, which has no value. */
export type FieldKind = keyof FieldValues | 'r8'
export type FieldValue = FieldValues[keyof FieldValues]

/** The bytes do not fit the table; the error text names the element. */
export class Malformed extends Error {
  override name = 'Malformed'
}

/** A reading position, which never passes `end`. */
export interface Cursor {
  readonly bytes: Uint8Array
  at: number
  readonly end: number
  /** Number of bits that were already read from the byte at `at`. */
  bit: number
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).toUpperCase().padStart(2, '0'))

/** Bytes from `start` to `end` as upper-case hex. */
export function upperHex(bytes: Uint8Array, start = 0, end = bytes.length): string {
  let text = ''
  for (let at = start; at < end; at++) text += HEX[bytes[at] ?? 0]
  return text
}

/** Converts hex digits, in upper or lower case, to bytes. Throws `Malformed` for anything else. */
function bytesOfHex(hex: string): Uint8Array {
  if (hex.length % 2 !== 0 || !/^[0-9A-Fa-f]*$/.test(hex)) throw new Malformed(`"${hex}" is no hex`)
  return Uint8Array.from({ length: hex.length / 2 }, (_, i) => Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16))
}

function take(cursor: Cursor, length: number): number {
  if (cursor.bit > 0) {
    cursor.bit = 0
    cursor.at++
  }
  const from = cursor.at
  if (from + length > cursor.end) throw new Malformed(`it ends ${from + length - cursor.end} bytes short`)
  cursor.at += length
  return from
}

function takeBits(cursor: Cursor, count: number): number {
  if (cursor.at >= cursor.end) throw new Malformed('it ends within its flags')
  const value = ((cursor.bytes[cursor.at] ?? 0) >> (8 - cursor.bit - count)) & ((1 << count) - 1)
  cursor.bit += count
  if (cursor.bit === 8) {
    cursor.bit = 0
    cursor.at++
  }
  return value
}

function uint(cursor: Cursor, length: number): number {
  const from = take(cursor, length)
  let value = 0
  for (let at = from; at < from + length; at++) value = value * 256 + (cursor.bytes[at] ?? 0)
  return value
}

const list = (cursor: Cursor, width: number): number[] => {
  const count = uint(cursor, 2)
  if (cursor.at + count * width > cursor.end) throw new Malformed(`a list of ${count} does not fit`)
  return Array.from({ length: count }, () => uint(cursor, width))
}

function bytesOf(cursor: Cursor, length: number): Uint8Array {
  const from = take(cursor, length)
  return cursor.bytes.slice(from, from + length)
}

const READ: { [K in keyof FieldValues]: (cursor: Cursor) => FieldValues[K] } = {
  flag: (cursor) => takeBits(cursor, 1) === 1,
  u2: (cursor) => takeBits(cursor, 2),
  u8: (cursor) => uint(cursor, 1),
  u16: (cursor) => uint(cursor, 2),
  u32: (cursor) => uint(cursor, 4),
  s8: (cursor) => (uint(cursor, 1) << 24) >> 24,
  s16: (cursor) => (uint(cursor, 2) << 16) >> 16,
  u64: (cursor) => (BigInt(uint(cursor, 4)) << 32n) | BigInt(uint(cursor, 4)),
  u8v: (cursor) => bytesOf(cursor, uint(cursor, 2)),
  u16v: (cursor) => list(cursor, 2),
  u32v: (cursor) => list(cursor, 4),
  utf8v: (cursor) => new TextDecoder().decode(bytesOf(cursor, uint(cursor, 2))),
  u96: (cursor) => upperHex(bytesOf(cursor, 12)),
  bits: (cursor) => {
    const count = uint(cursor, 2)
    return { count, hex: upperHex(bytesOf(cursor, Math.ceil(count / 8))) }
  },
  rest: (cursor) => bytesOf(cursor, Math.max(0, cursor.end - cursor.at)),
}

/** Reads one field. Throws `Malformed`. */
export function readField(kind: keyof FieldValues, cursor: Cursor): FieldValue {
  return READ[kind](cursor)
}

/** Skips the rest of a byte of flags, and `length` reserved bytes. */
export function skip(cursor: Cursor, length: number): void {
  take(cursor, length)
}

/** Bytes under construction. */
export interface Writer {
  readonly bytes: number[]
  bit: number
}

function put(writer: Writer, value: number, length: number): void {
  writer.bit = 0
  for (let shift = (length - 1) * 8; shift >= 0; shift -= 8) writer.bytes.push(Math.floor(value / 2 ** shift) & 0xff)
}

function putBits(writer: Writer, value: number, count: number): void {
  if (writer.bit === 0) writer.bytes.push(0)
  const last = writer.bytes.length - 1
  writer.bytes[last] = (writer.bytes[last] ?? 0) | (value << (8 - writer.bit - count))
  writer.bit = (writer.bit + count) % 8
}

/**
 * Returns the number. Throws `RangeError` if the value is no integer or does not fit the field, because a wrong setting
 * must not become another valid setting.
 */
function within(value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min || value > max)
    throw new RangeError(`${value} is not from ${min} to ${max}`)
  return value
}

function putAll(writer: Writer, bytes: Iterable<number>): void {
  writer.bit = 0
  for (const byte of bytes) writer.bytes.push(byte)
}

function putCounted(writer: Writer, values: { readonly length: number } & Iterable<number>, width: number): void {
  put(writer, within(values.length, 0, 0xffff), 2)
  for (const value of values) put(writer, within(value, 0, 2 ** (8 * width) - 1), width)
}

const WRITE: { [K in keyof FieldValues]: (writer: Writer, value: FieldValues[K]) => void } = {
  flag: (writer, value) => putBits(writer, value ? 1 : 0, 1),
  u2: (writer, value) => putBits(writer, within(value, 0, 3), 2),
  u8: (writer, value) => put(writer, within(value, 0, 0xff), 1),
  u16: (writer, value) => put(writer, within(value, 0, 0xffff), 2),
  u32: (writer, value) => put(writer, within(value, 0, 0xffffffff), 4),
  s8: (writer, value) => put(writer, within(value, -128, 127) & 0xff, 1),
  s16: (writer, value) => put(writer, within(value, -32_768, 32_767) & 0xffff, 2),
  u64: (writer, value) => {
    put(writer, Number(BigInt.asUintN(64, value) >> 32n), 4)
    put(writer, Number(value & 0xffffffffn), 4)
  },
  u8v: (writer, value) => putCounted(writer, value, 1),
  u16v: (writer, value) => putCounted(writer, value, 2),
  u32v: (writer, value) => putCounted(writer, value, 4),
  utf8v: (writer, value) => putCounted(writer, new TextEncoder().encode(value), 1),
  u96: (writer, value) => putAll(writer, exactly(bytesOfHex(value), 12)),
  bits: (writer, value) => {
    put(writer, within(value.count, 0, 0xffff), 2)
    putAll(writer, exactly(bytesOfHex(value.hex), Math.ceil(value.count / 8)))
  },
  rest: putAll,
}

function exactly(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length !== length) throw new RangeError(`${length} bytes are wanted, not ${bytes.length}`)
  return bytes
}

/** Writes one field. Throws `RangeError` if the value does not fit. */
export function writeField<K extends keyof FieldValues>(kind: K, writer: Writer, value: FieldValues[K]): void {
  WRITE[kind](writer, value)
}

const WIDTHS: Partial<Record<FieldKind, number>> = { u8: 1, s8: 1, r8: 1, u16: 2, s16: 2, u32: 4, u64: 8, u96: 12 }

/** Minimum bytes of the fields. If all lengths are fixed, this is the exact number. */
export function leastLength(kinds: readonly FieldKind[]): number {
  let length = 0
  let bit = 0
  for (const kind of kinds) {
    if (kind === 'flag' || kind === 'u2') {
      if (bit === 0) length++
      bit = (bit + (kind === 'flag' ? 1 : 2)) % 8
    } else {
      bit = 0
      length += WIDTHS[kind] ?? (kind === 'rest' ? 0 : 2)
    }
  }
  return length
}
