import {
  type AnyParameter,
  type Message,
  FIRST_TLV,
  MESSAGE_ROWS,
  MESSAGE_ROWS_BY_TYPE,
  PARAMETER_ROWS,
  PARAMETER_ROWS_BY_TYPE,
  TV_LENGTHS,
  type Row,
} from './elements.ts'
import { Malformed, readField, skip, writeField } from './fields.ts'
import type { Cursor, FieldKind, FieldValue, FieldValues, Writer } from './fields.ts'
import { HEADER_BYTES, MAX_MESSAGE_BYTES, VERSION } from './frames.ts'
import type { LlrpFrame } from './frames.ts'
import type { MessageName } from './messages.ts'
import type { ParameterName } from './parameters.ts'

/** A message of an unknown type, which belongs to a later version or to a vendor. */
interface UnknownMessage {
  readonly name: 'unknown'
  readonly type: number
  readonly id: number
  readonly bytes: Uint8Array
}

/** The message of a frame, or why the frame is malformed. */
type Decoded =
  | Message
  | UnknownMessage
  | { readonly name: 'malformed'; readonly type: number; readonly id: number; readonly fault: string }

/** Maximum nesting of parameters; the standard needs 7. */
const DEEPEST = 16

function readFields(row: Row<string>, cursor: Cursor): Record<string, FieldValue> {
  const fields: Record<string, FieldValue> = {}
  for (const [name, kind] of row.fields) {
    if (kind === 'r8') skip(cursor, 1)
    else fields[name] = readField(kind, cursor)
  }
  skip(cursor, 0)
  return fields
}

function readParameter(cursor: Cursor, depth: number): AnyParameter {
  const { bytes, at } = cursor
  const head = bytes[at] ?? 0
  const isShort = head >= FIRST_TLV
  if (!isShort && at + 4 > cursor.end) throw new Malformed('a parameter ends within its header')
  const type = isShort ? head - FIRST_TLV : ((head & 3) << 8) | (bytes[at + 1] ?? 0)
  const length = isShort ? (TV_LENGTHS[type] ?? 0) : ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)
  const header = isShort ? 1 : 4
  if (length < header || at + length > cursor.end)
    throw new Malformed(`a parameter of type ${type} claims ${length} bytes`)
  cursor.at = at + length
  const row = PARAMETER_ROWS_BY_TYPE[type]
  if (!row || isShort !== type < FIRST_TLV)
    return { name: 'unknown', type, bytes: bytes.slice(at + header, at + length) }
  return {
    name: row.name,
    ...readElement(row, { bytes, at: at + header, end: at + length, bit: 0 }, depth),
  } as unknown as AnyParameter
}

function readElement(
  row: Row<string>,
  cursor: Cursor,
  depth: number,
): { fields: Record<string, FieldValue>; params: AnyParameter[] } {
  if (depth > DEEPEST) throw new Malformed('parameters within parameters without end')
  try {
    const fields = readFields(row, cursor)
    const params: AnyParameter[] = []
    while (cursor.at < cursor.end) params.push(readParameter(cursor, depth + 1))
    return { fields, params }
  } catch (error) {
    if (error instanceof Malformed && !error.message.includes(':')) throw new Malformed(`${row.name}: ${error.message}`)
    throw error
  }
}

/**
 * Decodes a frame. Never throws. Accepts parameters at unexpected positions, because readers differ. Ignores reserved
 * bits, as the standard demands.
 */
export function decodeMessage({ type, id, body }: LlrpFrame): Decoded {
  const row = MESSAGE_ROWS_BY_TYPE[type]
  if (!row) return { name: 'unknown', type, id, bytes: body.slice() }
  try {
    return {
      name: row.name,
      id,
      ...readElement(row, { bytes: body, at: 0, end: body.length, bit: 0 }, 0),
    } as unknown as Message
  } catch (error) {
    if (error instanceof Malformed) return { name: 'malformed', type, id, fault: error.message }
    throw error
  }
}

