import type { FieldKind, FieldValues } from './fields.ts'

/** How often a parameter stands in its element: once, at most once, any number, at least once. */
export type Count = '1' | '?' | '*' | '+'

/** One message or parameter: fields in their order on the wire, then parameters in this order. */
export interface Layout {
  readonly type: number
  readonly fields: Readonly<Record<string, FieldKind>>
  readonly params: Readonly<Record<string, Count>>
}

/** The values of an element's fields, by their names in the standard. */
export type FieldsOf<L extends Layout> = {
  readonly [
    K in keyof L['fields'] as L['fields'][K] extends keyof FieldValues ? K : never
  ]: L['fields'][K] extends keyof FieldValues ? FieldValues[L['fields'][K]] : never
}
