import { exampleAnswer } from './examples.ts'
import { type JsonSchema, type SchemaWriter, schemaWriter, type SchemaDirection } from '../../../policy/json-schema.ts'
import { describeEvents } from '../../platform/webhooks/event-types.ts'
import type { Multipart, ErrorBody } from '../../platform/operations/validation.ts'
import type { LegacyForm, Operation, CallerKind } from '../../platform/operations/operation.ts'
import { z } from 'zod'
import { Product } from '../../shop/catalogue/schema.ts'
import { Device } from '../../protection/devices/device-operations.ts'
import { CheckoutLine, Purchase, TransactionData } from '../../shop/purchases/schema.ts'
import { Store, StoreMasterData } from '../../platform/stores/schema.ts'
import { ERROR_STATUS, type ErrorCode } from '../../platform/foundation/failure.ts'
import { PACKAGES } from '../../platform/foundation/caller.ts'

const CALLERS: Readonly<Record<CallerKind, string>> = {
  secret: 'a secret key',
  publishable: 'a publishable key',
  admin: 'an admin key',
  agent: 'an agent’s login',
  anyone: 'no key',
}

/** Names of the kinds of callers and of the lowest role, as a phrase. */
export function callersInWords({ callers, roles }: Pick<Operation, 'callers' | 'roles'>): string {
  const lowest = roles.at(-1)
  const users = lowest === undefined ? [] : [lowest === 'viewer' ? 'any user' : `a user (${lowest} or higher)`]
  const words = [...callers.map((caller) => CALLERS[caller]), ...users]
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1) ?? ''}`
}

/** An error that an operation may return, for its documentation. */
interface PossibleError {
  readonly status: number
  readonly code: ErrorCode
  /** Short name of the case: the key of its example. */
  readonly title: string
  readonly example: ErrorBody
}

const REQUEST_ID = 'req_01KANXA4B6C8D1E3F5G7H9J2K4'

function possible(code: ErrorCode, title: string, error: string, extras: Partial<ErrorBody> = {}): PossibleError {
  return { status: ERROR_STATUS[code], code, title, example: { error, code, ...extras, requestId: REQUEST_ID } }
}

/** Errors that an operation may return, in the order of the checks (ADR requests). */
function errorsOf(operation: Operation, fields: readonly string[]): PossibleError[] {
  const { callers, minimumPackage, name } = operation
  const open = callers.includes('anyone')
  const sends = !operation.getOnly
  return [
    ...(open
      ? []
      : [possible('unauthenticated', 'no key', 'send an API key in the header Authorization: Bearer untag_…')]),
    possible('resource-exhausted', 'too many requests', 'too many requests'),
    ...(open || callers.includes('publishable')
      ? []
      : [
          possible('permission-denied', 'wrong kind of key', `${name} needs a secret key; you sent a publishable key`, {
            reason: 'publishable_not_allowed',
          }),
        ]),
    ...(sends
      ? [possible('payload-too-large', 'body too large', `the body is larger than ${operation.bodyLimit} bytes`)]
      : []),
    ...(sends
      ? [
          possible(
            'unsupported-media-type',
            'no JSON',
            `send the body as ${operation.multipart?.alsoJson === false ? 'multipart/form-data' : 'application/json'}, not text/plain`,
          ),
        ]
      : []),
    unknownField(fields),
    ...(open || minimumPackage === PACKAGES[0] ? [] : [packageTooLow(operation)]),
    ...(fields.some((field) => /(?:Id|token|nonce)$/i.test(field))
      ? [possible('not-found', 'unknown or foreign', notFoundText(fields))]
      : []),
    ...(operation.changes && !open
      ? [
          possible('already-exists', 'Idempotency-Key used', 'this Idempotency-Key was used for another request', {
            reason: 'idempotency_key_reused',
          }),
        ]
      : []),
    ...operation.refusals.map((reason) =>
      possible('failed-precondition', reason, reason.replaceAll('_', ' '), { reason }),
    ),
    possible('internal', 'unexpected error', 'an unexpected error occurred and was logged with this requestId'),
    possible('unavailable', 'busy', 'too many requests wait; try again'),
  ]
}

function unknownField(fields: readonly string[]): PossibleError {
  const meant = fields.find((field) => field.length > 4)
  const path = meant === undefined ? 'colour' : meant.slice(0, -1)
  const message = `unknown field "${path}"${meant === undefined ? '' : `; did you mean "${meant}"?`}`
  return possible('invalid-argument', 'unknown field', message, { details: [{ path, code: 'unknown_field', message }] })
}

function packageTooLow({ name, minimumPackage }: Operation): PossibleError {
  const currentPackage = PACKAGES[PACKAGES.indexOf(minimumPackage) - 1] ?? PACKAGES[0]
  return possible('permission-denied', 'package too low', `${name} needs the package ${minimumPackage}`, {
    reason: 'package_too_low',
    requiredUpgrade: minimumPackage,
    currentPackage,
  })
}

function notFoundText(fields: readonly string[]): string {
  const id =
    fields.find((field) => field.endsWith('Id') && field !== 'storeId') ?? fields.find((field) => field.endsWith('Id'))
  const words: Record<string, string> = { transactionId: 'purchase', purchaseId: 'purchase', storeId: 'store' }
  return id === undefined ? 'no such receipt' : `no such ${words[id] ?? id.slice(0, -2)}`
}

/**
 * Schemas that the description defines once and references. Other schemas name themselves with `.meta({ id: 'Offer' })`.
 */
const SHARED = { Store, StoreMasterData, Product, Device, CheckoutLine, Purchase, TransactionData }

/** Registers the names of the shared schemas. Idempotent. */
function nameSharedSchemas(): void {
  for (const [id, schema] of Object.entries(SHARED))
    if (z.globalRegistry.get(schema)?.id === undefined) z.globalRegistry.add(schema, { id })
}

/** Object schemas with a name, by name. */
function namedObjects(): Map<string, z.ZodObject> {
  const named = new Map<string, z.ZodObject>()
  for (const [id, schema] of z.globalRegistry._idmap) if (schema instanceof z.ZodObject) named.set(id, schema)
  return named
}

/** Minimum number of fields of a shared schema that responses reference as their base. */
const WORTH_SHARING = 3

/**
 * Makes a writer. If a response extends a shared schema, the writer describes the response as this schema plus further
 * fields.
 */
function apiSchemaWriter(): SchemaWriter {
  nameSharedSchemas()
  const { components, write: plain } = schemaWriter()

  function write(schema: z.ZodType, io: SchemaDirection): JsonSchema {
    const base = io === 'output' ? baseOf(schema) : undefined
    if (!base) return plain(schema, io)
    const more = plain(base.rest, io)
    return { allOf: [plain(base.shared, io), ...(Object.keys(more.properties ?? {}).length > 0 ? [more] : [])] }
  }

  return { components, write }
}

/** Finds the largest shared schema whose fields are all in this schema, and the further fields of this schema. */
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