function writeFields(row: Row<string>, fields: Readonly<Record<string, FieldValue>>, writer: Writer): void {
  for (const [name, kind] of row.fields) {
    if (kind === 'r8') writer.bytes.push(0)
    else writeOne(row, name, kind, fields[name], writer)
    if (kind === 'r8') writer.bit = 0
  }
  writer.bit = 0
}

function writeOne(
  row: Row<string>,
  name: string,
  kind: Exclude<FieldKind, 'r8'>,
  value: FieldValue | undefined,
  writer: Writer,
): void {
  if (value === undefined) throw new RangeError(`${row.name}: the field ${name} is missing`)
  try {
    // The types fit, because `kind` and `value` come from the same table row.
    writeField<keyof FieldValues>(kind, writer, value)
  } catch (error) {
    throw new RangeError(`${row.name}.${name}: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    })
  }
}

/** Checks a message before it is sent. Readers reject parameters that are missing, repeated or out of order. */
function checkParams(row: Row<string>, params: readonly AnyParameter[]): void {
  const counts = new Map<string, number>()
  const order = [...row.params.keys()]
  let before = 0
  for (const { name } of params) {
    if (name === 'unknown') continue
    const position = order.indexOf(name)
    if (position < 0) throw new RangeError(`${row.name} holds no ${name}`)
    if (position < before) throw new RangeError(`${row.name}: ${name} stands too late`)
    before = position
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  for (const [name, count] of row.params) {
    const found = counts.get(name) ?? 0
    if ((count === '1' || count === '+') && found === 0) throw new RangeError(`${row.name}: ${name} is missing`)
    if ((count === '1' || count === '?') && found > 1)
      throw new RangeError(`${row.name}: ${name} stands ${found} times`)
  }
}

function writeParameter(param: AnyParameter, writer: Writer): void {
  const row = param.name === 'unknown' ? null : PARAMETER_ROWS.get(param.name as ParameterName)
  const type = param.name === 'unknown' ? param.type : (row?.type ?? 0)
  const from = writer.bytes.length
  if (type < FIRST_TLV) writer.bytes.push(FIRST_TLV | type)
  else writer.bytes.push(type >> 8, type & 0xff, 0, 0)
  if (param.name === 'unknown') for (const byte of param.bytes) writer.bytes.push(byte)
  else if (row) writeElement(row, param, writer)
  const length = writer.bytes.length - from
  if (type < FIRST_TLV) return
  if (length > 0xffff) throw new RangeError(`${param.name}: ${length} bytes do not fit into one parameter`)
  writer.bytes[from + 2] = length >> 8
  writer.bytes[from + 3] = length & 0xff
}

function writeElement(
  row: Row<string>,
  { fields, params }: { readonly fields: object; readonly params: readonly AnyParameter[] },
  writer: Writer,
): void {
  writeFields(row, fields as Readonly<Record<string, FieldValue>>, writer)
  checkParams(row, params)
  for (const param of params) writeParameter(param, writer)
}

/** Encodes a message with its header. Throws `RangeError` if the message does not fit the table. */
export function encodeMessage(outgoing: Message | UnknownMessage): Uint8Array {
  const row = outgoing.name === 'unknown' ? null : MESSAGE_ROWS.get(outgoing.name as MessageName)
  const type = outgoing.name === 'unknown' ? outgoing.type : (row?.type ?? 0)
  const writer: Writer = { bytes: [(VERSION << 2) | (type >> 8), type & 0xff, 0, 0, 0, 0], bit: 0 }
  writeField('u32', writer, outgoing.id)
  if (outgoing.name === 'unknown') for (const byte of outgoing.bytes) writer.bytes.push(byte)
  else if (row) writeElement(row, outgoing, writer)
  const length = writer.bytes.length
  if (length < HEADER_BYTES || length > MAX_MESSAGE_BYTES)
    throw new RangeError(`${outgoing.name}: a message of ${length} bytes`)
  const bytes = Uint8Array.from(writer.bytes)
  new DataView(bytes.buffer).setUint32(2, length)
  return bytes
}
