import { z } from 'zod'
import { PROTECTION_EVENT_TYPES } from '../../../policy/protection-events.ts'
import { EVENT_TYPES, TEST_EVENT } from './event-types.ts'

/**
 * Builds the section `x-webhooks` of the API description, in the form of `webhooks` in OpenAPI 3.1. Includes protection
 * events and the events that operations declare in `emits`.
 */
export function describeEvents(operations: Iterable<{ readonly emits: readonly string[] }>): Record<string, unknown> {
  const sent = new Set<string>([
    TEST_EVENT,
    ...PROTECTION_EVENT_TYPES,
    ...[...operations].flatMap((operation) => operation.emits),
  ])
  const listed = [...EVENT_TYPES.values()].filter((type) => sent.has(type.name))
  return Object.fromEntries(
    listed.map(({ name, when, minimumPackage, data, example }) => {
      const properties = {
        id: {
          type: 'string',
          description: 'The same for every attempt and receiver. Ignore ids that you have processed.',
        },
        event: { type: 'string', enum: [name] },
        type: { type: 'string', enum: [name] },
        timestamp: { type: 'string', format: 'date-time' },
        data: dataSchema(data),
      }
      const schema = { type: 'object', required: ['id', 'event', 'type', 'timestamp', 'data'], properties }
      const shown = {
        id: 'whe_01KANX77J9T1W3Y5A7C9E1G3J5',
        event: name,
        type: name,
        timestamp: '2026-11-20T09:00:00.000Z',
        data: example,
      }
      const post = {
        summary: when,
        'x-minimum-package': minimumPackage,
        requestBody: { content: { 'application/json': { schema, example: shown } } },
        responses: { '200': { description: 'Acknowledged. The cloud retries if it gets no 2xx within 10 s.' } },
      }
      return [name, { post }]
    }),
  )
}

function dataSchema(data: z.ZodType): Record<string, unknown> {
  const { $schema: _schema, ...schema } = z.toJSONSchema(data, {
    target: 'openapi-3.0',
    io: 'output',
    unrepresentable: 'any',
  }) as Record<string, unknown>
  // The API may add fields at any time (specification, Versioning).
  delete schema['additionalProperties']
  return schema
}
