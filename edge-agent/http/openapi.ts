import { z } from 'zod'
import {
  SCHEMA_POINTER,
  type JsonSchema,
  schemaWriter,
  type SchemaDirection,
  type SchemaWriter,
} from '../../policy/json-schema.ts'
import { AgentFault } from './response-schemas.ts'
import { AGENT_ERRORS, type AgentErrorCode } from './error-codes.ts'
import { AGENT_OPERATIONS, errorsOf, type AgentOperation } from './operations.ts'

/** Makes the OpenAPI 3.0.3 document of the agent's HTTP API from the table of operations. */

type Json = Record<string, unknown>

/** Version of the agent's API, not of the program. Increase it with every change of the document. */
export const AGENT_API_VERSION = '1.7.0'

const OPERATOR_HEADER = {
  name: 'X-Untag-Operator',
  in: 'header',
  required: false,
  description: 'Session of the operator who approves the request, from POST /v1/operator.',
  schema: { type: 'string' },
}
const JSON_TYPE = 'application/json'
const DESCRIPTION =
  'The HTTP API of the agent in the store. A till requests the release of a security tag and receives its outcome. New releases may add fields to answers and values to enums.'
const RETRY_AFTER = { description: 'Seconds to wait.', schema: { type: 'integer' } }

let text: string | undefined

/** Returns the document as JSON. The first call makes the document, so that the start of the agent is not delayed. */
export function agentApiText(): string {
  return (text ??= JSON.stringify(describeAgentApi()))
}

/** Components of the OpenAPI document, collected from the descriptions of the operations. */
interface Parts {
  writer: SchemaWriter
  schemas: Record<string, JsonSchema>
  responses: Record<string, Json>
}

/**
 * Describes the operations for programs. The document is the same for all agents of a release, so it contains no ids,
 * addresses or secrets.
 */
export function describeAgentApi(): Json {
  const parts: Parts = { writer: schemaWriter(), schemas: {}, responses: {} }
  const paths: Record<string, Json> = {}
  for (const [name, operation] of Object.entries<AgentOperation>(AGENT_OPERATIONS)) {
    if (operation.callers !== 'programs') continue
    paths[operation.path] = {
      ...paths[operation.path],
      [operation.method.toLowerCase()]: describe(name, operation, parts),
    }
  }
  return {
    openapi: '3.0.3',
    info: {
      title: 'untag agent',
      version: AGENT_API_VERSION,
      description: DESCRIPTION,
      license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: { ...parts.writer.components, ...parts.schemas },
      responses: parts.responses,
      securitySchemes: {
        credential: { type: 'http', scheme: 'bearer', description: 'A credential of this agent.' },
      },
    },
    security: [{ credential: [] }],
  }
}

function describe(name: string, operation: AgentOperation, parts: Parts): Json {
  const { summary, description, needsCredential, takesSession, request, query, response, alsoStatus, example } =
    operation
  const parameters = [...(takesSession ? [OPERATOR_HEADER] : []), ...(query ? parametersOf(parts.writer, query) : [])]
  const content = {
    [operation.contentType ?? JSON_TYPE]: { schema: named(response, 'output', `${titled(name)}Answer`, parts) },
  }
  const body = request && {
    schema: named(request, 'input', `${titled(name)}Request`, parts),
    ...(example && { example }),
  }
  return {
    operationId: name,
    summary,
    ...(description !== undefined && { description }),
    ...(!needsCredential && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: { [JSON_TYPE]: body } } }),
    responses: {
      200: { description: 'Done.', content },
      ...(alsoStatus && { [alsoStatus]: { description: 'Not healthy, or not ready.', content } }),
      ...errorResponses(errorsOf(operation), parts),
    },
  }
}

/** Returns a reference to a schema. If the schema has no name of its own, adds it under `name`. */
function named(schema: z.ZodType, io: SchemaDirection, name: string, { writer, schemas }: Parts): JsonSchema {
  const written = inPlace(writer, schema, io)
  if (written.$ref !== undefined) return written
  schemas[name] = written
  return { $ref: `${SCHEMA_POINTER}${name}` }
}

/** Returns the error answers, one for each status. Operations with the same errors share the answers. */
function errorResponses(possible: ReadonlySet<AgentErrorCode>, { writer, responses }: Parts): Json {
  const statuses = [...new Set([...possible].map((code) => AGENT_ERRORS[code].status))]
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = [...possible].filter((code) => AGENT_ERRORS[code].status === status)
      const name = codes.map((code) => code.split(/[-_]/).map(titled).join('')).join('Or')
      const code = { type: 'object', properties: { code: { type: 'string', enum: codes } } }
      responses[name] ??= {
        description: codes.map((each) => `\`${each}\`: ${AGENT_ERRORS[each].fix}`).join(' '),
        ...(status === 429 && { headers: { 'Retry-After': RETRY_AFTER } }),
        content: { [JSON_TYPE]: { schema: { allOf: [inPlace(writer, AgentFault, 'output'), code] } } },
      }
      return [status, { $ref: `#/components/responses/${name}` }]
    }),
  )
}

function titled(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1)
}

/** Writes a schema for use inside another schema: a named schema becomes a reference. */
function inPlace(writer: SchemaWriter, schema: z.ZodType, io: SchemaDirection): JsonSchema {
  return writer.write(z.object({ schema }), io).properties?.['schema'] ?? {}
}

function parametersOf(writer: SchemaWriter, query: z.ZodType): Json[] {
  const { properties = {}, required = [] } = inPlace(writer, query, 'input')
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description !== undefined && { description }),
    schema,
  }))
}
