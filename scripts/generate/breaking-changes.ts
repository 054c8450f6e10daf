import { type JsonSchema, SCHEMA_POINTER } from '../../policy/json-schema.ts'
import { isAtLeast, type Package } from '../../cloud/platform/foundation/caller.ts'

/** One field of a schema. Variants of a union and parts of an `allOf` are merged. */
interface Field {
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
type Fields = ReadonlyMap<string, Field>

const UPPER_BOUNDS = ['maxLength', 'maximum', 'maxItems'] as const
const LOWER_BOUNDS = ['minLength', 'minimum', 'minItems'] as const
const BOUNDS = [...UPPER_BOUNDS, ...LOWER_BOUNDS]
type Bound = (typeof BOUNDS)[number]

interface Place {
  owner: string
  path: string
  components: Readonly<Record<string, JsonSchema>>
  /** Named schemas that contain this place. The collection stops at a schema that is already in the list. */
  within: readonly string[]
}

/** Returns all fields of a schema that belongs to `owner`. */
function fieldsOf(schema: JsonSchema, owner: string, components: Place['components']): Fields {
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

/** The parts of an OpenAPI document that callers and receivers of events depend on. */
export interface ContractDocument {
  paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>
  components: { schemas: Readonly<Record<string, JsonSchema>> }
  /** Missing for the agent, which sends no webhooks. */
  'x-webhooks'?: Readonly<Record<string, { post: { requestBody: { content: Content } } }>>
}

interface ApiOperation {
  parameters?: readonly { name: string; in?: string; required?: boolean; schema: JsonSchema }[]
  requestBody?: { content: Content }
  responses: Readonly<Record<string, { content?: Content }>>
  'x-callers'?: readonly string[]
  'x-minimum-package'?: string
}

type Content = Readonly<Record<string, { schema: JsonSchema }>>

/** One schema of the contract. Callers send `request` and `form`, and receive `response` and `event`. */
interface Part {
  owner: string
  name: 'request' | 'form' | 'response' | 'event'
  /** Content type of the request or response, such as `application/json`. */
  contentType: string
  fields: Fields
}

/**
 * Finds changes that break callers or receivers of events. Returns each as the text that must declare it in
 * CHANGELOG.md.
 */
export function breakingChanges(before: ContractDocument, after: ContractDocument): string[] {
  const then = { operations: operationsOf(before), parts: partsOf(before) }
  const now = { operations: operationsOf(after), parts: partsOf(after) }
  const changes = [
    ...[...then.operations].flatMap(([name, operation]) => operationChanges(name, operation, now.operations.get(name))),
    ...[...then.parts].flatMap(([key, part]) => {
      if (!now.operations.has(part.owner) && part.name !== 'event') return []
      const same = now.parts.get(key)
      return same ? fieldChanges(part, same.fields) : [partRemoved(part)]
    }),
  ]
  // Removes duplicates, because several operations can share a schema.
  return [...new Set(changes)]
}

function operationsOf({ paths }: ContractDocument): Map<string, ApiOperation> {
  return new Map(
    Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => [
        method === 'post' || Object.keys(methods).length === 1
          ? path.slice(1)
          : `${method.toUpperCase()} ${path.slice(1)}`,
        operation,
      ]),
    ),
  )
}

function partsOf(document: ContractDocument): Map<string, Part> {
  const { schemas } = document.components
  const parts: Part[] = []
  const add = (owner: string, name: Part['name'], content: Content = {}) => {
    for (const [contentType, { schema }] of Object.entries(content)) {
      const isForm = name === 'request' && contentType !== 'application/json'
      parts.push({ owner, name: isForm ? 'form' : name, contentType, fields: fieldsOf(schema, owner, schemas) })
    }
  }
  for (const [owner, { parameters, requestBody, responses }] of operationsOf(document)) {
    const query = (parameters ?? []).filter((parameter) => parameter.in === 'query')
    if (query.length > 0) add(owner, 'request', { 'application/json': { schema: querySchema(query) } })
    add(owner, 'request', requestBody?.content)
    add(owner, 'response', responses['200']?.content)
  }
  for (const [owner, { post }] of Object.entries(document['x-webhooks'] ?? {}))
    add(owner, 'event', post.requestBody.content)
  return new Map(parts.map((part) => [`${part.owner} ${part.name} ${part.contentType}`, part]))
}

function querySchema(parameters: NonNullable<ApiOperation['parameters']>): JsonSchema {
  return {
    type: 'object',
    required: parameters.filter(({ required }) => required === true).map(({ name }) => name),
    properties: Object.fromEntries(parameters.map(({ name, schema }) => [name, schema])),
  }
}

function operationChanges(name: string, before: ApiOperation, after: ApiOperation | undefined): string[] {
  if (!after) return [`\`${name}\` was removed`]
  const callers = (before['x-callers'] ?? []).filter((caller) => after['x-callers']?.includes(caller) === false)
  const [had, needs] = [before['x-minimum-package'], after['x-minimum-package']] as [Package?, Package?]
  return [
    ...callers.map((caller) => `\`${name}\` no longer accepts callers of the kind ${caller}`),
    ...(had && needs && !isAtLeast(had, needs) ? [`\`${name}\` needs the package ${needs} now`] : []),
  ]
}

