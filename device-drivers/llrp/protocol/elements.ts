import type { FieldsOf, Count, Layout } from './layout.ts'
import { MESSAGES, type MessageName, type MessageLayout } from './messages.ts'
import { type ParameterName, PARAMETERS } from './parameters.ts'
import { leastLength, type FieldKind } from './fields.ts'

/** A table row, prepared for encoding and decoding. */
export interface Row<Name extends string> {
  readonly name: Name
  readonly type: number
  readonly fields: readonly (readonly [name: string, kind: FieldKind])[]
  readonly params: ReadonlyMap<string, Count>
  /** Minimum bytes of the fields. If `isFixed`, this is the exact number. */
  readonly fieldBytes: number
  /** True if no field has a variable length. */
  readonly isFixed: boolean
}

const VARIABLE: ReadonlySet<FieldKind> = new Set<FieldKind>(['u8v', 'u16v', 'u32v', 'utf8v', 'bits', 'rest'])

function rowOf<Name extends string>(name: Name, layout: Layout): Row<Name> {
  const fields = Object.entries(layout.fields)
  const kinds = fields.map(([, kind]) => kind)
  return {
    name,
    type: layout.type,
    fields,
    params: new Map(Object.entries(layout.params)),
    fieldBytes: leastLength(kinds),
    isFixed: !kinds.some((kind) => VARIABLE.has(kind)),
  }
}

function rowsOf<Name extends string>(table: Readonly<Record<Name, Layout>>): ReadonlyMap<Name, Row<Name>> {
  return new Map((Object.entries(table) as [Name, Layout][]).map(([name, layout]) => [name, rowOf(name, layout)]))
}

/** Number of possible types; a type has 10 bits. */
const TYPES = 1_024

/** An array indexed by type, for fast access. */
function byType<Name extends string>(rows: ReadonlyMap<Name, Row<Name>>): readonly (Row<Name> | undefined)[] {
  const all: (Row<Name> | undefined)[] = Array.from({ length: TYPES }, () => undefined)
  for (const row of rows.values()) all[row.type] = row
  return all
}

export const MESSAGE_ROWS = rowsOf(MESSAGES)
export const MESSAGE_ROWS_BY_TYPE = byType(MESSAGE_ROWS)
export const PARAMETER_ROWS = rowsOf(PARAMETERS)
export const PARAMETER_ROWS_BY_TYPE = byType(PARAMETER_ROWS)

/** Types below this number have the short form (TV). */
export const FIRST_TLV = 128

/** Length of each short parameter with its type byte; 0 for an unknown type. */
export const TV_LENGTHS: Uint8Array = Uint8Array.from({ length: FIRST_TLV }, (_, type) => {
  const row = PARAMETER_ROWS_BY_TYPE[type]
  return row ? 1 + row.fieldBytes : 0
})

/** The name of the answer to a message, if it has one. */
export function answerTo(name: keyof typeof MESSAGES): string | undefined {
  const layout: MessageLayout = MESSAGES[name]
  return layout.answer
}

/** One parameter with its subparameters, in the order in which the reader sent them. */
export type Parameter<N extends ParameterName = ParameterName> = {
  [K in N]: {
    readonly name: K
    readonly fields: FieldsOf<(typeof PARAMETERS)[K]>
    readonly params: readonly AnyParameter[]
  }
}[N]

/** An unknown parameter as received, without its header. */
interface UnknownParameter {
  readonly name: 'unknown'
  readonly type: number
  readonly bytes: Uint8Array
}

export type AnyParameter = Parameter | UnknownParameter

/** One message. An answer repeats the `id` of its request. */
export type Message<N extends MessageName = MessageName> = {
  [K in N]: {
    readonly name: K
    readonly id: number
    readonly fields: FieldsOf<(typeof MESSAGES)[K]>
    readonly params: readonly AnyParameter[]
  }
}[N]

type NoFields = Record<never, never>

/** Makes a parameter. */
export function parameter<N extends ParameterName>(
  name: N,
  fields: FieldsOf<(typeof PARAMETERS)[N]>,
  ...params: AnyParameter[]
): Parameter<N> {
  return { name, fields, params } as unknown as Parameter<N>
}

/** Makes a message. `params` must have the order of the standard. */
export function message<N extends MessageName>(
  name: N,
  id: number,
  fields: FieldsOf<(typeof MESSAGES)[N]> | NoFields,
  ...params: AnyParameter[]
): Message<N> {
  return { name, id, fields, params } as unknown as Message<N>
}

interface Holder {
  readonly params?: readonly AnyParameter[]
}

const named = (within: Holder | undefined, name: ParameterName): readonly AnyParameter[] =>
  within?.params?.filter((param) => param.name === name) ?? []

/** The first direct parameter with this name, or undefined. */
export function first<N extends ParameterName>(within: Holder | undefined, name: N): Parameter<N> | undefined {
  return named(within, name)[0] as Parameter<N> | undefined
}

/** All direct parameters with this name, in the order of the wire. */
export function all<N extends ParameterName>(within: Holder | undefined, name: N): readonly Parameter<N>[] {
  return named(within, name) as unknown as readonly Parameter<N>[]
}
