import { z } from 'zod'

/** JSON Schema of OpenAPI 3.0.3, as far as untag uses it. */
export interface JsonSchema {
  $ref?: string
  type?: string
  format?: string
  enum?: unknown[]
  nullable?: boolean
  description?: string
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: boolean | JsonSchema
  items?: JsonSchema
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  allOf?: JsonSchema[]
  minLength?: number
  maxLength?: number
  pattern?: string
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  minItems?: number
  maxItems?: number
  default?: unknown
  example?: unknown
}

/** JSON pointer to the named schemas. */
export const SCHEMA_POINTER = '#/components/schemas/'

/** Returns the schema to which a reference points. Returns a schema without a reference unchanged. */
export function resolveReference(schema: JsonSchema, components: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const inner = schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined)
  const found = inner === undefined ? undefined : components[inner.slice(SCHEMA_POINTER.length)]
  return found
    ? {
        ...found,
        ...(schema.nullable === true && { nullable: true }),
        ...(schema.description !== undefined && { description: schema.description }),
      }
    : schema
}

/** Name of the referenced component; undefined without a reference. */
export function componentOf(schema: JsonSchema): string | undefined {
  return (schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined))?.slice(SCHEMA_POINTER.length)
}

/** `input`: what callers send. `output`: what the API returns. */
export type SchemaDirection = 'input' | 'output'
type Node = Record<string, unknown>

/** Converts zod schemas to JSON schemas and collects the named schemas. */
export interface SchemaWriter {
  /** Named schemas written so far, by name. */
  readonly components: Readonly<Record<string, JsonSchema>>
  write(schema: z.ZodType, io: SchemaDirection): JsonSchema
}

/** Creates a writer without components. */
export function schemaWriter(): SchemaWriter {
  const components: Record<string, JsonSchema> = {}

  function write(schema: z.ZodType, io: SchemaDirection): JsonSchema {
    const { definitions, ...converted } = z.toJSONSchema(schema, {
      target: 'openapi-3.0',
      io,
      unrepresentable: 'any',
    }) as Node & { definitions?: Record<string, Node> }
    const renamed = new Map<string, string>()
    const shared = Object.entries(definitions ?? {})
    for (const [id, definition] of shared) renamed.set(id, nameOf(id, definition, io))
    for (const [id, definition] of shared) components[renamed.get(id) ?? id] = tidy(definition, io, renamed)
    return tidy(converted, io, renamed)
  }

  /** Adds a suffix if another schema has this name, because the input and output of a schema can differ. */
  function nameOf(id: string, definition: Node, io: SchemaDirection): string {
    const written = components[id]
    if (written === undefined || JSON.stringify(written) === JSON.stringify(tidy(definition, io, new Map()))) return id
    return io === 'input' ? `${id}Input` : `${id}Output`
  }

  return { components, write }
}

/**
 * Drops bounds that every safe integer has, patterns beside a format, and `additionalProperties: false` of responses.
 */
function tidy(value: unknown, io: SchemaDirection, renamed: ReadonlyMap<string, string>): JsonSchema {
  return tidied(value, io, renamed) as JsonSchema
}

function tidied(value: unknown, io: SchemaDirection, renamed: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((each) => tidied(each, io, renamed))
  if (typeof value !== 'object' || value === null) return value
  const { $schema: _schema, id: _id, ...node } = value as Node
  const ref = node['$ref']
  if (typeof ref === 'string') {
    const name = ref.split('/').at(-1) ?? ''
    return { $ref: `${SCHEMA_POINTER}${renamed.get(name) ?? name}` }
  }
  if (node['maximum'] === Number.MAX_SAFE_INTEGER) delete node['maximum']
  if (node['minimum'] === Number.MIN_SAFE_INTEGER) delete node['minimum']
  if (typeof node['format'] === 'string') delete node['pattern']
  if (io === 'output' && node['additionalProperties'] === false) delete node['additionalProperties']
  const children = Object.entries(mergeLiterals(node)).map(([name, child]) => [
    name,
    name === 'properties' ? fields(child as Node, io, renamed) : tidied(child, io, renamed),
  ])
  return unwrapSingleAllOf(Object.fromEntries(children) as Node)
}

/** Converts the schemas of fields and keeps all names: a field may be called `id` or `$ref`. */
function fields(properties: Node, io: SchemaDirection, renamed: ReadonlyMap<string, string>): Node {
  return Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, tidied(child, io, renamed)]))
}

/** Replaces an `allOf` of one part by that part. */
function unwrapSingleAllOf(node: Node): Node {
  const parts = node['allOf'] as Node[] | undefined
  return parts?.length === 1 && Object.keys(node).length === 1 ? (parts[0] ?? node) : node
}

/** Merges a union of literals into one enum. */
function mergeLiterals(node: Node): Node {
  const options = node['anyOf'] as Node[] | undefined
  if (!options?.every((option) => Array.isArray(option['enum']) && option['type'] === options[0]?.['type'])) return node
  const { anyOf: _options, ...rest } = node
  return { ...rest, type: options[0]?.['type'], enum: options.flatMap((option) => option['enum'] as unknown[]) }
}
