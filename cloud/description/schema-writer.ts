import { z } from 'zod'
import { nameSharedSchemas, namedObjects } from './components.ts'
import { POINTER, type JsonSchema } from './json-schema.ts'

type Io = 'input' | 'output'
type Node = Record<string, unknown>

/** An answer that is all of a shared schema and more says so from this many shared fields on. */
const WORTH_SHARING = 3

/** Turns zod schemas into JSON schemas and gathers what they share. */
export interface SchemaWriter {
  readonly components: Readonly<Record<string, JsonSchema>>
  write(schema: z.ZodType, io: Io): JsonSchema
}

/** A writer whose components are those of every schema written so far. */
export function schemaWriter(): SchemaWriter {
  nameSharedSchemas()
  const components: Record<string, JsonSchema> = {}

  function write(schema: z.ZodType, io: Io): JsonSchema {
    const base = io === 'output' ? baseOf(schema) : undefined
    if (!base) return plain(schema, io)
    const more = plain(base.rest, io)
    return { allOf: [plain(base.shared, io), ...(Object.keys(more.properties ?? {}).length > 0 ? [more] : [])] }
  }

  function plain(schema: z.ZodType, io: Io): JsonSchema {
    const { definitions, ...made } = z.toJSONSchema(schema, {
      target: 'openapi-3.0',
      io,
      unrepresentable: 'any',
    }) as Node & { definitions?: Record<string, Node> }
    const renamed = new Map<string, string>()
    const shared = Object.entries(definitions ?? {})
    for (const [id, definition] of shared) renamed.set(id, nameOf(id, definition, io))
    for (const [id, definition] of shared) components[renamed.get(id) ?? id] = tidy(definition, io, renamed)
    return tidy(made, io, renamed)
  }

  /** One name stands for one schema: what comes in may be written otherwise than what goes out. */
  function nameOf(id: string, definition: Node, io: Io): string {
    const written = components[id]
    if (written === undefined || JSON.stringify(written) === JSON.stringify(tidy(definition, io, new Map([[id, id]]))))
      return id
    return io === 'input' ? `${id}Input` : `${id}Output`
  }

  return { components, write }
}

/** The largest shared schema of which this one has every field, and what it has beside them. */
function baseOf(schema: z.ZodType): { shared: z.ZodObject; rest: z.ZodObject } | undefined {
  if (!(schema instanceof z.ZodObject) || schema._zod.def.checks) return undefined
  const shape = schema.shape as Record<string, unknown>
  let best: z.ZodObject | undefined
  for (const shared of namedObjects().values()) {
    const fields = Object.entries(shared.shape)
    if (shared === schema || fields.length < WORTH_SHARING || fields.length <= Object.keys(best?.shape ?? {}).length)
      continue
    if (fields.every(([name, field]) => shape[name] === field)) best = shared
  }
  if (!best) return undefined
  const inBase = best.shape as Record<string, unknown>
  const rest = Object.entries(schema.shape).filter(([name]) => !(name in inBase))
  return { shared: best, rest: z.object(Object.fromEntries(rest)) }
}

/** Bounds that every safe integer has say nothing; a format says more than its pattern; answers may grow fields. */
function tidy(value: unknown, io: Io, renamed: ReadonlyMap<string, string>): JsonSchema {
  return tidied(value, io, renamed) as JsonSchema
}

function tidied(value: unknown, io: Io, renamed: ReadonlyMap<string, string>): unknown {
  if (Array.isArray(value)) return value.map((each) => tidied(each, io, renamed))
  if (typeof value !== 'object' || value === null) return value
  const { $schema: _schema, id: _id, ...node } = value as Node
  const ref = node['$ref']
  if (typeof ref === 'string') return { $ref: `${POINTER}${renamed.get(ref.split('/').at(-1) ?? '') ?? ref}` }
  if (node['maximum'] === Number.MAX_SAFE_INTEGER) delete node['maximum']
  if (node['minimum'] === Number.MIN_SAFE_INTEGER) delete node['minimum']
  if (typeof node['format'] === 'string') delete node['pattern']
  if (io === 'output' && node['additionalProperties'] === false) delete node['additionalProperties']
  const children = Object.entries(mergeLiterals(node)).map(([name, child]) => [
    name,
    name === 'properties' ? fields(child as Node, io, renamed) : tidied(child, io, renamed),
  ])
  return alone(Object.fromEntries(children) as Node)
}

/** The names of fields are names, whatever they are called. */
function fields(properties: Node, io: Io, renamed: ReadonlyMap<string, string>): Node {
  return Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, tidied(child, io, renamed)]))
}

/** All of one thing is that thing. */
function alone(node: Node): Node {
  const parts = node['allOf'] as Node[] | undefined
  return parts?.length === 1 && Object.keys(node).length === 1 ? (parts[0] ?? node) : node
}

/** A choice of single values is one enum. */
function mergeLiterals(node: Node): Node {
  const options = node['anyOf'] as Node[] | undefined
  if (!options?.every((option) => Array.isArray(option['enum']) && option['type'] === options[0]?.['type'])) return node
  const { anyOf: _options, ...rest } = node
  return { ...rest, type: options[0]?.['type'], enum: options.flatMap((option) => option['enum'] as unknown[]) }
}
