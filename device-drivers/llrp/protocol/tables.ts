import { leastLength } from './fields.ts'
import type { FieldKind } from './fields.ts'
import type { Count, Layout } from './layout.ts'
import { MESSAGES } from './messages.ts'
import type { MessageLayout } from './messages.ts'
import { PARAMETERS } from './parameters.ts'

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
