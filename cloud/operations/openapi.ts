import { z } from 'zod'
import { describeEvents } from '../webhooks/describe-events.ts'
import type { Operation } from './operation.ts'

/** The machine-readable description: OpenAPI 3.0.3 out of the table of operations. */

type Json = Record<string, unknown>

/** Version of the API, not of the program (specification, Versioning). */
export const API_VERSION = '1.7.0'

const ERRORS: Record<string, string> = {
  '400': 'invalid-argument: missing or invalid parameters',
  '401': 'unauthenticated: no valid API key',
  '403': 'permission-denied: the package or the kind of key does not allow it',
  '404': 'not-found',
  '409': 'already-exists, or failed-precondition: the state of things does not allow it',
  '413': 'payload-too-large',
  '415': 'unsupported-media-type',
  '429': 'resource-exhausted: too many requests',
  '500': 'internal',
  '503': 'unavailable: try again',
}

/** OpenAPI 3.0.3 of these operations. */
export function openApi(operations: ReadonlyMap<string, Operation>, baseUrl: string): Json {
  const paths: Record<string, Json> = {}
  const schemas: Record<string, Json> = { Error: ERROR_SCHEMA }
  for (const operation of operations.values()) {
    const name = operation.name.charAt(0).toUpperCase() + operation.name.slice(1)
    schemas[`${name}Request`] = { ...jsonSchema(operation.request, 'input'), example: operation.example }
    schemas[`${name}Response`] = jsonSchema(operation.response, 'output')
    const path: Json = {}
    if (!operation.getOnly) path['post'] = postForm(operation, name)
    const get = operation.getOnly ? operation : operation.get
    if (get) path['get'] = getForm(operation, get, name)
    paths[`/${operation.name}`] = path
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'untag',
      version: API_VERSION,
      description: 'Decides, at the shop door and at the till, whether a security tag may come off.',
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    servers: [{ url: baseUrl }],
    tags: [...new Set([...operations.values()].map((o) => o.area))].map((name) => ({ name })),
    paths,
    components: { schemas, securitySchemes: { key: { type: 'http', scheme: 'bearer', description: 'An API key: untag_test_sk_… or untag_live_sk_…' } } },
    security: [{ key: [] }],
    'x-webhooks': describeEvents(operations.values()),
  }
}

function common(operation: Operation): Json {
  return {
    tags: [operation.area],
    summary: operation.summary,
    description: operation.description,
    'x-minimum-package': operation.minimumPackage,
    'x-callers': operation.callers,
    ...(operation.emits.length > 0 && { 'x-emits': operation.emits }),
    ...(operation.callers.includes('anyone') && { security: [] }),
  }
}

function postForm(operation: Operation, name: string): Json {
  return {
    ...common(operation),
    operationId: operation.name,
    ...(operation.changes && { parameters: [IDEMPOTENCY_KEY] }),
    requestBody: { required: true, content: Object.fromEntries(bodyTypes(operation).map((type) => [type, { schema: ref(`${name}Request`) }])) },
    responses: responses(ref(`${name}Response`)),
  }
}

/** As what a request may be sent: a file that must be there cannot come in JSON. */
function bodyTypes({ multipart, request }: Operation): string[] {
  if (!multipart) return ['application/json']
  const { required = [] } = jsonSchema(request, 'input') as { required?: string[] }
  return [...(multipart.alsoJson && !required.includes(multipart.fileField) ? ['application/json'] : []), 'multipart/form-data']
}

function getForm(operation: Operation, form: { request: z.ZodType; response: z.ZodType }, name: string): Json {
  const { properties = {}, required = [] } = jsonSchema(form.request, 'input') as { properties?: Record<string, Json>; required?: string[] }
  const parameters = Object.entries(properties).map(([field, schema]) => ({ name: field, in: 'query', required: required.includes(field), schema }))
  return {
    ...common(operation),
    operationId: operation.getOnly ? operation.name : `${operation.name}Older`,
    ...(!operation.getOnly && { summary: `${operation.summary} Older listing form.` }),
    parameters,
    responses: responses(operation.getOnly ? ref(`${name}Response`) : jsonSchema(form.response, 'output')),
  }
}

function responses(ok: Json): Json {
  const errors = Object.entries(ERRORS).map(([status, description]) => [status, { description, content: { 'application/json': { schema: ref('Error') } } }])
  return { '200': { description: 'Done.', content: { 'application/json': { schema: ok } } }, ...Object.fromEntries(errors) }
}

function ref(name: string): Json {
  return { $ref: `#/components/schemas/${name}` }
}

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'The same key with the same body within 24 hours gets the same answer, executed once.',
  schema: { type: 'string', minLength: 1, maxLength: 255 },
}

const ERROR_SCHEMA: Json = {
  type: 'object',
  required: ['error', 'code', 'requestId'],
  properties: {
    error: { type: 'string', description: 'For people.' },
    code: { type: 'string' },
    reason: { type: 'string', description: 'A finer word than `code`.' },
    requiredUpgrade: { type: 'string' },
    currentPackage: { type: 'string' },
    details: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'code', 'message'],
        properties: { path: { type: 'string' }, code: { type: 'string' }, message: { type: 'string' } },
      },
    },
    allowedNext: { type: 'array', items: { type: 'string' }, description: 'States that a refused move could have gone to.' },
    requestId: { type: 'string' },
  },
}

function jsonSchema(schema: z.ZodType, io: 'input' | 'output'): Json {
  const made = z.toJSONSchema(schema, { target: 'openapi-3.0', io, unrepresentable: 'any' }) as Json
  return tidy(made, io) as Json
}

/** Bounds that every safe integer has say nothing; a format says more than its pattern; answers may grow fields. */
function tidy(value: unknown, io: 'input' | 'output'): unknown {
  if (Array.isArray(value)) return value.map((each) => tidy(each, io))
  if (typeof value !== 'object' || value === null) return value
  const { $schema: _schema, ...node } = value as Json
  if (node['maximum'] === Number.MAX_SAFE_INTEGER) delete node['maximum']
  if (node['minimum'] === Number.MIN_SAFE_INTEGER) delete node['minimum']
  if (typeof node['format'] === 'string') delete node['pattern']
  if (io === 'output' && node['additionalProperties'] === false) delete node['additionalProperties']
  const merged = mergeLiterals(node)
  return Object.fromEntries(Object.entries(merged).map(([name, child]) => [name, tidy(child, io)]))
}

/** A choice of single values is one enum. */
function mergeLiterals(node: Json): Json {
  const options = node['anyOf'] as Json[] | undefined
  if (!options?.every((option) => Array.isArray(option['enum']) && option['type'] === options[0]?.['type'])) return node
  const { anyOf: _options, ...rest } = node
  return { ...rest, type: options[0]?.['type'], enum: options.flatMap((option) => option['enum'] as unknown[]) }
}
