import { SCHEMA_POINTER, type JsonSchema } from '../../policy/json-schema.ts'

/** One field of a schema. Variants of a union and parts of an `allOf` are merged. */
export interface Field {
  /** Named schema or operation that contains the field. `path` is the path in it. Messages show both. */
  readonly owner: string
  readonly path: string
  /** Possible types; empty means any type. */
  readonly types: ReadonlySet<string>
  readonly isRequired: boolean
  readonly isNullable: boolean
  /** JSON texts of an enum. */
  readonly values: ReadonlySet<string> | undefined
  readonly bounds: ReadonlyMap<Bound, number>
  /** `format`, `pattern` and exclusive bounds as one text; empty if there are none. */
  readonly form: string
}

/** Fields by their whole path, such as `.items[].ean`. The path of the schema itself is ''. */
export type Fields = ReadonlyMap<string, Field>

export const UPPER_BOUNDS = ['maxLength', 'maximum', 'maxItems'] as const
export const LOWER_BOUNDS = ['minLength', 'minimum', 'minItems'] as const
const BOUNDS = [...UPPER_BOUNDS, ...LOWER_BOUNDS]
export type Bound = (typeof BOUNDS)[number]

interface Place {
  owner: string
  path: string
  components: Readonly<Record<string, JsonSchema>>
  /** Named schemas that contain this place. The collection stops at a schema that is already in the list. */
  within: readonly string[]
}

/** Returns all fields of a schema that belongs to `owner`. */
export function fieldsOf(schema: JsonSchema, owner: string, components: Place['components']): Fields {
  const own = schema.$ref === undefined ? schema : (components[schema.$ref.slice(SCHEMA_POINTER.length)] ?? {})
  return collect(own, { owner, path: '', components, within: [] })
}

function collect(schema: JsonSchema, place: Place): Fields {
  if (schema.$ref !== undefined) return collectNamed(schema.$ref.slice(SCHEMA_POINTER.length), place)
  let fields = new Map<string, Field>([['', fieldOf(schema, place)]])
  const add = (step: string, child: JsonSchema, isRequired: boolean) => {
    for (const [path, field] of collect(child, { ...place, path: place.path + step }))
      fields.set(step + path, path === '' ? { ...field, isRequired } : field)
  }
  for (const [name, child] of Object.entries(schema.properties ?? {}))
    add(`.${name}`, child, schema.required?.includes(name) === true)
  if (schema.items) add('[]', schema.items, true)
  const { additionalProperties: others } = schema
  if (others !== undefined && others !== false) add('.*', others === true ? {} : others, true)
  for (const part of schema.allOf ?? []) fields = both(fields, collect(part, place))
  for (const variants of [schema.anyOf, schema.oneOf])
    if (variants) fields = both(fields, either(variants.map((variant) => collect(variant, place))))
  return fields
}

function collectNamed(name: string, place: Place): Fields {
  const isWithinItself = place.within.includes(name)
  const schema = isWithinItself ? { type: 'object' } : (place.components[name] ?? {})
  const fields = collect(schema, { ...place, owner: name, path: '', within: [...place.within, name] })
  // The referring field belongs to the outer owner. The fields inside belong to the named schema.
  return new Map([...fields].map(([path, field]) => [path, path === '' ? { ...field, ...ownerOf(place) } : field]))
}

function ownerOf({ owner, path }: Place): Pick<Field, 'owner' | 'path'> {
  return { owner, path: path.replace(/^\./, '') }
}

function fieldOf(schema: JsonSchema, place: Place): Field {
  const type = schema.type ?? (schema.properties ? 'object' : undefined)
  const bounds = BOUNDS.flatMap((bound) => {
    const value = schema[bound]
    return value === undefined ? [] : [[bound, value] as const]
  })
  const { format, pattern, exclusiveMinimum, exclusiveMaximum } = schema
  const exclusive = [
    ...(exclusiveMinimum ? ['exclusiveMinimum'] : []),
    ...(exclusiveMaximum ? ['exclusiveMaximum'] : []),
  ]
  return {
    ...ownerOf(place),
    types: new Set(type === undefined ? [] : [type]),
    isRequired: true,
    isNullable: schema.nullable === true,
    values: schema.enum && new Set(schema.enum.map((value) => JSON.stringify(value))),
    bounds: new Map(bounds),
    form: [format, pattern, ...exclusive].filter((part) => part !== undefined).join(' '),
  }
}

/** Merges the fields of two parts of an `allOf`. */
function both(one: Fields, other: Fields): Map<string, Field> {
  const fields = new Map(one)
  for (const [path, more] of other) {
    const known = fields.get(path)
    fields.set(path, known ? { ...known, ...narrowed(known, more) } : more)
  }
  return fields
}

function narrowed(known: Field, more: Field): Partial<Field> {
  return {
    types: new Set([...known.types, ...more.types]),
    isRequired: known.isRequired || more.isRequired,
    isNullable: known.isNullable || more.isNullable,
    values: known.values ?? more.values,
    bounds: new Map([...more.bounds, ...known.bounds]),
    form: known.form === '' ? more.form : known.form,
  }
}

/** Merges the fields of the variants of a union. */
function either(variants: readonly Fields[]): Fields {
  const fields = new Map<string, Field>()
  for (const path of new Set(variants.flatMap((variant) => [...variant.keys()]))) {
    const found = variants.flatMap((variant) => variant.get(path) ?? [])
    const [first] = found
    if (first) fields.set(path, { ...first, ...widened(found), isRequired: isRequiredInAll(found, variants.length) })
  }
  return fields
}

function isRequiredInAll(found: readonly Field[], variants: number): boolean {
  return found.length === variants && found.every((field) => field.isRequired)
}

function widened(found: readonly Field[]): Partial<Field> {
  const bounds = BOUNDS.flatMap((bound) => {
    const values = found.flatMap((field) => field.bounds.get(bound) ?? [])
    if (values.length < found.length) return []
    return [[bound, bound.startsWith('max') ? Math.max(...values) : Math.min(...values)] as const]
  })
  const forms = new Set(found.map((field) => field.form))
  return {
    types: new Set(found.some((field) => field.types.size === 0) ? [] : found.flatMap((field) => [...field.types])),
    isNullable: found.some((field) => field.isNullable),
    values: found.every((field) => field.values)
      ? new Set(found.flatMap((field) => [...(field.values ?? [])]))
      : undefined,
    bounds: new Map(bounds),
    form: forms.size === 1 ? [...forms].join('') : '',
  }
}
