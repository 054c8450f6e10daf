import { readFileSync } from 'node:fs'
import { basesOf, fieldsOf, type Field } from '../../cloud/service/description/fields.ts'
import type { JsonSchema } from '../../policy/json-schema.ts'

/** Description of one operation, from the OpenAPI document of the build. */
export interface DescribedOperation {
  readonly name: string
  readonly area: string
  readonly summary: string
  readonly description: string
  readonly minimumPackage: string
  readonly callers: readonly string[]
  /** Roles of the users who may call it, highest first. */
  readonly roles: readonly string[]
  readonly request: JsonSchema
  readonly example: Readonly<Record<string, unknown>>
  readonly answer: readonly Field[]
  /** Shared schemas whose fields the response also has. */
  readonly answerBases: readonly string[]
}

export interface DescribedApi {
  readonly operations: ReadonlyMap<string, DescribedOperation>
  readonly components: Readonly<Record<string, JsonSchema>>
}

interface Content {
  schema: JsonSchema
  example?: Record<string, unknown>
}

interface Form {
  tags: string[]
  summary: string
  description: string
  'x-minimum-package': string
  'x-callers': string[]
  'x-roles': string[]
  parameters?: {
    name?: string
    in?: string
    required?: boolean
    description?: string
    example?: unknown
    schema?: JsonSchema
  }[]
  requestBody?: { content: Record<string, Content> }
  responses: Record<string, { content: Record<string, Content> }>
}

interface Document {
  paths: Record<string, { get?: Form; post?: Form }>
  components: { schemas: Record<string, JsonSchema> }
}

/** Reads the operations from the build. Needs no database and no network. */
export function readOperations(): DescribedApi {
  const { paths, components } = JSON.parse(
    readFileSync(new URL('../../openapi.json', import.meta.url), 'utf8'),
  ) as Document
  const operations = Object.entries(paths).map(([path, { post, get }]) =>
    describe(path.slice(1), post ?? get, components.schemas),
  )
  return { operations: new Map(operations.map((each) => [each.name, each])), components: components.schemas }
}

function describe(
  name: string,
  form: Form | undefined,
  components: Readonly<Record<string, JsonSchema>>,
): DescribedOperation {
  if (!form) throw new Error(`${name} is described without a method`)
  const bodies = form.requestBody?.content
  const body = bodies?.['multipart/form-data'] ?? bodies?.['application/json']
  const answer = form.responses['200']?.content['application/json']?.schema ?? {}
  return {
    name,
    area: form.tags[0] ?? '',
    summary: form.summary,
    description: form.description,
    minimumPackage: form['x-minimum-package'],
    callers: form['x-callers'],
    roles: form['x-roles'],
    request: body?.schema ?? queryOf(form),
    example:
      bodies?.['application/json']?.example ??
      body?.example ??
      Object.fromEntries(
        (form.parameters ?? []).flatMap((p) =>
          p.name === undefined || p.example === undefined ? [] : [[p.name, p.example]],
        ),
      ),
    answer: fieldsOf(answer, components, false),
    answerBases: basesOf(answer, components),
  }
}

function queryOf({ parameters = [] }: Form): JsonSchema {
  const query = parameters.filter((p) => p.in === 'query')
  const properties = Object.fromEntries(
    query.map(({ name, schema, description }) => [
      name ?? '',
      { ...schema, ...(description !== undefined && { description }) },
    ]),
  )
  return {
    type: 'object',
    properties,
    required: query.flatMap(({ name, required }) => (required === true && name !== undefined ? [name] : [])),
  }
}

const NAME_WIDTH = 34

/** Lists all operations by area, one operation on each line. */
export function listOperations({ operations }: DescribedApi): string {
  const areas = [...new Set([...operations.values()].map((o) => o.area))]
  const sections = areas.map((area) => {
    const rows = [...operations.values()]
      .filter((o) => o.area === area)
      .map(({ name, summary }) => `  ${name.padEnd(NAME_WIDTH)} ${summary}`)
    return [area, ...rows].join('\n')
  })
  return `${sections.join('\n\n')}\n\nuntag api OPERATION --help shows the fields of an operation.\n`
}

/** Describes the request and the response of an operation. */
export function describeOperation(operation: DescribedOperation, { components }: DescribedApi): string {
  const fields = fieldsOf(operation.request, components, true)
  const rows = fields.map(({ name, type, required, limits, description }) => {
    const notes = [required && !name.includes('.') ? 'needed' : '', limits, description].filter((note) => note !== '')
    return `${`  --${name.replaceAll('[]', '.0')} ${shown(type)}`.padEnd(NAME_WIDTH + 4)} ${notes.join('; ')}`.trimEnd()
  })
  const answer = [
    ...operation.answerBases.map((base) => `  all fields of ${base}`),
    ...operation.answer.map(({ name, type }) => `  ${name}: ${type}`),
  ]
  const parts = [
    `untag api ${operation.name}: ${operation.summary}`,
    ...(operation.description === operation.summary ? [] : ['', operation.description]),
    '',
    `Package ${operation.minimumPackage}; called with ${callersOf(operation)}.`,
    '',
    ...(rows.length > 0 ? rows : ['  (no fields)']),
    "  --json '{…}' or --json @FILE".padEnd(NAME_WIDTH + 4) + ' the whole request; single fields override it',
    '',
    'Response:',
    ...answer,
    '',
    `Example: untag api ${operation.name}${exampleOf(operation.example)}`,
    '',
  ]
  return parts.join('\n')
}

function callersOf({ callers, roles }: DescribedOperation): string {
  const lowest = roles.at(-1)
  const users = lowest === undefined ? [] : [lowest === 'viewer' ? 'any user' : `a user (${lowest} or higher)`]
  return [...callers.map((caller) => CALLERS[caller] ?? caller), ...users].join(', ')
}

const CALLERS: Readonly<Record<string, string>> = {
  secret: 'a secret key',
  publishable: 'a publishable key',
  admin: 'an admin key',
  agent: 'an agent’s login',
  anyone: 'no key',
}

function shown(type: string): string {
  return type.includes('|') ? type.replaceAll(' | ', '|') : type.toUpperCase()
}

function exampleOf(example: Readonly<Record<string, unknown>>): string {
  const simple = Object.values(example).every((value) => typeof value !== 'object')
  if (!simple) return ` --json '${JSON.stringify(example)}'`
  return Object.entries(example)
    .map(([name, value]) => ` --${name} ${quoted(String(value))}`)
    .join('')
}

function quoted(text: string): string {
  return /^[\w.:/@+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
