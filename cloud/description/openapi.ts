import { errorsOf, type PossibleError } from './errors.ts'
import { exampleAnswer } from './examples.ts'
import type { JsonSchema } from '../../policy/json-schema.ts'
import type { SchemaWriter } from '../../policy/schema-writer.ts'
import { apiSchemaWriter } from './schema-writer.ts'
import { describeEvents } from '../webhooks/describe-events.ts'
import type { Multipart } from '../operations/body-formats.ts'
import type { LegacyForm, Operation } from '../operations/operation.ts'

/** OpenAPI 3.0.3 description, generated from the table of operations. */

type Json = Record<string, unknown>

/** Version of the API, not of the program (specification, Versioning). */
export const API_VERSION = '1.7.0'

const TITLE = 'untag'
const DESCRIPTION = 'Decides, at the shop door and at the till, whether a security tag may come off.'

/** Errors that are the same for all operations. The description defines them once. */
const COMMON: Readonly<Record<number, { name: string; description: string }>> = {
  401: { name: 'Unauthenticated', description: 'unauthenticated: no valid API key.' },
  415: { name: 'UnsupportedMediaType', description: 'unsupported-media-type.' },
  429: { name: 'TooManyRequests', description: 'resource-exhausted: too many requests; wait for Retry-After.' },
  500: { name: 'Internal', description: 'internal: an unexpected error of the cloud.' },
  503: { name: 'Unavailable', description: 'unavailable: try again after Retry-After.' },
}

const OWN: Readonly<Record<number, string>> = {
  400: 'invalid-argument: missing or invalid parameters; `details` names them.',
  403: 'permission-denied: the package or the kind of key does not allow it.',
  404: 'not-found: unknown, or it belongs to another account.',
  409: 'already-exists, or failed-precondition: the present state does not allow it; `reason` says why.',
  413: 'payload-too-large.',
}

/** One operation with its schemas, example response and errors. */
export interface DescribedOperation {
  readonly operation: Operation
  readonly request: JsonSchema
  readonly response: JsonSchema
  readonly answer: Json
  readonly errors: readonly PossibleError[]
}

/** Description of the API, the source of all documents about it. */
export interface Description {
  readonly baseUrl: string
  readonly operations: readonly DescribedOperation[]
  /** All named schemas. */
  readonly components: Readonly<Record<string, JsonSchema>>
  /** Named schemas that several operations use. */
  readonly shared: Readonly<Record<string, JsonSchema>>
  readonly openApi: Json
}

/** Describes these operations at `baseUrl`. */
export function describeApi(operations: ReadonlyMap<string, Operation>, baseUrl: string): Description {
  const writer = apiSchemaWriter()
  const described = [...operations.values()].map((operation) => describeOperation(operation, writer))
  const paths = Object.fromEntries(described.map((each) => [`/${each.operation.name}`, pathOf(each, writer)]))
  const own = described.flatMap(({ operation: { name, getOnly, multipart, example }, request, response }) => [
    ...(getOnly || multipart?.alsoJson === false
      ? []
      : [[`${titled(name)}Request`, { ...withoutFile(request, multipart), example }] as const]),
    ...(multipart ? [[`${titled(name)}Form`, request] as const] : []),
    [`${titled(name)}Response`, response] as const,
  ])
  const schemas = { Error: ERROR_SCHEMA, ...writer.components, ...Object.fromEntries(own) }
  const openApi: Json = {
    openapi: '3.0.3',
    info: {
      title: TITLE,
      version: API_VERSION,
      description: DESCRIPTION,
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    servers: [{ url: baseUrl }],
    tags: [...new Set(described.map((d) => d.operation.area))].map((name) => ({ name })),
    paths,
    components: {
      schemas,
      parameters: { IdempotencyKey: IDEMPOTENCY_KEY },
      headers: HEADERS,
      responses: commonResponses(described.flatMap((d) => d.errors)),
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'An API key: untag_test_sk_… or untag_live_sk_…' },
      },
    },
    security: [{ key: [] }],
    'x-webhooks': describeEvents(operations.values()),
  }
  return {
    baseUrl,
    operations: described,
    components: schemas,
    shared: { Error: ERROR_SCHEMA, ...writer.components },
    openApi,
  }
}

