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
