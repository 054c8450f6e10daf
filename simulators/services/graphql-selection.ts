/**
 * The part of GraphQL that a simulated API needs: one operation with fields, arguments and variables. The answer has
 * the same structure as the query. An unknown field is an error.
 */
export interface Selection {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  /** Arguments of each directive, by name. */
  readonly directives: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  readonly fields: readonly Selection[]
}

/** A value: a leaf, an object whose fields may need arguments, or a list. */
export type GraphqlValue = string | number | boolean | null | readonly GraphqlValue[] | GraphqlObject
export interface GraphqlObject {
  readonly [field: string]:
    | GraphqlValue
    | ((args: Readonly<Record<string, unknown>>, directives: Selection['directives']) => GraphqlValue)
}

export class GraphqlFault extends Error {
  override name = 'GraphqlFault'
}

/** Parses the operation of a document. Throws `GraphqlFault`. */
export function parseOperation(
  document: string,
  variables: Readonly<Record<string, unknown>>,
): { kind: string; fields: Selection[] } {
  const tokens =
    document
      .match(/"(?:[^"\\]|\\.)*"|\$?[A-Za-z_]\w*|-?\d+(?:\.\d+)?|[{}()[\]:!=,@]|\.\.\./g)
      ?.filter((token) => token !== ',') ?? []
  let at = 0
  const take = (expected?: string): string => {
    const token = tokens[at++]
    if (token === undefined || (expected !== undefined && token !== expected))
      throw new GraphqlFault(`syntax error, unexpected ${token ?? 'end of file'}`)
    return token
  }
  const value = (): unknown => {
    const token = take()
    if (token.startsWith('$')) return variables[token.slice(1)]
    if (token.startsWith('"')) return JSON.parse(token) as unknown
    if (token === 'true' || token === 'false') return token === 'true'
    return /^-?\d/.test(token) ? Number(token) : token
  }
  const args = (): Record<string, unknown> => {
    const read: Record<string, unknown> = {}
    if (tokens[at] !== '(') return read
    for (take('('); tokens[at] !== ')';) {
      const name = take()
      take(':')
      read[name] = value()
    }
    take(')')
    return read
  }
  const directives = (): Record<string, Record<string, unknown>> => {
    const read: Record<string, Record<string, unknown>> = {}
    while (tokens[at] === '@') {
      take('@')
      const name = take()
      read[name] = args()
    }
    return read
  }
  const fields = (): Selection[] => {
    const read: Selection[] = []
    for (take('{'); tokens[at] !== '}';)
      read.push({ name: take(), args: args(), directives: directives(), fields: tokens[at] === '{' ? fields() : [] })
    take('}')
    return read
  }
  const kind = tokens[at] === '{' ? 'query' : take()
  if (tokens[at] !== '{' && tokens[at] !== '(') take()
  if (tokens[at] === '(') while (take() !== ')');
  return { kind, fields: fields() }
}

/** Applies a selection to a value. Throws `GraphqlFault` for an unknown field. */
export function select(value: GraphqlValue, fields: readonly Selection[], type: string): unknown {
  if (Array.isArray(value)) return value.map((entry: GraphqlValue) => select(entry, fields, type))
  if (typeof value !== 'object' || value === null) {
    if (fields.length > 0 && value !== null)
      throw new GraphqlFault(`Selections can't be made on scalars (field on ${type})`)
    return value
  }
  if (fields.length === 0) throw new GraphqlFault(`Field must have selections (field '${type}')`)
  const object = value as GraphqlObject
  return Object.fromEntries(
    fields.map((field) => {
      const found = Object.hasOwn(object, field.name) ? object[field.name] : undefined
      if (found === undefined) throw new GraphqlFault(`Field '${field.name}' doesn't exist on type '${type}'`)
      return [
        field.name,
        select(typeof found === 'function' ? found(field.args, field.directives) : found, field.fields, field.name),
      ]
    }),
  )
}