function titled(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

function describeOperation(operation: Operation, writer: SchemaWriter): DescribedOperation {
  const request = writer.write(operation.request, 'input')
  const response = writer.write(operation.response, 'output')
  const answer = operation.answer ?? (exampleAnswer(response, writer.components, operation.example) as Json)
  return { operation, request, response, answer, errors: errorsOf(operation, Object.keys(request.properties ?? {})) }
}

function pathOf(described: DescribedOperation, writer: SchemaWriter): Json {
  const { operation } = described
  if (operation.getOnly) return { get: getOnlyForm(described) }
  return { ...(operation.get && { get: olderForm(described, operation.get, writer) }), post: postForm(described) }
}

function common({ operation }: DescribedOperation): Json {
  return {
    tags: [operation.area],
    summary: operation.summary,
    description: operation.description,
    'x-minimum-package': operation.minimumPackage,
    'x-callers': operation.callers,
    'x-roles': operation.roles,
    ...(operation.emits.length > 0 && { 'x-emits': operation.emits }),
    ...(operation.callers.includes('anyone') && { security: [] }),
  }
}

function postForm(described: DescribedOperation): Json {
  const { operation, answer } = described
  const name = titled(operation.name)
  return {
    ...common(described),
    operationId: operation.name,
    ...(operation.changes && { parameters: [{ $ref: '#/components/parameters/IdempotencyKey' }] }),
    requestBody: { required: true, content: bodies(described) },
    responses: responses(described, ref(`${name}Response`), answer),
  }
}

/** Content types of a request. If the file is required, only a form can send the request. */
function bodies({ operation, request }: DescribedOperation): Json {
  const { multipart, example, name } = operation
  const isFileNeeded = multipart !== undefined && request.required?.includes(multipart.fileField) === true
  const json = { 'application/json': { schema: ref(`${titled(name)}Request`), example } }
  const form = { 'multipart/form-data': { schema: ref(`${titled(name)}Form`) } }
  return { ...(multipart?.alsoJson !== false && !isFileNeeded && json), ...(multipart && form) }
}

/** Removes the file field from a request schema, because a JSON body cannot contain a file. */
function withoutFile(request: JsonSchema, multipart: Multipart | undefined): JsonSchema {
  if (!multipart || !request.properties) return request
  const { [multipart.fileField]: _file, ...properties } = request.properties
  return { ...request, properties }
}

function getOnlyForm(described: DescribedOperation): Json {
  const { operation, request, answer } = described
  return {
    ...common(described),
    operationId: operation.name,
    parameters: parametersOf(request, operation.example),
    responses: responses(described, ref(`${titled(operation.name)}Response`), answer),
  }
}

function olderForm(described: DescribedOperation, form: LegacyForm, writer: SchemaWriter): Json {
  const { operation } = described
  const response = writer.write(form.response, 'output')
  const answer = exampleAnswer(response, writer.components, operation.example)
  return {
    ...common(described),
    operationId: `${operation.name}Older`,
    summary: `${operation.summary} Older listing form.`,
    parameters: parametersOf(writer.write(form.request, 'input'), operation.example),
    responses: responses(described, response, answer),
  }
}

function parametersOf({ properties = {}, required = [] }: JsonSchema, example: Json): Json[] {
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description !== undefined && { description }),
    ...(example[name] !== undefined && { example: schema.type === 'string' ? String(example[name]) : example[name] }),
    schema,
  }))
}

function responses({ operation, errors }: DescribedOperation, ok: JsonSchema, example: unknown): Json {
  const refused = [...byStatus(errors)].map(([status, cases]) => {
    const shared = COMMON[status]
    return [
      status,
      shared ? { $ref: `#/components/responses/${shared.name}` } : errorResponse(OWN[status] ?? '', cases),
    ] as const
  })
  const headers = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } }
  const forms = operation.formats.map(
    ({ contentType, description }) => [contentType, { schema: { type: 'string', description } }] as const,
  )
  return {
    '200': {
      description: 'Done.',
      headers,
      content: { 'application/json': { schema: ok, example }, ...Object.fromEntries(forms) },
    },
    ...Object.fromEntries(refused),
  }
}

function byStatus(errors: readonly PossibleError[]): Map<number, PossibleError[]> {
  const groups = new Map<number, PossibleError[]>()
  for (const error of errors) groups.set(error.status, [...(groups.get(error.status) ?? []), error])
  return groups
}

function errorResponse(description: string, cases: readonly PossibleError[]): Json {
  const examples = Object.fromEntries(
    cases.map(({ title, example }) => [title.replaceAll(' ', '-'), { summary: title, value: example }]),
  )
  return { description, content: { 'application/json': { schema: ref('Error'), examples } } }
}

function commonResponses(errors: readonly PossibleError[]): Json {
  const made = Object.entries(COMMON).flatMap(([status, { name, description }]) => {
    const one = errors.find((error) => error.status === Number(status))
    if (!one) return []
    const waits = status === '429' || status === '503'
    return [
      [
        name,
        {
          ...errorResponse(description, [one]),
          ...(waits && { headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } } }),
        },
      ] as const,
    ]
  })
  return Object.fromEntries(made)
}

function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` }
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'Requests with the same key and body within 24 hours are executed once and get the same response.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const HEADERS = {
  RequestId: { description: 'Id of this call in logs and error bodies.', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds to wait.', schema: { type: 'integer' } },
}

const ERROR_SCHEMA: JsonSchema = {
  type: 'object',
  required: ['error', 'code', 'requestId'],
  properties: {
    error: { type: 'string', description: 'Message for people.' },
    code: { type: 'string' },
    reason: { type: 'string', description: 'The specific cause.' },
    requiredUpgrade: { type: 'string', description: 'The package that includes the operation.' },
    currentPackage: { type: 'string' },
    details: {
      type: 'array',
      description: 'All faults of the request.',
      items: {
        type: 'object',
        required: ['path', 'code', 'message'],
        properties: { path: { type: 'string' }, code: { type: 'string' }, message: { type: 'string' } },
      },
    },
    allowedNext: {
      type: 'array',
      items: { type: 'string' },
      description: 'Allowed states for a rejected move.',
    },
    retryAt: { type: 'string', format: 'date-time', description: 'Earliest time of the next allowed try.' },
    accounts: {
      type: 'array',
      items: { type: 'string' },
      description: 'Accounts of the person, of whom the caller must name one.',
    },
    flow: { type: 'string', description: 'Flow for the next call of `finishOpenIdSignIn`.' },
    requestId: { type: 'string' },
  },
}
