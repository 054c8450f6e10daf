import { componentOf, resolveReference, type JsonSchema } from '../../../policy/json-schema.ts'

/** One field in the documentation. */
export interface Field {
  /** Path of the field, such as `items[].ean`. */
  readonly name: string
  readonly type: string
  /** Shared schema that the type references. */
  readonly refersTo: string | undefined
  readonly required: boolean
  readonly limits: string
  readonly description: string
}

type Components = Readonly<Record<string, JsonSchema>>

/** Maximum depth of listed fields. */
const DEPTH = 4
/** One shared formatter, because creating a formatter takes a hundred times as long as using it. */
const NUMBERS = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 })
/** Start of the descriptions of ids. Listings show the type `id` instead of this description. */
const ID_DESCRIPTION = 'An opaque id'

/**
 * Lists the fields of a schema and nested fields. If `expand`, also lists the fields of shared schemas; otherwise only
 * the names of these schemas.
 */
export function fieldsOf(schema: JsonSchema, components: Components, expand: boolean, prefix = '', depth = 0): Field[] {
  const whole =
    depth === 0
      ? mergeForms(resolveReference(schema, components))
      : expand
        ? resolveReference(schema, components)
        : schema
  const parts = (whole.allOf ?? []).flatMap((part) =>
    componentOf(part) !== undefined && !expand ? [] : fieldsOf(part, components, expand, prefix, depth),
  )
  const own = Object.entries(whole.properties ?? {}).flatMap(([name, field]) => {
    const path = `${prefix}${name}`
    const inner = itemsOf(field, components)
    const isList = inner !== field && resolveReference(field, components).type === 'array'
    const isShared = componentOf(inner) !== undefined && !expand
    const below =
      isShared || depth >= DEPTH
        ? []
        : fieldsOf(
            expand ? resolveReference(inner, components) : inner,
            components,
            expand,
            `${path}${isList ? '[]' : ''}.`,
            depth + 1,
          )
    return [describeField(path, field, whole.required?.includes(name) === true, components, expand), ...below]
  })
  return [...parts, ...own]
}

/** Merges alternative schemas. A field is required only if all alternatives require it. */
function mergeForms(schema: JsonSchema): JsonSchema {
  const forms = schema.anyOf ?? []
  if (schema.properties || schema.allOf || forms.length === 0 || forms.some((form) => !form.properties)) return schema
  const properties: Record<string, JsonSchema> = Object.assign({}, ...forms.map((form) => form.properties))
  return {
    properties,
    required: Object.keys(properties).filter((name) => forms.every((form) => form.required?.includes(name))),
  }
}

/** Names of shared schemas that the schema extends. */
export function basesOf(schema: JsonSchema, components: Components): string[] {
  return (resolveReference(schema, components).allOf ?? []).flatMap((part) => componentOf(part) ?? [])
}

/** The item schema of an array; other schemas unchanged. */
function itemsOf(field: JsonSchema, components: Components): JsonSchema {
  const node = componentOf(field) === undefined ? field : resolveReference(field, components)
  return node.type === 'array' && node.items ? node.items : field
}

function describeField(
  name: string,
  field: JsonSchema,
  required: boolean,
  components: Components,
  expand: boolean,
): Field {
  const node = expand ? resolveReference(field, components) : field
  const description = node.description ?? ''
  const isId = description.startsWith(ID_DESCRIPTION)
  return {
    name,
    type: isId ? 'id' : typeOf(field, components, expand),
    refersTo: expand ? undefined : referenceIn(field),
    required,
    limits: limitsOf(resolveReference(field, components)),
    description: isId ? '' : description,
  }
}

function referenceIn(schema: JsonSchema): string | undefined {
  return componentOf(schema) ?? (schema.items ? referenceIn(schema.items) : undefined)
}

/** The type as text: `string`, `integer`, `am | rf`, `Product[]`. */
function typeOf(schema: JsonSchema, components: Components, expand = false): string {
  const named = componentOf(schema)
  if (named !== undefined && !expand) return schema.nullable === true ? `${named} | null` : named
  const node = resolveReference(schema, components)
  const base = baseType(node, components, expand)
  return node.nullable === true ? `${base} | null` : base
}

function baseType(node: JsonSchema, components: Components, expand: boolean): string {
  if (node.enum) return node.enum.map((value) => JSON.stringify(value).replaceAll('"', '')).join(' | ')
  const options = node.anyOf ?? node.oneOf
  if (options) return [...new Set(options.map((option) => typeOf(option, components, expand)))].join(' | ')
  if (node.type === 'array') {
    const item = typeOf(node.items ?? {}, components, expand)
    return item.includes(' | ') ? `(${item})[]` : `${item}[]`
  }
  if (typeof node.additionalProperties === 'object' && !node.properties)
    return `map of ${typeOf(node.additionalProperties, components, expand)}`
  if (node.format === 'date-time') return 'time'
  if (node.format === 'binary') return 'file'
  return node.type ?? (node.allOf ? 'object' : 'any')
}

function limitsOf(node: JsonSchema): string {
  if (node.type === 'array')
    return joined(range(node.minItems, node.maxItems, 'items'), node.items ? limitsOf(node.items) : '')
  if (node.type === 'string' && node.format === undefined)
    return joined(
      range(node.minLength, node.maxLength, 'characters'),
      node.pattern !== undefined && node.pattern.length <= 40 ? `/${node.pattern}/` : '',
    )
  const more = node.exclusiveMinimum === true && node.minimum !== undefined ? `> ${node.minimum}` : ''
  return joined(more, range(more === '' ? node.minimum : undefined, node.maximum, ''))
}

function joined(...parts: string[]): string {
  return parts.filter((part) => part !== '').join(', ')
}

function range(min: number | undefined, max: number | undefined, unit: string): string {
  const low = min === 0 && unit !== '' ? undefined : min
  const text =
    low !== undefined && max !== undefined
      ? low === max
        ? `${count(low)}`
        : `${count(low)}${low < 0 ? ' to ' : '–'}${count(max)}`
      : low !== undefined
        ? `≥ ${count(low)}`
        : max !== undefined
          ? `≤ ${count(max)}`
          : ''
  return text === '' || unit === '' ? text : `${text} ${unit}`
}

function count(value: number): string {
  return NUMBERS.format(value)
}
