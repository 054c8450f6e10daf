import type { FieldKind, FieldValues } from './fields.ts'

/** How often a parameter may occur: once, at most once, any number, at least once. */
export type Count = '1' | '?' | '*' | '+'

/** One message or parameter: its fields and then its parameters, in the order of the wire. */
export interface Layout {
  readonly type: number
  readonly fields: Readonly<Record<string, FieldKind>>
  readonly params: Readonly<Record<string, Count>>
}

/** The field values of an element, by the standard's names. */
export type FieldsOf<L extends Layout> = {
  readonly [
    K in keyof L['fields'] as L['fields'][K] extends keyof FieldValues ? K : never
  ]: L['fields'][K] extends keyof FieldValues ? FieldValues[L['fields'][K]] : never
}
