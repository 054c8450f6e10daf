import fc from 'fast-check'
import {
  type AnyParameter,
  type Message,
  MESSAGE_ROWS,
  PARAMETER_ROWS,
  type Row,
} from '../../device-drivers/llrp/protocol/elements.ts'
import type { FieldKind, FieldValue, FieldValues } from '../../device-drivers/llrp/protocol/fields.ts'
import type { Count } from '../../device-drivers/llrp/protocol/layout.ts'
import type { MessageName } from '../../device-drivers/llrp/protocol/messages.ts'
import type { ParameterName } from '../../device-drivers/llrp/protocol/parameters.ts'

/** Generates messages of every form that the tables allow, so each addition to a table is tested. */

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex').toUpperCase()
const bytes = (most: number, least = 0) => fc.uint8Array({ minLength: least, maxLength: most })
const whole = (min: number, max: number) => fc.integer({ min, max })

const VALUES: { [K in keyof FieldValues]: fc.Arbitrary<FieldValues[K]> } = {
  flag: fc.boolean(),
  u2: whole(0, 3),
  u8: whole(0, 255),
  u16: whole(0, 65_535),
  u32: whole(0, 0xffffffff),
  s8: whole(-128, 127),
  s16: whole(-32_768, 32_767),
  u64: fc.bigInt({ min: 0n, max: 0xffffffffffffffffn }),
  u8v: bytes(8),
  u16v: fc.array(whole(0, 65_535), { maxLength: 5 }),
  u32v: fc.array(whole(0, 0xffffffff), { maxLength: 5 }),
  utf8v: fc.string({ unit: 'grapheme', maxLength: 12 }),
  u96: bytes(12, 12).map(hex),
  bits: bytes(16).chain((whole) =>
    fc
      .integer({ min: Math.max(0, whole.length * 8 - 7), max: whole.length * 8 })
      .map((count) => ({ count, hex: hex(whole) })),
  ),
  rest: bytes(20),
}

/** Values of a field. A test may restrict them. */
export type ValuesOf = (element: string, field: string, kind: keyof FieldValues) => fc.Arbitrary<FieldValue>

const anything: ValuesOf = (_element, _field, kind) => VALUES[kind] as fc.Arbitrary<FieldValue>

const unknown: fc.Arbitrary<AnyParameter> = fc.record({
  name: fc.constant('unknown' as const),
  type: whole(900, 1_000),
  bytes: bytes(10),
})

/** Range of the number of a parameter. A test may restrict it; null means none. */
export type CountOf = (element: string, param: string, count: Count) => Count | null

/** Unknown elements are generated only without `countOf`. */
export function generator(valuesOf: ValuesOf = anything, countOf?: CountOf) {
  const fieldsOf = (row: Row<string>) =>
    fc.record(
      Object.fromEntries(
        row.fields
          .filter((field): field is readonly [string, Exclude<FieldKind, 'r8'>] => field[1] !== 'r8')
          .map(([name, kind]) => [name, valuesOf(row.name, name, kind)]),
      ),
    )

  function paramsOf(row: Row<string>, depth: number): fc.Arbitrary<AnyParameter[]> {
    const groups = [...row.params].map(([name, usual]) => {
      const count = countOf ? countOf(row.name, name, usual) : usual
      const least = count === '1' || count === '+' ? 1 : 0
      const most = depth > 2 ? least : count === '1' || count === '?' ? 1 : 3
      if (most === 0 || count === null) return fc.constant([])
      return fc.array(parameterOf(name as ParameterName, depth + 1), { minLength: least, maxLength: most })
    })
    // Unknown elements may follow known elements, except after a field of kind `rest`.
    const endless = row.fields.some(([, kind]) => kind === 'rest')
    return fc
      .tuple(...groups, fc.array(unknown, { maxLength: depth === 1 && !endless && !countOf ? 1 : 0 }))
      .map((parts) => parts.flat())
  }

  function parameterOf(name: ParameterName, depth: number): fc.Arbitrary<AnyParameter> {
    const row = PARAMETER_ROWS.get(name)!
    // Short parameters have no subparameters.
    return fc
      .tuple(fieldsOf(row), row.type < 128 ? fc.constant([]) : paramsOf(row, depth))
      .map(([fields, params]) => ({ name, fields, params }) as unknown as AnyParameter)
  }

  return function messageOf<N extends MessageName>(name: N): fc.Arbitrary<Message<N>> {
    const row = MESSAGE_ROWS.get(name)!
    return fc
      .tuple(whole(0, 0xffffffff), fieldsOf(row), paramsOf(row, 1))
      .map(([id, fields, params]) => ({ name, id, fields, params }) as unknown as Message<N>)
  }
}

/** A message with this name, in any form that the tables allow. */
export const messageOf = generator()

export const anyMessage: fc.Arbitrary<Message> = fc
  .constantFrom(...MESSAGE_ROWS.keys())
  .chain((name) => messageOf(name))