function partRemoved({ owner, name, contentType }: Part): string {
  if (name === 'event') return `\`${owner}\` event was removed`
  return name === 'response'
    ? `\`${owner}\` no longer answers ${contentType}`
    : `\`${owner}\` no longer takes ${contentType}`
}

function fieldChanges({ name, fields: before }: Part, after: Fields): string[] {
  const isSent = name === 'request' || name === 'form'
  const line = ({ owner, path }: Field, what: string) =>
    `\`${owner}\` ${name} ${path === '' ? '' : `\`${path}\` `}${what}`
  const changed = [...before].flatMap(([path, field]) => {
    const same = after.get(path)
    // For a removed field, reports only the field itself and not the fields inside it.
    if (!same) return after.has(parentOf(path)) ? [line(field, 'was removed')] : []
    const differences = [
      ...typeChanges(field, same, isSent),
      ...valueChanges(field, same, isSent),
      ...needChanges(path, field, same, isSent),
      ...(isSent ? boundChanges(field, same) : []),
    ]
    return differences.map((what) => line(field, what))
  })
  if (!isSent) return changed
  const added = [...after].filter(
    ([path, { isRequired }]) => isRequired && isProperty(path) && !before.has(path) && before.has(parentOf(path)),
  )
  return [...changed, ...added.map(([, field]) => line(field, 'is new and required'))]
}

function parentOf(path: string): string {
  return path.replace(/(?:\.[^.[\]]+|\[\])$/, '')
}

/** True if the path ends in a named field, not in the elements of a list or map. */
function isProperty(path: string): boolean {
  return path !== '' && !path.endsWith('[]') && !path.endsWith('.*')
}

/** Type changes that break a caller: a request accepts fewer types, or a response may have more. */
function typeChanges(before: Field, after: Field, isSent: boolean): string[] {
  const lost = isSent ? notIn(before, after) : []
  const gained = isSent ? [] : notIn(after, before)
  return [
    ...lost.map((type) => `no longer takes ${type}`),
    ...gained.map((type) => `may be ${type} now`),
    ...(isSent && before.isNullable && !after.isNullable ? ['no longer takes null'] : []),
    ...(!isSent && !before.isNullable && after.isNullable ? ['may be null now'] : []),
  ]
}

function notIn({ types }: Field, { types: known }: Field): string[] {
  if (known.size === 0) return []
  if (types.size === 0) return ['any type']
  return [...types].filter((type) => !known.has(type) && !(type === 'integer' && known.has('number')))
}

/** Removed values. They break callers that send them and receivers that expect them. */
function valueChanges({ values: before }: Field, { values: after }: Field, isSent: boolean): string[] {
  if (!after) return []
  if (!before) return isSent ? [`takes only ${[...after].map(shown).join(', ')} now`] : []
  return [...before].filter((value) => !after.has(value)).map((value) => `no longer has the value ${shown(value)}`)
}

/** Formats a JSON value without quotation marks, because the test report would escape them. */
function shown(json: string): string {
  return `\`${json.replace(/^"(.*)"$/, '$1')}\``
}

function needChanges(path: string, before: Field, after: Field, isSent: boolean): string[] {
  if (!isProperty(path) || before.isRequired === after.isRequired) return []
  if (isSent) return after.isRequired ? ['is required now'] : []
  return after.isRequired ? [] : ['may be missing now']
}

function boundChanges(before: Field, after: Field): string[] {
  const upper = UPPER_BOUNDS.filter((bound) => limit(after, bound, Infinity) < limit(before, bound, Infinity))
  const lower = LOWER_BOUNDS.filter((bound) => limit(after, bound, -Infinity) > limit(before, bound, -Infinity))
  const form = after.form !== '' && after.form !== before.form ? [`must have the form \`${after.form}\` now`] : []
  return [...[...upper, ...lower].map((bound) => `has the ${bound} ${after.bounds.get(bound)} now`), ...form]
}

function limit({ bounds }: Field, bound: (typeof UPPER_BOUNDS | typeof LOWER_BOUNDS)[number], none: number): number {
  return bounds.get(bound) ?? none
}

/** New operations and events that the unreleased section of CHANGELOG.md does not name. */
export function unnamedAdditions(before: ContractDocument, after: ContractDocument, changelog: string): string[] {
  const known = new Set([...operationsOf(before).keys(), ...Object.keys(before['x-webhooks'] ?? {})])
  const names = [...operationsOf(after).keys(), ...Object.keys(after['x-webhooks'] ?? {})]
  return names.filter((name) => !known.has(name) && !unreleasedPart(changelog).includes(`\`${name}\``))
}

/** The breaking changes that no line `- Breaking: …` of the unreleased section of CHANGELOG.md declares. */
export function undeclaredChanges(changes: readonly string[], changelog: string): string[] {
  const lines = unreleasedPart(changelog).split('\n')
  return changes
    .map((change) => `- Breaking: ${change}.`)
    .filter((declaration) => !lines.some((line) => line.startsWith(declaration)))
}

function unreleasedPart(changelog: string): string {
  return changelog.split(/^## /m).find((section) => section.startsWith('[Unreleased]')) ?? ''
}
