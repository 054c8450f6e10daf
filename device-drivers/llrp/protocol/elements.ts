import type { FieldsOf } from './layout.ts'
import type { MESSAGES, MessageName } from './messages.ts'
import type { ParameterName, PARAMETERS } from './parameters.ts'

/** One parameter with its subparameters, in the order in which the reader sent them. */
export type Parameter<N extends ParameterName = ParameterName> = {
  [K in N]: {
    readonly name: K
    readonly fields: FieldsOf<(typeof PARAMETERS)[K]>
    readonly params: readonly AnyParameter[]
  }
}[N]

/** An unknown parameter as received, without its header. */
export interface UnknownParameter {
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
